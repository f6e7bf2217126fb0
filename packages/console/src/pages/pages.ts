import { Audit } from "./audit/audit.tsx";
import { Nodes } from "./nodes/nodes.tsx";
import { Overview } from "./overview/overview.tsx";
import { lazily } from "./lazy.tsx";
import type { Page } from "./page.ts";
import { Tokens } from "./tokens/tokens.tsx";
import { Leases } from "./workers/leases.tsx";
import { Workers } from "./workers/workers.tsx";

// The kinds' tables, which these pages need, weigh as much as all the rest.
const Tags = lazily(async () => (await import("./tags/tags.tsx")).Tags);
const TagPage = lazily(async () => (await import("./tags/tag.tsx")).TagPage);
const NewTag = lazily(async () => (await import("./tags/new-tag.tsx")).NewTag);
const Ids = lazily(async () => (await import("./ids/ids.tsx")).Ids);

/** All pages, in the order of the menu. */
export const PAGES: readonly Page[] = [
  { path: "", nav: "overview.nav", view: Overview },
  { path: "tags", nav: "tags.nav", view: Tags },
  { path: "tags/:tag", under: "tags", view: TagPage },
  { path: "new-tag", under: "tags", view: NewTag },
  { path: "ids", nav: "ids.nav", view: Ids },
  { path: "nodes", nav: "nodes.nav", view: Nodes },
  { path: "workers", nav: "workers.nav", view: Workers },
  { path: "workers/:tag", under: "workers", view: Leases },
  { path: "audit", nav: "audit.nav", role: "admin", view: Audit },
  { path: "tokens", nav: "tokens.nav", role: "admin", view: Tokens },
];

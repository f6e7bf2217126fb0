import { Audit } from "./audit/audit.tsx";
import { Nodes } from "./nodes/nodes.tsx";
import { Overview } from "./overview/overview.tsx";
import type { Page } from "./page.ts";
import { Tokens } from "./tokens/tokens.tsx";
import { Leases } from "./workers/leases.tsx";
import { Workers } from "./workers/workers.tsx";

/** All pages, in the order of the menu. */
export const PAGES: readonly Page[] = [
  { path: "", nav: "overview.nav", view: Overview },
  { path: "nodes", nav: "nodes.nav", view: Nodes },
  { path: "workers", nav: "workers.nav", view: Workers },
  { path: "workers/:tag", under: "workers", view: Leases },
  { path: "audit", nav: "audit.nav", role: "admin", view: Audit },
  { path: "tokens", nav: "tokens.nav", role: "admin", view: Tokens },
];

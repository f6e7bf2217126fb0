import { Audit } from "./audit/audit.tsx";
import { Nodes } from "./nodes/nodes.tsx";
import { Overview } from "./overview/overview.tsx";
import type { Page } from "./page.ts";
import { Tokens } from "./tokens/tokens.tsx";

/** All pages, in the order of the menu. */
export const PAGES: readonly Page[] = [
  { path: "", nav: "overview.nav", view: Overview },
  { path: "nodes", nav: "nodes.nav", view: Nodes },
  { path: "audit", nav: "audit.nav", role: "admin", view: Audit },
  { path: "tokens", nav: "tokens.nav", role: "admin", view: Tokens },
];

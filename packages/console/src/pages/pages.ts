import { Nodes } from "./nodes/nodes.tsx";
import { Overview } from "./overview/overview.tsx";
import type { Page } from "./page.ts";

/** All pages, in the order of the menu. */
export const PAGES: readonly Page[] = [
  { path: "", nav: "overview.nav", view: Overview },
  { path: "nodes", nav: "nodes.nav", view: Nodes },
];

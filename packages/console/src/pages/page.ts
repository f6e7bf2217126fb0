import type { ComponentType } from "preact";
import type { Role } from "../state/access.ts";
import type { TextKey } from "../text/text.ts";

/** One page of the console. `pages.ts` has all of them. */
export interface Page {
  /** Its address below /console/: literal parts and `:name`. */
  readonly path: string;
  /** What it is called in the menu; undefined: it is reached from another page. */
  readonly nav?: TextKey;
  /** A page of the menu is shown to those who have this role for all tags; undefined: to everybody. */
  readonly role?: Role;
  /** Shown instead of its own place in the menu, for pages below others. */
  readonly under?: string;
  readonly view: ComponentType<PageProps>;
}

/** What the URL says; see `setQuery` for changing it. */
export interface PageProps {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

import { HttpRefusal } from "./answers.ts";
import type { Route } from "./route.ts";

/** Paths of another server's clients that are served only when an option says so; whoever calls them is told which one. */
export function unservedRoute(matches: Route["matches"], option: { readonly key: string }): Route {
  const text = `nothing is served at this path; the option ${option.key} of the server serves it`;
  return {
    matches,
    methods: "any",
    answer: () => {
      throw new HttpRefusal(404, "unimplemented", text);
    },
  };
}

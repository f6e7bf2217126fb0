import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { hrefOf, type Route, routeOf } from "./route-state.ts";

const url = signal(new URL(location.href));
let patterns: readonly string[] = [];

/** The view that the URL asks for. All that a view remembers is here, so that a reload or a link shows the same. */
export const route: ReadonlySignal<Route> = computed(() => routeOf(url.value, patterns));

/** Follows the URL. Call it once, with the patterns of all pages. */
export function followLocation(pages: readonly string[]): void {
  patterns = pages;
  url.value = new URL(location.href);
  addEventListener("popstate", () => {
    url.value = new URL(location.href);
  });
  document.addEventListener("click", onClick);
}

export function goTo(href: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  if (replace) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  url.value = new URL(location.href);
}

/**
 * Changes parts of the present view's query; `undefined` or an empty text takes one away. What is typed replaces the entry of
 * the history, so that "back" leaves the view.
 */
export function setQuery(
  change: Readonly<Record<string, string | undefined>>,
  options: { readonly replace?: boolean } = { replace: true },
): void {
  const { page, params, query } = route.value;
  if (page !== undefined) goTo(hrefOf(page, params, { ...query, ...change }), options);
}

/** Links of the console change the view; all others, and those with a key held, are the browser's. */
function onClick(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (link === null || link.target !== "" || link.hasAttribute("download")) return;
  const to = new URL(link.href, location.href);
  if (to.origin !== location.origin || !to.pathname.startsWith("/console/")) return;
  // A link to a place on the same page, such as the skip link.
  if (to.pathname === location.pathname && to.search === location.search && to.hash !== "") return;
  event.preventDefault();
  goTo(`${to.pathname}${to.search}`);
}

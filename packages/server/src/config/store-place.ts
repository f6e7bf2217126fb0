import { backendOf, BACKENDS } from "../store/shared/backends.ts";
import type { Config } from "./table.ts";

/** The store of a configuration, to be shown to people: without passwords and whatever else its URLs carry. */
export function storePlace({
  storeUrl,
  storeMoreUrls,
}: Pick<Config, "storeUrl" | "storeMoreUrls">): string {
  if (storeMoreUrls.size === 0) return placeOf(storeUrl);
  return placesText(new Map([["default", storeUrl], ...storeMoreUrls]));
}

/** The ticket databases of a configuration, in the same way. */
export function ticketPlace({ ticketUrls }: Pick<Config, "ticketUrls">): string {
  return placesText(ticketUrls);
}

function placesText(urls: ReadonlyMap<string, string>): string {
  return [...urls].map(([name, url]) => `${name}=${placeOf(url)}`).join(", ");
}

function placeOf(url: string): string {
  return BACKENDS[backendOf(url)].placeOf(url);
}

import { resolve } from "node:path";
import type { Config } from "./table.ts";

/** The store of a configuration, to be shown to people: without passwords and whatever else its URLs carry. */
export function storePlace({
  storeUrl,
  storeMoreUrls,
}: Pick<Config, "storeUrl" | "storeMoreUrls">): string {
  if (storeUrl.startsWith("sqlite:")) return `sqlite:${resolve(storeUrl.slice("sqlite:".length))}`;
  if (storeMoreUrls.size === 0) return databasePlace(storeUrl);
  return placesText(new Map([["default", storeUrl], ...storeMoreUrls]));
}

/** The ticket databases of a configuration, in the same way. */
export function ticketPlace({ ticketUrls }: Pick<Config, "ticketUrls">): string {
  return placesText(ticketUrls);
}

function placesText(urls: ReadonlyMap<string, string>): string {
  return [...urls].map(([name, url]) => `${name}=${databasePlace(url)}`).join(", ");
}

/** Built from the parts that may be shown, so that no part is shown by oversight. */
function databasePlace(text: string): string {
  const { username, host, pathname, searchParams } = new URL(text);
  const user = username === "" ? "" : `${username}@`;
  // The folder of a Unix socket stands in a parameter.
  const socket = searchParams.get("host");
  const end = socket === null ? "" : `?host=${encodeURIComponent(socket)}`;
  return `postgres://${user}${host}${pathname}${end}`;
}

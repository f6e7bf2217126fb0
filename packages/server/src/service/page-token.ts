import type { FieldViolation } from "@idmint/core";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1_000;

/** How many a page holds. More than the server's limit means the limit. */
export function pageLimitOf(pageSize: number): number {
  return pageSize === 0 ? DEFAULT_PAGE_SIZE : Math.min(pageSize, MAX_PAGE_SIZE);
}

/** What is wrong with a page size, or undefined. */
export function pageSizeViolation(pageSize: number): FieldViolation | undefined {
  if (pageSize >= 0) return undefined;
  return {
    field: "page_size",
    description: `must not be negative, got ${pageSize}`,
    reason: "VALUE_OUT_OF_RANGE",
  };
}

const VERSION = "1";
/** Longer than any token made here. */
const MAX_LENGTH = 512;

/**
 * The token of the page after `after`, in the list that the parts name: a token of another list is refused. No part and
 * no `after` holds a slash.
 */
export function encodePageToken(after: string, list: readonly string[]): string {
  return Buffer.from([VERSION, ...list, after].join("/"), "utf8").toString("base64url");
}

/** What a page begins after; "" without a token, undefined when the token is not one of this list. */
export function decodePageToken(token: string, list: readonly string[]): string | undefined {
  if (token === "") return "";
  if (token.length > MAX_LENGTH) return undefined;
  const after = Buffer.from(token, "base64url")
    .toString("utf8")
    .split("/")
    .at(list.length + 1);
  if (after === undefined || after === "") return undefined;
  // Comparing with the token made anew refuses everything but our own text, padding and all.
  return encodePageToken(after, list) === token ? after : undefined;
}

/** What a page token belongs to: a page of another list is refused. */
interface List {
  readonly prefix: string;
  readonly showDeleted: boolean;
}

const VERSION = "1";
/** Longer than any token made here. */
const MAX_LENGTH = 512;

/** The token of the page after `afterName`. Tag names and prefixes hold no slash. */
export function encodePageToken(afterName: string, { prefix, showDeleted }: List): string {
  const text = [VERSION, showDeleted ? "deleted" : "alive", prefix, afterName].join("/");
  return Buffer.from(text, "utf8").toString("base64url");
}

/** The name a page begins after; "" without a token, undefined when the token is not one of this list. */
export function decodePageToken(token: string, list: List): string | undefined {
  if (token === "") return "";
  if (token.length > MAX_LENGTH) return undefined;
  const afterName = Buffer.from(token, "base64url").toString("utf8").split("/").at(3);
  if (afterName === undefined || afterName === "") return undefined;
  // Comparing with the token made anew refuses everything but our own text, padding and all.
  return encodePageToken(afterName, list) === token ? afterName : undefined;
}

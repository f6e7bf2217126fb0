import { createHash } from "node:crypto";
import { invalidFields } from "@idmint/core";
import { isTagPattern, type Principal, Rights } from "@idmint/core/server";

const MAX_LINES = 10_000;
const LINE = /^([^\s,]{1,256})[,\t]([^\s,]+)$/;
/** Digits of a token's hash by which its principal is called. */
const NAME_DIGITS = 16;

/**
 * Whom the tokens of Tinyid's clients prove, by the SHA-256 of each: its table `tiny_id_token`, a line for each token and tag. A
 * token may take ids of its tags and do nothing else. Throws INVALID_ARGUMENT that names the line and shows no token.
 */
export function parseTinyidTokens(text: string): ReadonlyMap<string, Principal> {
  const tags = new Map<string, string[]>();
  const lines = text.split(/\r?\n/);
  if (lines.length > MAX_LINES + 1) throw wrong(`must have at most ${MAX_LINES} lines`);
  lines.forEach((line, at) => {
    if (line.trim() === "") return;
    const [, token, tag = ""] = LINE.exec(line) ?? [];
    if (token === undefined || !isTagPattern(tag)) {
      throw wrong(`line ${at + 1} must be a token, a comma or a tab, and the name of a tag`);
    }
    const hash = createHash("sha256").update(token).digest("hex");
    tags.set(hash, [...(tags.get(hash) ?? []), tag]);
  });
  return new Map([...tags].map(([hash, its]) => [hash, principalOf(hash, its)]));
}

function principalOf(hash: string, tags: readonly string[]): Principal {
  const rights = new Rights(tags.map((each) => ({ role: "issue", tags: each })));
  return { name: `tinyid-${hash.slice(0, NAME_DIGITS)}`, proof: "token", tokenId: "", rights };
}

function wrong(description: string): Error {
  return invalidFields([{ field: "tinyid.tokens", description }]);
}

import type { ResponseOf } from "../../api/json.ts";
import { type Expiry, expiryOf, type KnownToken } from "./expiry.ts";
import { ROLES, type TypedRight } from "./token-form.ts";

export type Answer = ResponseOf<"AccessService", "listTokens">;

/** A token of the list. */
export interface Listed extends KnownToken {
  readonly rights: readonly TypedRight[];
  readonly expiry: Expiry;
}

/** The tokens of an answer by principal, first those that end first. */
export function listedOf({ tokens }: Answer, nowMs: number): readonly Listed[] {
  const known = tokens.map(({ tokenId, principal, rights, createTime, expireTime }) => ({
    tokenId,
    principal,
    rights: rights.flatMap(({ role, tags }) => {
      const name = ROLES.find((one) => `ROLE_${one.toUpperCase()}` === role);
      return name === undefined ? [] : [{ role: name, tags }];
    }),
    createdAtMs: Date.parse(createTime ?? ""),
    expiresAtMs: Date.parse(expireTime ?? ""),
  }));
  return known
    .map((one) => ({ ...one, expiry: expiryOf(one, known, nowMs) }))
    .toSorted(
      (a, b) => a.principal.localeCompare(b.principal, "en") || a.expiresAtMs - b.expiresAtMs,
    );
}

/** What is known of a token, of its times in milliseconds since 1970. */
export interface KnownToken {
  readonly tokenId: string;
  readonly principal: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** `soon`: a sixth of its time is left, or less, and its principal has no token that is valid for longer. */
export type Expiry = "expired" | "soon" | "valid";

/** Whoever is to change a token has this part of its time for it: two weeks of 90 days. */
const LAST_PART = 6;

export function expiryOf(token: KnownToken, all: readonly KnownToken[], nowMs: number): Expiry {
  const { createdAtMs, expiresAtMs } = token;
  if (expiresAtMs <= nowMs) return "expired";
  const isLate = expiresAtMs - nowMs <= (expiresAtMs - createdAtMs) / LAST_PART;
  return isLate && !isReplaced(token, all) ? "soon" : "valid";
}

/** Whether its principal has a newer token, valid for longer: then this one is to be revoked, not to be replaced. */
export function isReplaced(token: KnownToken, all: readonly KnownToken[]): boolean {
  return all.some(
    ({ principal, createdAtMs, expiresAtMs }) =>
      principal === token.principal &&
      createdAtMs > token.createdAtMs &&
      expiresAtMs > token.expiresAtMs,
  );
}

/** The public part of a token's text; undefined: it is none of the store's. */
export function idOfToken(text: string): string | undefined {
  return /^idm_([0-9a-f]{16})_/.exec(text)?.[1];
}

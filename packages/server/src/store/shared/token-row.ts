import type { Right, Token } from "@idmint/core/server";

/** A row of the table `token`. SQLite has its integers as bigint; others write them as text. */
export interface TokenRow {
  readonly id: string;
  readonly principal: string;
  /** JSON. */
  readonly rights: string;
  readonly hash: string;
  readonly created_at_ms: bigint | string | number;
  readonly expires_at_ms: bigint | string | number;
}

export const TOKEN_COLUMNS: readonly (keyof TokenRow)[] = [
  "id",
  "principal",
  "rights",
  "hash",
  "created_at_ms",
  "expires_at_ms",
];

export function tokenFromRow(row: TokenRow): Token {
  const { id, principal, rights, hash, created_at_ms, expires_at_ms } = row;
  return {
    id,
    principal,
    rights: JSON.parse(rights) as Right[],
    hash,
    createdAtMs: Number(created_at_ms),
    expiresAtMs: Number(expires_at_ms),
  };
}

/** The values of TOKEN_COLUMNS, in their order. */
export function valuesOfToken(token: Token): [string, string, string, string, bigint, bigint] {
  const { id, principal, rights, hash, createdAtMs, expiresAtMs } = token;
  const times = [BigInt(createdAtMs), BigInt(expiresAtMs)] as const;
  return [id, principal, JSON.stringify(rights), hash, ...times];
}

import {
  type AuditNote,
  KEPT_EXPIRED_MS,
  MAX_TOKENS,
  type Token,
  type TokenList,
} from "@idmint/core/server";
import { noted } from "./audit.ts";
import type { MemoryDatabase } from "./database.ts";

export function readTokens({ access }: MemoryDatabase, known: string | undefined): TokenList {
  return access.version === known ? { version: known, tokens: undefined } : access;
}

export function addToken(database: MemoryDatabase, token: Token, by?: AuditNote): boolean {
  const before = database.now() - KEPT_EXPIRED_MS;
  const kept = database.access.tokens.filter(({ expiresAtMs }) => expiresAtMs >= before);
  if (kept.length >= MAX_TOKENS || kept.some(({ id }) => id === token.id)) return false;
  const tokens = [...kept, token].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  database.access = { version: database.randomToken(), tokens };
  noted(database, by, `token/${token.id}`, [undefined, { principal: token.principal }]);
  return true;
}

export function removeToken(database: MemoryDatabase, id: string, by?: AuditNote): boolean {
  const tokens = database.access.tokens.filter((token) => token.id !== id);
  if (tokens.length === database.access.tokens.length) return false;
  database.access = { version: database.randomToken(), tokens };
  noted(database, by, `token/${id}`, [{}, {}]);
  return true;
}

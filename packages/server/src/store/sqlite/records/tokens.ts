import { randomUUID } from "node:crypto";
import {
  type AuditNote,
  KEPT_EXPIRED_MS,
  MAX_TOKENS,
  type Token,
  type TokenList,
} from "@idmint/core/server";
import { tokenChanged } from "../../shared/records/audit.ts";
import {
  TOKEN_COLUMNS,
  tokenFromRow,
  type TokenRow,
  valuesOfToken,
} from "../../shared/token-row.ts";
import type { Transaction } from "../file/connection.ts";
import type { Database } from "../file/database.ts";
import { addAudit } from "./audit.ts";

const COLUMNS = TOKEN_COLUMNS.join(", ");
const PLACES = TOKEN_COLUMNS.map(() => "?").join(", ");
const VERSION = "SELECT version FROM access";
const READ = `SELECT ${COLUMNS} FROM token ORDER BY id LIMIT ${MAX_TOKENS}`;
const FORGET = "DELETE FROM token WHERE expires_at_ms < ?";
const COUNT = "SELECT count(*) AS count FROM token";
const ADD = `INSERT OR IGNORE INTO token (${COLUMNS}) VALUES (${PLACES})`;
const REMOVE = `DELETE FROM token WHERE id = ? RETURNING ${COLUMNS}`;
const CHANGE = `INSERT INTO access (singleton, version) VALUES (1, ?)
  ON CONFLICT (singleton) DO UPDATE SET version = excluded.version`;

/** A store that is fenced is read and written all the same. */
const ANYWAY = { fenced: "allow" } as const;

export function readTokens(
  database: Database,
  deadlineMs: number,
  known: string | undefined,
): TokenList {
  return database.read(deadlineMs, (transaction) => {
    const version = (transaction.get(VERSION)?.["version"] as string | undefined) ?? "";
    if (version === known) return { version, tokens: undefined };
    const rows = transaction.all(READ);
    return { version, tokens: rows.map((row) => tokenFromRow(row as unknown as TokenRow)) };
  });
}

export function addToken(
  database: Database,
  deadlineMs: number,
  token: Token,
  by?: AuditNote,
): boolean {
  const write = (transaction: Transaction): boolean => {
    const expiredMs = BigInt(database.now() - KEPT_EXPIRED_MS);
    if (transaction.run(FORGET, expiredMs) > 0) transaction.run(CHANGE, randomUUID());
    if (Number(transaction.get(COUNT)?.["count"]) >= MAX_TOKENS) return false;
    if (transaction.run(ADD, ...valuesOfToken(token)) === 0) return false;
    transaction.run(CHANGE, randomUUID());
    if (by !== undefined) addAudit(transaction, tokenChanged(by, database.now(), token, true));
    return true;
  };
  return database.write(deadlineMs, write, ANYWAY);
}

export function removeToken(
  database: Database,
  deadlineMs: number,
  id: string,
  by?: AuditNote,
): boolean {
  const write = (transaction: Transaction): boolean => {
    const row = transaction.get(REMOVE, id);
    if (row === undefined) return false;
    transaction.run(CHANGE, randomUUID());
    const token = tokenFromRow(row as unknown as TokenRow);
    if (by !== undefined) addAudit(transaction, tokenChanged(by, database.now(), token, false));
    return true;
  };
  return database.write(deadlineMs, write, ANYWAY);
}

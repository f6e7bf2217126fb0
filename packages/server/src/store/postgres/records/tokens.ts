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
import type { Connections, Session } from "../connections.ts";
import { addAudit, nowOf } from "./audit.ts";

const COLUMNS = TOKEN_COLUMNS.join(", ");
const PLACES = TOKEN_COLUMNS.map((_, at) => `$${at + 1}`).join(", ");
/** One statement, so that version and rows are of one moment. */
const READ = {
  name: "idmint-tokens-1",
  text: `SELECT a.version, CASE WHEN a.version = $1 THEN NULL ELSE (
  SELECT coalesce(json_agg(json_build_object(
    'id', t.id, 'principal', t.principal, 'rights', t.rights::text, 'hash', t.hash,
    'created_at_ms', t.created_at_ms::text, 'expires_at_ms', t.expires_at_ms::text) ORDER BY t.id), '[]')
  FROM idmint.token AS t) END AS tokens
FROM idmint.access AS a`,
};
/** Writers wait for each other here, so none counts what another one is about to add. */
const LOCK = "SELECT version FROM idmint.access FOR UPDATE";
const CHANGE = "UPDATE idmint.access SET version = gen_random_uuid()::text";
const NOW_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const FORGET = `DELETE FROM idmint.token WHERE expires_at_ms < ${NOW_MS} - ${KEPT_EXPIRED_MS} RETURNING id`;
const COUNT = "SELECT count(*)::int AS count FROM idmint.token";
const ADD = `INSERT INTO idmint.token (${COLUMNS}) VALUES (${PLACES}) ON CONFLICT DO NOTHING RETURNING id`;
const REMOVE =
  "DELETE FROM idmint.token WHERE id = $1 RETURNING id, principal, rights::text, hash, created_at_ms, expires_at_ms";

interface Answer {
  readonly version: string;
  readonly tokens: readonly TokenRow[] | null;
}

export async function readTokens(
  connections: Connections,
  known: string | undefined,
): Promise<TokenList> {
  const values = [known ?? null];
  const rows = await connections.run((session) => session.query<Answer>({ ...READ, values }));
  const [row] = rows;
  return { version: row?.version ?? "", tokens: row?.tokens?.map(tokenFromRow) };
}

export async function addToken(
  connections: Connections,
  token: Token,
  by?: AuditNote,
): Promise<boolean> {
  return changing(connections, async (session) => {
    const forgotten = await session.query({ text: FORGET });
    if (forgotten.length > 0) await session.query({ text: CHANGE });
    const [found] = await session.query<{ count: number }>({ text: COUNT });
    if ((found?.count ?? 0) >= MAX_TOKENS) return false;
    const added = await session.query({ text: ADD, values: valuesOfToken(token).map(String) });
    if (added.length === 0) return false;
    await session.query({ text: CHANGE });
    if (by !== undefined) {
      await addAudit(session, tokenChanged(by, await nowOf(session), token, true));
    }
    return true;
  });
}

export async function removeToken(
  connections: Connections,
  id: string,
  by?: AuditNote,
): Promise<boolean> {
  return changing(connections, async (session) => {
    const [removed] = await session.query<TokenRow>({ text: REMOVE, values: [id] });
    if (removed === undefined) return false;
    await session.query({ text: CHANGE });
    if (by !== undefined) {
      const token = tokenFromRow(removed);
      await addAudit(session, tokenChanged(by, await nowOf(session), token, false));
    }
    return true;
  });
}

/** The work gives the list another version where it changes something, since all servers read the list anew then. */
async function changing(
  connections: Connections,
  work: (session: Session) => Promise<boolean>,
): Promise<boolean> {
  return connections.run((session) =>
    session.transaction(async () => {
      await session.query({ text: LOCK });
      return work(session);
    }),
  );
}

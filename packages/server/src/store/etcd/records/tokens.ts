import { randomUUID } from "node:crypto";
import {
  type AuditNote,
  KEPT_EXPIRED_MS,
  MAX_TOKENS,
  type Token,
  type TokenList,
} from "@idmint/core/server";
import { tokenChanged } from "../../shared/records/audit.ts";
import type { KeyValue, Op } from "../cluster/protocol.ts";
import { type Etcd, MAX_OPS, type Session } from "../session/etcd.ts";
import { putAudit } from "./audit.ts";

/** A store that is fenced is read and written all the same. */
const ANYWAY = { fenced: "allow" } as const;
/** Most expired tokens that one change removes: with itself, it stays within one transaction. */
const MAX_FORGOTTEN = Math.min(20, MAX_OPS - 3);

const versionOf = (kv: KeyValue | undefined): string => kv?.value.toString() ?? "";
const tokenFrom = ({ value }: KeyValue): Token => JSON.parse(value.toString()) as Token;

/** The key of the version stands for all tokens: whoever changes one writes it, over the very one that was read. */
async function list(session: Session): Promise<{
  readonly kv: KeyValue | undefined;
  readonly rows: readonly KeyValue[];
}> {
  for (let attempt = 1; ; attempt++) {
    const { keys } = session;
    const [[before] = []] = await session.read([{ key: keys.one("access") }], ANYWAY);
    const rows = await session.readAll(keys.tokens(), MAX_TOKENS, ANYWAY);
    // The rows may be of several pages, so nobody may have changed one in between.
    const [[after] = []] = await session.read([{ key: keys.one("access") }], ANYWAY);
    if (before?.modRevision === after?.modRevision) return { kv: after, rows };
    await session.afterConflict(attempt);
  }
}

export async function readTokens(etcd: Etcd, known: string | undefined): Promise<TokenList> {
  return etcd.run(async (session) => {
    const [[kv] = []] = await session.read([{ key: etcd.keys.one("access") }], ANYWAY);
    if (versionOf(kv) === known) return { version: versionOf(kv), tokens: undefined };
    const found = await list(session);
    return { version: versionOf(found.kv), tokens: found.rows.map(tokenFrom) };
  });
}

/** False where `change` answers nothing to do. */
async function changing(
  etcd: Etcd,
  change: (rows: readonly KeyValue[]) => readonly Op[] | undefined,
): Promise<boolean> {
  return etcd.run(async (session) => {
    const key = etcd.keys.one("access");
    for (let attempt = 1; ; attempt++) {
      const { kv, rows } = await list(session);
      const ops = change(rows);
      if (ops === undefined) return false;
      const compare = [{ key, modRevision: kv?.modRevision ?? "0" }];
      const success = [...ops, { put: { key, value: Buffer.from(randomUUID()) } }];
      const { answers } = await session.write([{ txn: { compare, success, failure: [] } }], ANYWAY);
      if (answers[0]?.txn?.succeeded === true) return true;
      await session.afterConflict(attempt);
    }
  });
}

export async function addToken(etcd: Etcd, token: Token, by?: AuditNote): Promise<boolean> {
  const key = etcd.keys.token(token.id);
  return changing(etcd, (rows) => {
    const before = etcd.now() - KEPT_EXPIRED_MS;
    const expired = rows.filter((kv) => tokenFrom(kv).expiresAtMs < before).slice(0, MAX_FORGOTTEN);
    if (rows.length - expired.length >= MAX_TOKENS) return undefined;
    if (rows.some((kv) => kv.key.equals(key))) return undefined;
    const removals = expired.map((kv): Op => ({ remove: { key: kv.key } }));
    const value = Buffer.from(JSON.stringify(token));
    const told =
      by === undefined ? [] : [putAudit(etcd.keys, tokenChanged(by, etcd.now(), token, true))];
    return [...removals, { put: { key, value } }, ...told];
  });
}

export async function removeToken(etcd: Etcd, id: string, by?: AuditNote): Promise<boolean> {
  const key = etcd.keys.token(id);
  return changing(etcd, (rows) => {
    const row = rows.find((kv) => kv.key.equals(key));
    if (row === undefined) return undefined;
    const told =
      by === undefined
        ? []
        : [putAudit(etcd.keys, tokenChanged(by, etcd.now(), tokenFrom(row), false))];
    return [{ remove: { key } }, ...told];
  });
}

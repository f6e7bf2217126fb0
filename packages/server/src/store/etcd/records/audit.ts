import {
  type AuditEvent,
  auditShare,
  type AuditStore,
  storeUnavailable,
} from "@idmint/core/server";
import {
  AUDIT_COLUMNS,
  auditFromRow,
  type AuditRow,
  valuesOfAudit,
} from "../../shared/records/audit.ts";
import type { Op, Range } from "../cluster/protocol.ts";
import { type Etcd, MAX_OPS, type Session } from "../session/etcd.ts";
import { type Keys, next, whoOf } from "../session/keys.ts";
import { fieldsOf } from "../session/rows.ts";

/** Keys that are read at once, and how often, to find those that are too many. */
const PAGE = 10_000;
const MAX_PAGES = 100;

/** Writes an event in the transaction of what it tells of. */
export function putAudit(keys: Keys, event: AuditEvent): Op {
  const values = valuesOfAudit(event);
  const entries = AUDIT_COLUMNS.map((column, at) => [column, String(values[at])] as const);
  const value = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  return { put: { key: keys.auditOf(event), value } };
}

/** One transaction, and so one revision of etcd. */
export async function recordAudit(etcd: Etcd, events: readonly AuditEvent[]): Promise<void> {
  const ops = events.map((event): Op => {
    const compare = [{ key: etcd.keys.auditOf(event), modRevision: "0" }];
    return { txn: { compare, success: [putAudit(etcd.keys, event)], failure: [] } };
  });
  await etcd.run((session) => session.write(ops));
}

export async function listAudit(
  etcd: Etcd,
  { kind, before, sinceMs, limit }: Parameters<AuditStore["listAudit"]>[0],
): Promise<readonly AuditEvent[]> {
  return etcd.run(async (session) => {
    const range = {
      ...etcd.keys.audits(kind, sinceMs, before),
      limit,
      order: "descending",
    } as const;
    const [kvs = []] = await session.read([range]);
    return kvs.map(({ value }) => auditFromRow(fieldsOf(value) as unknown as AuditRow));
  });
}

/** Old keys go as one range, in one revision of etcd. */
export async function trimAudit(
  etcd: Etcd,
  { kind, beforeMs, keep, limit }: Parameters<AuditStore["trimAudit"]>[0],
): Promise<number> {
  return etcd.run(async (session) => {
    const all = etcd.keys.audits(kind, 0, undefined);
    const ops: Op[] = [
      { range: { ...all, countOnly: true } },
      { range: { ...all, keysOnly: true, limit } },
    ];
    const { answers } = await etcd.transact(session.deadlineMs, ops, { effect: "any" });
    const [count, oldest] = answers.map(({ range }) => range);
    if (oldest === undefined || oldest === null) throw storeUnavailable("etcd answered no keys");
    const end = etcd.keys.audit(kind, { atMs: beforeMs, id: "" });
    const old = oldest.kvs.filter(({ key }) => key.compare(end) < 0).map(({ key }) => key);
    const [first, last] = [old[0], old.at(-1)];
    if (first !== undefined && last !== undefined) {
      await session.write([{ remove: { key: first, rangeEnd: next(last) } }]);
    }
    if (Number(count?.count ?? 0) - old.length <= keep) return old.length;
    const tooMany = tooManyOf(await keysOf(session, all), keep);
    const removed = tooMany.slice(0, limit - old.length);
    for (let at = 0; at < removed.length; at += MAX_OPS) {
      const some = removed.slice(at, at + MAX_OPS);
      // One transaction after the other, so that etcd has other work in between.
      await session.write(some.map((key): Op => ({ remove: { key } })));
    }
    return old.length + removed.length;
  });
}

/** All keys of a range, oldest first; of more than can be read in pages, those that are oldest. */
async function keysOf(session: Session, { key, rangeEnd }: Range): Promise<readonly Buffer[]> {
  const keys: Buffer[] = [];
  for (let page = 0; page < MAX_PAGES; page++) {
    const last = keys.at(-1);
    const from = last === undefined ? key : next(last);
    const range = { key: from, ...(rangeEnd === undefined ? {} : { rangeEnd }) };
    const [kvs = []] = await session.read([{ ...range, keysOnly: true, limit: PAGE }]);
    keys.push(...kvs.map((each) => each.key));
    if (kvs.length < PAGE) break;
  }
  return keys;
}

/** The keys that are more than their principal's share, oldest first. */
function tooManyOf(keys: readonly Buffer[], keep: number): readonly Buffer[] {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(whoOf(key), (counts.get(whoOf(key)) ?? 0) + 1);
  const share = auditShare([...counts.values()], keep);
  if (share === undefined) return keys.slice(0, keys.length - keep);
  return keys.filter((key) => {
    const left = counts.get(whoOf(key)) ?? 0;
    counts.set(whoOf(key), left - 1);
    return left > share;
  });
}

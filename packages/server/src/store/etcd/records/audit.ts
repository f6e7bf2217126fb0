import { type AuditEvent, type AuditStore, storeUnavailable } from "@idmint/core/server";
import {
  AUDIT_COLUMNS,
  auditFromRow,
  type AuditRow,
  valuesOfAudit,
} from "../../shared/records/audit.ts";
import type { Op } from "../cluster/protocol.ts";
import type { Etcd } from "../session/etcd.ts";
import type { Keys } from "../session/keys.ts";
import { fieldsOf } from "../session/rows.ts";

/** Writes an event in the transaction of what it tells of. */
export function putAudit(keys: Keys, event: AuditEvent): Op {
  const values = valuesOfAudit(event);
  const entries = AUDIT_COLUMNS.map((column, at) => [column, String(values[at])] as const);
  const value = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  return { put: { key: keys.audit(event.kind, event), value } };
}

/** One transaction, and so one revision of etcd. */
export async function recordAudit(etcd: Etcd, events: readonly AuditEvent[]): Promise<void> {
  const ops = events.map((event): Op => {
    const compare = [{ key: etcd.keys.audit(event.kind, event), modRevision: "0" }];
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

/** Removes the oldest keys as one range, in one revision of etcd. */
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
    const tooMany = Number(count?.count ?? 0) - keep;
    const isOver = (key: Buffer, at: number): boolean =>
      at < tooMany || key.compare(etcd.keys.audit(kind, { atMs: beforeMs, id: "" })) < 0;
    const over = oldest.kvs.filter(({ key }, at) => isOver(key, at)).length;
    const [first, last] = [oldest.kvs[0], oldest.kvs[over - 1]];
    if (first === undefined || last === undefined) return 0;
    const rangeEnd = Buffer.concat([last.key, Buffer.of(0)]);
    await session.write([{ remove: { key: first.key, rangeEnd } }]);
    return over;
  });
}

// The audit trail of a MemoryStore.
import {
  type AuditEvent,
  type AuditNote,
  auditShare,
  type CallArgs,
  type Tag,
} from "@idmint/core/server";
import type { MemoryDatabase } from "./database.ts";

/** Writes who made a change, and what differed. */
export function noted(
  database: MemoryDatabase,
  by: AuditNote | undefined,
  resource: string,
  [before, after]: readonly [object | undefined, object],
): void {
  if (by === undefined) return;
  const old = new Map(Object.entries(before ?? {}));
  const differing = Object.entries(after).filter(([name, value]) => old.get(name) !== value);
  const texts = {
    before:
      before === undefined
        ? ""
        : JSON.stringify(Object.fromEntries(differing.map(([name]) => [name, old.get(name)]))),
    after: JSON.stringify(Object.fromEntries(differing)),
  };
  const its = { resource, outcome: "OK", ...texts, omitted: 0 };
  database.audit.push({ ...by, kind: "change", atMs: database.now(), ...its });
}

/** What of a tag is told: of its settings only those that all kinds have. */
export function toldOf({ state, description, floor, ceiling, version, epoch }: Tag): object {
  const numbers = { floor, ceiling, version, epoch };
  const texts = Object.entries(numbers).map(([name, value]) => [name, String(value)] as const);
  return { state, description, ...Object.fromEntries(texts) };
}

function newest(database: MemoryDatabase, kind: string): AuditEvent[] {
  const one = database.audit.filter((event) => event.kind === kind);
  return one.toSorted((a, b) => b.atMs - a.atMs || (a.id < b.id ? 1 : -1));
}

export function listAudit(
  database: MemoryDatabase,
  ...[{ kind, before, sinceMs, limit }]: CallArgs["listAudit"]
): readonly AuditEvent[] {
  return newest(database, kind)
    .filter(({ atMs }) => atMs >= sinceMs)
    .filter(({ atMs, id }) => {
      if (before === undefined) return true;
      return atMs < before.atMs || (atMs === before.atMs && id < before.id);
    })
    .slice(0, limit);
}

export function recordAudit(database: MemoryDatabase, events: readonly AuditEvent[]): void {
  for (const event of events) {
    const { kind, atMs, id } = event;
    const isThere = database.audit.some(
      (one) => one.kind === kind && one.atMs === atMs && one.id === id,
    );
    if (!isThere) database.audit.push(event);
  }
}

function countsOf(events: readonly AuditEvent[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { principal } of events) counts.set(principal, (counts.get(principal) ?? 0) + 1);
  return counts;
}

export function trimAudit(
  database: MemoryDatabase,
  ...[{ kind, beforeMs, keep, limit }]: CallArgs["trimAudit"]
): number {
  const all = newest(database, kind);
  const fresh = all.filter(({ atMs }) => atMs >= beforeMs);
  const share = auditShare([...countsOf(fresh).values()], keep);
  const seen = new Map<string, number>();
  const over = all.filter(({ principal, atMs }, at) => {
    const place = seen.get(principal) ?? 0;
    seen.set(principal, place + 1);
    return atMs < beforeMs || (share === undefined ? at >= keep : place >= share);
  });
  const removed = new Set(over.toReversed().slice(0, limit));
  database.audit = database.audit.filter((event) => !removed.has(event));
  return removed.size;
}

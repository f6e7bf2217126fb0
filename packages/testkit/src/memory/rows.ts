// How a MemoryStore's calls read and write rows.
import { IdmintError } from "@idmint/core";
import { type ChangeOptions, earlierMemory, type Tag } from "@idmint/core/server";
import { noted, toldOf } from "./audit.ts";
import type { MemoryDatabase } from "./database.ts";
import { periodsOf } from "./periods.ts";

/** Why nothing may be granted, in words; empty when the store is the one that was accepted. */
export function fenced({ identity, acceptedIdentity, mark }: MemoryDatabase): string {
  if (mark !== "") return mark;
  return identity === acceptedIdentity ? "" : `the store is ${identity}, not ${acceptedIdentity}`;
}

export function assertAccepted(database: MemoryDatabase): void {
  const reason = fenced(database);
  if (reason !== "") throw new IdmintError("STORE_EPOCH_CHANGED", reason);
}

/** The row of a tag that an operator means. */
export function existing(
  database: MemoryDatabase,
  name: string,
  expectedRevision: bigint | undefined,
): Tag {
  assertAccepted(database);
  const row = database.rows.get(name);
  if (row === undefined || row.state === "DELETED") {
    throw new IdmintError("TAG_NOT_FOUND", `tag "${name}" does not exist`, {
      metadata: { tag: name },
    });
  }
  if (expectedRevision !== undefined && expectedRevision !== row.revision) {
    throw new IdmintError("ETAG_MISMATCH", `tag "${name}" was changed by somebody else`, {
      metadata: { tag: name },
    });
  }
  return row;
}

/** Writes what an operator changed, or answers what that would be. */
export function change(
  database: MemoryDatabase,
  row: Tag,
  { validateOnly = false, by }: ChangeOptions = {},
): Tag {
  const revision = database.revision + 1n;
  const updatedAtMs = database.now();
  // A row that is made anew has no time yet.
  const createdAtMs = row.createdAtMs === 0 ? updatedAtMs : row.createdAtMs;
  const next = { ...row, revision, createdAtMs, updatedAtMs };
  if (validateOnly) return next;
  database.revision = revision;
  const old = database.rows.get(row.name);
  const before = old === undefined ? undefined : toldOf(old);
  noted(database, by, `tag/${row.name}`, [before, toldOf(row)]);
  return put(database, next);
}

export function put({ rows }: MemoryDatabase, row: Tag): Tag {
  // Rows are in the order in which they were written.
  rows.delete(row.name);
  rows.set(row.name, row);
  return row;
}

/** Lists the period that ended when a grant began another one, and forgets old ones. */
export function endPeriod(
  database: MemoryDatabase,
  row: Tag,
  ended: { start: string; lastId: bigint } | undefined,
): void {
  if (ended === undefined) return;
  const { periods } = database;
  const oldest = database.now() - (periodsOf(row.kind)?.keepForMs ?? 0);
  const kept = (periods.get(row.name) ?? []).filter(({ endedAtMs }) => endedAtMs >= oldest);
  periods.set(row.name, kept);
  listPeriod(database, row, ended);
}

/** Lists a period that a row is in no longer. */
export function listPeriod(
  database: MemoryDatabase,
  { name }: Tag,
  ended: { start: string; lastId: bigint },
): void {
  if (ended.lastId === 0n) return;
  const { periods } = database;
  const others = (periods.get(name) ?? []).filter(({ start }) => start !== ended.start);
  const all = [...others, { ...ended, endedAtMs: database.now() }];
  periods.set(
    name,
    all.toSorted((a, b) => b.start.localeCompare(a.start)),
  );
}

/** What a row remembers of what its settings allowed before. */
export function remembered(
  { revision }: MemoryDatabase,
  old: Tag,
  kind: Tag["kind"],
  isOver: boolean,
): Pick<Tag, "earlier"> {
  const earlier = earlierMemory(old, kind, revision + 1n, isOver);
  return earlier === undefined ? {} : { earlier };
}

// The tags of a MemoryStore, as operators see them.
import { isDeepStrictEqual } from "node:util";
import { assertNoViolations, IdmintError, invalidField } from "@idmint/core";
import {
  type CallArgs,
  type EndedPeriod,
  firstIdOf,
  type Tag,
  type TagPage,
  type TagSettings,
} from "@idmint/core/server";
import type { MemoryDatabase } from "./database.ts";
import { countsInRedis, periodsOf } from "./periods.ts";
import { assertAccepted, change, existing, listPeriod, remembered } from "./rows.ts";
import {
  areWrittenAlike,
  assertFloorHolds,
  assertTextsHold,
  assertTimeZone,
  fundamentalsOf,
  madeInPeriod,
  returned,
  slotsKept,
  unplaced,
  withOldKeys,
} from "./rules.ts";
import { acceptedFloor } from "./worker-leases.ts";

export function createTag(
  database: MemoryDatabase,
  ...[wanted, options]: CallArgs["createTag"]
): Tag {
  assertAccepted(database);
  assertTimeZone(wanted.kind);
  const old = database.rows.get(wanted.name);
  const settings = withOldKeys(old, wanted);
  if (old !== undefined && old.state !== "DELETED") {
    const isSame = isDeepStrictEqual(unplaced(old), unplaced(settings));
    if (isSame && areWrittenAlike(old, settings)) return old;
    throw new IdmintError("TAG_EXISTS", `tag "${settings.name}" exists with other settings`, {
      metadata: { tag: settings.name },
    });
  }
  if (old !== undefined) {
    assertFloorHolds(old, settings.kind);
    assertTextsHold(old, settings);
  }
  const start = firstIdOfNew(database, old, settings);
  const floor = old !== undefined && old.floor > start ? old.floor : start;
  if (floor > settings.ceiling)
    throw invalidField("tag.ceiling", `is below the old floor ${floor}`);
  const made: Tag = {
    ...settings,
    ...(old === undefined ? {} : remembered(database, old, settings.kind, false)),
    kind: slotsKept(old?.kind, settings.kind),
    state: "ACTIVE",
    floor,
    ...madeInPeriod(old, settings.kind),
    generation: old === undefined ? 0n : old.generation + 1n,
    version: old === undefined ? 0n : old.version + 1n,
    epoch: old === undefined ? database.firstEpoch : old.epoch + 1n,
    revision: 0n,
    createdAtMs: 0,
    updatedAtMs: 0,
  };
  return change(database, made, options);
}

export function getTags(database: MemoryDatabase, names: readonly string[]): readonly Tag[] {
  assertAccepted(database);
  return names.flatMap((name) => database.rows.get(name) ?? []);
}

export function listTags(database: MemoryDatabase, ...[query]: CallArgs["listTags"]): TagPage {
  assertAccepted(database);
  const tags = [...database.rows.values()]
    .filter((tag) => tag.name > query.afterName && tag.name.startsWith(query.prefix))
    .filter((tag) => query.showDeleted || tag.state !== "DELETED")
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .slice(0, query.limit);
  return { tags, unreadable: [] };
}

export function recentTags(database: MemoryDatabase, limit: number): readonly string[] {
  const kinds = ["segment", "sequence"];
  return [...database.rows.values()]
    .filter(({ kind, state }) => kinds.includes(kind.kind) && state !== "DELETED")
    .map(({ name }) => name)
    .toReversed()
    .slice(0, limit);
}

export function listPeriods(
  database: MemoryDatabase,
  ...[query]: CallArgs["listPeriods"]
): readonly EndedPeriod[] {
  assertAccepted(database);
  const row = database.rows.get(query.tag);
  const keepForMs = row === undefined ? 0 : (periodsOf(row.kind)?.keepForMs ?? 0);
  const oldest = database.now() - keepForMs;
  return (database.periods.get(query.tag) ?? [])
    .filter(({ start }) => start !== row?.periodStart)
    .filter(({ start }) => query.before === "" || start < query.before)
    .filter(({ endedAtMs }) => endedAtMs >= oldest)
    .slice(0, query.limit);
}

export function updateTag(
  database: MemoryDatabase,
  ...[name, what, expectedRevision, options]: CallArgs["updateTag"]
): Tag {
  const row = existing(database, name, expectedRevision);
  if (what.settings !== undefined) assertTimeZone(what.settings.kind);
  const isFundamental =
    what.settings !== undefined &&
    !isDeepStrictEqual(fundamentalsOf(row), fundamentalsOf(what.settings));
  const isUnissued = row.version === 0n && row.kind.kind !== "ticket";
  const isWritten = row.format !== undefined || row.unguessable !== undefined;
  const isOtherText = what.texts !== undefined && !areWrittenAlike(row, what.texts);
  if (isOtherText || (isFundamental && (isWritten || !isUnissued))) {
    throw new IdmintError("FIELD_IMMUTABLE", `tag "${name}" has issued ids`, {
      metadata: { tag: name },
    });
  }
  const { earlier: _, ...rest } = row;
  const { format: _format, unguessable: _unguessable, ...unwritten } = rest;
  const next = {
    ...(what.texts === undefined ? rest : unwritten),
    ...what.settings,
    ...what.texts,
    description: what.description ?? row.description,
  };
  if (isDeepStrictEqual(next, rest)) return row;
  const isOther = !isDeepStrictEqual(fundamentalsOf(row), fundamentalsOf(next));
  const { kind } = next.kind;
  const isLayout = kind === "snowflake" || kind === "redis_snowflake";
  const epoch = row.epoch + (isOther && isLayout ? 1n : 0n);
  const floor = isUnissued ? firstIdOf(next.kind) - 1n : row.floor;
  const before = remembered(database, row, next.kind, what.isEarlierOver === true);
  return change(database, { ...next, ...before, epoch, floor }, options);
}

export function advanceTag(
  database: MemoryDatabase,
  ...[name, floor, options]: CallArgs["advanceTag"]
): { tag: Tag; raised: boolean } {
  const row = existing(database, name, options.expectedRevision);
  assertNoViolations(
    floor > row.ceiling
      ? { field: "floor", description: `is above the ceiling ${row.ceiling}` }
      : undefined,
    floor - row.floor > options.maxRaise
      ? {
          field: "floor",
          description: `raises the floor by more than ${options.maxRaise}`,
          reason: "RAISE_TOO_LARGE",
        }
      : undefined,
  );
  if (floor <= row.floor) return { tag: row, raised: false };
  const generation = row.generation + (countsInRedis(row.kind) ? 1n : 0n);
  const [version, epoch] = [row.version + 1n, row.epoch + 1n];
  const raised = { ...row, floor, generation, version, epoch };
  return { tag: change(database, raised, options), raised: true };
}

export function returnToPeriod(
  database: MemoryDatabase,
  ...[name, { start, floor }, options]: CallArgs["returnToPeriod"]
): { tag: Tag; returned: boolean } {
  const row = existing(database, name, options.expectedRevision);
  if (row.periodStart === start && periodsOf(row.kind) !== undefined) {
    return { tag: row, returned: false };
  }
  const [version, epoch] = [row.version + 1n, row.epoch + 1n];
  const next = { ...returned(row, start, floor), version, epoch };
  if (options.validateOnly !== true) {
    listPeriod(database, row, { start: row.periodStart, lastId: row.floor });
  }
  return { tag: change(database, next, options), returned: true };
}

export function setTagState(
  database: MemoryDatabase,
  ...[name, state, expectedRevision, options]: CallArgs["setTagState"]
): Tag {
  const row = existing(database, name, expectedRevision);
  if (row.state === state) return row;
  return change(database, { ...row, state, epoch: row.epoch + 1n }, options);
}

/** Below the first id. Workers of a tag that the store lost with its history may still use their time. */
function firstIdOfNew(
  { firstEpoch }: MemoryDatabase,
  old: Tag | undefined,
  { kind }: TagSettings,
): bigint {
  const floor = firstIdOf(kind) - 1n;
  if (old !== undefined || firstEpoch === 1n || kind.kind !== "snowflake") return floor;
  return acceptedFloor(kind, { floor }, Number(firstEpoch) * 1_000);
}

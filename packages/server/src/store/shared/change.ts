import { invalidField } from "@idmint/core";
import type { TagKind } from "@idmint/core/kinds";
import {
  type CallArgs,
  type ChangeOptions,
  earlierMemory,
  firstIdOf,
  mayHaveIssued,
  periodsOf,
  type Tag,
  type TagChange,
  tagNotFound,
  type TagSettings,
} from "@idmint/core/server";
import {
  countsInRedis,
  isSameButForPlace,
  isSameButForTuning,
  isSameKind,
  specOf,
} from "@idmint/core/kinds";
import { differencesOf } from "./differences.ts";
import {
  etagMismatch,
  fieldImmutable,
  tagExists,
  withoutPeriods,
  writingImmutable,
} from "./failures.ts";
import {
  forgottenOnlyBefore,
  forgottenPeriod,
  isFirstDay,
  MAX_PERIODS_AHEAD,
  placeOfMade,
  withPeriod,
} from "./period.ts";
import { acceptedFloor } from "./worker-pool.ts";

/** The stamp of an operator's change: the store's next revision, and the time by the store's clock. */
export interface Stamp {
  readonly revision: bigint;
  readonly nowMs: number;
  /**
   * The first epoch of a tag that has no row. An accept puts it above all that the lost history gave out, since a tag of the same
   * name may have been in that. Absent, and 1: the store was never accepted anew.
   */
  readonly firstEpoch?: bigint;
}

/** By the generation of a store that counts its accepts by it; 0n: it was never accepted anew. */
export function firstEpochOf(generation: bigint): bigint {
  return generation > 0n ? generation : 1n;
}

/** The row as it becomes. `changed` is false when it stays as it is, without a new revision. */
export interface Decision {
  readonly tag: Tag;
  readonly changed: boolean;
}

/** A change of one tag, as an operator asks for it. */
export interface TagChanging {
  readonly name: string;
  readonly options: ChangeOptions | undefined;
  /** Has a time zone that has to be known. */
  readonly kind?: TagKind | undefined;
  /** Whether the period that the row is in is listed with those that have ended. */
  readonly leavesPeriod?: boolean;
  readonly decide: (row: Tag | undefined, stamp: Stamp) => Decision;
}

/** Nothing is written when nothing changes, or when the caller only wants to check. */
export function isWritten({ changed }: Decision, { options }: TagChanging): boolean {
  return changed && options?.validateOnly !== true;
}

export function creation(...[settings, options]: CallArgs["createTag"]): TagChanging {
  const { name, kind } = settings;
  return { name, options, kind, decide: (row, stamp) => createdTag(row, settings, stamp) };
}

export function update(
  ...[name, what, expectedRevision, options]: CallArgs["updateTag"]
): TagChanging {
  const kind = what.settings?.kind;
  const decide: TagChanging["decide"] = (row, stamp) =>
    updatedTag(name, row, what, expectedRevision, stamp);
  return { name, options, kind, decide };
}

export function stateChange(
  ...[name, state, expectedRevision, options]: CallArgs["setTagState"]
): TagChanging {
  const decide: TagChanging["decide"] = (row, stamp) =>
    tagInState(name, row, state, expectedRevision, stamp);
  return { name, options, decide };
}

export function advance(...[name, floor, options]: CallArgs["advanceTag"]): TagChanging {
  const decide: TagChanging["decide"] = (row, stamp) =>
    advancedTag(name, row, floor, options, stamp);
  return { name, options, decide };
}

export function periodReturn(...[name, period, options]: CallArgs["returnToPeriod"]): TagChanging {
  const decide: TagChanging["decide"] = (row, stamp) =>
    returnedTag(name, row, period, options.expectedRevision, stamp);
  return { name, options, leavesPeriod: true, decide };
}

// The functions below are pure. Each runs on a row that is locked until the decision is written. The transaction holds
// the lock of the row `store` too. So no two changes take the same revision, and revisions become visible in their
// order, which the servers' poll for changes relies on.

/**
 * INVARIANTS
 * - A name never starts below a floor that it once had. So a tag made over a tombstone keeps the tombstone's floor and
 *   period, and its version and epoch go on. A new kind whose ids that floor would not hold back is refused.
 * - The generation rises, whether the tag counts in Redis now, did so before, or will again. So an older Redis never
 *   takes part.
 */
export function createdTag(row: Tag | undefined, wanted: TagSettings, stamp: Stamp): Decision {
  const settings = withKeysOf(row, wanted);
  const first = firstIdOf(settings.kind) - 1n;
  const times = { revision: stamp.revision, updatedAtMs: stamp.nowMs, createdAtMs: stamp.nowMs };
  if (row === undefined) {
    const { firstEpoch: epoch = 1n } = stamp;
    // Epochs are seconds once a store was accepted: what was reserved for workers of a lost tag ends soon after that.
    const floor = epoch > 1n ? acceptedFloor(settings.kind, first, Number(epoch) * 1_000) : first;
    const fresh = { state: "ACTIVE", floor, version: 0n, epoch } as const;
    const none = { periodStart: "", generation: 0n };
    return { tag: { ...settings, ...fresh, ...none, ...times }, changed: true };
  }
  if (row.state !== "DELETED") {
    if (!haveSameSettings(row, settings, isSameButForPlace)) {
      throw tagExists(settings.name, differencesOf(row, settings));
    }
    return { tag: row, changed: false };
  }
  assertFloorHolds(row, settings.kind);
  assertTextsHold(row, settings);
  const floor = row.floor > first ? row.floor : first;
  if (floor > settings.ceiling) {
    throw invalidField(
      "tag.ceiling",
      `must be at least ${floor}, the floor of the deleted tag of this name, got ${settings.ceiling}`,
    );
  }
  const next = {
    state: "ACTIVE",
    floor,
    ...placeOfMade(row, settings.kind),
    generation: row.generation + 1n,
    version: row.version + 1n,
    epoch: row.epoch + 1n,
  } as const;
  const kind = inherited(row.kind, settings.kind);
  const remembered = earlierOf(row, kind, stamp, false);
  return { tag: { ...settings, kind, ...remembered, ...next, ...times }, changed: true };
}

/** What stays with a name for ever, such as the slots of a ticket tag, goes on in the next tag of the kind. */
function inherited(tombstone: TagKind, kind: TagKind): TagKind {
  return tombstone.kind === kind.kind ? (specOf(kind).inherit?.(kind, tombstone) ?? kind) : kind;
}

/** INVARIANT: the floor of some kinds does not hold all their ids. Over their tombstones only the same can be made. */
function assertFloorHolds(tombstone: Tag, kind: TagKind): void {
  if (!mayHaveIssued(tombstone)) return;
  const { kind: old } = tombstone;
  const conflict = specOf(old).mayFollow(old, kind.kind === old.kind ? kind : undefined);
  if (conflict !== undefined) throw invalidField(conflict.field, conflict.description);
}

/**
 * INVARIANTS
 * - Order, ceiling and the fundamentals of the kind never change once the version is above 0, even if the caller took
 *   the tag for unissued: ids may have been issued under them. The store does not hear whether ids of a ticket tag were
 *   issued, so they never change there.
 * - A change of a snowflake's layout begins an epoch. Servers that have not heard of it lease no worker id by the old
 *   layout, and begin no generation in Redis.
 */
export function updatedTag(
  name: string,
  row: Tag | undefined,
  change: TagChange,
  expectedRevision: bigint | undefined,
  stamp: Stamp,
): Decision {
  const old = present(name, row, expectedRevision);
  const settings: TagSettings = {
    name,
    description: change.description ?? old.description,
    order: change.settings?.order ?? old.order,
    ceiling: change.settings?.ceiling ?? old.ceiling,
    kind: change.settings?.kind ?? old.kind,
    ...writtenAs(change.texts ?? old),
  };
  const isFundamental =
    settings.order !== old.order ||
    settings.ceiling !== old.ceiling ||
    !isSameButForTuning(settings.kind, old.kind);
  const isWritten = old.format !== undefined || old.unguessable !== undefined;
  if (!isWrittenAlike(old, settings) || (isWritten && isFundamental)) throw writingImmutable(name);
  const hasIssued = mayHaveIssued(old);
  if (hasIssued && isFundamental) throw fieldImmutable(name);
  if (haveSameSettings(old, settings)) return { tag: old, changed: false };
  const floor = !hasIssued ? firstIdOf(settings.kind) - 1n : old.floor;
  const isOtherLayout = isFundamental && specOf(settings.kind).isLayout;
  const epoch = isOtherLayout ? old.epoch + 1n : old.epoch;
  const { format: _, unguessable: __, earlier: ___, ...rest } = old;
  const remembered = earlierOf(old, settings.kind, stamp, change.isEarlierOver === true);
  const tag = { ...rest, ...settings, ...remembered, floor, epoch, ...stampOf(stamp) };
  return { tag, changed: true };
}

/**
 * INVARIANTS: the floor only rises, never past the ceiling, and never by more than the caller allows. Where Redis
 * counts up to the floor, the ids up to the new floor are not for Redis to issue, so it is given a new start above it.
 */
export function advancedTag(
  name: string,
  row: Tag | undefined,
  floor: bigint,
  options: { maxRaise: bigint; expectedRevision: bigint | undefined },
  stamp: Stamp,
): Decision {
  const old = present(name, row, options.expectedRevision);
  if (floor > old.ceiling) {
    throw invalidField("floor", `must be at most the ceiling ${old.ceiling}, got ${floor}`);
  }
  if (floor <= old.floor) return { tag: old, changed: false };
  if (floor - old.floor > options.maxRaise) {
    throw invalidField(
      "floor",
      `would rise by ${floor - old.floor}, which is more than ${options.maxRaise} at once; a floor never goes down again, so set allow_large_raise if you mean it`,
      "RAISE_TOO_LARGE",
    );
  }
  const generation = old.generation + (countsInRedis(old.kind) ? 1n : 0n);
  const next = { floor, generation, version: old.version + 1n, epoch: old.epoch + 1n };
  return { tag: { ...old, ...next, ...stampOf(stamp) }, changed: true };
}

/**
 * INVARIANTS
 * - No id of a period is issued twice. The tag goes on above the last id that the period is known to have given, or
 *   above the one that the operator names. Nobody guesses. No forgotten period is passed over, since it would begin at 1
 *   when its time comes.
 * - The period that is left is kept, so that it goes on above its own ids when its time comes.
 * - The epoch rises. So servers drop ids of the period that is left, if they were granted but not answered.
 */
export function returnedTag(
  name: string,
  row: Tag | undefined,
  { start, floor: bound }: { readonly start: string; readonly floor: bigint | undefined },
  expectedRevision: bigint | undefined,
  stamp: Stamp,
): Decision {
  const old = present(name, row, expectedRevision);
  const unit = periodsOf(old.kind)?.unit;
  if (unit === undefined) throw withoutPeriods(name, old.kind.kind);
  const remembered = old.otherPeriods ?? [];
  if (!isFirstDay(unit, start)) {
    throw invalidField("period", `must be the first day (YYYY-MM-DD) of a ${unit}, got ${start}`);
  }
  if (start === old.periodStart) return { tag: old, changed: false };
  if (start > old.periodStart) {
    throw invalidField(
      "period",
      `must be before the present one, ${old.periodStart === "" ? "which has not begun" : old.periodStart}`,
    );
  }
  const forgotten = forgottenPeriod(unit, remembered);
  if (forgotten !== undefined && start < forgotten) {
    throw invalidField(
      "period",
      `must be ${forgotten} or later: an accept forgot the ids of ${forgotten} and before; go back one period at a time`,
    );
  }
  const others = start === forgotten ? forgottenOnlyBefore(start, remembered) : remembered;
  if (others.filter((other) => other.start > start).length >= MAX_PERIODS_AHEAD) {
    throw invalidField(
      "period",
      `must be later: the tag has gone back from ${MAX_PERIODS_AHEAD} periods after it already; take another name`,
    );
  }
  const known = others.find((other) => other.start === start)?.lastId;
  const floor = bound ?? known;
  if (floor === undefined) {
    throw invalidField(
      "floor",
      `is required: the store does not know the last id of ${start}; say one that it gave no id beyond, 0 if it gave none`,
    );
  }
  const least = known ?? 0n;
  if (floor < least || floor > old.ceiling) {
    throw invalidField("floor", `must be ${least}, the last id of ${start}, to ${old.ceiling}`);
  }
  const otherPeriods = withPeriod(others, { start: old.periodStart, lastId: old.floor });
  const next = { periodStart: start, floor, otherPeriods };
  const counts = { version: old.version + 1n, epoch: old.epoch + 1n };
  return { tag: { ...old, ...next, ...counts, ...stampOf(stamp) }, changed: true };
}

/** INVARIANT: a new state comes with a new epoch, so that servers drop the segments they hold. */
function tagInState(
  name: string,
  row: Tag | undefined,
  state: Tag["state"],
  expectedRevision: bigint | undefined,
  stamp: Stamp,
): Decision {
  const old = present(name, row, expectedRevision);
  if (old.state === state) return { tag: old, changed: false };
  return { tag: { ...old, state, epoch: old.epoch + 1n, ...stampOf(stamp) }, changed: true };
}

function present(name: string, row: Tag | undefined, expectedRevision: bigint | undefined): Tag {
  if (row === undefined || row.state === "DELETED") throw tagNotFound(name);
  if (expectedRevision !== undefined && expectedRevision !== row.revision) throw etagMismatch(name);
  return row;
}

/** How long callers may go on under earlier settings, also under those of a tag that was deleted. */
function earlierOf(old: Tag, kind: TagKind, stamp: Stamp, isOver: boolean): Pick<Tag, "earlier"> {
  const earlier = earlierMemory(old, kind, stamp.revision, isOver);
  return earlier === undefined ? {} : { earlier };
}

function stampOf(stamp: Stamp): { revision: bigint; updatedAtMs: number } {
  return { revision: stamp.revision, updatedAtMs: stamp.nowMs };
}

function haveSameSettings(a: TagSettings, b: TagSettings, haveSameKinds = isSameKind): boolean {
  return (
    a.description === b.description &&
    a.order === b.order &&
    a.ceiling === b.ceiling &&
    haveSameKinds(a.kind, b.kind) &&
    a.unguessable?.keyId === b.unguessable?.keyId &&
    isWrittenAlike(a, b)
  );
}

function writtenAs({
  format,
  unguessable,
}: Pick<TagSettings, "format" | "unguessable">): Pick<TagSettings, "format" | "unguessable"> {
  return {
    ...(format === undefined ? {} : { format }),
    ...(unguessable === undefined ? {} : { unguessable }),
  };
}

/**
 * INVARIANT: the way in which ids are written never changes, since ids of one name that were written in two ways could
 * not be told apart. The template stays, and keys are only added. Each key's ids begin with a number of its own, which
 * means that key for ever. The ceiling, which does not change either, is the other half of what keys permute.
 * This holds before the first id too. An update begins no epoch, by which servers could tell which record to write an
 * id by. A tag that is deleted and made again begins one.
 */
function isWrittenAlike(
  old: Pick<TagSettings, "format" | "unguessable">,
  next: Pick<TagSettings, "format" | "unguessable">,
): boolean {
  if (old.format?.template !== next.format?.template) return false;
  const [one, other] = [old.unguessable, next.unguessable];
  if (one === undefined || other === undefined) return one === other;
  if (one.keyDigits !== other.keyDigits) return false;
  const checks = new Map(other.keys.map(({ keyId, check }) => [keyId, check]));
  return one.keys.every(({ keyId, check }) => checks.get(keyId) === check);
}

/**
 * The settings with all keys that the name ever had. A number that now means another key keeps the new key, which is
 * refused later.
 */
function withKeysOf(row: Tag | undefined, settings: TagSettings): TagSettings {
  const { unguessable } = settings;
  if (unguessable === undefined || row?.unguessable === undefined) return settings;
  const keys = new Map(
    [...row.unguessable.keys, ...unguessable.keys].map((key) => [key.keyId, key]),
  );
  const sorted = [...keys.values()].toSorted((a, b) => a.keyId - b.keyId);
  return { ...settings, unguessable: { ...unguessable, keys: sorted } };
}

/** Refuses other texts over the tombstone of a tag that issued ids as texts, or by a key. */
function assertTextsHold(tombstone: Tag, settings: TagSettings): void {
  if (!mayHaveIssued(tombstone)) return;
  const isAlike = isWrittenAlike(tombstone, settings);
  const hasKeys = tombstone.unguessable !== undefined;
  if (isAlike && (!hasKeys || tombstone.ceiling === settings.ceiling)) return;
  throw invalidField(
    tombstone.format?.template === settings.format?.template ? "tag.unguessable" : "tag.format",
    `must be that of the deleted tag of this name, with its ceiling: ids that it issued would be repeated; take another name`,
  );
}

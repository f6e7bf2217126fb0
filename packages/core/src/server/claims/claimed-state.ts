import { invalidField } from "../../errors.ts";
import { MAX_ID } from "../../limits.ts";
import { FORGOTTEN, periodsOf, type Tag } from "../tag/tag.ts";
import type { Claim, TakenClaims } from "./ports.ts";

/**
 * What claims make of a tag's row, in an accept. Pure.
 *
 * INVARIANTS
 * 1. The present period is begun before, and the gap is added afterwards, so a floor is the gap above whatever is known.
 * 2. Claims of periods that are over need no floor: where these ended is forgotten, so nobody goes back to one without saying
 *    above which id. Claims of periods that are yet to come again (an operator went back from them) are kept for them.
 * 3. A row without periods may be made a sequence with periods again. That one must not begin before the latest period that was
 *    claimed, nor begin this one anew. So the row remembers it, as FORGOTTEN, and its floor is above the ids of all periods.
 * 4. A claim that reaches the end of a tag would end it for good, which no accept undoes. It is taken where somebody said so.
 */
export interface Claimed {
  readonly row: Tag;
  /** How far the floor was below the claim. */
  readonly missing: bigint;
}

/** The row of a tag, in its present period, with what was claimed of it. */
export function withClaims(row: Tag, claims: readonly Claim[], isTrusted: boolean): Claimed {
  let { floor } = row;
  const hasPeriods = periodsOf(row.kind) !== undefined;
  const ahead = new Map(row.otherPeriods?.map(({ start, lastId }) => [start, lastId]));
  let latest = "";
  for (const { period, last } of claims) {
    // The name may have had a tag with periods since, whose ids the present one must not give either.
    if (hasPeriods && period !== row.periodStart) {
      if (period < row.periodStart) continue;
      const known = ahead.get(period);
      if (known === undefined || last > known) ahead.set(period, bounded(row, last, isTrusted));
      continue;
    }
    if (period > latest) latest = period;
    if (last > floor) floor = bounded(row, last, isTrusted);
  }
  if (latest > row.periodStart) forgetTo(ahead, latest);
  const others = [...ahead].map(([start, lastId]) => ({ start, lastId }));
  const otherPeriods = others.toSorted((a, b) => b.start.localeCompare(a.start));
  return {
    row: { ...row, floor, ...(others.length === 0 ? {} : { otherPeriods }) },
    missing: floor - row.floor,
  };
}

/** Nothing is known of this day, nor of any before it. */
function forgetTo(lastIds: Map<string, bigint>, day: string): void {
  for (const [start, lastId] of lastIds) {
    if (lastId !== FORGOTTEN) continue;
    if (start >= day) return;
    lastIds.delete(start);
  }
  lastIds.set(day, FORGOTTEN);
}

/** Adds up what an accept takes of claims, of some tags or of some databases. */
export class ClaimTally {
  /** All but who claimed. */
  taken: Omit<TakenClaims, "claimants"> = { raised: 0, most: undefined, lost: 0 };

  /** The floor of a tag was so far below what was claimed. */
  claimed(tag: string, missing: bigint): void {
    if (missing > 0n) this.add({ raised: 1, most: { tag, by: missing }, lost: 0 });
  }

  add({ raised, most, lost }: ClaimTally["taken"]): void {
    const { taken } = this;
    this.taken = {
      raised: taken.raised + raised,
      most: (most?.by ?? 0n) > (taken.most?.by ?? 0n) ? most : taken.most,
      lost: taken.lost + lost,
    };
  }
}

/** What says that a name was in use which the store has lost: as if the tag had been deleted. The accept raises it like all. */
export function lostTag(
  name: string,
  claims: readonly Claim[],
  isTrusted: boolean,
  nowMs: number,
): Tag {
  let floor = 0n;
  let latest = "";
  for (const { period, last } of claims) {
    if (last > floor) floor = last;
    if (period > latest) latest = period;
  }
  const row: Tag = {
    name,
    description: "",
    order: "UNORDERED",
    ceiling: MAX_ID,
    kind: {
      kind: "segment",
      start: 1n,
      min: 1_000,
      max: 100_000_000,
      holdForMs: 900_000,
      maxAgeMs: 600_000,
    },
    state: "DELETED",
    floor: 0n,
    // A sequence that is made anew begins in the latest period or a later one, above the floor, whichever it is.
    periodStart: "",
    ...(latest === "" ? {} : { otherPeriods: [{ start: latest, lastId: FORGOTTEN }] }),
    generation: 0n,
    version: 0n,
    epoch: 1n,
    revision: 1n,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
  return { ...row, floor: bounded(row, floor, isTrusted) };
}

function bounded({ name, ceiling }: Tag, last: bigint, isTrusted: boolean): bigint {
  if (last < ceiling) return last;
  if (isTrusted) return ceiling;
  throw invalidField(
    "claims",
    `reach the end of tag "${name}" (${last}, with a ceiling of ${ceiling}): an accept would end it for good; accept with --trust-claims if that is so`,
    "VALUE_OUT_OF_RANGE",
  );
}

import type { Random } from "../../ports.ts";
import type { Slot, SlotGrant, SlotsView, SlotRequest } from "./ports.ts";

/** Ids of one slot in one grant, so that a large load takes a little of each slot and not all of one. */
const IDS_A_SLOT = 50;
/** After this the slots of a database are asked for again: some may have been moved to it. */
const REFRESH_MS = 10_000;

/**
 * What a server knows of one tag's slots in each database. Pure: the shell asks the databases.
 *
 * INVARIANTS
 * 1. A slot is used only in the database, and under the epoch, in which it was found active.
 * 2. A database is used only after its slots were raised above the highest id of the fleet, as far as it was known then,
 *    since the database last failed to answer; so one that was away does not come back with old ids.
 * 3. Of each slot in each database the highest last id and epoch are kept, also while it is not used. A view below them
 *    means that the database went back. They are forgotten only when an operator accepted it (another incarnation).
 */
export interface TagSlots {
  readonly slotsId: string;
  readonly slots: number;
  readonly databases: Map<string, OpenSlots>;
  /** Highest id this server has seen in any database. */
  highest: bigint;
  /** Slots that have no id left below the tag's ceiling. */
  readonly exhausted: Set<number>;
}

type SeenSlot = Pick<Slot, "epoch" | "lastId">;

/** The highest epoch and last id of each slot that a database showed, in one incarnation. */
export interface SeenSlots {
  readonly incarnation: string;
  readonly slots: ReadonlyMap<number, SeenSlot>;
}

interface OpenSlots {
  readonly incarnation: string;
  /** Of the database's health, when its slots were raised. */
  generation: number;
  listedAt: number;
  usable: readonly number[];
  turn: number;
  readonly seen: Map<number, SeenSlot>;
}

export function createTagSlots(slotsId: string, slots: number): TagSlots {
  return { slotsId, slots, databases: new Map(), highest: 0n, exhausted: new Set() };
}

/**
 * What has to be done before slots of a database are used: `raise` above the fleet's highest id, or only `refresh`, or
 * nothing.
 */
export function openingOf(
  state: TagSlots,
  name: string,
  generation: number,
  now: number,
): "raise" | "refresh" | undefined {
  const open = state.databases.get(name);
  if (open === undefined || open.generation !== generation) return "raise";
  return now - open.listedAt >= REFRESH_MS ? "refresh" : undefined;
}

/** The slots of a database must be raised again, although it answers. */
export function closeSlots(state: TagSlots, name: string): void {
  const open = state.databases.get(name);
  if (open !== undefined) open.generation = -1;
}

/** The slots of a database are to be listed again before they are used. */
function refreshSlots(state: TagSlots, name: string): void {
  const open = state.databases.get(name);
  if (open !== undefined) open.listedAt = -Infinity;
}

/** What is known of a database's slots now: to be taken before it is asked, since grants may overtake its answer. */
export function seenOf(state: TagSlots, name: string): SeenSlots {
  const open = state.databases.get(name);
  return { incarnation: open?.incarnation ?? "", slots: new Map(open?.seen) };
}

/** What speaks against a view, in words: what was seen before it was asked for; undefined when nothing does. */
export function behindOf(before: SeenSlots, view: SlotsView): string | undefined {
  if (before.incarnation !== view.incarnation) return undefined;
  const now = new Map(view.slots.map((slot) => [slot.slot, slot]));
  for (const [slot, { epoch, lastId }] of before.slots) {
    const found = now.get(slot);
    if (found === undefined) return `it has lost slot ${slot}`;
    if (found.epoch < epoch) return `slot ${slot} is at epoch ${found.epoch}, after ${epoch}`;
    if (found.lastId < lastId) return `slot ${slot} is at ${found.lastId}, after ${lastId}`;
  }
  return undefined;
}

/** A database showed its slots after it raised them, and is not behind: they are used from now on. */
export function openSlots(
  state: TagSlots,
  name: string,
  view: SlotsView,
  generation: number,
  now: number,
  random: Random,
): void {
  const old = state.databases.get(name);
  const isSame = old?.incarnation === view.incarnation ? old : undefined;
  const seen = isSame?.seen ?? new Map<number, SeenSlot>();
  for (const { slot, epoch, lastId } of view.slots) {
    const known = seen.get(slot);
    if (known === undefined || known.epoch < epoch || known.lastId < lastId) {
      seen.set(slot, { epoch, lastId });
    }
    if (lastId > state.highest) state.highest = lastId;
  }
  const usable = view.slots
    .filter(({ slot, state: is }) => is === "active" && !state.exhausted.has(slot))
    .map(({ slot }) => slot);
  // Servers begin at different slots, so that they do not wait for each other's row locks.
  const turn = isSame?.turn ?? Math.floor(random() * usable.length);
  const { incarnation } = view;
  state.databases.set(name, { incarnation, generation, listedAt: now, usable, turn, seen });
}

/** What to ask a database for, so that about `count` ids come of it; empty when it has no slot to use. */
export function slotRequestsOf(
  state: TagSlots,
  name: string,
  count: number,
): readonly SlotRequest[] {
  const open = state.databases.get(name);
  if (open === undefined || open.usable.length === 0) return [];
  const { usable, seen } = open;
  const number = Math.min(usable.length, Math.ceil(count / IDS_A_SLOT));
  const each = Math.ceil(count / number);
  const requests: SlotRequest[] = [];
  for (let left = count, step = 0; left > 0; left -= each, step++) {
    const slot = usable[(open.turn + step) % usable.length];
    const known = slot === undefined ? undefined : seen.get(slot);
    if (slot === undefined || known === undefined) break;
    const wanted = Math.min(each, left);
    requests.push({ slot, epoch: known.epoch, seenLastId: known.lastId, count: wanted });
  }
  open.turn = (open.turn + requests.length) % usable.length;
  return requests;
}

/** A database answered requests. Says what the answers mean for its slots. */
export function takeGrants(state: TagSlots, name: string, grants: readonly SlotGrant[]): void {
  const open = state.databases.get(name);
  if (open === undefined) return;
  for (const grant of grants) {
    if (grant.outcome === "granted") {
      const { slot, lastId } = grant;
      const known = open.seen.get(slot);
      if (known !== undefined && lastId > known.lastId) {
        open.seen.set(slot, { epoch: known.epoch, lastId });
      }
      if (lastId > state.highest) state.highest = lastId;
    } else if (grant.reason === "EXHAUSTED") {
      state.exhausted.add(grant.slot);
      open.usable = open.usable.filter((slot) => slot !== grant.slot);
    } else if (grant.reason === "MOVED") {
      refreshSlots(state, name);
    } else {
      closeSlots(state, name);
    }
  }
}

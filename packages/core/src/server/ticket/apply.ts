import { IdmintError } from "../../errors.ts";
import type { Holdings, Pending } from "./holdings.ts";
import {
  assertNoneBehind,
  finish,
  moveSlot,
  survey,
  type Surveyed,
  type TagSlotsId,
} from "./mover.ts";
import { type Move, planMoves } from "./plan.ts";
import { nameOfId, type SlotsView, type TicketDatabase } from "./ports.ts";

/** How one tag's slots come to lie evenly on the databases that were named. */
export interface TagPlan extends TagSlotsId {
  /** Moves that were begun before and are finished first. */
  readonly pending: readonly Pending[];
  readonly moves: readonly Move[];
  /** Highest id that may have been issued. */
  readonly highest: bigint;
  /** Slots that no database that answers has, while some are away. They wait for those. */
  readonly waiting: number;
  /** Slots that no database has, while all answer: those of one that was replaced or left out, or that were never made. */
  readonly lost: number;
  /** Whether nothing was ever issued of the tag's slots: with lost ones, CreateTag may have failed before the tag was made. */
  readonly isUnused: boolean;
  /** Databases that did not answer, by name. None of them is a target. */
  readonly away: readonly string[];
}

/**
 * Plans the fewest moves. Every target has to answer: a slot must not be given to a database that cannot take it, and how
 * many a target has must be known. Others may be away; their slots wait.
 */
export async function planTag(
  databases: readonly Surveyed[],
  slotsId: string,
  targets: readonly string[],
): Promise<TagPlan> {
  const { views, holdings, failed } = await survey(databases, slotsId);
  for (const name of targets) {
    const error = failed.get(name);
    if (error !== undefined) throw error;
    if (!views.has(name)) throw unknownTarget(name);
  }
  assertNoneBehind(holdings);
  const slots = slotCountOf(views);
  const pending = pendingFor(holdings, views);
  const owners = new Map(holdings.owners);
  for (const { slot, to } of pending) owners.set(slot, nameOfId(to));
  const missing = missingSlots(holdings, views).length;
  const isAway = failed.size > 0;
  return {
    slotsId,
    slots,
    pending,
    moves: planMoves(owners, targets),
    highest: holdings.highest,
    waiting: isAway ? missing : 0,
    lost: isAway ? 0 : missing,
    isUnused: isUnused(views),
    away: [...failed.keys()],
  };
}

/**
 * Gives up the slots that no database has: their ids are never issued any more. All databases have to answer, so that
 * nothing is given up that somebody has. Answers how many those were, of how many.
 */
export async function forgetLost(
  databases: readonly TicketDatabase[],
  slotsId: string,
): Promise<{ readonly forgotten: number; readonly slots: number }> {
  const { views, holdings, failed } = await survey(databases, slotsId);
  for (const error of failed.values()) throw error;
  assertNoneBehind(holdings);
  const slots = slotCountOf(views);
  const lost = missingSlots(holdings, views);
  if (lost.length === 0) return { forgotten: 0, slots };
  let epoch = 0n;
  for (const view of views.values())
    for (const slot of view.slots) if (slot.epoch > epoch) epoch = slot.epoch;
  // All take note, so that it is known as long as one of them is.
  for (const database of databases) await database.forget({ slotsId, slots, lost, epoch });
  return { forgotten: lost.length, slots };
}

/** Slots that no database that answered has or gets, and that nobody gave up. */
export function missingSlots(
  holdings: Holdings,
  views: ReadonlyMap<string, SlotsView>,
): readonly number[] {
  const pending = new Set(pendingFor(holdings, views).map(({ slot }) => slot));
  const isKnown = (slot: number): boolean =>
    holdings.owners.has(slot) || pending.has(slot) || holdings.forgotten.has(slot);
  const missing: number[] = [];
  for (let slot = 0; slot < slotCountOf(views); slot++) if (!isKnown(slot)) missing.push(slot);
  return missing;
}

/** Moves that can be finished: the database that the slot was frozen for answered. */
function pendingFor(
  { pending }: Holdings,
  views: ReadonlyMap<string, SlotsView>,
): readonly Pending[] {
  const ids = new Set([...views.values()].map(({ databaseId }) => databaseId));
  return pending.filter(({ to }) => ids.has(to));
}

function slotCountOf(views: ReadonlyMap<string, SlotsView>): number {
  return Math.max(0, ...[...views.values()].map(({ slotCount }) => slotCount));
}

/** Slots begin at one id, so with the first grant of one they lie further apart than there are slots. */
function isUnused(views: ReadonlyMap<string, SlotsView>): boolean {
  const slots = [...views.values()].flatMap((view) => view.slots);
  const lastIds = slots.map(({ lastId }) => lastId).toSorted((a, b) => (a < b ? -1 : 1));
  const spread = (lastIds.at(-1) ?? 0n) - (lastIds[0] ?? 0n);
  return slots.every(({ epoch }) => epoch === 1n) && spread < BigInt(slotCountOf(views));
}

/** Carries a plan out, one slot after the other; answers how many moves somebody else had been faster with. */
export async function applyPlan(
  databases: readonly TicketDatabase[],
  plan: TagPlan,
  onMoved: (move: Move) => void = () => undefined,
): Promise<{ readonly overtaken: number }> {
  for (const pending of plan.pending) {
    // One after the other: a slot in between belongs to nobody.
    await finish(databases, plan, pending, plan.highest);
    onMoved({ slot: pending.slot, from: pending.from, to: nameOfId(pending.to) });
  }
  let overtaken = 0;
  for (const move of plan.moves) {
    const outcome = await moveSlot(databases, plan, move);
    if (outcome === "moved") onMoved(move);
    else overtaken++;
  }
  return { overtaken };
}

function unknownTarget(name: string): IdmintError {
  return new IdmintError("INVALID_ARGUMENT", `${name} is not one of ticket.urls`, {
    violations: [{ field: "to", description: `must name databases of ticket.urls, got ${name}` }],
  });
}

import { IdmintError } from "../../errors.ts";
import type { Pending } from "./holdings.ts";
import { assertNoneBehind, finish, moveSlot, survey, type TagSlotsId } from "./mover.ts";
import { type Move, planMoves } from "./plan.ts";
import { nameOfId, type TicketDatabase } from "./ports.ts";

/** How one tag's slots come to lie evenly on the databases that were named. */
export interface TagPlan extends TagSlotsId {
  /** Moves that were begun before and are finished first. */
  readonly pending: readonly Pending[];
  readonly moves: readonly Move[];
  /** Highest id that may have been issued. */
  readonly highest: bigint;
  /** Slots that no database that answers knows the owner of: those of one that is away. They wait for it. */
  readonly waiting: number;
  /** Databases that did not answer, by name. None of them is a target. */
  readonly away: readonly string[];
}

/**
 * Plans the fewest moves. Every target has to answer: a slot must not be given to a database that cannot take it, and how
 * many a target has must be known. Others may be away; their slots wait.
 */
export async function planTag(
  databases: readonly TicketDatabase[],
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
  const slots = Math.max(0, ...[...views.values()].map(({ slotCount }) => slotCount));
  const owners = new Map(holdings.owners);
  for (const { slot, to } of holdings.pending) owners.set(slot, nameOfId(to));
  const { pending, highest } = holdings;
  return {
    slotsId,
    slots,
    pending,
    moves: planMoves(owners, targets),
    highest,
    waiting: slots - owners.size,
    away: [...failed.keys()],
  };
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

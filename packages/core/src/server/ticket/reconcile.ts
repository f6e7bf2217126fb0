import { IdmintError } from "../../errors.ts";
import type { SlotsView } from "./ports.ts";

/** What a database that went back has to be told of one tag before it may issue again. */
export interface Reconciliation {
  readonly slotsId: string;
  readonly slotCount: number;
  /** Highest id that any database knows of; its slots go on above. */
  readonly highest: bigint;
  /** Slots that belong to others by now: what it has of them is replaced. */
  readonly gone: readonly {
    readonly slot: number;
    readonly owner: string;
    readonly epoch: bigint;
  }[];
  /** Slots that others gave it, and that it has forgotten. */
  readonly given: readonly { readonly slot: number; readonly epoch: bigint }[];
}

/**
 * What the other databases know of a tag's slots that `databaseId` does not.
 *
 * INVARIANT: an epoch passes from one owner to the next only by a row that both wrote down, so of every hand-over that one
 * database forgot, the other one still has the trace, or it never took place. All of them have to be asked for that.
 */
export function reconcile(
  slotsId: string,
  databaseId: string,
  views: readonly SlotsView[],
): Reconciliation {
  const own = new Map<number, bigint>();
  const newest = new Map<number, { owner: string; epoch: bigint }>();
  let highest = 0n;
  let slotCount = 0;
  for (const view of views) {
    slotCount = Math.max(slotCount, view.slotCount);
    for (const { slot, owner, epoch, lastId } of view.slots) {
      if (lastId > highest) highest = lastId;
      if (view.databaseId === databaseId) own.set(slot, epoch);
      const known = newest.get(slot);
      if (known === undefined || epoch > known.epoch) newest.set(slot, { owner, epoch });
    }
  }
  const gone: { slot: number; owner: string; epoch: bigint }[] = [];
  const given: { slot: number; epoch: bigint }[] = [];
  for (const [slot, { owner, epoch }] of newest) {
    const ownEpoch = own.get(slot);
    if (owner === databaseId) {
      if (ownEpoch === undefined || ownEpoch < epoch) given.push({ slot, epoch });
    } else if (ownEpoch !== undefined && ownEpoch < epoch) {
      // One below: that its new owner has taken it is for the database to say that gave it.
      gone.push({ slot, owner, epoch: epoch - 1n });
    }
  }
  return { slotsId, slotCount, highest, gone, given };
}

/** Refuses an acceptance that not every other database was asked for. */
export function acceptNeedsAll(name: string, cause: unknown): IdmintError {
  return new IdmintError(
    "STORE_UNAVAILABLE",
    `ticket database ${name} did not answer; all others are asked for what the database to accept has forgotten`,
    { metadata: { database: name }, retryAfterMs: 1_000, cause },
  );
}

import { NOBODY, type Slot, type SlotsView } from "./ports.ts";

/** A slot that one database has given away, and that its new owner has not taken over yet. */
export interface Pending {
  readonly slot: number;
  /** Name of the database that froze it. */
  readonly from: string;
  /** Id of the database it was frozen for. */
  readonly to: string;
  readonly epoch: bigint;
  readonly lastId: bigint;
}

/** What the databases that answered say together. */
export interface Holdings {
  /** Name of the database that may issue from each slot. */
  readonly owners: ReadonlyMap<number, string>;
  /** Slots frozen for another database: a move was begun, or is under way. */
  readonly pending: readonly Pending[];
  /** Slots that an operator gave up. */
  readonly forgotten: ReadonlySet<number>;
  /** Databases that contradict the others, by name, with the proof in words. */
  readonly behind: ReadonlyMap<string, string>;
  /** Highest id that may have been issued; 0n when none was. */
  readonly highest: bigint;
}

interface SlotRow extends Slot {
  readonly name: string;
  readonly databaseId: string;
}

/**
 * Puts the views of several databases on one tag's slots together.
 *
 * INVARIANTS
 * 1. Ownership is a chain: epoch e + 1 of a slot begins when the owner under epoch e froze it, and belongs to the one
 *    database that this very row names. So no two databases own a slot under one epoch, and whoever is active under an
 *    epoch below another database's has forgotten that it froze the slot: it went back.
 * 2. A row says `moved` only after its new owner had the slot. So an owner without it has forgotten it.
 * 3. A slot of nobody is so for good: its epoch is above any that a database had it under, and nobody gives it away.
 *
 * The views are of different moments. A move between two of them may look like a database that went back. It is proof only
 * against one that was asked after all the others had answered: what they showed was true by then.
 */
export function holdingsOf(views: ReadonlyMap<string, SlotsView>): Holdings {
  const bySlot = new Map<number, SlotRow[]>();
  let highest = 0n;
  for (const [name, { databaseId, slots }] of views) {
    for (const slot of slots) {
      if (slot.lastId > highest) highest = slot.lastId;
      const rows = bySlot.get(slot.slot) ?? [];
      rows.push({ ...slot, name, databaseId });
      bySlot.set(slot.slot, rows);
    }
  }
  const nameOf = new Map([...views].map(([name, { databaseId }]) => [databaseId, name]));
  const found = {
    owners: new Map<number, string>(),
    pending: [] as Pending[],
    forgotten: new Set<number>(),
    behind: new Map<string, string>(),
  };
  for (const rows of bySlot.values()) judge(rows, nameOf, found);
  return { ...found, highest };
}

function judge(
  rows: readonly SlotRow[],
  nameOf: ReadonlyMap<string, string>,
  found: {
    readonly owners: Map<number, string>;
    readonly pending: Pending[];
    readonly forgotten: Set<number>;
    readonly behind: Map<string, string>;
  },
): void {
  const newest = rows.reduce((max, { epoch }) => (epoch > max ? epoch : max), 0n);
  for (const row of rows) {
    const { slot, name, state, epoch, lastId, owner } = row;
    if (state === "active") {
      if (epoch === newest) found.owners.set(slot, name);
      else {
        found.behind.set(name, `it has slot ${slot} under epoch ${epoch}, after epoch ${newest}`);
      }
    } else if (owner === NOBODY) {
      if (epoch === newest) found.forgotten.add(slot);
    } else if (epoch === newest && !hasTaken(rows, owner, epoch)) {
      const newOwner = nameOf.get(owner);
      if (state === "frozen") {
        found.pending.push({ slot, from: name, to: owner, epoch, lastId });
      } else if (newOwner !== undefined) {
        found.behind.set(newOwner, `it has lost slot ${slot}, which ${name} gave it`);
      }
    }
  }
}

function hasTaken(rows: readonly SlotRow[], owner: string, epoch: bigint): boolean {
  return rows.some((row) => row.databaseId === owner && row.epoch >= epoch);
}

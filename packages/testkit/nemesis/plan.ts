// What befalls whom, and when: all of it comes out of the seed.
import { Dice } from "../sim/world/random.ts";

/** Faults of one lane come one after the other; those of different lanes at the same time. */
export type Lane = "others" | "servers" | "store";
const LANES = ["servers", "store", "others"] as const satisfies readonly Lane[];

export interface PlannedFault {
  readonly site: string;
  readonly lane: Lane;
  readonly kind: string;
  /** Not before so long after the beginning; later, when the one before it is not over. */
  readonly atMs: number;
  /** Which server, by its place; and the source of all else that is left to chance. */
  readonly place: number;
  readonly seed: string;
}

/** What may befall a site, by lane. */
export interface Possible {
  readonly site: string;
  readonly servers: number;
  readonly kinds: Readonly<Record<Lane, readonly string[]>>;
}

/** How long after a fault began the next one of its lane begins, on average. */
const EVERY_MS: Readonly<Record<Lane, number>> = { servers: 5_000, store: 9_000, others: 4_000 };
/** The last one begins so long before the end. */
const LAST_MS = 4_000;

/** In the order of time. In each lane every kind comes once before any comes again. */
export function planOf(seed: string, minutes: number, sites: readonly Possible[]): PlannedFault[] {
  const plan: PlannedFault[] = [];
  for (const { site, servers, kinds } of sites) {
    for (const lane of LANES) {
      const dice = new Dice(`${seed} ${site} ${lane}`);
      const all = kinds[lane];
      let left: string[] = [];
      let atMs = 1_000;
      while (all.length > 0 && atMs < minutes * 60_000 - LAST_MS) {
        if (left.length === 0) left = shuffled(all, dice);
        const kind = left.pop() ?? "";
        const place = dice.int(0, servers - 1);
        plan.push({ site, lane, kind, atMs: Math.round(atMs), place, seed: dice.token() });
        atMs += dice.between(0.5, 1.5) * EVERY_MS[lane];
      }
    }
  }
  return plan.toSorted((a, b) => a.atMs - b.atMs);
}

function shuffled(all: readonly string[], dice: Dice): string[] {
  const places = all.map((kind) => ({ kind, place: dice.next() }));
  return places.toSorted((a, b) => a.place - b.place).map(({ kind }) => kind);
}

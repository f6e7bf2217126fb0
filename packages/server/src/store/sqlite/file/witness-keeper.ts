import { monotonicMs, type Transaction } from "./connection.ts";
import type { StoreRow } from "./identity.ts";
import type { Sight, Witness } from "./witness.ts";
import { type Bond, standingOf, type Step, stepOf } from "./witness-state.ts";

/** How long a file stays the witness: what was copied together with it longer ago than this is recognised. */
const TURN_EVERY_MS = 60_000;
const WRITE_BOND = "UPDATE store SET witness = ?, next_witness = ?";

/** What is done with the files; see Witness. */
type WitnessFiles = Pick<Witness, "lookAhead" | "makeAhead" | "putInPlace" | "settle">;

/** Carries out for one process what witness-state.ts says. Begins with a turn: this process opens the store. */
export class WitnessKeeper {
  readonly #files: WitnessFiles;
  readonly #now: () => number;
  #dueAtMs = -Infinity;
  #present: string | undefined;

  constructor(files: WitnessFiles, now: () => number = monotonicMs) {
    this.#files = files;
    this.#now = now;
  }

  /** `transaction` holds the write lock, and the store is what was accepted. */
  keep(transaction: Transaction, row: StoreRow, sight: Sight | undefined): void {
    const { bond } = row;
    const nowMs = this.#now();
    // Another process has done it for all.
    if (this.#present !== undefined && bond.present !== this.#present) this.#rest(nowMs);
    this.#present = bond.present;
    const isDue = nowMs >= this.#dueAtMs;
    const standing = standingOf(bond, sight);
    if (standing === "present" && !isDue) return;
    const step = stepOf(bond, standing, this.#files.lookAhead(), isDue);
    const after = this.#done(step, row, nowMs);
    if (after.present === bond.present && after.next === bond.next) return;
    transaction.run(WRITE_BOND, after.present, after.next);
  }

  #done(step: Step, row: StoreRow, nowMs: number): Bond {
    const { bond } = row;
    if (step === "nothing") return bond;
    if (step === "make one ahead") {
      const next = this.#files.makeAhead(row);
      // With a file ahead the turn comes with the next write, when the row that names it is committed.
      if (next === "") this.#rest(nowMs);
      return { ...bond, next };
    }
    this.#rest(nowMs);
    const isInPlace =
      step === "follow" ? this.#files.settle() : this.#files.putInPlace(bond.next, row);
    if (!isInPlace) return bond;
    return { present: bond.next, next: this.#files.makeAhead(row) };
  }

  #rest(nowMs: number): void {
    this.#dueAtMs = nowMs + TURN_EVERY_MS;
  }
}

import type { EndedPeriod, Tag } from "@idmint/core";

const DAY_MS = 86_400_000;

/** What a MemoryDatabase holds at one moment; `restore` brings it back, as a backup would. */
export interface MemorySnapshot {
  readonly rows: ReadonlyMap<string, Tag>;
  readonly periods: ReadonlyMap<string, readonly EndedPeriod[]>;
  readonly revision: bigint;
  readonly incarnation: string;
  readonly acceptedIdentity: string;
}

/** What several MemoryStores of one test share: the rows, and the history they belong to. */
export class MemoryDatabase {
  rows: Map<string, Tag> = new Map();
  /** The ended periods of each tag, newest first. */
  periods: Map<string, readonly EndedPeriod[]> = new Map();
  revision = 0n;
  incarnation = "history-1";
  /** What the store is; a fail-over or a restored file makes it another one. */
  identity = "identity-1";
  acceptedIdentity = "identity-1";
  /** Added to the wall clock, so that a test can move it. */
  clockOffsetMs = 0;
  #named = 1;

  now(): number {
    return Date.now() + this.clockOffsetMs;
  }

  snapshot(): MemorySnapshot {
    const { revision, incarnation, acceptedIdentity } = this;
    const rows = new Map(this.rows);
    const periods = new Map(this.periods);
    return { rows, periods, revision, incarnation, acceptedIdentity };
  }

  /** The rows of then, in the store of now: what a restored backup looks like to a server that kept running. */
  restore(snapshot: MemorySnapshot): void {
    this.rows = new Map(snapshot.rows);
    this.periods = new Map(snapshot.periods);
    this.revision = snapshot.revision;
    this.incarnation = snapshot.incarnation;
    this.acceptedIdentity = snapshot.acceptedIdentity;
  }

  /** Moves the periods of all rows, present and ended, by whole days: as if the clock had gone the other way. */
  shiftPeriods(days: number): void {
    const shifted = (start: string): string =>
      start === "" ? "" : new Date(Date.parse(start) + days * DAY_MS).toISOString().slice(0, 10);
    for (const [name, row] of this.rows) {
      this.rows.set(name, { ...row, periodStart: shifted(row.periodStart) });
    }
    for (const [name, periods] of this.periods) {
      const moved = periods.map(({ start, lastId, endedAtMs }) => ({
        start: shifted(start),
        lastId,
        endedAtMs: endedAtMs + days * DAY_MS,
      }));
      this.periods.set(name, moved);
    }
  }

  /** One row as it was then; all others stay. */
  restoreRow(snapshot: MemorySnapshot, name: string): void {
    const row = snapshot.rows.get(name);
    if (row === undefined) this.rows.delete(name);
    else this.rows.set(name, row);
  }

  /** Makes the store another one than the accepted: a promoted replica, a copied file. */
  move(): void {
    this.#named++;
    this.identity = `identity-${this.#named}`;
  }

  newIncarnation(): void {
    this.#named++;
    this.incarnation = `history-${this.#named}`;
  }
}

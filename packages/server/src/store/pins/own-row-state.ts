import type { EarlierRow } from "@idmint/core/server";

/** In the place of the identity of a store that was accepted: why a server saw that the store went back. No store has this one. */
export const WENT_BACK = "went back: ";

/** Stands before what was seen, where a marked store refuses. */
export const MARKED = "a server saw that the store went back: ";

/**
 * What a server's own row says of its store. Pure.
 *
 * A store that went back looks well by every number that others move too: a place in the log, a revision, a count of grants is
 * soon passed again. The number in a server's row is moved by that server alone, once a second.
 *
 * INVARIANT: no false alarm. The row is compared only within the history in which it had the number, which a renewal has made
 * durable before it was answered. One that is gone was forgotten, unless there is no trace of that although it was renewed so
 * lately that traces are still kept, by this server's clock and by the store's: a machine that stood still has neither.
 */
export interface KnownRow {
  readonly id: string;
  /** The number that the last renewal left in it. */
  readonly renewals: bigint;
  /** Name of the store's history in which it was renewed: another one after whatever may take numbers back rightly. */
  readonly history: string;
  /** When the renewal was answered, by the store's clock and by that of this process, in milliseconds. */
  readonly storeMs: number;
  readonly atMs: number;
}

export interface FoundRow {
  readonly history: string;
  /** Undefined: there is no row. */
  readonly renewals: bigint | undefined;
  /** The number that it had when it was forgotten last; undefined: there is no trace of that. */
  readonly forgotten: bigint | undefined;
  readonly storeMs: number;
  readonly atMs: number;
}

/** What an earlier life of this server was acknowledged, and what the first look at the store said of that. */
export class EarlierProof {
  #known: KnownRow | undefined;
  #isThere: boolean | undefined;

  /** Whether the store has the row, in the history in which it was renewed. */
  get isThere(): boolean {
    return this.#isThere === true;
  }

  /** Answers what is known of the row to a life that was not renewed yet. `nowMs`: on the clock of `KnownRow.atMs`. */
  resume(id: string, { history, renewals, storeMs, agoMs }: EarlierRow, nowMs: number): KnownRow {
    this.#known = { id, history, renewals, storeMs, atMs: nowMs - agoMs };
    return this.#known;
  }

  /** The row was looked at, and shows no loss. */
  compared(found: FoundRow): void {
    if (this.#known !== undefined) this.#isThere ??= hasRow(this.#known, found);
  }
}

/** Whether the store has the row as it was known, or the trace of it: no part of its history before that is missing. */
function hasRow(known: KnownRow, found: FoundRow): boolean {
  const number = found.renewals ?? found.forgotten;
  return found.history === known.history && number !== undefined && number >= known.renewals;
}

/** For how long after its last renewal a row that is gone proves something. Traces of forgotten ones are kept longer. */
const GONE_PROVES_MS = 1_800_000;

/** Why the store went back, in words; empty: the row does not show it. */
export function lossOf(known: KnownRow, found: FoundRow): string {
  if (found.history !== known.history) return "";
  if (found.renewals !== undefined) {
    if (found.renewals >= known.renewals) return "";
    return lossText(known, found.renewals);
  }
  if (found.forgotten !== undefined && found.forgotten >= known.renewals) return "";
  const isRecent =
    found.atMs - known.atMs < GONE_PROVES_MS && found.storeMs - known.storeMs < GONE_PROVES_MS;
  return isRecent ? lossText(known, undefined) : "";
}

/** What a server's row lost, in words. `found`: the number it has now; undefined: there is no row. */
export function lossText(
  { id, renewals }: Pick<KnownRow, "id" | "renewals">,
  found: bigint | undefined,
): string {
  return found === undefined
    ? `the row of server ${id} is gone, and nobody forgot it`
    : `the row of server ${id} is at ${found}, after ${renewals} was answered`;
}

import { CLOCK_BOUND_MS } from "../../shared/period.ts";

/** What one server's row says of its clock. */
export interface ClockReading {
  readonly id: string;
  /** Another text after every renewal. */
  readonly renewal: string;
  /** The server's wall clock when it sent the renewal, milliseconds since 1970. */
  readonly clockMs: number;
}

interface Known {
  readonly renewal: string;
  /** How far the clock is ahead of this process's monotonic clock, at least; undefined until its row moved. */
  readonly aheadMs: number | undefined;
  /** Since when its row was seen not to move, by the monotonic clock; undefined: it moved since the poll before. */
  readonly stillSinceMs: number | undefined;
}

/**
 * A server whose row was seen not to move for so long is not asked for the time any more. It is seen by polls alone: while
 * the store is away, what is known of clocks stays.
 */
const SILENT_MS = 10_000;

/**
 * The clock of a store whose database has none: the median of the clocks of the servers that run, of an even number the
 * earlier one of the two in the middle.
 *
 * What is known of another server's clock is where it was when its renewal was sent, and so a bound from below. This server
 * takes its own clock where that is not behind the median and at most CLOCK_BOUND_MS ahead of it; otherwise the end of
 * that span. So it is exact while all clocks are right. One clock out of three, however wrong, begins no period and holds
 * none back; one out of two that is behind holds back both, one that is ahead begins nothing.
 *
 * No uniqueness rests on it: a row's period only moves forward, with the row.
 */
export class StoreClock {
  readonly #known = new Map<string, Known>();

  /** Takes note of the rows of the other servers, all of them. `nowMs` is monotonic. */
  observe(readings: readonly ClockReading[], nowMs: number): void {
    const before = new Map(this.#known);
    this.#known.clear();
    for (const { id, renewal, clockMs } of readings) {
      const known = before.get(id);
      if (known === undefined || known.renewal !== renewal) {
        const aheadMs = known === undefined ? undefined : clockMs - nowMs;
        this.#known.set(id, { renewal, aheadMs, stillSinceMs: undefined });
        continue;
      }
      const stillSinceMs = known.stillSinceMs ?? nowMs;
      const isSilent = nowMs - stillSinceMs >= SILENT_MS;
      const aheadMs = isSilent ? undefined : known.aheadMs;
      this.#known.set(id, { renewal, aheadMs, stillSinceMs });
    }
  }

  /** The rows are of another time. */
  forget(): void {
    this.#known.clear();
  }

  /** The store's time, from this server's wall clock and the monotonic one, in milliseconds since 1970. */
  at(ownMs: number, nowMs: number): number {
    const clocks = [...this.#known.values()].flatMap(({ aheadMs }) =>
      aheadMs === undefined ? [] : [aheadMs + nowMs],
    );
    const sorted = [...clocks, ownMs].toSorted((a, b) => a - b);
    const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? ownMs;
    // The monotonic clock has fractions of a millisecond.
    return Math.floor(Math.min(Math.max(ownMs, median), median + CLOCK_BOUND_MS));
  }
}

import { createHistogram } from "node:perf_hooks";
import { periodText, type Segment } from "@idmint/core";
import { Budget, IdRanges } from "../verify/ranges.ts";

/** What one call got. */
export interface BenchAnswer {
  readonly segments: readonly Segment[];
  readonly texts: readonly string[];
  readonly period: string;
}

/** Longest latency that is told apart from longer ones: an hour, in nanoseconds. */
const LONGEST_NS = 3_600_000_000_000;
/** Segments that are kept for the comparison. They take 16 bytes each, and as many again while they are compared. */
const MAX_SEGMENTS = 20_000_000;
/** Texts that are kept for the comparison. They take about 100 bytes each. */
const MAX_TEXTS = 2_000_000;

const PERCENTILES = [50, 90, 99, 99.9, 99.99] as const;

/** What came of a run. */
export interface Tallied {
  readonly answered: number;
  readonly ids: bigint;
  /** Ids, or neighbours of them, that were answered more than once. */
  readonly repeats: number;
  /** The first few. */
  readonly repeated: readonly string[];
  readonly refused: ReadonlyMap<string, number>;
  readonly unsent: number;
  /** Milliseconds by percentile; empty when no call was timed. */
  readonly latencyMs: Readonly<Record<string, number>>;
}

/**
 * Counts what calls get. Node's histogram is HdrHistogram, with three significant digits.
 *
 * INVARIANT: every id of every answer is compared with all others of the run; a run whose ids do not fit is ended.
 */
export class Tally {
  readonly #latency = createHistogram({ lowest: 1, highest: LONGEST_NS, figures: 3 });
  readonly #budget = new Budget(Infinity);
  readonly #ranges = new Map<string, IdRanges>();
  readonly #texts = new Set<string>();
  readonly #refused = new Map<string, number>();
  #segmentCount = 0;
  #textCount = 0;
  readonly #repeatedTexts: string[] = [];
  #repeatedTextCount = 0;
  #answered = 0;
  #unsent = 0;

  get answered(): number {
    return this.#answered;
  }

  get isFull(): boolean {
    return this.#texts.size >= MAX_TEXTS || this.#segmentCount >= MAX_SEGMENTS;
  }

  /** The latency that 99 of 100 calls have at most until now, in milliseconds. */
  get p99Ms(): number {
    return this.#latency.percentile(99) / 1e6;
  }

  answer({ segments, texts, period }: BenchAnswer, latencyMs: number): void {
    this.#answered += 1;
    this.#record(latencyMs);
    if (segments.length > 0) this.#addSegments(segments, period);
    for (const text of texts) this.#addText(text);
  }

  /** The time of a refusal would make a server look fast. Of a call without an answer, the time is at least this. */
  refuse(reason: string, latencyMs: number): void {
    if (reason === "DEADLINE_EXCEEDED") this.#record(latencyMs);
    this.#refused.set(reason, (this.#refused.get(reason) ?? 0) + 1);
  }

  neverSent(waitedMs: number): void {
    this.#unsent += 1;
    this.#record(waitedMs);
  }

  end(): Tallied {
    let ids = BigInt(this.#textCount);
    let repeats = this.#repeatedTextCount;
    const repeated = [...this.#repeatedTexts];
    for (const [period, ranges] of this.#ranges) {
      const summary = ranges.summary();
      ids += summary.ids;
      repeats += summary.overlapCount;
      for (const { first, last } of summary.overlaps) {
        const name = first === last ? `${first}` : `${first}…${last}`;
        repeated.push(period === "" ? name : periodText(period, first));
      }
    }
    return {
      answered: this.#answered,
      ids,
      repeats,
      repeated,
      refused: this.#refused,
      unsent: this.#unsent,
      latencyMs: this.#latencies(),
    };
  }

  #record(latencyMs: number): void {
    this.#latency.record(Math.min(LONGEST_NS, Math.max(1, Math.round(latencyMs * 1e6))));
  }

  #addSegments(segments: readonly Segment[], period: string): void {
    let ranges = this.#ranges.get(period);
    if (ranges === undefined) {
      ranges = new IdRanges(this.#budget);
      this.#ranges.set(period, ranges);
    }
    this.#segmentCount += segments.length;
    for (const { base, increment, count } of segments) {
      ranges.add({ base, increment: BigInt(increment), count: BigInt(count) });
    }
  }

  #addText(text: string): void {
    this.#textCount += 1;
    if (this.#texts.has(text)) {
      this.#repeatedTextCount += 1;
      if (this.#repeatedTexts.length < 20) this.#repeatedTexts.push(text);
    } else this.#texts.add(text);
  }

  #latencies(): Readonly<Record<string, number>> {
    if (this.#latency.count === 0) return {};
    const shares = PERCENTILES.map(
      (share) => [`p${share}`, millisecondsOf(this.#latency.percentile(share))] as const,
    );
    return { ...Object.fromEntries(shares), max: millisecondsOf(this.#latency.max) };
  }
}

/** Of nanoseconds, with the digits that are known. */
function millisecondsOf(ns: number): number {
  return Number((ns / 1e6).toPrecision(3));
}

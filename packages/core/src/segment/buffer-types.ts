import type { IdmintError } from "../errors.ts";
import type { BufferEvent, WasteCause } from "../events.ts";
import type { Clock, Random, Timers } from "../ports.ts";
import type { RateMeter } from "./rate.ts";
import type { Segment } from "./segment.ts";
import type { SizingOptions } from "./sizing.ts";

/**
 * The double buffer of one tag, as pure state: (state, event, time) → effects. It is changed in place, since a server
 * holds 100,000 of them and an id must cost no allocation; it knows no clock, no promise and no store.
 * `buffer.ts` is the shell that runs the effects. docs/internals/double-buffer.md has the transition table.
 *
 * INVARIANTS
 * 1. Every id of an accepted load is issued at most once: it is issued exactly when the cursor (`index`, `offset` in
 *    `loads[0]`) passes it, and the cursor moves back only over ids that their taker swore not to have issued.
 * 2. At most one load is in flight. Its answer is accepted only with the token it was started with; whatever comes with
 *    another token, or not at all, is never issued.
 * 3. No id of an epoch below `epoch` is issued.
 * 4. With `ordered`, every accepted id is above `highest`.
 * 5. A waiter exists only while a load is in flight or due before its deadline.
 * 6. Ids of a load are issued only while the last look at the clock was before its `expiresAt`. The clock is looked at
 *    before every issue that takes the slow path, and on the warm path after every `stride` ids. Unless looks follow each other
 *    within a millisecond it is at most 1, the id that is issued at once: no timer has to run for ids one by one. While it is more,
 *    a timer waits that makes it 1 within a millisecond (`burst.ts`). So what a burst leaves, at most 1,023 ids, is issued
 *    without a look only by a process that was busy or stopped from the burst on.
 * 7. What a fence, a refusal, a later epoch or an unknown age forbids to issue is forbidden wherever it is, in the hands of a
 *    taker too. Each of them ends the `generation`, and ids come back only under the one they were taken under.
 */
export interface BufferState<R> {
  readonly tag: string;
  options: BufferOptions;
  /** Highest epoch seen. */
  epoch: bigint;
  /** Ends when all that was granted before may not be issued any more; made when somebody asks for it. */
  generation: symbol | undefined;
  /** What is held, in the order of use: the first is the current load, the second the next. */
  loads: readonly HeldLoad<R>[];
  /** The cursor: the segment of the current load, and how many of its ids were issued. */
  index: number;
  offset: number;
  /** The current segment, unpacked for the warm path. */
  base: bigint;
  baseNumber: number;
  increment: number;
  /** Ids may be issued on the warm path while offset < limit: the nearest of prefetch mark, end and next look. */
  limit: number;
  /** The same for ids that are exact as JavaScript numbers. */
  numberLimit: number;
  /** Ids issued before the current segment: over the tag's life here, and of the current load. */
  issuedBefore: number;
  usedBefore: number;
  /** When the clock was last looked at, and how many ids had been issued by then. */
  lookedAt: number;
  lookedFrom: number;
  /** After how many ids the clock is looked at again, where ids expire; 1 and less: before the next one. */
  stride: number;
  /** Highest last id of any load accepted. */
  highest: bigint;
  /** Ids of the next load. */
  size: number;
  /** From when its rate may matter on: most tags of many never get that far. */
  rate: RateMeter | undefined;
  loading: Loading;
  nextToken: number;
  waiters: Waiter[];
  /** Refuses everything with this error. */
  fenced: IdmintError | undefined;
  /** Someone asks synchronously, and cannot wait: keep ids ready even while nobody asks. */
  keepReady: boolean;
}

export interface BufferOptions extends SizingOptions {
  /** Share of a load after whose use the next one is prefetched; above 0, at most 1. */
  readonly prefetchShare: number;
  /** Most calls that may wait. */
  readonly maxWaiters: number;
  /** Ids must never go down: loads carry `after`. */
  readonly ordered: boolean;
}

/** What a load brought, and until when it may be used. */
export interface HeldLoad<R> {
  readonly segments: readonly Segment[];
  readonly count: number;
  /** Absent for ids that were put back. */
  readonly grant: { readonly receipt: R } | undefined;
  readonly arrivedAt: number;
  readonly expiresAt: number;
}

/** An answer of the loader. */
export interface Load<R> {
  readonly segments: readonly Segment[];
  readonly epoch: bigint;
  /** Whatever the loader wants to see again in `drain`. */
  readonly receipt: R;
  /** From when on the ids may not be issued any more, on the buffer's clock. Default: never. */
  readonly expiresAt?: number;
}

export interface LoadRequest {
  readonly count: number;
  readonly minCount: number;
  readonly after: bigint;
}

/**
 * One attempt to get ids. Rejects with IdmintError. It must settle in bounded time; what it may have allocated when it
 * rejects is never used.
 */
type Loader<R> = (request: LoadRequest, tag: string) => Promise<Load<R>>;

/** The outside world of a buffer; buffers of many tags may share one. */
export interface BufferPorts<R> {
  readonly load: Loader<R>;
  /** Whether a load that failed for now has little hope, so that impatient calls are refused. Default: never. */
  readonly givesUp?: () => boolean;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Timers that do not keep the process alive. Default: `timers`. */
  readonly quietTimers?: Timers;
  readonly random: Random;
  readonly onEvent?: (event: BufferEvent) => void;
}

/** The unused end of one load. */
export interface Unused<R> {
  readonly receipt: R;
  readonly segments: readonly Segment[];
}

/**
 * idle: nothing is on its way. loading: one load is in flight. backoff: the last load failed with `error`; the next may
 * start at `retryAt`. A `final` error (not UNAVAILABLE) is answered to whoever asks until then; otherwise they wait,
 * except for impatient calls once the loader gave up.
 */
type Loading =
  | { readonly phase: "idle" }
  | {
      readonly phase: "loading";
      readonly token: number;
      readonly startedAt: number;
      readonly failures: number;
      /** Why the one before it failed. */
      readonly error: IdmintError | undefined;
    }
  | {
      readonly phase: "backoff";
      readonly failures: number;
      readonly retryAt: number;
      readonly error: IdmintError;
      readonly final: boolean;
      readonly gaveUp: boolean;
    };

export interface Waiter {
  readonly id: number;
  readonly count: number;
  readonly allowFewer: boolean;
  readonly isImpatient: boolean;
  /** When it must have an answer; Infinity when it set no deadline. */
  readonly answerBy: number;
}

export type Effect =
  | { readonly type: "load"; readonly token: number; readonly request: LoadRequest }
  | { readonly type: "retry-at"; readonly at: number }
  | { readonly type: "serve"; readonly waiter: number; readonly segments: readonly Segment[] }
  | { readonly type: "refuse"; readonly waiter: number; readonly error: IdmintError }
  | { readonly type: "loaded"; readonly count: number; readonly durationMs: number }
  | { readonly type: "load-failed"; readonly error: IdmintError; readonly retryInMs: number }
  | { readonly type: "wasted"; readonly count: number; readonly cause: WasteCause };

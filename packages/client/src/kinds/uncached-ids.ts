import { AsyncResource } from "node:async_hooks";
import {
  answerBy,
  backoffMs,
  busyMs,
  type Call,
  type Committed,
  countOf,
  GroupCommit,
  IdmintError,
  invalidField,
  lastOf,
  MAX_COUNT_AS_SEGMENTS,
  type Segment,
  slice,
  tooManyWaiters,
} from "@idmint/core";
import type { GenerateIdsResponse } from "@idmint/proto";
import { AnswerCheck, invalidAnswer, lostBelow, segmentsOf } from "../answers.ts";
import type { Answered } from "../servers/endpoints.ts";
import type { Route } from "../servers/fleet.ts";
import type { TagContext } from "../tag-context.ts";
import { WAYS } from "./ways.ts";

const NEWER_EPOCH = "newer_epoch";

/** Whether an answer was not used because the tag was changed before it: it may be of another kind now. */
export function isOfChange({ metadata }: IdmintError): boolean {
  return metadata[NEWER_EPOCH] !== undefined;
}

/** Longest delay that a server's RetryInfo can ask for, in milliseconds. */
const MAX_RETRY_DELAY_MS = 30_000;

/** The period that ids belong to. */
interface PeriodOfIds {
  /** As 2026-11-21. */
  readonly name: string;
  /** By the store's clock, in milliseconds since 1970. */
  readonly endsAtMs: number;
}

/** A tag that servers hand out no segments of. */
interface UncachedTag {
  readonly tag: string;
  /** In the words of the proto. */
  readonly kind: string;
  /** Whether ids are text instead of numbers. */
  readonly isText: boolean;
  /** Most ids of one request. Undefined: the usual limit. */
  readonly maxCount: number | undefined;
  /** Called when the tag may be of another kind now. */
  readonly onDoubt: () => void;
}

/** The ids of one call. */
interface Share {
  /** Empty for tags whose ids are text. */
  readonly segments: readonly Segment[];
  /** Empty for tags whose ids are numbers. */
  readonly texts: readonly string[];
  /** Undefined for tags without periods. */
  readonly period: PeriodOfIds | undefined;
}

/**
 * What one request was answered. `base` and `count` are places in `segments` or `texts`, since ids of some kinds leave
 * gaps; epochs are looked at before the group commit sees them, and it knows nothing of periods.
 */
interface Trip extends Committed {
  readonly segments: readonly Segment[];
  readonly texts: readonly string[];
  readonly periodOfIds: PeriodOfIds | undefined;
}

/** Where the last answer stood: what comes later is beyond it. */
interface Mark {
  readonly epoch: bigint;
  readonly endsAtMs: number;
  readonly id: bigint;
}

/**
 * The ids of a tag whose kind allows none in memory: core's group commit over GenerateIds, so that calls which come
 * while a request is in flight share the next one. Who retries what is as in `../tag.ts`: one request asks each of up to
 * three endpoints once, and the next one follows a failed one after a back-off, as long as somebody waits.
 *
 * INVARIANTS
 * 1. At most one request is in flight, and nobody joins it after it was sent. So the ids of a call were granted after
 *    the call was made, hence after every id that had been answered by then: whichever server answers, and on however
 *    many tries.
 * 2. Of a sequence, an answer is used only if it is beyond the last one: of a later period, or of the same one with
 *    larger ids. Servers promise it; this holds it against a Redis or a store that went back unnoticed, or was accepted with
 *    too small a gap. In another epoch the period may be an earlier one: an operator went back to it, above its ids. Of other
 *    kinds, an answer is used only if none of its ids came in before.
 * 3. No answer of an older epoch is used, and none of a newer one: between the two the tag may have become another one,
 *    so its kind is asked for first.
 */
export class UncachedIds {
  /** Kind of the tag, in the words of the proto. */
  readonly kind: string;
  /** Whether the ids of this kind are strictly increasing. */
  readonly isStrict: boolean;
  /** Whether the tag has periods; undefined before the first answer. */
  hasPeriods: boolean | undefined;
  readonly #tag: string;
  readonly #isText: boolean;
  readonly #maxCount: number;
  readonly #context: TagContext;
  readonly #route: Route;
  readonly #onDoubt: () => void;
  readonly #commits: GroupCommit<Trip>;
  readonly #answers: AnswerCheck;
  /** Highest epoch seen. */
  #epoch = 0n;
  /** Whether the tag is known to be of this kind in that epoch. */
  #isCertain = false;
  #mark: Mark | undefined;
  #waiting = 0;
  #usedAtMs: number;
  #failures = 0;
  /** No request is sent before, on the clock. */
  #retryAtMs = 0;
  /** Why the last request failed; undefined after one that did not. */
  #lastFailure: IdmintError | undefined;

  constructor(tagged: UncachedTag, context: TagContext) {
    const { tag, kind, onDoubt } = tagged;
    this.kind = kind;
    this.isStrict = Object.hasOwn(WAYS, kind) && WAYS[kind as keyof typeof WAYS] === "strict";
    this.#tag = tag;
    this.#isText = tagged.isText;
    this.#maxCount = tagged.maxCount ?? MAX_COUNT_AS_SEGMENTS;
    this.#context = context;
    // Calls of all clients that come to one server share its round trips to the store.
    this.#route = context.endpoints.routeOf(tag, true);
    this.#onDoubt = onDoubt;
    this.#answers = new AnswerCheck(tag);
    this.#usedAtMs = context.clock.now();
    const { maxWaiters } = context.buffer;
    const { clock, timers, onEvent } = context.ports;
    this.#commits = new GroupCommit<Trip>(
      tag,
      { maxWaiters, maxCount: this.#maxCount },
      {
        commit: (_tag, count) => this.#request(count),
        afterTurn: (run) => this.#afterTurn(run),
        clock,
        timers,
        ...(onEvent === undefined ? {} : { onEvent }),
      },
    );
  }

  /** How long nobody has used it, in milliseconds. */
  get idleMs(): number {
    return this.#waiting > 0 ? 0 : this.#context.clock.now() - this.#usedAtMs;
  }

  /** The servers confirmed that the tag is of this kind. */
  confirm(): void {
    this.#isCertain = false;
    this.hasPeriods = undefined;
    this.#usedAtMs = this.#context.clock.now();
  }

  /** Refuses everything with this error, for good. */
  close(error: IdmintError): void {
    this.#commits.fence(error);
  }

  /** One id; see `take`. */
  async next(call: Call): Promise<{ readonly id: bigint; readonly period: Share["period"] }> {
    const { segments, period } = await this.take(1, call);
    const [first] = segments;
    if (first === undefined) throw new IdmintError("INTERNAL", "an answer without an id");
    return { id: first.base, period };
  }

  /** `count` ids, all or none, of one period. Retries what may be retried until shortly before the call's deadline. */
  async take(count: number, call: Call): Promise<Share> {
    if (count > this.#maxCount) {
      const text = `must be at most ${this.#maxCount}, got ${count}; split it into several calls`;
      throw invalidField("count", text);
    }
    const { maxWaiters } = this.#context.buffer;
    // Counted here too, since a call that waits for a retry is in no group commit.
    if (this.#waiting >= maxWaiters) throw tooManyWaiters(this.#tag, maxWaiters);
    this.#waiting++;
    try {
      return await this.#takeInTime(count, call);
    } finally {
      this.#waiting--;
      this.#usedAtMs = this.#context.clock.now();
    }
  }

  async #takeInTime(count: number, call: Call): Promise<Share> {
    const endAtMs = answerBy(this.#context.clock.now(), call);
    for (;;) {
      this.#assertHope(endAtMs);
      try {
        // One after the other: each try begins when the one before it failed.
        return shareOf(await this.#commits.take(count, call));
      } catch (thrown) {
        const error = IdmintError.from(thrown);
        // What a busy server refused is asked again when it said.
        const isPassing = error.retryable || error === this.#lastFailure;
        if (!isPassing) throw error;
        // The error of the last request says more than DEADLINE_EXCEEDED would.
        if (this.#context.clock.now() >= endAtMs) throw this.#lastFailure ?? error;
      }
    }
  }

  /** Throws when no request will be sent before this time. */
  #assertHope(endAtMs: number): void {
    const { clock } = this.#context;
    if (
      this.#lastFailure !== undefined &&
      this.#retryAtMs >= endAtMs &&
      this.#retryAtMs > clock.now()
    ) {
      throw this.#lastFailure;
    }
  }

  /** A batch closes when its turn is over and the back-off too, so that all that wait by then are in it. */
  #afterTurn(run: () => void): void {
    const waitMs = this.#retryAtMs - this.#context.clock.now();
    // In the context of who waits, which ends with the wait.
    if (waitMs > 0) this.#context.ports.timers.after(waitMs, AsyncResource.bind(run));
    else this.#context.afterTurn(run);
  }

  async #request(count: number): Promise<Trip> {
    const { endpoints, clock } = this.#context;
    const tag = this.#tag;
    const startedAtMs = clock.now();
    this.#context.ports.onEvent?.({ type: "load-started", tag, count });
    try {
      const request = { tag, count, asList: this.#isText };
      const trip = await endpoints.generate(this.#route, request, (answered) =>
        this.#accept(answered, count),
      );
      this.#failures = 0;
      this.#lastFailure = undefined;
      const durationMs = clock.now() - startedAtMs;
      this.#context.ports.onEvent?.({ type: "loaded", tag, count, durationMs });
      return trip;
    } catch (thrown) {
      throw this.#failed(IdmintError.from(thrown));
    }
  }

  #failed(error: IdmintError): IdmintError {
    const { clock, ports } = this.#context;
    let retryInMs = 0;
    if (error.retryable || busyMs(error) !== undefined) {
      const askedMs = Math.min(error.retryAfterMs ?? 0, MAX_RETRY_DELAY_MS);
      retryInMs = Math.max(backoffMs(++this.#failures, ports.random), askedMs);
      this.#retryAtMs = clock.now() + retryInMs;
      this.#lastFailure = error;
    }
    ports.onEvent?.({ type: "load-failed", tag: this.#tag, error, retryInMs });
    if (KIND_IN_DOUBT.has(error.reason)) this.#onDoubt();
    return error;
  }

  /** An answer as a trip. Throws a retryable error for one that may not be used; another server may know better. */
  #accept({ answer, endpoint }: Answered<GenerateIdsResponse>, count: number): Trip {
    const { epoch, period: name, periodEndTime } = answer;
    const { texts } = answer;
    const origin = { tag: this.#tag, server: endpoint };
    const segments = segmentsOf(answer.segments, origin);
    const answered = this.#isText ? texts.length : countOf(segments);
    if (answered !== count) {
      throw invalidAnswer(origin, `answered ${answered} ids of tag "${this.#tag}" for ${count}`);
    }
    // Invariant 3.
    if (epoch < this.#epoch) {
      throw this.#unusable(count, `of epoch ${epoch}, after some of epoch ${this.#epoch}`);
    }
    if (epoch > this.#epoch && this.#isCertain) {
      const error = this.#unusable(
        count,
        `of epoch ${epoch}; the SDK asks for the kind of the tag again`,
      );
      const metadata = { ...error.metadata, [NEWER_EPOCH]: String(epoch) };
      throw new IdmintError("WRONG_KIND", error.message, { metadata });
    }
    const endsAtMs = periodEndTime?.getTime() ?? 0;
    if (this.isStrict) this.#advance(segments, { epoch, endsAtMs, count });
    else this.#answers.assertNew(segments, endpoint);
    this.#epoch = epoch;
    this.#isCertain = true;
    this.hasPeriods = name !== "";
    const periodOfIds = this.hasPeriods ? { name, endsAtMs } : undefined;
    return { base: 0n, count, epoch: 0n, period: undefined, segments, texts, periodOfIds };
  }

  /** Invariant 2. */
  #advance(segments: readonly Segment[], { epoch, endsAtMs, count }: Advance): void {
    const {
      epoch: epochBefore,
      endsAtMs: endedAtMs = -Infinity,
      id: before = -1n,
    } = this.#mark ?? {};
    if (epoch === epochBefore && endsAtMs < endedAtMs) {
      throw this.#unusable(count, "of a period that was over in an earlier answer");
    }
    const [first] = segments;
    const isSamePeriod = endsAtMs === endedAtMs;
    if (isSamePeriod && epoch !== epochBefore && first !== undefined && first.base <= before) {
      this.#tellWaste(count);
      throw lostBelow(this.#tag, before);
    }
    let last = isSamePeriod ? before : -1n;
    for (const segment of segments) {
      if (segment.base <= last)
        throw this.#unusable(count, `from ${segment.base} on, after ${last}`);
      last = lastOf(segment);
    }
    this.#mark = { epoch, endsAtMs, id: last };
  }

  #unusable(count: number, what: string): IdmintError {
    this.#tellWaste(count);
    const text = `tag "${this.#tag}" got an answer with ids ${what}; the SDK does not use it`;
    return new IdmintError("STORE_UNAVAILABLE", text, { metadata: { tag: this.#tag } });
  }

  #tellWaste(count: number): void {
    this.#context.ports.onEvent?.({ type: "wasted", tag: this.#tag, count, cause: "rejected" });
  }
}

interface Advance {
  readonly epoch: bigint;
  readonly endsAtMs: number;
  readonly count: number;
}

/** Refusals after which the tag may come back with another kind. */
const KIND_IN_DOUBT: ReadonlySet<IdmintError["reason"]> = new Set(["TAG_NOT_FOUND", "WRONG_KIND"]);

/** A call's part of what its request was answered. */
function shareOf({ base, count, segments, texts, periodOfIds }: Trip): Share {
  const part: Segment[] = [];
  let skip = Number(base);
  let left = count;
  for (const segment of segments) {
    if (left === 0) break;
    const taken = Math.min(left, segment.count - skip);
    if (taken > 0) part.push(slice(segment, skip, taken));
    left -= Math.max(0, taken);
    skip = Math.max(0, skip - segment.count);
  }
  const ownTexts = texts.slice(Number(base), Number(base) + count);
  return { segments: part, texts: ownTexts, period: periodOfIds };
}

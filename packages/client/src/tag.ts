import { markAsUncloneable } from "node:worker_threads";
import {
  type BufferOptions,
  type BufferPorts,
  type Call,
  type Clock,
  IdmintError,
  type Load,
  type LoadRequest,
  type Segment,
  SegmentBuffer,
  periodText,
  segmentNotReady,
  type Unused,
} from "@idmint/core";
import { type AllocateSegmentResponse, Order } from "@idmint/proto";
import type { CallOptions, IdTag, PeriodId } from "./api.ts";
import { assertCount, callOf, numberOf, segmentsOfAnswer, StandardCall } from "./calls.ts";
import type { Answered, Endpoints } from "./endpoints.ts";
import { millisecondsOf } from "./errors.ts";
import type { IdClientEvent } from "./events.ts";
import { hasNoPeriods, needsPeriod, notInMemory, notTaken } from "./kinds.ts";
import { UncachedIds } from "./uncached.ts";

/** What allows a load's leftovers to be given back: the token, and the server that knows it. */
export interface Receipt {
  readonly releaseToken: string;
  readonly endpoint: number;
}

/** What the tags of one client share. */
export interface TagContext {
  readonly clock: Clock;
  readonly endpoints: Endpoints;
  readonly afterTurn: (run: () => void) => void;
  readonly emit: (event: IdClientEvent) => void;
  readonly deadlineMs: number;
  readonly maxAgeMs: number;
  readonly buffer: Omit<BufferOptions, "ordered">;
  readonly ports: Omit<BufferPorts<Receipt>, "load">;
}

/** How long a synchronous caller of a cold tag should wait before it tries again, in milliseconds. */
const COLD_RETRY_MS = 50;
/** How long a kind is remembered that nobody makes use of, in milliseconds. */
const KIND_IDLE_MS = 60_000;
/** Most turns that one call takes: memory, servers, and once more when the tag has become another one meanwhile. */
const MAX_TURNS = 4;

/**
 * One tag of a client: core's double buffer over AllocateSegment; for kinds that servers hand out no segments of,
 * `UncachedIds`.
 *
 * WHICH OF THEM. A tag is taken for one of kind segment until AllocateSegment answers WRONG_KIND with the kind. Then the
 * buffer is fenced, so that it drops what it holds, asks for nothing and refuses what needs ids in memory; and calls go to
 * `UncachedIds`. That ends when an answer shows that the tag may be another one now (a higher epoch, TAG_NOT_FOUND,
 * WRONG_KIND), and when nobody has used it for a minute; the next call finds out anew.
 *
 * WHO RETRIES WHAT. Three layers, each for one thing, none of them twice:
 * - grpc-js retries nothing (`grpc.enable_retries` is 0), so one try is one request.
 * - One load (`Endpoints.allocate`) asks each of up to three endpoints once, and moves on only at UNAVAILABLE. It never
 *   waits between tries.
 * - The buffer starts the next load after a failed one, with back-off (50 ms … 2 s), as long as somebody waits for ids
 *   or asks again. It never looks at endpoints.
 * A release is tried once, by nobody again. Whatever a try may have allocated without our knowing (a deadline, a broken
 * connection) is never used: only an answer that arrived in full is.
 *
 * ORDER. Every load carries `after` (the highest id of anything accepted here) until an answer says that the tag is
 * UNORDERED; servers ignore it for such tags. At most one load is in flight, and the buffer refuses an answer that is
 * not above all earlier ones. So a PER_CLIENT tag is in order from its first id on, whichever servers answer.
 */
export class BufferedTag implements IdTag {
  readonly name: string;
  readonly #context: TagContext;
  readonly #buffer: SegmentBuffer<Receipt>;
  readonly #preference: readonly number[];
  readonly #standardCall: Call;
  #ordered = true;
  /** Most ids the servers hand out in one answer, as far as is known. A larger `take` is made of several. */
  #maxCount = Infinity;
  #inFlight: Promise<Load<Receipt>> | undefined;
  /** Why the last load failed; undefined after one that succeeded. */
  #lastFailure: IdmintError | undefined;
  /** Where ids come from while the tag is known to be of a kind without segments. */
  #uncached: UncachedIds | undefined;
  /** The same, kept while the kind is asked for anew: it knows where the last answer stood. */
  #lastUncached: UncachedIds | undefined;
  #isDrained = false;

  constructor(name: string, context: TagContext) {
    this.name = name;
    this.#context = context;
    this.#preference = context.endpoints.preference(name);
    this.#standardCall = new StandardCall(context.clock, context.deadlineMs);
    const load = (request: LoadRequest): Promise<Load<Receipt>> => {
      this.#inFlight = this.#load(request);
      return this.#inFlight;
    };
    const options = { ...context.buffer, ordered: this.#ordered };
    this.#buffer = new SegmentBuffer(name, options, { ...context.ports, load });
    markAsUncloneable(this);
  }

  next(options?: CallOptions): Promise<bigint> {
    try {
      const call = options === undefined ? this.#standardCall : this.#call(options);
      if (this.#uncached !== undefined) return this.#nextOf(call);
      const id = this.#buffer.next(call);
      return typeof id === "bigint" ? Promise.resolve(id) : this.#nextOf(call, id);
    } catch (thrown) {
      return Promise.reject(IdmintError.from(thrown));
    }
  }

  async nextString(options?: CallOptions): Promise<string> {
    return String(await this.next(options));
  }

  async nextNumber(options?: CallOptions): Promise<number> {
    return numberOf(this.name, await this.next(options));
  }

  async nextPeriodId(options?: CallOptions): Promise<PeriodId> {
    return this.#answer(
      this.#call(options ?? {}),
      async (call) => {
        await this.#buffer.take(0, call);
        throw hasNoPeriods(this.name, "segment");
      },
      (uncached, call) => this.#onePeriodId(uncached, call),
    );
  }

  nextSync(): bigint {
    const id = this.#buffer.tryNext();
    if (id === undefined) throw this.#cold();
    return id;
  }

  nextStringSync(): string {
    return String(this.nextSync());
  }

  nextNumberSync(): number {
    const id = this.#buffer.tryNextNumber();
    if (id === -1) throw this.#cold();
    return id;
  }

  async take(count: number, options?: CallOptions): Promise<readonly Segment[]> {
    assertCount(count);
    return this.#answer(
      this.#call(options ?? {}),
      (call) => this.#buffer.take(count, call),
      async (uncached, call) => {
        if (uncached.isStrict) throw notTaken(this.name, uncached.kind);
        return (await uncached.take(count, call)).segments;
      },
    );
  }

  async warm(options?: CallOptions): Promise<void> {
    this.#buffer.keepReady();
    await this.#buffer.take(0, this.#call(options ?? {}));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<bigint, void, undefined> {
    for (;;) yield await this.next();
  }

  /** To be called about once a second. */
  sample(): void {
    if (this.#uncached !== undefined && this.#uncached.idleMs >= KIND_IDLE_MS) this.#forgetKind();
    this.#buffer.sample();
  }

  /** Stops issuing for good, and answers what was never issued. */
  drain(error: IdmintError): readonly Unused<Receipt>[] {
    this.#isDrained = true;
    this.#lastUncached?.close(error);
    return this.#buffer.drain(error);
  }

  /** What a load brings that is in flight while the tag is drained; undefined when none is, or when it fails. */
  lateLoad(): Promise<Unused<Receipt> | undefined> {
    if (this.#inFlight === undefined) return Promise.resolve(undefined);
    return this.#inFlight.catch(() => undefined);
  }

  #call(options: CallOptions): Call {
    return callOf(options, this.#context.clock, this.#context.deadlineMs);
  }

  /** `begun`: what the buffer made of the call already. */
  #nextOf(call: Call, begun?: Promise<bigint>): Promise<bigint> {
    let first = begun;
    return this.#answer(
      call,
      (fixed) => {
        const id = first ?? this.#buffer.next(fixed);
        first = undefined;
        return id;
      },
      (uncached, fixed) => this.#one(uncached, fixed),
    );
  }

  async #one(uncached: UncachedIds, call: Call): Promise<bigint> {
    const { name } = this;
    // Known before an id is issued for it.
    if (uncached.hasPeriods === true) throw needsPeriod(name, uncached.kind);
    const { id, period } = await uncached.next(call);
    if (period === undefined) return id;
    throw needsPeriod(name, uncached.kind, { period: period.name, id: String(id) });
  }

  async #onePeriodId(uncached: UncachedIds, call: Call): Promise<PeriodId> {
    const { name } = this;
    if (uncached.hasPeriods === false) throw hasNoPeriods(name, uncached.kind);
    const { id, period } = await uncached.next(call);
    if (period === undefined) throw hasNoPeriods(name, uncached.kind, { id: String(id) });
    const endsAt = new Date(period.endsAtMs);
    return { period: period.name, id, text: periodText(period.name, id), endsAt };
  }

  /** Answers a call from wherever the tag's kind says, all within the one deadline it came with. */
  async #answer<T>(
    { deadline, signal }: Call,
    fromMemory: (call: Call) => T | Promise<T>,
    fromServers: (uncached: UncachedIds, call: Call) => Promise<T>,
  ): Promise<T> {
    const call: Call = { deadline, signal };
    for (let turn = 1; ; turn++) {
      const uncached = this.#uncached;
      try {
        // Each turn begins with what the one before it found out.
        // oxlint-disable-next-line no-await-in-loop
        return await (uncached === undefined ? fromMemory(call) : fromServers(uncached, call));
      } catch (thrown) {
        const error = IdmintError.from(thrown);
        const isOver = error.reason !== "WRONG_KIND" || this.#uncached === uncached;
        if (isOver || turn === MAX_TURNS) throw error;
      }
    }
  }

  /** The servers hand out no segments of this tag, and say why. */
  #learnKind(kind: string, cause: IdmintError): void {
    if (this.#isDrained) return;
    if (this.#lastUncached?.kind !== kind) {
      // Whoever still waits for ids of the kind of before goes on with the new one.
      this.#lastUncached?.close(notInMemory(this.name, kind));
      const onDoubt = (): void => this.#forgetKind();
      this.#lastUncached = new UncachedIds(
        { tag: this.name, kind, preference: this.#preference, onDoubt },
        this.#context,
      );
    }
    this.#uncached = this.#lastUncached;
    this.#uncached?.confirm();
    this.#buffer.fence(notInMemory(this.name, kind, cause));
    this.#context.emit({ type: "kind-learned", tag: this.name, kind });
  }

  /** The tag may have become one of another kind: the next load tells. */
  #forgetKind(): void {
    if (this.#isDrained || this.#uncached === undefined) return;
    this.#uncached = undefined;
    this.#lastFailure = undefined;
    this.#buffer.unfence();
  }

  /** Why there is no id at once. A refusal that waiting does not cure says more than "not ready". */
  #cold(): IdmintError {
    const failure = this.#lastFailure;
    if (failure?.retryable === false) return failure;
    return segmentNotReady(this.name, COLD_RETRY_MS, failure);
  }

  async #load(request: LoadRequest): Promise<Load<Receipt>> {
    const count = Math.min(request.count, this.#maxCount);
    const { after } = request;
    try {
      const load = await this.#context.endpoints.allocate(
        this.#preference,
        { tag: this.name, count, after },
        (answered) => this.#accept(answered),
      );
      this.#lastFailure = undefined;
      return load;
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      const { kind } = error.metadata;
      if (error.reason === "WRONG_KIND" && kind !== undefined) this.#learnKind(kind, error);
      this.#lastFailure = error;
      throw error;
    } finally {
      this.#inFlight = undefined;
    }
  }

  /** An answer as a load. Throws a retryable error for one that may not be used; another server may know better. */
  #accept({ answer, endpoint, sentAtMs }: Answered<AllocateSegmentResponse>): Load<Receipt> {
    const { epoch, releaseToken } = answer;
    if (epoch < this.#buffer.epoch) {
      throw this.#unusable(`a server that knows epoch ${epoch} only, of ${this.#buffer.epoch}`);
    }
    // Whatever becomes of its ids, the answer tells that older ones are not to be issued any more.
    this.#buffer.observeEpoch(epoch);
    // Counted from the sending, so that it ends no later than the server reckons, however slow the way back was.
    const ageMs = this.#context.clock.now() - sentAtMs;
    const maxAgeMs =
      Math.min(this.#context.maxAgeMs, millisecondsOf(answer.maxAge) ?? Infinity) - ageMs;
    if (maxAgeMs <= 0) throw this.#unusable(`a server after ${Math.round(ageMs)} ms, past max_age`);
    const segments = segmentsOfAnswer(this.name, answer.segments);
    this.#learn(answer);
    return { segments, epoch, receipt: { releaseToken, endpoint }, maxAgeMs };
  }

  #unusable(from: string): IdmintError {
    const text = `tag "${this.name}" was answered by ${from}; the answer is not used`;
    return new IdmintError("SEGMENT_NOT_READY", text, { metadata: { tag: this.name } });
  }

  /** What the answers tell of the tag and the servers: its order, and the largest answer to ask for. */
  #learn({ order, maxCount: told }: AllocateSegmentResponse): void {
    const ordered = order !== Order.UNORDERED;
    const maxCount = told > 0 ? told : Infinity;
    if (ordered === this.#ordered && maxCount === this.#maxCount) return;
    this.#ordered = ordered;
    this.#maxCount = maxCount;
    const { min, max, ...buffer } = this.#context.buffer;
    this.#buffer.update({
      ...buffer,
      min: Math.min(min, maxCount),
      max: Math.min(max, maxCount),
      ordered,
    });
  }
}

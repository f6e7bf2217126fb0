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
  segmentNotReady,
  segmentOf,
  type Unused,
} from "@idmint/core";
import { type AllocateSegmentResponse, Order } from "@idmint/proto";
import type { CallOptions, IdTag } from "./api.ts";
import { assertCount, callOf, numberOf, StandardCall } from "./calls.ts";
import type { Answered, Endpoints } from "./endpoints.ts";
import { millisecondsOf } from "./errors.ts";

/** What allows a load's leftovers to be given back: the token, and the server that knows it. */
export interface Receipt {
  readonly releaseToken: string;
  readonly endpoint: number;
}

/** What the tags of one client share. */
export interface TagContext {
  readonly clock: Clock;
  readonly endpoints: Endpoints;
  readonly deadlineMs: number;
  readonly maxAgeMs: number;
  readonly buffer: Omit<BufferOptions, "ordered">;
  readonly ports: Omit<BufferPorts<Receipt>, "load">;
}

/** How long a synchronous caller of a cold tag should wait before it tries again, in milliseconds. */
const COLD_RETRY_MS = 50;

/**
 * One tag of a client: core's double buffer over AllocateSegment.
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
      const id = this.#buffer.next(call);
      return typeof id === "bigint" ? Promise.resolve(id) : id;
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
    return this.#buffer.take(count, this.#call(options ?? {}));
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
    this.#buffer.sample();
  }

  /** Stops issuing for good, and answers what was never issued. */
  drain(error: IdmintError): readonly Unused<Receipt>[] {
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
      this.#lastFailure = IdmintError.from(thrown);
      throw this.#lastFailure;
    } finally {
      this.#inFlight = undefined;
    }
  }

  /** An answer as a load. Throws a retryable error for one that may not be used; another server may know better. */
  #accept({ answer, endpoint, sentAtMs }: Answered): Load<Receipt> {
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
    const segments = this.#segmentsOf(answer);
    this.#learn(answer);
    return { segments, epoch, receipt: { releaseToken, endpoint }, maxAgeMs };
  }

  #unusable(from: string): IdmintError {
    const text = `tag "${this.name}" was answered by ${from}; the answer is not used`;
    return new IdmintError("SEGMENT_NOT_READY", text, { metadata: { tag: this.name } });
  }

  #segmentsOf(answer: AllocateSegmentResponse): readonly Segment[] {
    try {
      return answer.segments.map(({ base, count, increment }) => segmentOf(base, count, increment));
    } catch (cause) {
      throw new IdmintError("INTERNAL", "the server answered a malformed segment", {
        metadata: { tag: this.name },
        cause,
      });
    }
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

import * as threads from "node:worker_threads";
import {
  type Call,
  DecimalTexts,
  IdmintError,
  type Load,
  type LoadRequest,
  notWarm,
  type Segment,
  SegmentBuffer,
  type Unused,
} from "@idmint/core";
import type { CallOptions, IdTag, PeriodId, TextOptions } from "./api.ts";
import type { TagStock } from "./channels.ts";
import { assertCount, callOf, numberOf, StandardCall, TEXT_OPTIONS } from "./calls.ts";
import { outside, presentContext } from "./process/outside.ts";
import { detached, isOfNoTag, KEPT_MS, ownRefusal } from "./refusals.ts";
import { SegmentLoads } from "./segment-loads.ts";
import type { Receipt, TagContext } from "./tag-context.ts";
import type { Route } from "./servers/fleet.ts";
import { type KindFacts, kindFactsOf, type IdSource } from "./kinds/id-source.ts";
import { COLD_RETRY_MS, hasNoNames, hasNoPeriods, notInMemory } from "./kinds/refusals.ts";
import { idSourceFor } from "./kinds/sources.ts";
import { isOfChange } from "./kinds/uncached-ids.ts";

/** How long the kind of an unused tag is remembered, in milliseconds. */
const KIND_IDLE_MS = 60_000;
/** Most turns that one call takes after a change of its tag, and most changes: memory, servers, and once more if they do not agree. */
const MAX_TURNS = 4;
const MAX_CHANGES = 20;

/**
 * One tag of a client: core's double buffer over AllocateSegment, or an `IdSource` for tags that servers hand out no segments
 * of.
 *
 * WHICH OF THEM. A tag is taken for one of kind segment until AllocateSegment answers WRONG_KIND with the kind. Then the
 * buffer is fenced, so that it drops what it holds and asks for nothing; and calls go to the source of that kind
 * (`kinds/sources.ts`): snowflakes are made here under a leased worker id, UUIDs and ObjectIds are made here, and all others,
 * with ids that are written by a format or a key, are asked of servers. That ends when an answer shows that the tag may be
 * another one now (a higher epoch, TAG_NOT_FOUND, WRONG_KIND), and when nobody has used it for a minute; the next call finds
 * out anew.
 *
 * WHO RETRIES WHAT. Three layers, each for one thing, none of them twice:
 * - grpc-js retries nothing (`grpc.enable_retries` is 0), so one try is one request.
 * - One load (`SegmentLoads`) asks each of up to three endpoints once, and moves on only at UNAVAILABLE. It waits for
 *   its turn at an endpoint that has much to do (`servers/gate.ts`), and never between tries.
 * - The buffer starts the next load after a failed one, with back-off (50 ms … 2 s), as long as somebody waits for ids
 *   or asks again. It never looks at endpoints.
 * A release is tried once, by nobody again. Whatever a try may have allocated without our knowing (a deadline, a broken
 * connection) is never used: only an answer that arrived in full is.
 */
export class BufferedTag implements IdTag {
  static isOne(anything: unknown): boolean {
    return typeof anything === "object" && anything !== null && #buffer in anything;
  }

  readonly name: string;
  readonly #context: TagContext<BufferedTag>;
  readonly #buffer: SegmentBuffer<Receipt>;
  readonly #loads: SegmentLoads;
  readonly #route: Route;
  readonly #standardCall: Call;
  #texts: DecimalTexts | undefined;
  #inFlight: Promise<Load<Receipt>> | undefined;
  /** The context of whoever began to wait first, for as long as somebody waits: retries are traced there too. */
  #within: typeof outside | undefined;
  /** Why the last load failed; undefined after one that succeeded. */
  #lastFailure: IdmintError | undefined;
  #failedAtMs = 0;
  /** The source of ids while the tag is known to have no segments. */
  #source: IdSource | undefined;
  /** The same, kept while the kind is asked for again: it may remember the last answer. */
  #lastSource: IdSource | undefined;
  /** How old the answer to an earlier request is cannot be told. */
  #leaptAtMs = -Infinity;
  #closing: Promise<void> | undefined;
  #isDrained = false;

  constructor(name: string, context: TagContext<BufferedTag>) {
    this.name = name;
    this.#context = context;
    this.#route = context.endpoints.routeOf(name);
    this.#standardCall = new StandardCall(context.clock, context.deadlineMs);
    const options = { ...context.buffer, ordered: true };
    this.#buffer = new SegmentBuffer(name, options, {
      ...context.ports,
      load: (request) => this.#load(request),
      givesUp: () => context.endpoints.isUnreachable,
    });
    this.#loads = new SegmentLoads({ tag: name, route: this.#route }, context, this.#buffer);
    threads.markAsUncloneable(this);
  }

  next(options?: CallOptions): Promise<bigint> {
    try {
      const call = options === undefined ? this.#standardCall : this.#call(options);
      const id = this.#begin(call);
      return typeof id === "bigint" ? Promise.resolve(id) : this.#nextOf(call, id);
    } catch (thrown) {
      return Promise.reject(refusalOf(this, "next", thrown));
    }
  }

  nextString(options?: TextOptions): Promise<string> {
    try {
      const call = options === undefined ? this.#standardCall : this.#call(options, TEXT_OPTIONS);
      const name = options?.name;
      const begun = name === undefined ? this.#begin(call) : undefined;
      if (typeof begun === "bigint") return Promise.resolve(String(begun));
      return this.#textOf(call, begun, name);
    } catch (thrown) {
      return Promise.reject(refusalOf(this, "nextString", thrown));
    }
  }

  nextNumber(options?: CallOptions): Promise<number> {
    try {
      const call = options === undefined ? this.#standardCall : this.#call(options);
      const begun = this.#source === undefined ? this.#buffer.next(call) : undefined;
      if (typeof begun === "bigint") return Promise.resolve(numberOf(this.name, begun));
      return this.#numberOf(call, begun);
    } catch (thrown) {
      return Promise.reject(refusalOf(this, "nextNumber", thrown));
    }
  }

  async nextPeriodId(options: CallOptions = {}): Promise<PeriodId> {
    assertTag(this, "nextPeriodId");
    return this.#answer(
      this.#call(options),
      async (call) => {
        await this.#buffer.take(0, call);
        throw hasNoPeriods(this.name, "segment");
      },
      (source, call) => source.nextPeriodId(call),
    );
  }

  nextSync(): bigint {
    try {
      if (this.#source !== undefined) return this.#source.nextSync();
      const id = this.#buffer.tryNext();
      if (id !== undefined) return id;
    } catch (thrown) {
      throw refusalOf(this, "nextSync", thrown);
    }
    throw this.#cold();
  }

  nextStringSync(): string {
    try {
      if (this.#source !== undefined) return this.#source.nextTextSync();
      const id = this.#buffer.tryNextText((this.#texts ??= new DecimalTexts()));
      if (id !== undefined) return id;
    } catch (thrown) {
      throw refusalOf(this, "nextStringSync", thrown);
    }
    throw this.#cold();
  }

  nextNumberSync(): number {
    try {
      if (this.#source !== undefined) return this.#source.nextNumberSync();
      const id = this.#buffer.tryNextNumber();
      if (id !== -1) return id;
    } catch (thrown) {
      throw refusalOf(this, "nextNumberSync", thrown);
    }
    throw this.#cold();
  }

  async take(count: number, options: CallOptions = {}): Promise<readonly Segment[]> {
    assertTag(this, "take");
    assertCount(count);
    return this.#answer(
      this.#call(options),
      (call) => this.#buffer.take(count, call),
      (source, call) => source.take(count, call),
    );
  }

  async warm(options: CallOptions = {}): Promise<void> {
    assertTag(this, "warm");
    const ready = this.#answer(
      this.#call(options),
      (call) => this.#buffer.take(0, call),
      async (source, call) => {
        await source.warm(call);
        return [];
      },
    );
    // After the call has begun to wait, so that what it starts is its own.
    this.#buffer.keepReady();
    await ready;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<bigint, void, undefined> {
    for (;;) yield await this.next();
  }

  /** To be called about once a second. */
  sample(): void {
    if (this.#source !== undefined && this.#source.idleMs() >= KIND_IDLE_MS) this.#forgetKind();
    this.#buffer.sample();
    if (this.#buffer.waiting === 0) this.#within = undefined;
  }

  /** Drops what is held, and what is on its way: its age cannot be told any more. */
  expireAll(): void {
    this.#leaptAtMs = this.#context.clock.now();
    this.#buffer.expireAll();
    this.#source?.expire();
  }

  /**
   * Whether nothing would be lost with this object: no ids, no lease, no call that waits, and, since ids may have an order and come in
   * once, none that ever came. A refusal that is not over yet is something, too.
   */
  get isEmpty(): boolean {
    const { busy, held, issued, epoch } = this.#buffer;
    if (busy || held > 0 || issued > 0 || epoch > 0n || this.#lastSource !== undefined)
      return false;
    if (this.#lastFailure === undefined) return true;
    const sinceMs = this.#context.clock.now() - this.#failedAtMs;
    return isOfNoTag(this.#lastFailure) && sinceMs >= KEPT_MS;
  }

  /** What is in memory; nothing for tags whose ids are not taken from segments. */
  get stock(): TagStock {
    const { ready, held, waiting } = this.#buffer;
    return { tag: this.name, ready, held, waiting };
  }

  /** Stops issuing for good, and answers what was never issued. */
  drain(error: IdmintError): readonly Unused<Receipt>[] {
    this.#isDrained = true;
    this.#closing = this.#lastSource?.close(error);
    this.#source = undefined;
    return this.#buffer.drain(error);
  }

  /**
   * To be called after `drain`: what a load brings that was in flight then; undefined when none was, or when it fails. What
   * was leased is given back by then.
   */
  async lateLoad(): Promise<Unused<Receipt> | undefined> {
    const [load] = await Promise.all([this.#inFlight?.catch(() => undefined), this.#closing]);
    return load;
  }

  #call(options: CallOptions, names?: ReadonlySet<string>): Call {
    return callOf(options, this.#context.clock, this.#context.deadlineMs, names);
  }

  /** What becomes of a call at once: an id, what the buffer made of it, or nothing yet. */
  #begin(call: Call): bigint | Promise<bigint> | undefined {
    return this.#source === undefined ? this.#buffer.next(call) : this.#source.now();
  }

  #nextOf(call: Call, begun: Promise<bigint> | undefined): Promise<bigint> {
    return this.#answer(call, this.#nexts(begun), (source, fixed) => source.next(fixed));
  }

  #textOf(call: Call, begun?: Promise<bigint>, name?: string): Promise<string> {
    const next = this.#nexts(begun);
    return this.#answer(
      call,
      async (fixed) => {
        if (name === undefined) return String(await next(fixed));
        await this.#buffer.take(0, fixed);
        throw hasNoNames(this.name);
      },
      (source, fixed) => source.nextText(fixed, name),
    );
  }

  #numberOf(call: Call, begun: Promise<bigint> | undefined): Promise<number> {
    const next = this.#nexts(begun);
    return this.#answer(
      call,
      async (fixed) => numberOf(this.name, await next(fixed)),
      (source, fixed) => source.nextNumber(fixed),
    );
  }

  /** What the buffer made of a call, and then its next ids. */
  #nexts(begun: Promise<bigint> | undefined): (call: Call) => bigint | Promise<bigint> {
    let first = begun;
    return (call) => {
      const id = first ?? this.#buffer.next(call);
      first = undefined;
      return id;
    };
  }

  /** Answers a call from wherever the tag's kind says, all within the one deadline it came with. */
  async #answer<T>(
    { deadline, signal, isImpatient = false }: Call,
    fromMemory: (call: Call) => T | Promise<T>,
    fromSource: (source: IdSource, call: Call) => Promise<T>,
  ): Promise<T> {
    const call: Call = { deadline, signal, isImpatient };
    for (let turn = 1, changes = 0; ; turn++) {
      const source = this.#source;
      try {
        // Each turn begins with what the one before it found out.
        return await (source === undefined ? fromMemory(call) : fromSource(source, call));
      } catch (thrown) {
        const error = IdmintError.from(thrown);
        const isChanged = isOfChange(error) && changes++ < MAX_CHANGES;
        if (isChanged) turn = 1;
        const isLast = error.reason !== "WRONG_KIND" || this.#source === source;
        if (!isChanged && (isLast || turn === MAX_TURNS)) throw ownRefusal(thrown);
      }
    }
  }

  /** The servers hand out no segments of this tag, and say why. Rejects when no worker id is free for it. */
  async #learnKind(facts: KindFacts, cause: IdmintError, askedAtMs: number): Promise<void> {
    if (this.#isDrained) return;
    const sentAtMs = askedAtMs >= this.#leaptAtMs ? askedAtMs : -Infinity;
    if (this.#lastSource?.resume(facts) !== true) {
      const onDoubt = (): void => this.#forgetKind();
      const isWanted = (): boolean => !this.#isDrained;
      const its = { tag: this.name, facts, route: this.#route, sentAtMs, onDoubt, isWanted };
      const source = await idSourceFor(its, this.#context);
      if (source === undefined) return;
      // Who still waits for ids of the kind of before goes on with the new one.
      void this.#lastSource?.close(notInMemory(this.name, facts.kind));
      this.#lastSource = source;
    }
    this.#source = this.#lastSource;
    this.#buffer.fence(notInMemory(this.name, facts.kind, cause));
    this.#context.emit({ type: "kind-learned", tag: this.name, kind: facts.kind });
  }

  /** The tag may have become one of another kind: the next load tells. */
  #forgetKind(): void {
    if (this.#isDrained || this.#source === undefined) return;
    const source = this.#source;
    this.#source = undefined;
    this.#lastFailure = undefined;
    this.#buffer.unfence();
    source.forget();
  }

  /** Why there is no id at once. A refusal that waiting does not cure says more than "not ready". */
  #cold(): IdmintError {
    const failure = this.#lastFailure;
    if (failure?.retryable === false) return ownRefusal(failure);
    return notWarm(this.name, COLD_RETRY_MS, failure);
  }

  /** A load that somebody awaits is a part of that call; the others belong to nobody. */
  #load(request: LoadRequest): Promise<Load<Receipt>> {
    if (this.#buffer.waiting === 0) this.#within = undefined;
    else this.#within ??= presentContext();
    this.#inFlight = (this.#within ?? outside)(() => this.#loaded(request));
    return this.#inFlight;
  }

  async #loaded(request: LoadRequest): Promise<Load<Receipt>> {
    const sentAtMs = this.#context.clock.now();
    try {
      this.#context.hold(this);
      const load = await this.#loads.load(request);
      this.#lastFailure = undefined;
      this.#within = undefined;
      return load;
    } catch (thrown) {
      this.#lastFailure = await this.#refused(IdmintError.from(thrown), sentAtMs);
      this.#failedAtMs = this.#context.clock.now();
      if (isOfNoTag(this.#lastFailure)) this.#buffer.rest();
      throw this.#lastFailure;
    } finally {
      this.#inFlight = undefined;
    }
  }

  /** Why there is no load, once what the refusal says of the tag's kind was made use of. */
  async #refused(error: IdmintError, sentAtMs: number): Promise<IdmintError> {
    const facts = kindFactsOf(error);
    try {
      if (facts !== undefined) await this.#learnKind(facts, error, sentAtMs);
      return error;
    } catch (thrown) {
      return IdmintError.from(thrown);
    }
  }
}

/** Why a call ends whose tag may be missing: only then something is thrown that is no refusal. */
function refusalOf(tag: unknown, method: string, thrown: unknown): IdmintError {
  return BufferedTag.isOne(tag) ? ownRefusal(thrown) : detached(method);
}

function assertTag(tag: unknown, method: string): void {
  if (!BufferedTag.isOne(tag)) throw detached(method);
}

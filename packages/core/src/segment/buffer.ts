import { ANSWER_MARGIN_MS, answerBy, type Call, cancelled, whenCancelled } from "../call.ts";
import { IdmintError, segmentNotReady, unsafeInteger } from "../errors.ts";
import type { BufferEvent } from "../events.ts";
import { MAX_SAFE_ID } from "../limits.ts";
import type { Abort } from "../ports.ts";
import { RetryTimer } from "./backoff.ts";
import {
  afterIssue,
  expire,
  expireAll,
  fence,
  loadArrived,
  loadFailed,
  look,
  lookAside,
  observeEpoch,
  putBack,
  request,
  retryDue,
  sampleRate,
  unfence,
} from "./buffer-state.ts";
import type {
  BufferOptions,
  BufferPorts,
  BufferState,
  Effect,
  LoadRequest,
  Unused,
  Waiter,
} from "./buffer-types.ts";
import { BurstEnd } from "./burst.ts";
import {
  createBufferState,
  endBurst,
  generationOf,
  heldCount,
  heldIdOf,
  isInBurst,
  issuedTotal,
  peekId,
  readyCount,
  setLimits,
  take,
  takeUnused,
  takeWarm,
} from "./cursor.ts";
import { type DecimalTexts, SHORT_IDS_END } from "./decimal-texts.ts";
import { firstIdOf, type Segment } from "./segment.ts";
import { assertRoom, overdue, type Pending, removeWaiter } from "./waiters.ts";

/**
 * The double buffer of one tag: issues ids from memory and loads the next ones ahead of use. The shell around
 * `buffer-state.ts`, which has the rules and the invariants; here are only promises, timers and the loader.
 *
 * Warm calls (`next`, `tryNext`, `tryNextNumber`, `tryNextText`) answer without a promise, a timer or an allocation.
 */
export class SegmentBuffer<R> {
  readonly #state: BufferState<R>;
  readonly #ports: BufferPorts<R>;
  /** Calls that wait, by the number of their waiter; made when the first one does. */
  #pending: Map<number, Pending> | undefined;
  #nextWaiter = 1;
  #directCalls = 0;
  /** Made when they are needed, since a server has many buffers. */
  #retry: RetryTimer | undefined;
  #burst: BurstEnd | undefined;

  constructor(tag: string, options: BufferOptions, ports: BufferPorts<R>) {
    this.#state = createBufferState(tag, options);
    this.#ports = ports;
  }

  /** The next id, or undefined when none is ready; then a load is on its way. Throws the error of a fenced buffer. */
  tryNext(): bigint | undefined {
    return takeWarm(this.#state) ?? this.#tryNextSlowly(this.#look());
  }

  /**
   * The next id as a number, or −1 when none is ready; then a load is on its way. Throws UNSAFE_INTEGER, and issues
   * nothing, when the next id is past 2^53 − 1.
   */
  tryNextNumber(): number {
    const state = this.#state;
    const offset = state.offset;
    if (offset < state.numberLimit) {
      state.offset = offset + 1;
      return state.baseNumber + offset * state.increment;
    }
    const now = this.#look();
    const id = peekId(state);
    if (id !== undefined && id > MAX_SAFE_ID && state.fenced === undefined)
      throw unsafeInteger(state.tag);
    const issued = this.#tryNextSlowly(now);
    return issued === undefined ? -1 : Number(issued);
  }

  /** As `tryNext`, written by `texts`, which each buffer has its own of. */
  tryNextText(texts: DecimalTexts): string | undefined {
    const state = this.#state;
    const offset = state.offset;
    const short = state.baseNumber + offset * state.increment;
    if (offset < state.limit && short < SHORT_IDS_END) {
      state.offset = offset + 1;
      return texts.of(short);
    }
    const id = this.tryNext();
    return id === undefined ? undefined : String(id);
  }

  /** The next id; a promise only when none is ready. Rejects (or throws) with the refusals of the tag. */
  next(call?: Call): bigint | Promise<bigint> {
    const warm = takeWarm(this.#state);
    if (warm !== undefined) return warm;
    const now = this.#look();
    const id = this.#issueOne(now);
    if (id !== undefined) return id;
    const segments = this.#request(1, call, false, now);
    return segments instanceof Promise ? segments.then(firstIdOf) : firstIdOf(segments);
  }

  /**
   * Exactly `count` ids as segments, ascending, all or nothing; a promise only when too few are ready. With `after`
   * above what is held, they come straight from the loader and are larger than it; 0n: no bound. With `allowFewer` the
   * tag's last ids are answered instead of TAG_EXHAUSTED. A count of 0 takes nothing, and waits until ids are ready.
   */
  take(
    count: number,
    call?: Call,
    after = 0n,
    allowFewer = false,
  ): readonly Segment[] | Promise<readonly Segment[]> {
    const now = this.#ports.clock.now();
    this.#run(lookAside(this.#state, now));
    const first = after === 0n ? undefined : peekId(this.#state);
    if (after === 0n || (first !== undefined && first > after))
      return this.#request(count, call, allowFewer, now);
    return this.#loadDirectly({ count, minCount: allowFewer ? 1 : count, after }, call);
  }

  /**
   * Takes back ids of a `take` that were never issued and never will be: all or none; answers how many. `generation` was
   * read before that `take`. The caller vouches that nobody else puts the same ids back.
   */
  putBack(segments: readonly Segment[], generation: symbol): number {
    return putBack(this.#state, segments, generation, this.#ports.clock.now());
  }

  /** Some answer told the tag's epoch: ids of lower ones are dropped, also those still on their way. */
  observeEpoch(epoch: bigint): void {
    this.#run(observeEpoch(this.#state, epoch, this.#ports.clock.now()));
  }

  /** Drops everything and refuses with `error` until `unfence`. */
  fence(error: IdmintError): void {
    this.#run(fence(this.#state, error));
  }

  /** Drops what is held, and what is on its way, as if all of it were past its age. Who waits goes on waiting. */
  expireAll(): void {
    this.#run(expireAll(this.#state, this.#ports.clock.now()));
  }

  /** Issues again, from a new load. */
  unfence(): void {
    unfence(this.#state);
  }

  /** The store is known to be back: a load that waits for its backoff starts at once if anybody waits for it. */
  retryNow(): void {
    this.#run(retryDue(this.#state, this.#ports.clock.now()));
  }

  /** From now on someone asks synchronously: keep ids ready even while nobody asks. */
  keepReady(): void {
    this.#state.keepReady = true;
    this.#run(expire(this.#state, this.#ports.clock.now()));
  }

  /** Keeps nothing ready any more, until somebody asks synchronously again. */
  rest(): void {
    this.#state.keepReady = false;
  }

  /** Changes the options; they hold from the next load on. */
  update(options: BufferOptions): void {
    this.#state.options = options;
    setLimits(this.#state);
  }

  /** To be called about once a second, by one ticker for all buffers: feeds the rate, drops expired ids. */
  sample(): void {
    const now = this.#ports.clock.now();
    sampleRate(this.#state, now);
    this.#run(expire(this.#state, now));
  }

  /** An id of this segment that is in one of the loads held, issued from here or not; undefined: there is none. */
  heldIdOf(segment: Segment): bigint | undefined {
    return heldIdOf(this.#state, segment);
  }

  /** Ids in memory. */
  get ready(): number {
    return readyCount(this.#state);
  }

  /** Ids issued so far, or handed out in segments. */
  get issued(): number {
    return issuedTotal(this.#state);
  }

  /** Highest epoch seen. */
  get epoch(): bigint {
    return this.#state.epoch;
  }

  /** Another one after whatever ends the right to issue what was taken before. */
  get generation(): symbol {
    return generationOf(this.#state);
  }

  /** Ids of the loads that are held, the issued ones included. */
  get held(): number {
    return heldCount(this.#state);
  }

  /** Calls that wait. */
  get waiting(): number {
    return this.#state.waiters.length + this.#directCalls;
  }

  /** Whether calls wait, or a load is in flight. */
  get busy(): boolean {
    return this.#state.loading.phase === "loading" || this.waiting > 0;
  }

  /** Stops issuing for good, with `error` to whoever asks, and answers the unused end of each load, oldest first. */
  drain(error: IdmintError): readonly Unused<R>[] {
    const unused = takeUnused(this.#state);
    this.#run(fence(this.#state, error));
    this.#burst?.cancel();
    return unused;
  }

  /** What every issue of one id on the slow path begins with: ids that have expired are dropped. Answers the time. */
  #look(): number {
    const now = this.#ports.clock.now();
    this.#run(look(this.#state, now));
    if (isInBurst(this.#state))
      (this.#burst ??= new BurstEnd(this.#ports, () => endBurst(this.#state))).set();
    return now;
  }

  #tryNextSlowly(now: number): bigint | undefined {
    if (this.#state.fenced !== undefined) throw this.#state.fenced;
    this.#state.keepReady = true;
    const id = this.#issueOne(now);
    if (id === undefined) this.#run(afterIssue(this.#state, now));
    return id;
  }

  /** One id from memory, and the prefetch if it is due. Fenced buffers hold nothing. */
  #issueOne(now: number): bigint | undefined {
    const warm = takeWarm(this.#state);
    // Only the look was due.
    if (warm !== undefined) return warm;
    const segments = take(this.#state, 1);
    if (segments === undefined) return undefined;
    this.#run(afterIssue(this.#state, now));
    return firstIdOf(segments);
  }

  #request(
    count: number,
    call: Call | undefined,
    allowFewer: boolean,
    now: number,
  ): readonly Segment[] | Promise<readonly Segment[]> {
    const ready = count > 0 ? take(this.#state, count) : undefined;
    if (ready !== undefined) {
      this.#run(afterIssue(this.#state, now));
      return ready;
    }
    if (call?.signal?.aborted === true) throw cancelled(call.signal);
    const id = this.#nextWaiter++;
    const isImpatient = call?.isImpatient === true;
    const waiter: Waiter = { id, count, allowFewer, isImpatient, answerBy: answerBy(now, call) };
    const effects = request(this.#state, waiter, now);
    for (const effect of effects) {
      if (!("waiter" in effect) || effect.waiter !== id) continue;
      this.#run(effects);
      if (effect.type === "refuse") throw effect.error;
      return effect.segments;
    }
    const { promise, resolve, reject } = Promise.withResolvers<readonly Segment[]>();
    const cleanUp = this.#watch(waiter, now, call?.signal);
    (this.#pending ??= new Map()).set(id, { resolve, reject, cleanUp });
    this.#run(effects);
    return promise;
  }

  /** A waiting call ends at its deadline, less a margin, or when its caller goes away. */
  #watch(waiter: Waiter, now: number, signal: Abort | undefined): () => void {
    const { timers, clock } = this.#ports;
    const cancelTimer = timers.after(Math.max(0, waiter.answerBy - now), () =>
      this.#give(waiter.id, overdue(this.#state, clock.now())),
    );
    const unwatch = whenCancelled(signal, (error) => this.#give(waiter.id, error));
    return () => {
      cancelTimer();
      unwatch?.();
    };
  }

  /** Ends a wait from this side; the state may not serve it any more. */
  #give(waiter: number, error: IdmintError): void {
    if (removeWaiter(this.#state, waiter)) this.#settle(waiter)?.reject(error);
  }

  #settle(waiter: number): Pending | undefined {
    const pending = this.#pending?.get(waiter);
    this.#pending?.delete(waiter);
    if (this.#pending?.size === 0) this.#pending = undefined;
    pending?.cleanUp();
    return pending;
  }

  /** Beside the buffer: its ids go to this one call and are never held. */
  async #loadDirectly(load: LoadRequest, call: Call | undefined): Promise<readonly Segment[]> {
    const state = this.#state;
    if (state.fenced !== undefined) throw state.fenced;
    if (call?.signal?.aborted === true) throw cancelled(call.signal);
    assertRoom(state, this.#directCalls);
    this.#directCalls++;
    const { generation } = this;
    try {
      const answer = await this.#ports.load(load, state.tag);
      const isStale = generation !== state.generation || answer.epoch < state.epoch;
      if (answer.epoch > state.epoch) this.observeEpoch(answer.epoch);
      if (isStale || this.#ports.clock.now() >= (answer.expiresAt ?? Infinity))
        throw state.fenced ?? segmentNotReady(state.tag, ANSWER_MARGIN_MS);
      // Counted as issued, so that the rate sees these ids too.
      for (const segment of answer.segments) state.issuedBefore += segment.count;
      return answer.segments;
    } finally {
      this.#directCalls--;
    }
  }

  #run(effects: readonly Effect[]): void {
    for (const effect of effects) this.#runOne(effect);
  }

  #runOne(effect: Effect): void {
    const { tag } = this.#state;
    switch (effect.type) {
      case "load":
        this.#emit({ type: "load-started", tag, count: effect.request.count });
        void this.#load(effect.token, effect.request);
        break;
      case "retry-at":
        (this.#retry ??= new RetryTimer(this.#ports, () => this.retryNow())).set(effect.at);
        break;
      case "serve":
        this.#settle(effect.waiter)?.resolve(effect.segments);
        break;
      case "refuse":
        this.#settle(effect.waiter)?.reject(effect.error);
        break;
      case "loaded":
      case "load-failed":
      case "wasted":
        this.#emit({ ...effect, tag });
        break;
    }
  }

  async #load(token: number, load: LoadRequest): Promise<void> {
    try {
      const answer = await this.#ports.load(load, this.#state.tag);
      this.#run(loadArrived(this.#state, token, answer, this.#ports.clock.now()));
    } catch (thrown) {
      const { clock, random, givesUp } = this.#ports;
      const error = IdmintError.from(thrown);
      this.#run(loadFailed(this.#state, token, error, clock.now(), random, givesUp?.() ?? false));
    }
  }

  #emit(event: BufferEvent): void {
    try {
      this.#ports.onEvent?.(event);
    } catch {
      // A listener that throws must not cost its caller an id.
    }
  }
}

import { answerBy, type Call, cancelled, tooManyWaiters, whenCancelled } from "../call.ts";
import type { IdmintError } from "../errors.ts";
import { countOf, type Segment } from "../segment/segment.ts";
import type { LeaseLeft } from "../worker/holder.ts";
import { type HeldWorkersOptions, type HeldWorkersPorts, HeldWorkers } from "./held-workers.ts";

export interface SnowflakeOptions extends HeldWorkersOptions {
  /** Most calls that may wait. */
  readonly maxWaiters: number;
}

interface Waiter {
  readonly made: Segment[];
  left: number;
  readonly resolve: (segments: readonly Segment[]) => void;
  readonly reject: (error: IdmintError) => void;
  cleanUp: () => void;
}

/**
 * The ids of one snowflake tag that are made in this process, a server or an SDK. They are made at once where time is
 * reserved. Calls that come before that wait, and are served in their order.
 */
export class SnowflakeSource {
  readonly #options: SnowflakeOptions;
  readonly #workers: HeldWorkers;
  readonly #ports: HeldWorkersPorts;
  readonly #waiters: Waiter[] = [];
  #cancelLook: (() => void) | undefined;
  #closed: IdmintError | undefined;

  constructor(options: SnowflakeOptions, ports: HeldWorkersPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#workers = new HeldWorkers(options, ports, () => this.#serve());
  }

  /** Leases a worker id, and keeps it until `close`. */
  start(): void {
    this.#workers.start();
  }

  /** The next id, or undefined when none may be made at this moment. Throws where waiting does not help. */
  tryNext(): bigint | undefined {
    const id = this.#workers.active.tryNext();
    if (id !== undefined) return id;
    return this.#isAgain() ? this.#workers.active.tryNext() : undefined;
  }

  /**
   * The next id as a number, or −1. Throws UNSAFE_INTEGER when the layout has more than 53 bits. Otherwise as
   * `tryNext`.
   */
  tryNextNumber(): number {
    const id = this.#workers.active.tryNextNumber();
    if (id >= 0) return id;
    return this.#isAgain() ? this.#workers.active.tryNextNumber() : -1;
  }

  /**
   * Exactly `count` ids (1 or more) as segments, in the order in which they were made. Answers a promise only when they
   * cannot be made at once. Rejects (or throws) SEGMENT_NOT_READY when too few were made in time; those become a gap.
   */
  take(count: number, call?: Call): readonly Segment[] | Promise<readonly Segment[]> {
    if (this.#closed !== undefined) throw this.#closed;
    if (call?.signal?.aborted === true) throw cancelled(call.signal);
    const made = this.#waiters.length > 0 ? [] : this.#workers.active.make(count);
    const left = count - countOf(made);
    if (left === 0) return made;
    const { tag, maxWaiters } = this.#options;
    if (this.#waiters.length >= maxWaiters) throw tooManyWaiters(tag, maxWaiters);
    const { promise, resolve, reject } = Promise.withResolvers<readonly Segment[]>();
    const waiter: Waiter = { made: [...made], left, resolve, reject, cleanUp: () => {} };
    waiter.cleanUp = this.#watch(waiter, call);
    this.#waiters.push(waiter);
    this.#serve();
    return promise;
  }

  /** Why a call that cannot wait is refused at this moment; undefined when it need not be. */
  refusal(): IdmintError | undefined {
    if (this.#closed !== undefined) return this.#closed;
    const way = this.#workers.consider();
    return way.type === "again" ? undefined : this.#workers.refusal(way);
  }

  /** What is left of the lease that ids are made under; undefined: there is none. */
  get left(): LeaseLeft | undefined {
    return this.#workers.left;
  }

  /** Stops for good, and releases the leases. Calls are refused with `error`. */
  async close(error: IdmintError): Promise<void> {
    this.#closed = error;
    this.#refuseAll(error);
    await this.#workers.close();
  }

  /** Whether the active worker id may be asked again. */
  #isAgain(): boolean {
    if (this.#closed !== undefined) throw this.#closed;
    const way = this.#workers.consider();
    if (way.type === "refuse") throw way.error;
    return way.type === "again";
  }

  /** Serves the calls that wait, as far as ids may be made now. */
  #serve(): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    for (let waiter = this.#waiters[0]; waiter !== undefined; waiter = this.#waiters[0]) {
      const made = this.#workers.active.make(waiter.left);
      waiter.made.push(...made);
      waiter.left -= countOf(made);
      if (waiter.left === 0) {
        this.#waiters.shift();
        waiter.cleanUp();
        waiter.resolve(waiter.made);
        continue;
      }
      const way = this.#workers.consider();
      if (way.type === "again") continue;
      if (way.type === "refuse") this.#refuseAll(way.error);
      else this.#lookAgain(way.ms);
      return;
    }
  }

  #lookAgain(ms: number): void {
    this.#cancelLook?.();
    this.#cancelLook = this.#ports.timers.after(Math.max(1, Math.ceil(ms)), () => this.#serve());
  }

  #refuseAll(error: IdmintError): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    for (const waiter of this.#waiters.splice(0)) {
      waiter.cleanUp();
      waiter.reject(error);
    }
  }

  /** A waiting call ends at its deadline, less a margin, or when its caller goes away. */
  #watch(waiter: Waiter, call: Call | undefined): () => void {
    const now = this.#ports.clock.now();
    const giveUp = (error: IdmintError): void => {
      const at = this.#waiters.indexOf(waiter);
      if (at < 0) return;
      this.#waiters.splice(at, 1);
      waiter.cleanUp();
      waiter.reject(error);
    };
    const waitMs = Math.max(0, answerBy(now, call) - now);
    const cancelTimer = this.#ports.timers.after(waitMs, () => {
      const way = this.#workers.consider();
      const why = "other calls were before it";
      giveUp(this.#workers.refusal(way.type === "again" ? { type: "wait", ms: 1, why } : way));
    });
    const unwatch = whenCancelled(call?.signal, giveUp);
    return () => {
      cancelTimer();
      unwatch?.();
    };
  }
}

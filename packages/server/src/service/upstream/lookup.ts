import type { Clock, Timers } from "@idmint/core";
import type { Tag, TagStore } from "@idmint/core/server";
import { IdmintError } from "@idmint/core";
import { storeUnavailable, tagNotFound } from "@idmint/core/server";
import { overloaded, type Patience, type Waiter, waiterOf, within } from "../call.ts";
import type { Counters } from "../counters.ts";
import { askApart } from "./apart.ts";
import { type CallTrace, presentTrace, runFor } from "../trace.ts";
import {
  answered,
  batchFailed,
  believeAbsent,
  createLookupState,
  forgetAll,
  LOOKUP_OPTIONS,
  type LookupOptions,
  nextBatch,
  overtaken,
  unwish,
  wish,
} from "./lookup-state.ts";

/** Most calls that wait for lookups at once, over all names. */
const MAX_LOOKUP_WAITERS = 10_000;

function tooLate(): IdmintError {
  return storeUnavailable("the store did not answer in time");
}

export interface LookupPorts {
  readonly store: Pick<TagStore, "getTags">;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Runs a function after the current turn, so that names asked for together are looked up together. */
  readonly afterTurn: (run: () => void) => void;
  readonly storeTimeoutMs: number;
  readonly counters: Counters;
  /** Takes the records that no newer one has overtaken; runs before the calls that wait for them go on. */
  readonly onTags: (tags: readonly Tag[]) => void;
}

/** Asks the store for names nobody here knows, in batches, at a bounded rate, and remembers briefly what is absent. */
export class Lookup {
  readonly #state;
  readonly #ports: LookupPorts;
  readonly #waiters = new Map<string, Set<Waiter<void>>>();
  /** Traced calls that wait for lookups that were not sent yet; one for a name. */
  readonly #traces = new Map<string, CallTrace>();
  #waiting = 0;
  /** Counts the histories of the store: what was asked under an earlier one says nothing about this one. */
  #history = 0;
  #sends = false;
  #cancelTimer: (() => void) | undefined;

  constructor(ports: LookupPorts, options: LookupOptions = LOOKUP_OPTIONS) {
    this.#ports = ports;
    this.#state = createLookupState(options);
  }

  /** Fulfils when the tag's record was given to `onTags`, or was seen elsewhere meanwhile; rejects with TAG_NOT_FOUND, OVERLOADED, STORE_UNAVAILABLE. */
  async find(name: string, call: Patience): Promise<void> {
    if (this.#waiting >= MAX_LOOKUP_WAITERS) {
      throw overloaded("too many calls wait for tags that are not known here yet", { tag: name });
    }
    switch (wish(this.#state, name, this.#ports.clock.now())) {
      case "absent":
        throw tagNotFound(name);
      case "full":
        throw overloaded("too many unknown tags are asked for at once", { tag: name });
      case "asked":
        return this.#wait(name, call);
    }
  }

  /** A record of the tag was seen elsewhere: whoever waits for it goes on, to find it here or to ask again. */
  overtaken(name: string): void {
    overtaken(this.#state, name);
    this.#settle(name, (waiter) => waiter.resolve());
  }

  /** The newest record of the tag says that it was deleted: asking the store again would find the tombstone. */
  disappeared(name: string): void {
    believeAbsent(this.#state, name, this.#ports.clock.now());
  }

  /** Another history of the store began. */
  forgetAll(): void {
    this.#history++;
    forgetAll(this.#state);
  }

  /** Refuses everybody who waits. */
  refuseAll(error: IdmintError): void {
    this.#cancelTimer?.();
    for (const name of this.#waiters.keys()) {
      this.#settle(name, (waiter) => waiter.reject(error));
    }
  }

  #wait(name: string, call: Patience): Promise<void> {
    const waiters = this.#waiters.get(name) ?? new Set();
    this.#waiters.set(name, waiters);
    const waiter = waiterOf<void>(call, this.#ports, tooLate, () => {
      this.#waiting--;
      waiters.delete(waiter);
      if (waiters.size > 0 || this.#waiters.get(name) !== waiters) return;
      this.#waiters.delete(name);
      this.#traces.delete(name);
      unwish(this.#state, name);
    });
    waiters.add(waiter);
    this.#waiting++;
    const trace = presentTrace();
    if (trace !== undefined) this.#traces.set(name, trace);
    this.#sendAfterTurn();
    return waiter.promise;
  }

  #sendAfterTurn(): void {
    if (this.#sends) return;
    this.#sends = true;
    this.#ports.afterTurn(() => {
      this.#sends = false;
      this.#sendWhenDue();
    });
  }

  #sendWhenDue(): void {
    const now = this.#ports.clock.now();
    const next = nextBatch(this.#state, now);
    if (next === undefined) return;
    if ("at" in next) {
      if (this.#cancelTimer !== undefined) return;
      this.#cancelTimer = this.#ports.timers.after(next.at - now, () => {
        this.#cancelTimer = undefined;
        this.#sendWhenDue();
      });
      return;
    }
    void this.#send(next.names);
  }

  async #send(names: readonly string[]): Promise<void> {
    this.#ports.counters.lookupCalls++;
    const history = this.#history;
    const { store, storeTimeoutMs, timers } = this.#ports;
    const unreadable = new Map<string, IdmintError>();
    try {
      const ask = (): Promise<readonly Tag[]> =>
        runFor(this.#traceOf(names), () =>
          askApart(
            names,
            (some) => store.getTags(some),
            (name, error) => {
              unreadable.set(name, error);
              return [];
            },
          ),
        );
      const tags = await within(ask, storeTimeoutMs, timers);
      if (history !== this.#history)
        throw storeUnavailable("the store was accepted anew meanwhile");
      for (const [name, error] of unreadable) {
        // It is there, so it is not believed to be absent.
        overtaken(this.#state, name);
        this.#settle(name, (waiter) => waiter.reject(error));
      }
      const { admitted, absent } = answered(this.#state, tags, this.#ports.clock.now());
      this.#ports.onTags(admitted);
      for (const name of absent) {
        this.#settle(name, (waiter) => waiter.reject(tagNotFound(name)));
      }
      for (const { name } of admitted) this.#settle(name, (waiter) => waiter.resolve());
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      for (const name of batchFailed(this.#state)) {
        this.#settle(name, (waiter) => waiter.reject(error));
      }
    }
    this.#sendWhenDue();
  }

  /** One look is for several calls, and its span below one of them. */
  #traceOf(names: readonly string[]): CallTrace | undefined {
    let first: CallTrace | undefined;
    for (const name of names) {
      first ??= this.#traces.get(name);
      this.#traces.delete(name);
    }
    return first;
  }

  #settle(name: string, end: (waiter: Waiter<void>) => void): void {
    const waiters = this.#waiters.get(name);
    if (waiters === undefined) return;
    this.#waiters.delete(name);
    this.#traces.delete(name);
    for (const waiter of waiters) end(waiter);
  }
}

import { randomUUID } from "node:crypto";
import { cancelled, CoordinationError } from "../errors.ts";
import type { RedisNode } from "../redis/node.ts";
import { scriptOnce } from "../redis/outcome.ts";
import type { Signal, WaitOptions } from "./api.ts";
import type { Limiter } from "./broadcasts.ts";
import { envelopeIn, envelopeOf } from "./envelope.ts";
import { type SignalSettings, waitTimeoutMs } from "./options.ts";
import { JOIN_ONE, LEAVE_ONE, oneKeys, RENEW_ONE, SIGNAL_ONE } from "./scripts.ts";
import type { Subscriber, Target } from "./subscriber.ts";
import { Waiting } from "./waiting.ts";

/** Ids of one renewal. */
const RENEW_BATCH = 1_000;

/** A call that waits for a signal for one. */
interface Waiter {
  readonly id: string;
  readonly name: string;
  readonly waiting: Waiting<Signal | undefined>;
  /** One question at a time. One that is wanted meanwhile is asked after it. */
  isAsking: boolean;
  isWished: boolean;
  /** Its time is over: whoever joins after leaving would be chosen for nobody. */
  isLeaving: boolean;
  /** The signal that its caller got. */
  answeredId: string | undefined;
}

/** Signals for one: sends them, and waits for them in the name of this instance. */
export class SingleCast {
  readonly #instance: string = randomUUID();
  readonly #settings: SignalSettings;
  readonly #limiter: Limiter;
  readonly #node: RedisNode;
  readonly #subscriber: Subscriber;
  /** Where this instance is told that a waiter of its own was chosen. */
  readonly target: Target;
  readonly #waiters = new Map<string, Waiter>();
  #last = 0;
  #isListening = false;
  #isUp = false;
  #renewal: NodeJS.Timeout | undefined;

  constructor(settings: SignalSettings, limiter: Limiter, node: RedisNode, subscriber: Subscriber) {
    this.#settings = settings;
    this.#limiter = limiter;
    this.#node = node;
    this.#subscriber = subscriber;
    this.target = {
      kind: "channel",
      channel: this.#wakePrefix + this.#instance,
      countKey: undefined,
    };
  }

  async signal(name: string, data: string): Promise<"given" | "kept"> {
    const { maxBytes, maxKept, commandTimeoutMs } = this.#settings;
    const message = envelopeOf(data, maxBytes);
    const values = {
      keys: oneKeys(this.#settings.prefix, name).shared,
      args: this.#args(maxKept, message),
    };
    const what = `signalling one of ${name}`;
    const answer = await scriptOnce(this.#node, what, SIGNAL_ONE, values, commandTimeoutMs);
    const [outcome] = this.#heard(name, answer);
    if (outcome === "given" || outcome === "kept") return outcome;
    const text = `nobody waits for one of ${name}, and ${maxKept} signals are kept already; signal later, or raise maxKept`;
    throw new CoordinationError("OVERLOADED", text, { metadata: { signal: name } });
  }

  /** Undefined when none came in time. */
  async wait(name: string, options: WaitOptions): Promise<Signal | undefined> {
    const timeoutMs = waitTimeoutMs(options);
    const { signal } = options;
    const what = `waiting for one of ${name}`;
    if (signal?.aborted === true) throw cancelled(what, signal);
    this.#limiter.enter();
    const id = `${this.#instance}/${++this.#last}`;
    const waiting = new Waiting<Signal | undefined>(
      what,
      { timeoutMs, signal },
      {
        onTimeout: () => void this.#leaveLate(waiter),
        onAbort: () => void this.#passOn(id, name),
        onEnd: () => {
          this.#waiters.delete(id);
          this.#limiter.leave();
        },
      },
    );
    const waiter: Waiter = {
      id,
      name,
      waiting,
      isAsking: false,
      isWished: false,
      isLeaving: false,
      answeredId: undefined,
    };
    this.#waiters.set(id, waiter);
    this.#begin();
    // Nobody chooses a waiter whose instance does not listen: it joins when that is so.
    if (this.#isUp) void this.#join(waiter);
    return waiting.promise;
  }

  /** The instance's channel is heard, from the first time on or again: what was told meanwhile may be lost, so all ask. */
  onUp(): void {
    this.#isUp = true;
    for (const waiter of this.#waiters.values()) void this.#join(waiter);
  }

  onDown(): void {
    this.#isUp = false;
  }

  /** One of this instance's waiters was chosen. */
  onWake(id: string): void {
    const waiter = this.#waiters.get(id);
    // Of a wait that is over the leaving, or else the end of the lease, passes the signal on.
    if (waiter !== undefined) void this.#join(waiter);
  }

  /** Refuses all that wait; signals for them go to others. */
  async close(reason: CoordinationError): Promise<void> {
    clearInterval(this.#renewal);
    const waiters = [...this.#waiters.values()];
    for (const { waiting } of waiters) waiting.refuse(reason);
    await Promise.all(waiters.map(({ id, name }) => this.#passOn(id, name)));
  }

  get #wakePrefix(): string {
    return `${this.#settings.prefix}:signal:wake:`;
  }

  #args(...args: readonly (string | number)[]): readonly (string | number)[] {
    return [this.#settings.leaseMs, this.#wakePrefix, ...args];
  }

  #begin(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    this.#subscriber.add(this.target);
    const { leaseMs } = this.#settings;
    this.#renewal = setInterval(() => void this.#renewAll(), leaseMs / 3).unref();
  }

  /** Takes what is there for a waiter, or registers it. Repeating it is safe. */
  async #join(waiter: Waiter): Promise<void> {
    waiter.isWished = true;
    if (waiter.isAsking) return;
    waiter.isAsking = true;
    try {
      while (waiter.isWished && !waiter.isLeaving && !waiter.waiting.isOver) {
        waiter.isWished = false;
        await this.#joinOnce(waiter);
      }
    } finally {
      waiter.isAsking = false;
    }
  }

  async #joinOnce(waiter: Waiter): Promise<void> {
    const { id, name, waiting } = waiter;
    const { prefix, maxWaiters, commandTimeoutMs } = this.#settings;
    const { shared, takenPrefix } = oneKeys(prefix, name);
    const values = { keys: [...shared, takenPrefix + id], args: this.#args(id, maxWaiters) };
    try {
      const limits = { timeoutMs: commandTimeoutMs };
      const answer = await this.#node.script(
        `waiting for one of ${name}`,
        JOIN_ONE,
        values,
        limits,
      );
      const [state, text] = this.#heard(name, answer);
      if (text !== undefined) await this.#settle(waiter, text);
      // The wait ended meanwhile, and its leaving may have come to Redis before this did: a second one does no harm.
      else if (waiting.isOver && waiter.answeredId === undefined) await this.#passOn(id, name);
      if (state !== "full") return;
      const full = `${maxWaiters} wait for one of ${name} already; wait later, or raise maxWaiters`;
      waiting.refuse(new CoordinationError("OVERLOADED", full, { metadata: { signal: name } }));
    } catch (thrown) {
      const error = thrown as CoordinationError;
      this.#tellFailure("join", error);
      // The next renewal or connection asks again.
      if (!error.retryable) waiting.refuse(error);
    }
  }

  /**
   * This waiter took a signal. It is the caller's, unless the wait was over by something else than this very signal, which
   * two answers may carry.
   */
  async #settle(waiter: Waiter, text: string): Promise<void> {
    const { id, name, waiting } = waiter;
    const signal = signalIn(name, text);
    if (waiting.answer(signal)) waiter.answeredId = signal.id;
    else if (waiter.answeredId !== signal.id) await this.#passOn(id, name);
  }

  /** The time is over: leaves and looks for a signal in one step, so that none given at this moment is lost. */
  async #leaveLate(waiter: Waiter): Promise<void> {
    const { id, name, waiting } = waiter;
    waiter.isLeaving = true;
    try {
      const text = await this.#leave(id, name, "take");
      if (text === undefined) waiting.answer(undefined);
      else await this.#settle(waiter, text);
    } catch (thrown) {
      waiting.refuse(thrown as CoordinationError);
    }
  }

  /** Leaves; a signal for this waiter goes to the next one. */
  async #passOn(id: string, name: string): Promise<void> {
    try {
      await this.#leave(id, name, "pass");
    } catch (error) {
      // Redis passes it on when the lease is over.
      this.#tellFailure("leave", error as CoordinationError);
    }
  }

  async #leave(id: string, name: string, mode: "pass" | "take"): Promise<string | undefined> {
    const { prefix, commandTimeoutMs } = this.#settings;
    const { shared, takenPrefix } = oneKeys(prefix, name);
    const values = { keys: [...shared, takenPrefix + id], args: this.#args(id, mode) };
    const limits = { timeoutMs: commandTimeoutMs };
    const what = `ending the wait for one of ${name}`;
    return this.#heard(name, await this.#node.script(what, LEAVE_ONE, values, limits))[0];
  }

  /** What a script answered, without what it says of Redis' clock. */
  #heard(name: string, answer: unknown): readonly string[] {
    const [back, ...rest] = answer as readonly string[];
    if (back !== "0") {
      this.#settings.onEvent({ type: "clock-set-back", name, byMs: Number(back) });
    }
    return rest;
  }

  async #renewAll(): Promise<void> {
    const names = Map.groupBy(this.#waiters.values(), ({ name }) => name);
    for (const [name, waiters] of names) {
      for (let at = 0; at < waiters.length; at += RENEW_BATCH) {
        await this.#renew(name, waiters.slice(at, at + RENEW_BATCH));
      }
    }
  }

  async #renew(name: string, waiters: readonly Waiter[]): Promise<void> {
    const { prefix, commandTimeoutMs } = this.#settings;
    const ids = waiters.map(({ id }) => id);
    const values = { keys: oneKeys(prefix, name).shared, args: this.#args(...ids) };
    const limits = { timeoutMs: commandTimeoutMs };
    try {
      const what = `renewing the wait for one of ${name}`;
      const missing = this.#heard(name, await this.#node.script(what, RENEW_ONE, values, limits));
      if (!this.#isUp) return;
      for (const id of missing) {
        const waiter = this.#waiters.get(id);
        if (waiter !== undefined) void this.#join(waiter);
      }
    } catch (error) {
      this.#tellFailure("renew", error as CoordinationError);
    }
  }

  #tellFailure(command: "join" | "leave" | "renew", error: CoordinationError): void {
    this.#settings.onEvent({ type: "command-failed", command, error });
  }
}

/** What a script answers was written by SIGNAL_ONE; anything else at its keys is the sender's data as it stands. */
function signalIn(name: string, text: string): Signal {
  return envelopeIn(name, text)?.signal ?? { name, id: "", data: text };
}

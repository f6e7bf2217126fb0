import { setTimeout as pause } from "node:timers/promises";
import { CoordinationError } from "../errors.ts";
import type { RedisNode } from "../redis/node.ts";
import type { QueueEvent } from "./api.ts";
import { messageOf } from "./element.ts";
import type { ResolvedQueueOptions } from "./options.ts";
import { HEARTBEAT, type QueueKeys, RELEASE, SET_ASIDE, takingEnd } from "./scripts.ts";
import { Takers } from "./takers.ts";

/**
 * Longest wait inside Redis, in milliseconds. Short, because a call that is aborted cannot end it, and because Redis may
 * serve it for a connection that is gone; far shorter than `LINGER_MS` of recovery.
 */
const ROUND_MS = 1_000;
/** Between two tries while Redis cannot be asked: at first, and at most. */
const RETRY_MIN_MS = 25;
const RETRY_MAX_MS = 500;

export interface ConsumerPorts {
  /** For everything that does not wait inside Redis. */
  readonly node: RedisNode;
  readonly keys: QueueKeys;
  readonly emit: (event: QueueEvent) => void;
  /** Puts back what silent consumers held. */
  readonly recover: () => Promise<unknown>;
}

/** One taker of a queue's messages, with a pending list of its own in Redis and a heartbeat. */
export class Consumer {
  readonly #id: string;
  readonly #options: ResolvedQueueOptions;
  readonly #ports: ConsumerPorts;
  /** Elements in the hands of callers. */
  readonly #held = new Set<string>();
  readonly #takers: Takers;
  readonly #pending: string;
  #blocking: RedisNode | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #beating: Promise<void> | undefined;
  /** Whether Redis lists this consumer, as far as is known: no element is taken before. */
  #isRegistered = false;
  /** Whether the pending list may hold an element that nobody here knows of. */
  #isInDoubt = false;
  #pulling: Promise<void> | undefined;
  #closed: CoordinationError | undefined;

  constructor(id: string, options: ResolvedQueueOptions, ports: ConsumerPorts) {
    this.#id = id;
    this.#options = options;
    this.#ports = ports;
    this.#takers = new Takers(`taking from queue ${options.name}`);
    this.#pending = ports.keys.pendingPrefix + id;
  }

  /** Waits for an element and takes it into this consumer's hands. */
  async take(timeoutMs: number, signal: AbortSignal | undefined): Promise<string | undefined> {
    if (this.#closed !== undefined) throw this.#closed;
    const { name, maxHeld } = this.#options;
    if (this.#held.size + this.#takers.size >= maxHeld) {
      const text = `this consumer of queue ${name} holds or waits for ${maxHeld} messages already; acknowledge them, or raise maxHeld`;
      throw new CoordinationError("OVERLOADED", text, { metadata: { queue: name } });
    }
    const taken = this.#takers.wait(timeoutMs, signal);
    this.#pull();
    return taken;
  }

  /** Removes an element for good; false when it was not this consumer's any more. */
  async ack(element: string): Promise<boolean> {
    const removed = await this.#ports.node.run(
      `acknowledging a message of queue ${this.#options.name}`,
      (redis) => redis.call("LREM", this.#pending, 1, element),
      { timeoutMs: this.#options.commandTimeoutMs },
    );
    this.#held.delete(element);
    return Number(removed) === 1;
  }

  /** Puts an element back; false when it was not this consumer's any more. */
  async release(element: string): Promise<boolean> {
    const { name, order, commandTimeoutMs } = this.#options;
    const released = await this.#ports.node.script(
      `releasing a message of queue ${name}`,
      RELEASE,
      { keys: [this.#ports.keys.ready, this.#pending], args: [element, takingEnd(order)] },
      { timeoutMs: commandTimeoutMs },
    );
    this.#held.delete(element);
    return Number(released) === 1;
  }

  /** Nobody here will acknowledge this element any more: when it is still pending, it is found and given out again. */
  forget(element: string): void {
    this.#held.delete(element);
    this.#isInDoubt = true;
    this.#pull();
  }

  /** Refuses all that wait; what is held stays in Redis' pending list, and counts as a silent consumer's at once. */
  async close(error: CoordinationError): Promise<void> {
    this.#closed = error;
    clearInterval(this.#heartbeat);
    this.#takers.refuseAll(error);
    // The round under way may still move a message: leaving before its end would hide that message for a while.
    await this.#pulling;
    await this.#beating;
    await this.#blocking?.close();
    if (this.#heartbeat === undefined) return;
    const { keys, node } = this.#ports;
    await node.run(
      `leaving queue ${this.#options.name}`,
      (redis) => redis.zadd(keys.consumers, "XX", 0, this.#id),
      { timeoutMs: this.#options.commandTimeoutMs },
    );
  }

  /** At most one loop at a time asks for elements. */
  #pull(): void {
    this.#pulling ??= this.#pullAll().finally(() => {
      this.#pulling = undefined;
      // A call may have come after the loop had looked for the last time. A doubt alone waits for the next heartbeat.
      if (this.#closed === undefined && this.#takers.size > 0) this.#pull();
    });
  }

  get #isWanted(): boolean {
    return this.#closed === undefined && (this.#takers.size > 0 || this.#isInDoubt);
  }

  async #pullAll(): Promise<void> {
    let retryMs = RETRY_MIN_MS;
    while (this.#isWanted) {
      this.#takers.beginRound();
      try {
        if (!this.#isRegistered) await this.#beat();
        if (this.#isInDoubt) await this.#settleDoubt();
        if (this.#takers.size > 0) await this.#round();
        this.#takers.endRound();
        retryMs = RETRY_MIN_MS;
      } catch (thrown) {
        const error = thrown as CoordinationError;
        // Redis may have moved a message in an answer that never came, or have restarted without its list of consumers.
        this.#isInDoubt = true;
        this.#isRegistered = false;
        this.#tellFailure("take", error);
        this.#takers.endRound(error);
        if (!error.retryable) this.#takers.refuseAll(error);
        if (this.#takers.size === 0) return;
        await pause(retryMs);
        retryMs = Math.min(2 * retryMs, RETRY_MAX_MS);
      }
    }
  }

  async #round(): Promise<void> {
    this.#blocking ??= this.#ports.node.duplicate();
    const { redis } = this.#blocking;
    const { keys } = this.#ports;
    const { commandTimeoutMs, name, order } = this.#options;
    const roundMs = this.#takers.roundMs(ROUND_MS);
    const move = [keys.ready, this.#pending, takingEnd(order), "LEFT", roundMs / 1_000] as const;
    try {
      const element = (await this.#blocking.run(
        `taking from queue ${name}`,
        () => redis.call("BLMOVE", ...move),
        { timeoutMs: roundMs + commandTimeoutMs },
      )) as string | null;
      if (element !== null) await this.#handOut(element);
    } catch (error) {
      // A connection on which no answer comes may never break by itself.
      const isSilent = (error as CoordinationError).retryable && redis.status === "ready";
      if (isSilent) redis.disconnect(true);
      throw error;
    }
  }

  /** Gives an element of the pending list to a caller, or puts it back when nobody waits any more. */
  async #handOut(element: string): Promise<void> {
    if (messageOf(element) === undefined) {
      await this.#setAside(element);
      return;
    }
    this.#held.add(element);
    if (this.#takers.serve(element)) return;
    try {
      await this.release(element);
    } catch (error) {
      this.#held.delete(element);
      this.#isInDoubt = true;
      this.#tellFailure("release", error as CoordinationError);
    }
  }

  async #setAside(element: string): Promise<void> {
    const { keys, node, emit } = this.#ports;
    const { name, commandTimeoutMs } = this.#options;
    const values = { keys: [keys.foreign, this.#pending], args: [element] };
    await node.script(`setting aside what is no message of queue ${name}`, SET_ASIDE, values, {
      timeoutMs: commandTimeoutMs,
    });
    emit({ type: "foreign-set-aside", queue: name, element });
  }

  /**
   * Finds the elements that Redis moved to this consumer in answers that never came. Runs in the loop, so that no other
   * answer with an element is on its way meanwhile.
   */
  async #settleDoubt(): Promise<void> {
    const before = new Set(this.#held);
    const pending = await this.#ports.node.run(
      `looking for unknown messages of queue ${this.#options.name}`,
      (redis) => redis.lrange(this.#pending, 0, -1),
      { timeoutMs: this.#options.commandTimeoutMs },
    );
    this.#isInDoubt = false;
    const there = new Set(pending);
    for (const element of before) if (!there.has(element)) this.#held.delete(element);
    // What was held when Redis was asked may have been acknowledged since.
    const unknown = pending.filter((element) => !before.has(element)).toReversed();
    if (unknown.length === 0) return;
    const { name } = this.#options;
    this.#ports.emit({ type: "messages-found", queue: name, count: unknown.length });
    for (const element of unknown) await this.#handOut(element);
  }

  /** Registers this consumer, or keeps it registered; recovery of others goes along with it. */
  async #beat(): Promise<void> {
    const { keys, node, emit } = this.#ports;
    const { consumerTtlMs, commandTimeoutMs, name } = this.#options;
    const answer = (await node.script(
      `a heartbeat in queue ${name}`,
      HEARTBEAT,
      {
        keys: [keys.consumers, keys.lingering, keys.clock, this.#pending],
        args: [this.#id, consumerTtlMs],
      },
      { timeoutMs: commandTimeoutMs },
    )) as readonly [string, string, string];
    const [wasAlive, length, back] = answer;
    if (back !== "0") emit({ type: "clock-set-back", queue: name, byMs: Number(back) });
    const hasExpired = this.#heartbeat !== undefined && wasAlive === "0";
    if (hasExpired) emit({ type: "consumer-expired", queue: name, consumer: this.#id });
    // An answer with an element is on its way, or never came.
    if (hasExpired || Number(length) > this.#held.size) this.#isInDoubt = true;
    this.#isRegistered = true;
    this.#heartbeat ??= setInterval(() => this.#onHeartbeat(), consumerTtlMs / 3).unref();
    await this.#ports.recover();
  }

  #onHeartbeat(): void {
    this.#beating ??= this.#beat()
      .catch((error: unknown) => this.#tellFailure("heartbeat", error as CoordinationError))
      .finally(() => {
        this.#beating = undefined;
        if (this.#isWanted) this.#pull();
      });
  }

  #tellFailure(command: "heartbeat" | "release" | "take", error: CoordinationError): void {
    this.#ports.emit({ type: "command-failed", queue: this.#options.name, command, error });
  }
}

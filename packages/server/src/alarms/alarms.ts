import { hostname } from "node:os";
import type { Clock, Random, Timers } from "@idmint/core";
import type { Emit, ServerEvent } from "../service/events.ts";
import { type Alarm, type Envelope, envelopeOf, type AlarmContent } from "./alarm.ts";
import { alarmOf } from "./alarm-of.ts";
import {
  type AlarmState,
  createAlarmState,
  isRecent,
  isStale,
  lasted,
  nextDueAt,
  noticed,
  raised,
  type Recent,
  remember,
  retryMs,
} from "./alarm-state.ts";
import type { Deliver } from "./webhook.ts";

/** How often a server checks whether it delivers, and how long it waits for one alarm. */
const LOOK_MS = 250;
const TAKE_MS = 1_000;
/** Time between two tries while the queue does not answer. */
const QUEUE_RETRY_MS = 1_000;
const MAX_ACK_TRIES = 5;
/** How long a server that stops keeps trying to deliver what it still has. */
const CLOSE_MS = 1_500;

/** An alarm that this server has taken from the queue. */
interface Taken {
  readonly body: string;
  ack(): Promise<unknown>;
  release(): Promise<unknown>;
}

/** The queue of the alarms of all servers. A message is delivered at least once, whichever server dies. */
export interface AlarmQueue {
  /** Whether this server is the one that takes from it. */
  readonly isDeliverer: boolean;
  /** Rejects when the alarm may not be in the queue. */
  push(body: string): Promise<void>;
  take(timeoutMs: number, signal: AbortSignal): Promise<Taken | undefined>;
  close(): Promise<void>;
}

export interface AlarmsPorts {
  /** Undefined when there is no queue. Then each server delivers its own alarms. */
  readonly queue: AlarmQueue | undefined;
  readonly deliver: Deliver;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly wallClock: () => number;
  readonly newId: () => string;
  readonly emit: Emit;
}

/**
 * Tells people, through a webhook, what needs their attention.
 *
 * An alarm goes into the queue of all servers, and the elected server delivers it. Without a queue that answers, this
 * server delivers it by itself, out of its memory. Each alarm is delivered at least once, unless the only server that
 * knows of it dies, or nobody takes it for a day. No call waits for any of this.
 */
export class Alarms {
  readonly #ports: AlarmsPorts;
  readonly #server: string;
  readonly #state: AlarmState;
  readonly #waiting: Alarm[] = [];
  /** When this server last delivered each key. */
  readonly #delivered: Recent = new Map();
  readonly #closing = new AbortController();
  /** Aborts the last tries. */
  readonly #over = new AbortController();
  #sending: Promise<void> | undefined;
  #working: Promise<void> | undefined;
  #stopTimer: (() => void) | undefined;

  constructor(
    ports: AlarmsPorts,
    options: {
      /** How long a trouble lasts before it is an alarm. */
      readonly lastingMs: number;
      readonly grpcPort: number;
    },
  ) {
    this.#ports = ports;
    this.#server = `${hostname()}:${options.grpcPort}`;
    this.#state = createAlarmState(options.lastingMs);
  }

  /** Hears every event of this server. */
  readonly hear = (event: ServerEvent): void => {
    const change = alarmOf(event, this.#server);
    if (change === undefined || this.#isClosing) return;
    for (const content of noticed(this.#state, change, this.#ports.clock.now()))
      this.#raise(content);
    this.#watchTroubles();
  };

  /** Begins to deliver from the queue, whenever this server is the elected one. */
  start(): void {
    const { queue } = this.#ports;
    if (queue !== undefined) this.#working ??= this.#workOff(queue);
  }

  /** Puts back what it was about to deliver. Then tries, for a short time, to deliver what only this server knows. */
  async close(): Promise<void> {
    if (this.#isClosing) return;
    this.#closing.abort();
    this.#stopTimer?.();
    const stop = this.#ports.timers.after(CLOSE_MS, () => this.#over.abort());
    await Promise.all([this.#sending, this.#working]);
    stop();
    await this.#ports.queue?.close();
  }

  get #isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  #watchTroubles(): void {
    const { clock, timers } = this.#ports;
    const dueAt = nextDueAt(this.#state);
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    if (dueAt === undefined) return;
    this.#stopTimer = timers.after(Math.max(0, dueAt - clock.now()), () => {
      for (const content of lasted(this.#state, clock.now())) this.#raise(content);
      this.#watchTroubles();
    });
  }

  #raise(content: AlarmContent): void {
    const { clock, newId, wallClock } = this.#ports;
    const outcome = raised(this.#state, content, this.#waiting.length, clock.now());
    if (outcome === "dropped") this.#tellDropped(content.key, "too many alarms wait already");
    if (outcome !== "told") return;
    const time = new Date(wallClock()).toISOString();
    this.#waiting.push({ id: newId(), time, server: this.#server, ...content });
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Delivers what waits in memory, in order: each until it is delivered or too old. */
  async #sendAll(): Promise<void> {
    let failures = 0;
    for (;;) {
      const [alarm] = this.#waiting;
      if (alarm === undefined) return;
      // Each depends on the outcome of the one before.
      const isTold = await this.#send(alarm, failures + 1);
      const envelope = { ...alarm, raisedAtMs: Date.parse(alarm.time) };
      if (isTold) failures = 0;
      else if (this.#isClosing) this.#tellDropped(alarm.key, "the server stopped");
      else if (this.#isStale(envelope)) failures = 0;
      else {
        await this.#pause(retryMs(++failures, this.#ports.random));
        continue;
      }
      this.#waiting.shift();
    }
  }

  async #send(alarm: Alarm, attempt: number): Promise<boolean> {
    const body = JSON.stringify(alarm);
    const { queue } = this.#ports;
    try {
      await queue?.push(body);
      if (queue !== undefined) return true;
    } catch {
      // The alarm may be about this very Redis.
    }
    return this.#deliver(alarm, body, attempt);
  }

  /** Delivers an alarm, unless its key was delivered a moment ago. */
  async #deliver(
    { id, key }: Pick<Envelope, "id" | "key">,
    body: string,
    attempt: number,
  ): Promise<boolean> {
    const { clock, deliver, emit } = this.#ports;
    if (isRecent(this.#delivered, key, clock.now())) return true;
    try {
      await deliver(body, this.#over.signal);
    } catch (error) {
      emit({ type: "alarm-failed", key, attempt, why: messageOf(error) });
      return false;
    }
    remember(this.#delivered, key, clock.now());
    emit({ type: "alarm-delivered", key, id });
    return true;
  }

  async #workOff(queue: AlarmQueue): Promise<void> {
    const { signal } = this.#closing;
    while (!this.#isClosing) {
      if (!queue.isDeliverer) {
        await this.#pause(LOOK_MS);
        continue;
      }
      try {
        const taken = await queue.take(TAKE_MS, signal);
        if (taken !== undefined) await this.#workOffOne(queue, taken);
      } catch {
        // The loss of Redis has an event of its own. What was taken and not acknowledged comes again.
        await this.#pause(QUEUE_RETRY_MS);
      }
    }
  }

  async #workOffOne(queue: AlarmQueue, taken: Taken): Promise<void> {
    const alarm = envelopeOf(taken.body);
    if (alarm === undefined) this.#tellDropped("unknown", "what is in the queue is no alarm");
    const isOver = alarm === undefined || (await this.#deliverAs(queue, alarm, taken.body));
    if (isOver) await this.#ack(taken);
    else await taken.release();
  }

  /** Tries while this server is the elected one. Answers false when another server has to go on. */
  async #deliverAs(queue: AlarmQueue, alarm: Envelope, body: string): Promise<boolean> {
    for (let attempt = 1; !this.#isStale(alarm); attempt++) {
      if (this.#isClosing || !queue.isDeliverer) return false;
      if (await this.#deliver(alarm, body, attempt)) return true;
      await this.#pause(retryMs(attempt, this.#ports.random));
    }
    return true;
  }

  /** Acknowledges an alarm, so that it is not delivered once more. */
  async #ack(taken: Taken): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await taken.ack();
        return;
      } catch (error) {
        if (attempt >= MAX_ACK_TRIES || this.#isClosing) throw error;
        await this.#pause(QUEUE_RETRY_MS);
      }
    }
  }

  #isStale({ key, raisedAtMs }: Pick<Envelope, "key" | "raisedAtMs">): boolean {
    const isOld = isStale(raisedAtMs, this.#ports.wallClock());
    if (isOld) this.#tellDropped(key, "nobody took it for a day");
    return isOld;
  }

  #tellDropped(key: string, why: string): void {
    this.#ports.emit({ type: "alarm-dropped", key, why });
  }

  /** Waits; ends at once when the alarms are closed. */
  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { signal } = this.#closing;
    const stop = this.#ports.timers.after(signal.aborted ? 0 : ms, resolve);
    const onAbort = (): void => resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    await promise;
    signal.removeEventListener("abort", onAbort);
    stop();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

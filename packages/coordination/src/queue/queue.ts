import { randomUUID } from "node:crypto";
import { checkData } from "../checks.ts";
import { CoordinationError, invalidField } from "../errors.ts";
import { safely } from "../listener.ts";
import { RedisNode } from "../redis/node.ts";
import { scriptOnce } from "../redis/outcome.ts";
import type { Message, Queue, QueueEvent, QueueOptions, TakenMessage, TakeOptions } from "./api.ts";
import { Consumer } from "./consumer.ts";
import { elementOf, messageOf } from "./element.ts";
import { type ResolvedQueueOptions, resolveQueueOptions, takeTimeoutMs } from "./options.ts";
import { PUSH, type QueueKeys, queueKeys, RECOVER, takingEnd } from "./scripts.ts";

/** Most messages of one `pushAll`. */
const MAX_BATCH = 1_000;
/** Messages that one script puts back: Redis does nothing else meanwhile. */
const RECOVER_BATCH = 1_000;
/** Scripts of one recovery; what is left is for the next one. */
const MAX_RECOVER_BATCHES = 1_000;
/** When a silent consumer's list is looked at for the second time, in milliseconds; far above the longest wait in Redis. */
const LINGER_MS = 60_000;

/** Makes a queue. Nothing is sent before its first use. Throws INVALID_ARGUMENT that names a bad option. */
export function createQueue(options: QueueOptions): Queue {
  return new RedisQueue(options);
}

class RedisQueue implements Queue {
  readonly #options: ResolvedQueueOptions;
  readonly #node: RedisNode;
  readonly #keys: QueueKeys;
  readonly #consumer: Consumer;
  readonly #emit: (event: QueueEvent) => void;
  #closed: CoordinationError | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: QueueOptions) {
    this.#options = resolveQueueOptions(options);
    const { prefix, name } = this.#options;
    this.#emit = safely(options.onEvent);
    this.#node = new RedisNode(options.redis, {}, this.#options);
    this.#keys = queueKeys(prefix, name);
    this.#consumer = new Consumer(randomUUID(), this.#options, {
      node: this.#node,
      keys: this.#keys,
      emit: this.#emit,
      recover: () => this.#recover(),
    });
  }

  get name(): string {
    return this.#options.name;
  }

  async push(data: string): Promise<string> {
    const [id] = await this.pushAll([data]);
    return id as string;
  }

  async pushAll(data: readonly string[]): Promise<readonly string[]> {
    this.#assertOpen();
    if (!isList(data) || data.length < 1 || data.length > MAX_BATCH) {
      throw invalidField("data", `must be a list of 1 to ${MAX_BATCH} messages`);
    }
    for (const text of data) checkData(text, this.#options.maxBytes);
    const ids = data.map(() => randomUUID());
    const elements = data.map((text, at) => elementOf(ids[at] as string, text));
    const { name, maxLength, commandTimeoutMs } = this.#options;
    const length = (await scriptOnce(
      this.#node,
      `pushing to queue ${name}`,
      PUSH,
      { keys: [this.#keys.ready], args: [maxLength, ...elements] },
      commandTimeoutMs,
    )) as string | null;
    if (length === null) return ids;
    const text = `queue ${name} holds ${length} messages, and maxLength is ${maxLength}; push later, add consumers, or raise maxLength`;
    throw new CoordinationError("OVERLOADED", text, { metadata: { queue: name } });
  }

  async take(options: TakeOptions = {}): Promise<TakenMessage | undefined> {
    this.#assertOpen();
    const element = await this.#consumer.take(takeTimeoutMs(options), options.signal);
    if (element === undefined) return undefined;
    const message = messageOf(element) as Message;
    return {
      ...message,
      ack: () => this.#consumer.ack(element),
      release: () => this.#consumer.release(element),
    };
  }

  async pop(options: TakeOptions = {}): Promise<Message | undefined> {
    this.#assertOpen();
    const endMs = performance.now() + takeTimeoutMs(options);
    for (;;) {
      const leftMs = Math.max(1, endMs - performance.now());
      const element = await this.#consumer.take(leftMs, options.signal);
      if (element === undefined) return undefined;
      if (await this.#ackOrForget(element)) return messageOf(element);
    }
  }

  async length(): Promise<number> {
    this.#assertOpen();
    const { name, commandTimeoutMs } = this.#options;
    const length = await this.#node.run(
      `asking for the length of queue ${name}`,
      (redis) => redis.call("LLEN", this.#keys.ready),
      { timeoutMs: commandTimeoutMs },
    );
    return Number(length);
  }

  async recover(): Promise<number> {
    this.#assertOpen();
    return this.#recover();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#closed = new CoordinationError("CLOSED", `queue ${this.name} was closed`);
    try {
      await this.#consumer.close(this.#closed);
      await this.#recover();
    } catch (error) {
      // What is left is put back when the heartbeat is over.
      this.#tellFailure(error as CoordinationError);
    }
    await this.#node.close();
  }

  /** Acknowledges what a caller of `pop` will get; when that is not known, the caller does not get it. */
  async #ackOrForget(element: string): Promise<boolean> {
    try {
      return await this.#consumer.ack(element);
    } catch (error) {
      this.#consumer.forget(element);
      const text = `popping from queue ${this.name}: a message may have been removed without being answered`;
      throw new CoordinationError("OUTCOME_UNKNOWN", text, { cause: error });
    }
  }

  async #recover(): Promise<number> {
    const { order, commandTimeoutMs, name } = this.#options;
    const { ready, consumers, lingering, clock, pendingPrefix } = this.#keys;
    let count = 0;
    for (let batch = 0; batch < MAX_RECOVER_BATCHES; batch++) {
      const [moved, hasMore, back] = (await this.#node.script(
        `recovering messages of queue ${name}`,
        RECOVER,
        {
          keys: [ready, consumers, lingering, clock],
          args: [pendingPrefix, takingEnd(order), LINGER_MS, RECOVER_BATCH],
        },
        { timeoutMs: commandTimeoutMs },
      )) as readonly [string, string, string];
      if (back !== "0") this.#emit({ type: "clock-set-back", queue: name, byMs: Number(back) });
      count += Number(moved);
      if (hasMore === "0") break;
    }
    if (count > 0) this.#emit({ type: "messages-recovered", queue: name, count });
    return count;
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw this.#closed;
  }

  #tellFailure(error: CoordinationError): void {
    this.#emit({ type: "command-failed", queue: this.name, command: "recover", error });
  }
}

/** Callers without types may give anything. */
function isList(data: unknown): boolean {
  return Array.isArray(data);
}

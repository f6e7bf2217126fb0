import { createQueue, type Queue, type RedisSource } from "@idmint/coordination";
import { storeUnavailable } from "@idmint/core/server";
import { Candidate } from "./candidate.ts";
import { nameInRedis, type StoreId } from "./store-name.ts";

/** A server that is silent for so long is taken for dead, and what it was delivering goes to another one. */
const CONSUMER_TTL_MS = 10_000;
const MAX_LENGTH = 10_000;
const MAX_BYTES = 65_536;

/** An alarm in this server's hands. */
interface Taken {
  readonly body: string;
  /** It was delivered: nobody gets it any more. Rejects when that is not known; call it again. */
  ack(): Promise<unknown>;
  /** Somebody else is to deliver it. */
  release(): Promise<unknown>;
}

/** The alarms of all servers of a store, in a queue of one Redis, of which one elected server takes them. */
export class RedisAlarmQueue {
  readonly #source: RedisSource;
  readonly #timeoutMs: number;
  readonly #storeId: StoreId;
  #queue: Queue | undefined;
  readonly #candidate: Candidate;

  /** `source` may hold passwords; it is not shown. */
  constructor(source: RedisSource, timeoutMs: number, storeId: StoreId) {
    this.#source = source;
    this.#timeoutMs = timeoutMs;
    this.#storeId = storeId;
    this.#candidate = new Candidate(source, "alarms", storeId);
  }

  /** Rejects before the store was heard: nobody knows whose queue it would be. */
  #known(): Queue {
    const storeId = this.#storeId();
    if (storeId === undefined) throw storeUnavailable("the store was not heard yet");
    this.#queue ??= createQueue({
      redis: this.#source,
      name: nameInRedis("alarms", storeId),
      // A Redis that removes keys may lose alarms. Without the queue more would be lost, and the connection warns of it.
      mayEvict: true,
      maxLength: MAX_LENGTH,
      maxBytes: MAX_BYTES,
      consumerTtlMs: CONSUMER_TTL_MS,
      commandTimeoutMs: this.#timeoutMs,
    });
    return this.#queue;
  }

  /** Whether this server is the one that delivers. Two may believe it for a moment. */
  get isDeliverer(): boolean {
    return this.#candidate.isLeader;
  }

  /** Rejects when it may not be in the queue; before the store was heard it is not. */
  async push(body: string): Promise<void> {
    await this.#known().push(body);
  }

  async take(timeoutMs: number, signal: AbortSignal): Promise<Taken | undefined> {
    const message = await this.#known().take({ timeoutMs, signal });
    if (message === undefined) return undefined;
    const { data: body } = message;
    return { body, ack: () => message.ack(), release: () => message.release() };
  }

  async close(): Promise<void> {
    await Promise.all([this.#queue?.close(), this.#candidate.close()]);
  }
}

import { createQueue, type RedisSource } from "@idmint/coordination";
import { Candidate } from "./candidate.ts";

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

/** The alarms of all servers, in a queue of one Redis, of which one elected server takes them. */
export class RedisAlarmQueue {
  readonly #queue;
  readonly #candidate: Candidate;

  /** `source` may hold passwords; it is not shown. */
  constructor(source: RedisSource, timeoutMs: number) {
    this.#queue = createQueue({
      redis: source,
      name: "alarms",
      // A Redis that removes keys may lose alarms. Without the queue more would be lost, and the connection warns of it.
      mayEvict: true,
      maxLength: MAX_LENGTH,
      maxBytes: MAX_BYTES,
      consumerTtlMs: CONSUMER_TTL_MS,
      commandTimeoutMs: timeoutMs,
    });
    this.#candidate = new Candidate(source, "alarms");
  }

  /** Whether this server is the one that delivers. Two may believe it for a moment. */
  get isDeliverer(): boolean {
    return this.#candidate.isLeader;
  }

  /** Rejects when it may not be in the queue. */
  async push(body: string): Promise<void> {
    await this.#queue.push(body);
  }

  async take(timeoutMs: number, signal: AbortSignal): Promise<Taken | undefined> {
    const message = await this.#queue.take({ timeoutMs, signal });
    if (message === undefined) return undefined;
    const { data: body } = message;
    return { body, ack: () => message.ack(), release: () => message.release() };
  }

  async close(): Promise<void> {
    await Promise.all([this.#queue.close(), this.#candidate.close()]);
  }
}

import { randomBytes } from "node:crypto";
import { sharedRedisUrl } from "@idmint/testkit/redis";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import type { Queue, QueueEvent, QueueOptions, TakenMessage } from "../../src/queue/api.ts";
import { createQueue } from "../../src/queue/queue.ts";
import { type QueueKeys, queueKeys } from "../../src/queue/scripts.ts";

/** A queue of a test's own, which several consumers may share. */
export class TestQueue {
  readonly name: string = `q${randomBytes(6).toString("hex")}`;
  readonly events: QueueEvent[] = [];
  readonly keys: QueueKeys = queueKeys("idmint", this.name);
  readonly url: string;
  /** What the test itself looks and meddles with. */
  readonly redis: Redis;

  constructor(url: string) {
    this.url = url;
    this.redis = new Redis(url);
    this.redis.on("error", () => undefined);
    onTestFinished(() => this.redis.disconnect());
  }

  static async shared(): Promise<TestQueue> {
    return new TestQueue(await sharedRedisUrl());
  }

  open(options: Partial<QueueOptions> = {}): Queue {
    const onEvent = (event: QueueEvent): void => {
      this.events.push(event);
    };
    const queue = createQueue({ redis: this.url, name: this.name, onEvent, ...options });
    onTestFinished(() => queue.close());
    return queue;
  }

  /** The pending lists there are, with their elements, the newest first. */
  async pending(): Promise<readonly string[][]> {
    const keys = await this.redis.keys(`${this.keys.pendingPrefix.replaceAll(/[{}]/g, "?")}*`);
    return Promise.all(keys.map((key) => this.redis.lrange(key, 0, -1)));
  }

  /** Makes all consumers look silent, as if their time had passed. */
  async silenceAll(): Promise<void> {
    for (const id of await this.redis.zrange(this.keys.consumers, 0, "-1")) {
      await this.redis.zadd(this.keys.consumers, 1, id);
    }
  }
}

/** Takes a message that must be there. */
export async function mustTake(queue: Queue): Promise<TakenMessage> {
  const message = await queue.take({ timeoutMs: 5_000 });
  if (message === undefined) throw new Error("no message came");
  return message;
}

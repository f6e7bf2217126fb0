import { CoordinationError } from "../errors.ts";
import { RedisNode } from "../redis/node.ts";
import type { SignalEvent } from "./api.ts";

/** What is listened to. */
export interface Target {
  readonly kind: "channel" | "pattern";
  readonly channel: string;
  /** A key to read whenever listening begins, on the same connection. */
  readonly countKey: string | undefined;
}

/** What is told of what a connection hears. */
export interface SubscriberHandlers {
  /** Listening began, or began again; with the number at the target's key, 0 for none. */
  readonly onUp: (target: Target, count: number) => void;
  /** Nothing is heard any more, until `onUp`. */
  readonly onDown: () => void;
  readonly onMessage: (kind: Target["kind"], target: string, channel: string, text: string) => void;
  readonly emit: (event: SignalEvent) => void;
}

/** How often a silent connection is asked whether it is still there, in milliseconds. */
const PING_EVERY_MS = 5_000;
/** Channels of one command. */
const BATCH = 500;

/** A connection that listens, and goes on listening after a break. */
export class Subscriber {
  readonly #node: RedisNode;
  readonly #handlers: SubscriberHandlers;
  readonly #commandTimeoutMs: number;
  readonly #targets = new Set<Target>();
  readonly #fresh = new Set<Target>();
  readonly #ping: NodeJS.Timeout;
  #wasUp = false;
  #isDown = false;

  constructor(node: RedisNode, commandTimeoutMs: number, handlers: SubscriberHandlers) {
    // ioredis would subscribe again by itself, and nobody would hear of a failure.
    const options = { ...node.redis.options, autoResubscribe: false };
    this.#node = new RedisNode(options, { socketTimeout: undefined, lazyConnect: false });
    this.#handlers = handlers;
    this.#commandTimeoutMs = commandTimeoutMs;
    const { redis } = this.#node;
    redis.on("ready", this.#onReady);
    redis.on("close", this.#onClose);
    redis.on("message", (channel: string, text: string) =>
      handlers.onMessage("channel", channel, channel, text),
    );
    redis.on("pmessage", (pattern: string, channel: string, text: string) =>
      handlers.onMessage("pattern", pattern, channel, text),
    );
    this.#ping = setInterval(() => void this.#askWhetherThere(), PING_EVERY_MS).unref();
  }

  add(target: Target): void {
    this.#targets.add(target);
    if (!this.#node.isReady) return;
    // Those of one turn go together.
    if (this.#fresh.size === 0) queueMicrotask(() => this.#subscribeFresh());
    this.#fresh.add(target);
  }

  remove(target: Target): void {
    this.#targets.delete(target);
    if (!this.#node.isReady) return;
    const command = target.kind === "channel" ? "unsubscribe" : "punsubscribe";
    // When it fails the connection is gone, and the next one subscribes to what is wanted then.
    this.#node.redis[command](target.channel).catch(() => undefined);
  }

  async close(): Promise<void> {
    clearInterval(this.#ping);
    this.#node.redis.off("ready", this.#onReady);
    this.#node.redis.off("close", this.#onClose);
    this.#targets.clear();
    await this.#node.close();
  }

  readonly #onReady = (): void => {
    this.#subscribeAll([...this.#targets]);
    if (this.#isDown) this.#handlers.emit({ type: "listening-resumed", node: this.#node.name });
    this.#isDown = false;
    this.#wasUp = true;
  };

  readonly #onClose = (): void => {
    if (this.#wasUp && !this.#isDown) {
      this.#isDown = true;
      this.#handlers.emit({ type: "listening-lost", node: this.#node.name });
    }
    this.#handlers.onDown();
  };

  #subscribeFresh(): void {
    const fresh = [...this.#fresh].filter((target) => this.#targets.has(target));
    this.#fresh.clear();
    // Without a connection, the next one subscribes to all.
    if (this.#node.isReady) this.#subscribeAll(fresh);
  }

  #subscribeAll(targets: readonly Target[]): void {
    for (const kind of ["channel", "pattern"] as const) {
      const some = targets.filter((target) => target.kind === kind);
      for (let at = 0; at < some.length; at += BATCH) {
        void this.#subscribe(some.slice(at, at + BATCH));
      }
    }
  }

  /** Of one kind. Commands of one connection keep their order, so the count is read after listening began. */
  async #subscribe(targets: readonly Target[]): Promise<void> {
    const channels = targets.map(({ channel }) => channel);
    const keys = targets.flatMap(({ countKey }) => countKey ?? []);
    const command = targets[0]?.kind === "pattern" ? "psubscribe" : "subscribe";
    try {
      const counts = await this.#node.run(
        `listening to ${channels.length} signals`,
        async (redis) => {
          const [, counts] = await Promise.all([
            redis[command](...channels),
            keys.length === 0 ? [] : redis.mget(...keys),
          ]);
          return counts;
        },
        { timeoutMs: this.#commandTimeoutMs },
      );
      for (const target of targets) {
        if (!this.#targets.has(target)) continue;
        const count = target.countKey === undefined ? 0 : counts[keys.indexOf(target.countKey)];
        this.#handlers.onUp(target, Number(count ?? 0));
      }
    } catch (error) {
      this.#fail("subscribe", error);
    }
  }

  async #askWhetherThere(): Promise<void> {
    if (!this.#node.isReady) return;
    try {
      const limits = { timeoutMs: this.#commandTimeoutMs };
      await this.#node.run("a look at a connection", (redis) => redis.ping(), limits);
    } catch (error) {
      this.#fail("ping", error);
    }
  }

  /** A connection on which no answer comes may never break by itself; the next one begins anew. */
  #fail(command: "ping" | "subscribe", error: unknown): void {
    if (!(error instanceof CoordinationError) || error.reason === "CLOSED") return;
    this.#handlers.emit({ type: "command-failed", command, error });
    if (error.reason !== "NODE_REFUSED" && this.#node.isReady) this.#node.redis.disconnect(true);
  }
}

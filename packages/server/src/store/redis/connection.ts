import { bounded, IdmintError } from "@idmint/core";
import { storeUnavailable } from "@idmint/core/server";
import { NOT_A_SENTINEL, plainError } from "@idmint/coordination";
import { Redis, type RedisOptions } from "ioredis";
import { nodeTimers } from "../../timers.ts";
import {
  CLUSTER_TEXT,
  type Fitness,
  fitnessOf,
  misfitText,
  REPLICA_TEXT,
  SENTINEL_TEXT,
  unfitText,
} from "./fitness.ts";
import type { Script } from "./scripts.ts";
import { type RedisPlace, sourceOf } from "./source.ts";

/** Commands that wait for an answer. Each tag has one in flight, and the loops a few. */
const MAX_IN_FLIGHT = 10_000;
const CONNECT_TIMEOUT_MS = 1_000;
const MAX_RECONNECT_MS = 500;

export interface ConnectionConfig extends RedisPlace {
  /** What errors call this Redis; its URL may hold a password. */
  readonly name: string;
  /** Longest wait for one answer, in milliseconds. */
  readonly timeoutMs: number;
  /** Hears of every connection that is made or breaks. */
  readonly onChange?: (change: ConnectionChange) => void;
  /** Hears, after each connection, of what makes this Redis unfit to count in, and how to mend it. */
  readonly onUnfit?: (why: string) => void;
  /** Stands around each script, by its name. */
  readonly around?: <T>(operation: string, work: () => Promise<T>) => Promise<T>;
}

type ConnectionChange =
  | { readonly isConnected: true }
  | {
      readonly isConnected: false;
      /** Empty when nothing was said. */
      readonly why: string;
    };

/**
 * One connection to one Redis.
 *
 * INVARIANT: a script is sent at most once. It carries what was expected of Redis when it was called; sent again after a
 * reconnect, it could meet a Redis that came back older. So nothing is queued while there is no connection, and what
 * was in flight when it broke is not sent again. A call that fails may have been done.
 */
export class Connection {
  readonly #redis: Redis;
  readonly #name: string;
  readonly #timeoutMs: number;
  readonly #around: NonNullable<ConnectionConfig["around"]>;
  #inFlight = 0;
  #fault = "";
  #isClosed = false;
  /** That a listed Sentinel is none. */
  #wrongSentinel: string | undefined;
  /** What the Redis of the present connection says of itself. */
  #fitness: Promise<Fitness | undefined> = Promise.resolve(undefined);

  constructor({ name, timeoutMs, onChange, onUnfit, around, ...place }: ConnectionConfig) {
    this.#name = name;
    this.#timeoutMs = timeoutMs;
    this.#around = around ?? ((_operation, work) => work());
    const options: RedisOptions & { replyMapping: "legacy" } = {
      replyMapping: "legacy",
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      // Integers past 2^53 would come out wrong as numbers.
      stringNumbers: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      // With commands waiting and nothing coming, the connection is dead: a new one may reach the new master.
      socketTimeout: Math.max(2_000, 2 * timeoutMs),
      retryStrategy: (attempt) => Math.min(MAX_RECONNECT_MS, 25 * attempt),
      // A master that became a replica: the name may lead to the new master now. Nothing is sent again.
      reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 1 : false),
    };
    const source = sourceOf(place);
    // What stands in the URL wins over the options, an empty password too.
    this.#redis =
      typeof source === "string"
        ? new Redis(source, options)
        : new Redis({ ...source, ...options });
    this.#redis.on("error", (error: unknown) => {
      this.#fault = withWayOut(messageOf(error));
      if (codeOf(error) === NOT_A_SENTINEL) this.#wrongSentinel = this.#fault;
    });
    this.#redis.on("ready", () => {
      this.#fault = "";
      onChange?.({ isConnected: true });
      this.#fitness = this.#look(onUnfit);
    });
    this.#redis.on("close", () => {
      if (!this.#isClosed) onChange?.({ isConnected: false, why: this.#fault });
    });
  }

  get isReady(): boolean {
    return this.#redis.status === "ready";
  }

  /** Resolves when it is connected, or after `boundMs` without. */
  async connected(boundMs: number): Promise<boolean> {
    if (this.isReady) return true;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#redis.once("ready", resolve);
    await bounded(promise, boundMs, nodeTimers, () => undefined);
    this.#redis.off("ready", resolve);
    return this.isReady;
  }

  /** Why the URL can never lead to a Redis to count in, and the way out; undefined: it may, as far as is known. */
  async misfit(): Promise<string | undefined> {
    const fitness = await this.#fitness;
    return this.#wrongSentinel ?? (fitness === undefined ? undefined : misfitText(fitness));
  }

  /** Runs a script. NOSCRIPT means that nothing was run, so sending the whole script then repeats nothing. */
  async script(
    { name, lua, sha }: Script,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const send = async (redis: Redis): Promise<unknown> => {
      try {
        return await redis.evalsha(sha, keys.length, ...keys, ...args);
      } catch (error) {
        if (!messageOf(error).startsWith("NOSCRIPT")) throw error;
        return redis.eval(lua, keys.length, ...keys, ...args);
      }
    };
    return this.#around(name, () => this.run(send));
  }

  /** Sends what `send` sends, once. Rejects with STORE_UNAVAILABLE: then it may have been done. */
  async run<T>(send: (redis: Redis) => Promise<T>): Promise<T> {
    if (!this.isReady) {
      const why = this.#fault === "" ? "" : `: ${this.#fault}`;
      throw storeUnavailable(`Redis "${this.#name}" is not connected${why}`);
    }
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      throw storeUnavailable(`Redis "${this.#name}" owes ${MAX_IN_FLIGHT} answers already`);
    }
    try {
      return await bounded(this.#count(send), this.#timeoutMs, nodeTimers, () => {
        throw storeUnavailable(`Redis "${this.#name}" did not answer within ${this.#timeoutMs} ms`);
      });
    } catch (error) {
      if (error instanceof IdmintError) throw error;
      throw this.#failure(messageOf(error));
    }
  }

  /** Not the error itself: ioredis hangs the arguments on it, and those of AUTH are the password. */
  #failure(message: string): IdmintError {
    const subject = `Redis "${this.#name}"`;
    if (/^(?:CROSSSLOT|MOVED|ASK|CLUSTERDOWN) /.test(message)) {
      return new IdmintError("NOT_CONFIGURED", `${subject}: ${CLUSTER_TEXT}`);
    }
    if (/^ERR unknown command .?eval/i.test(message)) {
      return new IdmintError("NOT_CONFIGURED", `${subject}: ${SENTINEL_TEXT}`);
    }
    // A fail-over may be under way, so it is worth another try.
    if (message.startsWith("READONLY ")) return storeUnavailable(`${subject}: ${REPLICA_TEXT}`);
    return storeUnavailable(`${subject}: ${message}`);
  }

  async #look(onUnfit: ConnectionConfig["onUnfit"]): Promise<Fitness | undefined> {
    try {
      const fitness = await this.run(async (redis) => fitnessOf(await redis.info()));
      const why = unfitText(fitness);
      if (why !== undefined && !this.#isClosed) onUnfit?.(why);
      return fitness;
    } catch {
      // It may not be allowed; then whatever is wrong shows when something is asked of it.
      return undefined;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#redis.disconnect();
  }

  /** In flight until Redis answers or the connection breaks, not until the caller stops waiting. */
  async #count<T>(send: (redis: Redis) => Promise<T>): Promise<T> {
    this.#inFlight++;
    try {
      return await send(this.#redis);
    } finally {
      this.#inFlight--;
    }
  }
}

/** What Redis says of a password is about HELLO, of which an operator never heard. */
function withWayOut(message: string): string {
  if (message.includes("given for Sentinels")) {
    return `${message}; check IDMINT_REDIS_SENTINEL_USER and IDMINT_REDIS_SENTINEL_PASSWORD`;
  }
  const way = "check the user in its URL, and the password in IDMINT_REDIS_PASSWORD";
  if (message.startsWith("NOAUTH")) return `it wants a password, and none is configured; ${way}`;
  return message.startsWith("WRONGPASS") ? `${message}; ${way}` : message;
}

function messageOf(error: unknown): string {
  const { message } = plainError(error);
  return message === "" && error instanceof Error ? error.name : message;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}

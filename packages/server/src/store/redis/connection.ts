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
  refusalText,
  REPLICA_TEXT,
  RIGHTS,
  SENTINEL_TEXT,
  unfitText,
} from "./fitness.ts";
import { keyOf } from "./keys.ts";
import { PROBE, type Script } from "./scripts.ts";
import { type RedisPlace, sourceOf } from "./source.ts";

/** Commands that wait for an answer. Each tag has one in flight, and the loops a few. */
const MAX_IN_FLIGHT = 10_000;
const CONNECT_TIMEOUT_MS = 1_000;
const MAX_RECONNECT_MS = 500;
/** Between looks at a Redis that refuses. */
const LOOK_MS = 1_000;

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
  /** Why nothing is counted though it answers, as the last look has it; empty: nothing is known to be in the way. */
  #refusal = "";
  #cancelLook: (() => void) | undefined;
  readonly #onUnfit: ConnectionConfig["onUnfit"];
  /** That a listed Sentinel is none. */
  #wrongSentinel: string | undefined;
  /** What the Redis of the present connection says of itself. */
  #fitness: Promise<Fitness | undefined> = Promise.resolve(undefined);

  constructor({ name, timeoutMs, onChange, onUnfit, around, ...place }: ConnectionConfig) {
    this.#name = name;
    this.#timeoutMs = timeoutMs;
    this.#onUnfit = onUnfit;
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
      this.#fitness = this.#look();
    });
    this.#redis.on("close", () => {
      this.#refusal = "";
      if (!this.#isClosed) onChange?.({ isConnected: false, why: this.#fault });
    });
  }

  get isReady(): boolean {
    return this.#redis.status === "ready";
  }

  get refusal(): string {
    return this.#refusal;
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

  /** Runs a script. */
  async script(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#around(script.name, () => this.run((redis) => runOn(redis, script, keys, args)));
  }

  /** Why this Redis runs no scripts, in words; empty: it does. Rejects when it does not answer. */
  async probe(): Promise<string> {
    return this.run(async (redis) => {
      try {
        await runOn(redis, PROBE, [keyOf("probe")], []);
        return "";
      } catch (error) {
        if (!isAnswer(error)) throw error;
        return refusalText(messageOf(error));
      }
    });
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
    if (RIGHTS.test(message) || message.startsWith("MISCONF ")) this.#lookSoon();
    return storeUnavailable(`${subject}: ${message}`);
  }

  async #look(): Promise<Fitness | undefined> {
    let fitness: Fitness | undefined;
    try {
      fitness = await this.run(async (redis) => fitnessOf(await redis.info()));
    } catch {
      // It may not be allowed; what is wrong then shows by the script.
    }
    const why = fitness === undefined ? undefined : unfitText(fitness);
    if (why !== undefined) this.#tell(why);
    const { isCluster = false, isReplica = false, isSentinel = false } = fitness ?? {};
    if (!isCluster && !isReplica && !isSentinel) await this.#lookForRefusal();
    return fitness;
  }

  /** Told once, and again every second whether it is still so. */
  async #lookForRefusal(): Promise<void> {
    const before = this.#refusal;
    const found = await this.probe().catch(() => "");
    this.#refusal = this.isReady ? found : "";
    if (this.#refusal === "") return;
    if (this.#refusal !== before) this.#tell(this.#refusal);
    this.#lookSoon();
  }

  #lookSoon(): void {
    if (this.#isClosed || this.#cancelLook !== undefined) return;
    this.#cancelLook = nodeTimers.after(LOOK_MS, () => {
      this.#cancelLook = undefined;
      void this.#lookForRefusal();
    });
  }

  #tell(why: string): void {
    if (!this.#isClosed) this.#onUnfit?.(why);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelLook?.();
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

/** NOSCRIPT means that nothing was run, so sending the whole script then repeats nothing. */
async function runOn(
  redis: Redis,
  { lua, sha }: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!messageOf(error).startsWith("NOSCRIPT")) throw error;
    return redis.eval(lua, keys.length, ...keys, ...args);
  }
}

/** Whether Redis said it, and not the driver or the network. */
function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError";
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

// One connection to one Redis, with the rules that every part of this package needs.
import { Redis, type RedisOptions } from "ioredis";
import { cancelled, CoordinationError, invalidField } from "../errors.ts";
import { bounded, type CallLimits } from "./bounded.ts";
import { plainError } from "./plain-error.ts";
import { runScript, type Script } from "./script.ts";
import { namesSentinels, sentinelOptions } from "./sentinel-url.ts";

/**
 * A Redis server: its URL (`redis://` or `rediss://`, with Sentinels `redis+sentinel://`), options of ioredis, or a
 * connection of ioredis that stays its owner's. A connection must have `enableOfflineQueue` and
 * `autoResendUnfulfilledCommands` off.
 */
export type RedisSource = string | RedisOptions | Redis;

/** Commands of one connection that wait for an answer. */
const MAX_IN_FLIGHT = 1_000;
const CONNECT_TIMEOUT_MS = 2_000;
/** With commands waiting and nothing coming for so long, the connection is given up for dead. */
const SILENCE_TIMEOUT_MS = 5_000;
const MAX_RECONNECT_MS = 1_000;

/**
 * A command is sent at most once. A script carries what was expected of Redis when it was called; sent again after a
 * reconnect, it might meet a Redis that restarted or went back. So nothing is queued while there is no connection, and
 * nothing in flight is sent again.
 */
const ONCE = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  // Integers past 2^53 would come out wrong as numbers.
  stringNumbers: true,
  replyMapping: "legacy",
} as const;

/** Answers of a Redis that may work again by itself; any other error answer is NODE_REFUSED. */
const PASSING =
  /^(?:BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|NOREPLICAS|NOSCRIPT|READONLY|TRYAGAIN)\b/;

export class RedisNode implements AsyncDisposable {
  /** host:port, for errors and events. */
  readonly name: string;
  /** For subscriptions and blocking commands; all others go through `run` and `script`. */
  readonly redis: Redis;
  readonly #isOwn: boolean;
  readonly #waiting = new Set<() => void>();
  readonly #watching = new Set<() => void>();
  readonly #mayEvict: boolean;
  /** The policy by which the Redis of the present connection removes keys, once it was looked at. */
  #evictsBy: Promise<string | undefined> | undefined;
  #inFlight = 0;
  #fault: Error | undefined;
  #isClosed = false;

  /** With `mayEvict: false` a Redis that may remove keys when its memory is full is asked for nothing. */
  constructor(
    source: RedisSource,
    override: Partial<RedisOptions> = {},
    { mayEvict = true }: { readonly mayEvict?: boolean } = {},
  ) {
    this.#mayEvict = mayEvict;
    this.#isOwn = !(source instanceof Redis);
    this.redis = source instanceof Redis ? checked(source) : connect(source, override);
    this.name = nameOf(this.redis.options);
    this.redis.on("error", this.#onError);
    this.redis.on("ready", this.#onReady);
    this.redis.on("close", this.#onClose);
    this.redis.on("end", this.#wake);
  }

  /** Another connection to the same server, for subscriptions or blocking commands: no silence ends it. */
  duplicate(): RedisNode {
    const options = { ...this.redis.options, ...ONCE };
    return new RedisNode(options, { socketTimeout: undefined, lazyConnect: false });
  }

  /** Whether commands can be sent now. */
  get isReady(): boolean {
    return this.redis.status === "ready";
  }

  /**
   * Sends what `send` sends, once. Fails with NODE_UNAVAILABLE when there is no connection, none comes within the
   * time-out, the connection breaks, or the answer is late: then the command may have been done. NODE_REFUSED when Redis
   * answered with an error, OVERLOADED when too many commands wait.
   */
  async run<T>(
    what: string,
    send: (redis: Redis) => Promise<T>,
    { timeoutMs, signal }: CallLimits,
  ): Promise<T> {
    if (this.#isClosed) throw new CoordinationError("CLOSED", `${what}: the connection is closed`);
    if (signal?.aborted === true) throw cancelled(what, signal);
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      const text = `${MAX_IN_FLIGHT} commands wait for ${this.name} already; call less at once`;
      throw new CoordinationError("OVERLOADED", text);
    }
    this.#inFlight++;
    const start = performance.now();
    try {
      if (!this.isReady) await this.#ready(what, { timeoutMs, signal });
      if (!this.#mayEvict) await this.#assertKeeps(what, { timeoutMs, signal });
    } catch (error) {
      this.#inFlight--;
      throw error;
    }
    const leftMs = Math.max(1, timeoutMs - (performance.now() - start));
    // Counted until Redis answers or the connection is gone, not until the caller stops to wait.
    const work = send(this.redis).finally(() => this.#inFlight--);
    try {
      return await bounded(what, work, { timeoutMs: leftMs, signal });
    } catch (error) {
      throw this.#failure(what, error);
    }
  }

  /** Runs a script, by the rules of `run`. */
  async script(
    what: string,
    script: Script,
    values: { readonly keys: readonly string[]; readonly args: readonly (string | number)[] },
    limits: CallLimits,
  ): Promise<unknown> {
    const { keys, args } = values;
    const end = performance.now() + limits.timeoutMs;
    const isWanted = (): boolean =>
      performance.now() < end && limits.signal?.aborted !== true && !this.#isClosed;
    return this.run(what, (redis) => runScript(redis, script, keys, args, isWanted), limits);
  }

  /** Calls `listener` whenever the connection breaks; the answer ends it. */
  onDisconnect(listener: () => void): () => void {
    // One listener of ioredis for all of them: many locks may be held over one connection.
    if (this.#watching.size === 0) this.redis.on("close", this.#tellAll);
    this.#watching.add(listener);
    return () => {
      this.#watching.delete(listener);
      if (this.#watching.size === 0) this.redis.off("close", this.#tellAll);
    };
  }

  /** Closes the connection, unless it is its maker's. Commands in flight fail. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#wake();
    this.redis.off("ready", this.#onReady);
    this.redis.off("close", this.#onClose);
    this.redis.off("end", this.#wake);
    if (this.#isOwn) this.redis.disconnect();
    // The listener of errors stays on a connection of our own: a late one would end the process.
    else this.redis.off("error", this.#onError);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Waits while a connection is being made; does not wait for the next try after one that failed. */
  async #ready(what: string, limits: CallLimits): Promise<void> {
    const { status } = this.redis;
    if (status === "connecting" || status === "connect") {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      try {
        await bounded(`connecting to ${this.name}`, promise, limits);
      } finally {
        this.#waiting.delete(resolve);
      }
    } else if (status === "wait") {
      await bounded(`connecting to ${this.name}`, this.redis.connect(), limits).catch(
        (error: unknown) => {
          throw this.#failure(what, error);
        },
      );
    }
    if (this.isReady) return;
    const why = this.#fault === undefined ? "" : ` (${this.#fault.message})`;
    const text = `${what}: there is no connection to ${this.name}${why}`;
    throw new CoordinationError("NODE_UNAVAILABLE", text, { cause: this.#fault });
  }

  /** Refuses a Redis that may remove keys. It is looked at once a connection. */
  async #assertKeeps(what: string, limits: CallLimits): Promise<void> {
    this.#evictsBy ??= evictionPolicy(this.redis);
    const policy = await bounded(`looking at ${this.name}`, this.#evictsBy, limits);
    if (policy === undefined) return;
    const text = `${what} at ${this.name}: it may remove keys when its memory is full, by maxmemory-policy ${policy}; set maxmemory-policy noeviction, or the option mayEvict`;
    throw new CoordinationError("NODE_REFUSED", text);
  }

  #failure(what: string, error: unknown): CoordinationError {
    if (error instanceof CoordinationError) return error;
    const cause = plainError(error);
    const isAnswer = error instanceof Error && error.name === "ReplyError";
    const isPassing = !isAnswer || PASSING.test(cause.message);
    const reason = isPassing ? "NODE_UNAVAILABLE" : "NODE_REFUSED";
    return new CoordinationError(reason, `${what} at ${this.name}: ${cause.message}`, { cause });
  }

  readonly #onError = (error: unknown): void => {
    this.#fault = plainError(error);
  };

  readonly #onReady = (): void => {
    this.#fault = undefined;
    this.#wake();
  };

  readonly #onClose = (): void => {
    this.#evictsBy = undefined;
    this.#wake();
  };

  readonly #tellAll = (): void => {
    for (const tell of this.#watching) tell();
  };

  readonly #wake = (): void => {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  };
}

function connect(source: string | RedisOptions, override: Partial<RedisOptions>): Redis {
  if (typeof source === "string" && namesSentinels(source)) {
    return connect(sentinelOptions(source), override);
  }
  const options: RedisOptions & { replyMapping: "legacy" } = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    retryStrategy: (attempt) =>
      Math.min(MAX_RECONNECT_MS, 25 * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random() / 2),
    ...(typeof source === "string" ? {} : source),
    ...override,
    ...ONCE,
  };
  if (typeof source !== "string") return new Redis(options);
  // Neither the text nor URL's own error, which repeats it: it may hold a password.
  if (!URL.canParse(source) || !/^rediss?:$/.test(new URL(source).protocol)) {
    throw invalidField(
      "url",
      "must be redis://host:port, rediss://host:port or redis+sentinel://host:port,host:port/master-name",
    );
  }
  return new Redis(source, options);
}

/** Undefined: it removes no keys, or does not say. */
async function evictionPolicy(redis: Redis): Promise<string | undefined> {
  try {
    const info = await redis.info("memory");
    const limit = /^maxmemory:(\d+)/m.exec(info)?.[1] ?? "0";
    const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? "noeviction";
    return limit === "0" || policy === "noeviction" ? undefined : policy;
  } catch {
    // It may not be allowed to ask.
    return undefined;
  }
}

function checked(redis: Redis): Redis {
  for (const name of ["enableOfflineQueue", "autoResendUnfulfilledCommands"] as const) {
    if (redis.options[name] === false) continue;
    const text = "must be false: a command that is sent later or again carries an old expectation";
    throw invalidField(`redis.options.${name}`, text);
  }
  return redis;
}

function nameOf({ path, host, port, sentinels, name }: RedisOptions): string {
  if (sentinels !== undefined && sentinels !== null) return `sentinel ${name ?? ""}`;
  return path ?? `${host ?? "localhost"}:${port ?? 6379}`;
}

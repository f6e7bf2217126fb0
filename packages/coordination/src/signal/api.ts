import type { CoordinationError } from "../errors.ts";
import type { RedisSource } from "../redis/node.ts";

/** Options of `createSignals`. Unknown names and values out of range are INVALID_ARGUMENT; nothing is clamped. */
export interface SignalsOptions {
  /**
   * The Redis that signals go through. What is passed as a connection stays its owner's; listening is done on
   * connections of its own. Broadcasts reach all of its databases, signals for one only its own.
   */
  readonly redis: RedisSource;
  /**
   * A replica of `redis` to listen on as well: broadcasts come through whichever of them is there, each once. Default:
   * none.
   */
  readonly replica?: RedisSource;
  /** What all keys and channels begin with. Default: `idmint`. */
  readonly prefix?: string;
  /**
   * Whether broadcasts are counted in a key per name, so that who was away when one was sent comes to know it: see `missed`.
   * Senders and listeners must agree. Default: false.
   */
  readonly isCounted?: boolean;
  /** Longest data, in bytes of UTF-8. Default: 16,384. Range: 0 … 1,048,576. */
  readonly maxBytes?: number;
  /** Most listeners and waiting calls at once; more are OVERLOADED. Default: 10,000. Range: 1 … 1,000,000. */
  readonly maxWaiters?: number;
  /** Most signals that one listener keeps for the next call; then the oldest is missed. Default: 1,000. Range: 1 … 100,000. */
  readonly maxBuffered?: number;
  /** With a replica: so many signals are remembered to know the second copy. Default: 10,000. Range: 1 … 1,000,000. */
  readonly maxRemembered?: number;
  /** Most signals for one that are kept when nobody waits; more are OVERLOADED. Default: 1,000. Range: 0 … 1,000,000. */
  readonly maxKept?: number;
  /**
   * How long a process may be silent before a signal that was meant for it goes to another one, in milliseconds. Default:
   * 5,000. Range: 300 … 60,000.
   */
  readonly leaseMs?: number;
  /** How long Redis may take to answer, in milliseconds. Default: 2,000. Range: 10 … 60,000. */
  readonly commandTimeoutMs?: number;
  /** Told what happens inside, for logs and metrics. It must be quick; what it throws is ignored. Default: none. */
  readonly onEvent?: (event: SignalEvent) => void;
}

/** Options of every call that waits. */
export interface WaitOptions {
  /** How long to wait, in milliseconds. Default: 5,000. Range: 1 … 86,400,000. */
  readonly timeoutMs?: number;
  /** Ends the wait with CALL_CANCELLED when it is aborted. Default: none. */
  readonly signal?: AbortSignal;
}

/**
 * What is waited for: a name; the next of several names; all of several names (at most 1,000); or every name that matches a
 * pattern of Redis (`*`, `?`, `[a-z]`).
 */
export type Wanted =
  | string
  | { readonly anyOf: readonly string[] }
  | { readonly allOf: readonly string[] }
  | { readonly pattern: string };

/** A signal as it was sent. */
export interface Signal {
  readonly name: string;
  readonly data: string;
  /** Unique. */
  readonly id: string;
}

/** Why a wait ended. */
export interface Wakeup {
  /**
   * The signal; with `allOf` one for each name, the newest, in the order of the names. With something missed: what had
   * come of them before.
   */
  readonly signals: readonly Signal[];
  /**
   * Names of which a signal may have been missed, mostly empty: the connection was away and the count has changed
   * meanwhile, or too many signals came before anybody asked. Look at what the signals tell of, instead of waiting for them.
   */
  readonly missed: readonly string[];
}

/**
 * Hears broadcasts from the moment `listen` answers, and keeps them for whoever asks: listen, look at the state, then wait,
 * and nothing in between is missed. Close it.
 */
export interface Listener extends AsyncDisposable {
  /** The next wake-up. DEADLINE_EXCEEDED when none came in time, NODE_UNAVAILABLE when nothing was listening then. */
  wait(options?: WaitOptions): Promise<Wakeup>;
  /** What is there already; undefined when nothing is. Never waits. */
  tryWait(): Wakeup | undefined;
  /** Stops to hear; calls that wait are refused with CLOSED. */
  close(): void;
}

/**
 * Signals between processes, through Redis.
 *
 * A **broadcast** reaches everybody who listens at that moment, at most once. It is not stored: who is away, misses it. After
 * a broken connection listening goes on by itself; with `isCounted` a wait ends with `missed` when something was sent
 * meanwhile, without it only `onEvent` tells of the break.
 *
 * A signal for **one** is taken by at most one waiter, never by two, as long as Redis keeps what it acknowledged. When nobody
 * waits, it is kept for the next. It goes on to another waiter when the chosen one is gone, or does not take it within
 * `leaseMs`; once taken it is the waiter's alone, and lost when that one dies. What must be worked off belongs into a queue.
 */
export interface Signals extends AsyncDisposable {
  /**
   * Sends to all who listen, and answers how many connections of `redis` got it (those of replicas are not counted).
   * OUTCOME_UNKNOWN when no answer came: it may have been sent.
   */
  broadcast(name: string, data?: string): Promise<number>;
  /** Begins to hear broadcasts; NODE_UNAVAILABLE when Redis could not be reached within the time-out. */
  listen(wanted: Wanted, options?: WaitOptions): Promise<Listener>;
  /** Listens for one wake-up. What was sent before is not heard: see `listen`. Rejects as `Listener.wait`. */
  wait(wanted: Wanted, options?: WaitOptions): Promise<Wakeup>;
  /** As `wait`, and undefined when nothing came in time. */
  tryWait(wanted: Wanted, options?: WaitOptions): Promise<Wakeup | undefined>;

  /**
   * Sends to one waiter. `given`: one was chosen; `kept`: nobody waits, the next one gets it. OVERLOADED when `maxKept` are
   * kept already; OUTCOME_UNKNOWN when no answer came: it may have been sent.
   */
  signalOne(name: string, data?: string): Promise<"given" | "kept">;
  /**
   * Waits for a signal for one. DEADLINE_EXCEEDED when none came in time; NODE_UNAVAILABLE when Redis could not be asked at
   * the end: a signal given at that moment goes to another one, and is lost only if the answer with it was. A signal for an
   * aborted wait goes to another one.
   */
  waitOne(name: string, options?: WaitOptions): Promise<Signal>;
  /** As `waitOne`, and undefined when none came in time. */
  tryWaitOne(name: string, options?: WaitOptions): Promise<Signal | undefined>;

  /** Ends all listening and waiting, with CLOSED, and closes its own connections. Never rejects. */
  close(): Promise<void>;
  /** The same as `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What signals tell `onEvent`: for logs and metrics, never needed for correct use. */
export type SignalEvent =
  /** A connection that listens broke; another one is made. */
  | { readonly type: "listening-lost"; readonly node: string }
  /** Listening goes on after a break. */
  | { readonly type: "listening-resumed"; readonly node: string }
  /** A broadcast may have been missed, and who waits for it is told. */
  | { readonly type: "signals-missed"; readonly name: string }
  /** Something came that no signals had sent, or too long; it is ignored. */
  | { readonly type: "foreign-ignored"; readonly channel: string }
  /**
   * Redis' clock was set back by so much at least, or a Redis with a slower one was promoted. Signals for one of a name
   * wait no longer for that.
   */
  | { readonly type: "clock-set-back"; readonly name: string; readonly byMs: number }
  /** Redis could not be asked; it is tried again. */
  | {
      readonly type: "command-failed";
      readonly command: "join" | "leave" | "ping" | "renew" | "subscribe";
      readonly error: CoordinationError;
    };

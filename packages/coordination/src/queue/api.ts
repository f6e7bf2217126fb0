import type { CoordinationError } from "../errors.ts";
import type { RedisSource } from "../redis/node.ts";

/** Which message comes next: `fifo`, the one that has been there longest; `filo`, the newest. */
export type QueueOrder = "fifo" | "filo";

/** Options of `createQueue`. Unknown names and values out of range are INVALID_ARGUMENT; nothing is clamped. */
export interface QueueOptions {
  /**
   * Where the queue is. What is passed as a connection stays its owner's and is never blocked; waiting is done on a
   * connection of the queue's own.
   */
  readonly redis: RedisSource;
  /** The queue's name: all who use the same name and `prefix` share it. */
  readonly name: string;
  /** What all keys in Redis begin with. Default: `idmint`. */
  readonly prefix?: string;
  /** Which message `take` and `pop` answer. All consumers of one queue should agree. Default: `fifo`. */
  readonly order?: QueueOrder;
  /**
   * Most messages that may wait in the queue when this one pushes; more are refused with OVERLOADED. What consumers put
   * back is not counted against it. Default: 100,000. Range: 1 … 10,000,000.
   */
  readonly maxLength?: number;
  /** Longest message, in bytes of UTF-8. Default: 65,536. Range: 1 … 16,777,216. */
  readonly maxBytes?: number;
  /** Most messages taken and not yet acknowledged, with the calls that wait. Default: 1,000. Range: 1 … 100,000. */
  readonly maxHeld?: number;
  /**
   * How long a consumer may be silent before its messages go to others, in milliseconds; it is heard each third of it. A
   * process that is paused, or whose event loop is blocked, for longer loses what it held. Default: 30,000. Range: 1,000 …
   * 3,600,000.
   */
  readonly consumerTtlMs?: number;
  /** How long Redis may take to answer, in milliseconds. Default: 2,000. Range: 10 … 60,000. */
  readonly commandTimeoutMs?: number;
  /**
   * Whether to use a Redis that removes keys when its memory is full (`maxmemory-policy` other than noeviction): messages
   * may vanish with them. Default: false, it is refused with NODE_REFUSED.
   */
  readonly mayEvict?: boolean;
  /** Told what happens inside, for logs and metrics. It must be quick; what it throws is ignored. Default: none. */
  readonly onEvent?: (event: QueueEvent) => void;
}

/** Options of `take` and `pop`. */
export interface TakeOptions {
  /**
   * How long to wait for a message, in milliseconds; up to `commandTimeoutMs` longer when Redis does not answer. Default:
   * 5,000. Range: 1 … 3,600,000.
   */
  readonly timeoutMs?: number;
  /** Ends the wait with CALL_CANCELLED when it is aborted; a message that comes for it goes back. Default: none. */
  readonly signal?: AbortSignal;
}

/** What was pushed. */
export interface Message {
  /** Unique; the same at every delivery. What must not happen twice is done once per id. */
  readonly id: string;
  readonly data: string;
  /**
   * How often it was delivered, this time included: 1, and one more for each time it was released, or taken from a
   * consumer that was silent. Deliveries that `close` or a lost answer cut short count too.
   */
  readonly deliveries: number;
}

/** A message in somebody's hands: acknowledge or release it. */
export interface TakenMessage extends Message {
  /**
   * Removes it for good. True: it is gone, and nobody gets it again. False: it was not this consumer's any more (it was
   * silent for too long, or `ack` or `release` was called before), so somebody else may get it, or has done it. Rejects
   * with NODE_UNAVAILABLE when the outcome is not known: call it again.
   */
  ack(): Promise<boolean>;
  /**
   * Puts it back as the next one to be taken. False, like that of `ack`: it was not this consumer's any more. Rejects with
   * NODE_UNAVAILABLE when the outcome is not known; calling it again is safe.
   */
  release(): Promise<boolean>;
}

/**
 * A queue in a Redis list. A message is delivered **at least once**: it is never lost while Redis keeps what it
 * acknowledged, and it may come twice, since a consumer may die between doing the work and acknowledging it, or be silent
 * for so long that another one is asked. Exactly once is not promised: let the work be repeatable, or remember `id`.
 */
export interface Queue extends AsyncDisposable {
  readonly name: string;

  /**
   * Adds a message and answers its id. OVERLOADED when the queue is full; OUTCOME_UNKNOWN when no answer came: it may be in
   * the queue, and pushing it again may make two; NODE_UNAVAILABLE when it certainly is not.
   */
  push(data: string): Promise<string>;
  /** Adds 1 … 1,000 messages, all or none, in this order; otherwise as `push`. */
  pushAll(data: readonly string[]): Promise<readonly string[]>;

  /**
   * Waits for a message and takes it: it moves, in one step, to the list of what this consumer holds, until it is
   * acknowledged or released. Undefined when none came in time. When Redis cannot be asked, it goes on trying until the
   * time is over, and rejects with NODE_UNAVAILABLE then; OVERLOADED when `maxHeld` are held.
   */
  take(options?: TakeOptions): Promise<TakenMessage | undefined>;
  /**
   * Waits for a message and removes it before it is answered: delivered **at most once**, so it is lost when the caller dies
   * with it. Rejects as `take`, and with OUTCOME_UNKNOWN when it may have been removed without being answered.
   */
  pop(options?: TakeOptions): Promise<Message | undefined>;

  /** How many messages wait in the queue; those that consumers hold are not counted. */
  length(): Promise<number>;
  /**
   * Puts back what silent consumers held, and answers how many messages. Every consumer does it by itself, each third of
   * `consumerTtlMs`; call it where only producers run. Any number of callers may do it at once.
   */
  recover(): Promise<number>;

  /**
   * Puts back what was taken and not acknowledged, and closes the queue's own connections. Calls that wait, and all later
   * ones but `ack` and `release` on a connection that is not the queue's own, are refused with CLOSED. Never rejects; takes
   * at most about 1 s and twice `commandTimeoutMs`.
   */
  close(): Promise<void>;
  /** The same as `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a queue tells `onEvent`: for logs and metrics, never needed for correct use. */
export type QueueEvent =
  /** Messages of silent consumers went back to the queue. */
  | { readonly type: "messages-recovered"; readonly queue: string; readonly count: number }
  /** This consumer was silent for too long: what it held may be with others. */
  | { readonly type: "consumer-expired"; readonly queue: string; readonly consumer: string }
  /** Something stood in the queue that no queue had written; it is in the list `…:foreign` now. */
  | { readonly type: "foreign-set-aside"; readonly queue: string; readonly element: string }
  /** Messages were found that Redis had given to this consumer in answers that never came. */
  | { readonly type: "messages-found"; readonly queue: string; readonly count: number }
  /**
   * Redis' clock was set back by so much at least, or a Redis with a slower one was promoted. Silent consumers are not
   * waited for any longer for that.
   */
  | { readonly type: "clock-set-back"; readonly queue: string; readonly byMs: number }
  /** Redis could not be asked; it is tried again. */
  | {
      readonly type: "command-failed";
      readonly queue: string;
      readonly command: "heartbeat" | "recover" | "release" | "take";
      readonly error: CoordinationError;
    };

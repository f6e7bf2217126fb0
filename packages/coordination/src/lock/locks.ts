import { randomUUID } from "node:crypto";
import { checkInteger, checkName } from "../checks.ts";
import { CoordinationError } from "../errors.ts";
import { RedisNode } from "../redis/node.ts";
import { elapsedMs, nodeRuntime, pause, type Runtime } from "../time.ts";
import { takeOnce } from "./acquire.ts";
import { LockGrant } from "./grant.ts";
import { type LockNode, redisLockNode } from "./lock-node.ts";
import { type LocksOptions, type LockSettings, resolveOptions } from "./options.ts";

/** How long to try. */
export interface AcquireOptions {
  /** Longest wait, in milliseconds, 0 (one try) to 86,400,000. Default: 10,000. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

/** Locks on one Redis, or on a majority of several (Redlock). */
export interface Locks extends AsyncDisposable {
  /** The lock of a name; nothing is asked of Redis. */
  readonly lock: (name: string) => Lock;
  /** Closes the connections that were made here. Locks that are held stay until their time is over. */
  readonly close: () => Promise<void>;
}

/**
 * Makes locks. Share it: it holds one connection to each node.
 *
 * Of several nodes without a `tokenSource` the order of tokens is not promised: one that loses its data counts on from its
 * own clock, and tokens may go back by as much as the nodes' clocks differ.
 */
export function createLocks(options: LocksOptions): Locks {
  const settings = resolveOptions(options);
  const connections = settings.sources.map((source) => new RedisNode(source, {}, settings));
  const nodes = connections.map((node) =>
    redisLockNode(node, settings.prefix, (lock, byMs) =>
      settings.onEvent({ type: "clock-set-back", lock, node: node.name, byMs }),
    ),
  );
  const close = async (): Promise<void> => {
    await Promise.all(connections.map((node) => node.close()));
  };
  return {
    lock: (name) => new Lock(checkName("name", name), nodes, settings, nodeRuntime),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A lock by its name. */
export class Lock {
  readonly name: string;
  readonly #nodes: readonly LockNode[];
  readonly #settings: LockSettings;
  readonly #runtime: Runtime;

  constructor(name: string, nodes: readonly LockNode[], settings: LockSettings, runtime: Runtime) {
    this.name = name;
    this.#nodes = nodes;
    this.#settings = settings;
    this.#runtime = runtime;
  }

  /**
   * Takes the lock, trying again after random pauses. Fails with LOCK_HELD when somebody else has it all the time,
   * NO_MAJORITY when too few nodes answer (its `nodes` say why), CALL_CANCELLED when the signal fires, NODE_REFUSED when
   * Redis answers with an error that waiting does not mend.
   */
  async acquire({ waitMs, signal }: AcquireOptions = {}): Promise<LockGrant> {
    const bounds = { min: 0, max: 86_400_000, fallback: 10_000 };
    const longestMs = checkInteger("waitMs", waitMs, bounds);
    const runtime = this.#runtime;
    const start = runtime.now();
    for (;;) {
      try {
        return await this.#try(signal, () => elapsedMs(start, runtime.now()));
      } catch (error) {
        if (!(error instanceof CoordinationError) || !error.retryable) throw error;
        const { retryMinMs, retryMaxMs } = this.#settings;
        const delayMs = retryMinMs + runtime.random() * (retryMaxMs - retryMinMs);
        if (elapsedMs(start, runtime.now()) + delayMs > longestMs) throw error;
        await pause(runtime, delayMs, { what: `waiting for lock "${this.name}"`, signal });
      }
    }
  }

  /**
   * Takes the lock, runs `work`, and releases. LOCK_LOST when the lock may have been lost before `work` was done: then
   * somebody else may have worked at the same time, which only the token keeps apart.
   */
  async run<T>(work: (grant: LockGrant) => Promise<T>, options: AcquireOptions = {}): Promise<T> {
    await using grant = await this.acquire(options);
    const result = await work(grant);
    grant.assert();
    return result;
  }

  async #try(signal: AbortSignal | undefined, waitedMs: () => number): Promise<LockGrant> {
    const settings = this.#settings;
    const { ttlMs, nodeTimeoutMs, tokenSource } = settings;
    const claim = { lock: this.name, owner: randomUUID(), ttlMs };
    const taken = await takeOnce({
      nodes: this.#nodes,
      claim,
      limits: { timeoutMs: nodeTimeoutMs, signal },
      tokenSource,
      runtime: this.#runtime,
    });
    const grant = new LockGrant(this.#nodes, claim, taken, { settings, runtime: this.#runtime });
    const { token } = grant;
    settings.onEvent({ type: "lock-taken", lock: this.name, token, waitedMs: waitedMs() });
    return grant;
  }
}

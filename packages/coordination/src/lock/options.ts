import { checkInteger, checkKnown, checkName } from "../checks.ts";
import { invalidField } from "../errors.ts";
import type { RedisSource } from "../redis/node.ts";
import { safely } from "../listener.ts";
import type { LockEvent } from "./events.ts";

/** A source of fencing tokens outside of Redis, e.g. a sequence of a database: each answer is above all earlier ones. */
export type TokenSource = (name: string, signal: AbortSignal) => Promise<bigint>;

/** How locks are kept. All processes that compete for a lock need the same nodes, prefix and kind of tokens. */
export interface LocksOptions {
  /** One Redis, or several (an odd number, at most 9) that know nothing of each other: then a majority decides. */
  readonly nodes: RedisSource | readonly RedisSource[];
  /** Start of all keys. Default: "idmint". */
  readonly prefix?: string;
  /**
   * How long Redis keeps a lock whose holder does nothing, in milliseconds, 20 to 86,400,000 (a day). Default: 30,000.
   */
  readonly ttlMs?: number;
  /** Whether a held lock is extended by itself, each third of `ttlMs`. Default: true. */
  readonly isExtended?: boolean;
  /** Longest wait for one node, in milliseconds, below `ttlMs`. Default: a quarter of `ttlMs`, at most 500. */
  readonly nodeTimeoutMs?: number;
  /** Between two tries: a random time between these, in milliseconds, 1 to 60,000. Default: 20 and 200. */
  readonly retryMinMs?: number;
  readonly retryMaxMs?: number;
  /** Where fencing tokens come from. Default: the Redis nodes; of several, the order of tokens is then not promised. */
  readonly tokenSource?: TokenSource;
  /**
   * Whether to use a Redis that removes keys when its memory is full (`maxmemory-policy` other than noeviction): a removed lock has two holders.
   * Default: false, it is refused with NODE_REFUSED.
   */
  readonly mayEvict?: boolean;
  readonly onEvent?: (event: LockEvent) => void;
}

/** Options with their defaults in place. */
export interface LockSettings {
  readonly sources: readonly RedisSource[];
  readonly prefix: string;
  readonly ttlMs: number;
  readonly isExtended: boolean;
  readonly nodeTimeoutMs: number;
  readonly retryMinMs: number;
  readonly retryMaxMs: number;
  readonly tokenSource: TokenSource | undefined;
  readonly mayEvict: boolean;
  readonly onEvent: (event: LockEvent) => void;
}

const MAX_NODES = 9;
const KNOWN = [
  "nodes",
  "prefix",
  "ttlMs",
  "isExtended",
  "nodeTimeoutMs",
  "retryMinMs",
  "retryMaxMs",
  "tokenSource",
  "mayEvict",
  "onEvent",
] as const satisfies readonly (keyof LocksOptions)[];

/** Checks options; INVALID_ARGUMENT names the field and its bounds. */
export function resolveOptions(options: LocksOptions): LockSettings {
  checkKnown("options", options, KNOWN);
  const ttlMs = checkInteger("ttlMs", options.ttlMs, {
    min: 20,
    max: 86_400_000,
    fallback: 30_000,
  });
  const retry = { min: 1, max: 60_000 };
  const retryMinMs = checkInteger("retryMinMs", options.retryMinMs, { ...retry, fallback: 20 });
  const retryMaxMs = checkInteger("retryMaxMs", options.retryMaxMs, {
    ...retry,
    min: retryMinMs,
    fallback: Math.max(200, retryMinMs),
  });
  return {
    sources: checkSources(options.nodes),
    prefix: checkName("prefix", options.prefix ?? "idmint"),
    ttlMs,
    isExtended: options.isExtended ?? true,
    nodeTimeoutMs: checkInteger("nodeTimeoutMs", options.nodeTimeoutMs, {
      min: 1,
      max: ttlMs - 1,
      fallback: Math.min(500, Math.floor(ttlMs / 4)),
    }),
    retryMinMs,
    retryMaxMs,
    tokenSource: options.tokenSource,
    mayEvict: options.mayEvict ?? false,
    onEvent: safely(options.onEvent),
  };
}

function checkSources(nodes: RedisSource | readonly RedisSource[]): readonly RedisSource[] {
  const sources = isList(nodes) ? nodes : [nodes];
  if (sources.length % 2 === 1 && sources.length <= MAX_NODES) return sources;
  // An even number bears no more failures than the odd one below it.
  throw invalidField("nodes", `must be an odd number, at most ${MAX_NODES}, got ${sources.length}`);
}

function isList(nodes: RedisSource | readonly RedisSource[]): nodes is readonly RedisSource[] {
  return Array.isArray(nodes);
}

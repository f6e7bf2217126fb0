import { checkInteger, checkKnown, checkName } from "../checks.ts";
import type { CoordinationError } from "../errors.ts";
import { safely } from "../listener.ts";
import type { TokenSource } from "../lock/options.ts";
import type { RedisSource } from "../redis/node.ts";

/** What an election tells `onEvent`: for logs and metrics, never needed for correct use. */
export type ElectionEvent =
  | { readonly type: "elected"; readonly election: string; readonly term: bigint }
  | {
      readonly type: "leadership-lost";
      readonly election: string;
      readonly term: bigint;
      readonly error: CoordinationError;
    }
  | { readonly type: "resigned"; readonly election: string; readonly term: bigint }
  /** Somebody else leads; told when the leader changes. */
  | { readonly type: "following"; readonly election: string; readonly leader: string }
  /** Redis restarted, lost its data or is another one: nobody is elected for so long. */
  | { readonly type: "settling"; readonly election: string; readonly leftMs: number }
  /**
   * Redis kept a leader, or everybody waiting, for longer than `ttlMs`, and has cut that: its clock was set back by so much
   * at least, or it was promoted with a slower one.
   */
  | { readonly type: "clock-set-back"; readonly election: string; readonly byMs: number }
  /** A try failed; the next one follows. */
  | {
      readonly type: "campaign-failed";
      readonly election: string;
      readonly error: CoordinationError;
    };

/** How an election is held. All candidates need the same Redis, name, prefix, ttl and kind of terms. */
export interface ElectionOptions {
  /** The master of one Redis. With replicas: an address that leads to the master, or Sentinels. */
  readonly node: RedisSource;
  /** What is led. */
  readonly name: string;
  /** Who stands, for people: the others see it when it leads. Default: a random name. */
  readonly candidate?: string;
  /** Start of all keys. Default: "idmint". */
  readonly prefix?: string;
  /**
   * How long a leader that says nothing stays leader, in milliseconds, 100 to 3,600,000. A leader renews each third of it;
   * others wait until it is over, and for a whole one when Redis restarted or was replaced. Default: 15,000.
   */
  readonly ttlMs?: number;
  /** Longest wait for an answer of Redis, in milliseconds, below `ttlMs`. Default: a quarter of `ttlMs`, at most 1,000. */
  readonly nodeTimeoutMs?: number;
  /** Where terms come from: each is above all earlier ones. Default: Redis. */
  readonly termSource?: TokenSource;
  /**
   * Whether to use a Redis that removes keys when its memory is full (`maxmemory-policy` other than noeviction): a removed leader may have a second one beside it.
   * Default: false, it is refused with NODE_REFUSED.
   */
  readonly mayEvict?: boolean;
  readonly onEvent?: (event: ElectionEvent) => void;
}

/** Options with their defaults in place. */
export interface ElectionSettings {
  readonly name: string;
  readonly candidate: string;
  readonly prefix: string;
  readonly ttlMs: number;
  readonly nodeTimeoutMs: number;
  readonly termSource: TokenSource | undefined;
  readonly mayEvict: boolean;
  readonly onEvent: (event: ElectionEvent) => void;
}

const KNOWN = [
  "node",
  "name",
  "candidate",
  "prefix",
  "ttlMs",
  "nodeTimeoutMs",
  "termSource",
  "mayEvict",
  "onEvent",
] as const satisfies readonly (keyof ElectionOptions)[];

/** Checks options; INVALID_ARGUMENT names the field and its bounds. */
export function resolveOptions(options: ElectionOptions, randomName: string): ElectionSettings {
  checkKnown("options", options, KNOWN);
  const ttlMs = checkInteger("ttlMs", options.ttlMs, {
    min: 100,
    max: 3_600_000,
    fallback: 15_000,
  });
  return {
    name: checkName("name", options.name),
    candidate: checkName("candidate", options.candidate ?? randomName),
    prefix: checkName("prefix", options.prefix ?? "idmint"),
    ttlMs,
    nodeTimeoutMs: checkInteger("nodeTimeoutMs", options.nodeTimeoutMs, {
      min: 1,
      max: ttlMs - 1,
      fallback: Math.min(1_000, Math.floor(ttlMs / 4)),
    }),
    termSource: options.termSource,
    mayEvict: options.mayEvict ?? false,
    onEvent: safely(options.onEvent),
  };
}

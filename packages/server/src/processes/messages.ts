import { type ErrorDetails, IdmintError, type Reason } from "@idmint/core";
import type { Config } from "../config/table.ts";
import type { Readiness } from "../http/probes.ts";
import type { FiguresRequest } from "../service/figures/fleet.ts";
import type { KnownStores } from "../store/pins/pin-file.ts";
import type { MetricSnapshot } from "../telemetry/metrics/table.ts";

// What the parent and its processes say to each other. Both are the same release of the same program.

/** The first message: what the process is to be. */
export interface Start {
  readonly type: "start";
  /** From 1. */
  readonly process: number;
  /** The parent's, so that a process that starts later does not read a file that has changed in the meantime. */
  readonly config: Config;
  /** The port that the parent listens on. */
  readonly grpcPort: number;
  /** The one for administrators; 0: they have none. */
  readonly adminPort: number;
  /** The one of HTTP; 0: there is none. */
  readonly httpPort: number;
  readonly makesDemoTag: boolean;
  /** What all processes know of the store. */
  readonly known: KnownStores;
}

/** At which of the addresses a connection came in. */
export type DoorName = "admin" | "grpc" | "http";

/** What probes are told of all processes, so the parent alone knows it. */
export type Probe = "metrics" | "ready";

/** Empty when it cannot be told. */
export interface ProbeAnswer {
  readonly ready?: Readiness;
  readonly metrics?: string;
}

export type ToProcess =
  | Start
  /** Comes with the socket of a connection. The number is its own, of all that this process gets. */
  | { readonly type: "connection"; readonly door: DoorName; readonly number: number }
  /** Somebody else has the place of this one. */
  | { readonly type: "give-way"; readonly door: DoorName; readonly number: number }
  /** Stop; told again: answer no longer. */
  | { readonly type: "drain" }
  /** Which store a place belongs to; the number is that of the question. */
  | {
      readonly type: "settled";
      readonly number: number;
      readonly storeId: string | undefined;
    }
  | { readonly type: "probed"; readonly number: number; readonly answer: ProbeAnswer }
  /** Asks for its metrics; the answer has the same number. */
  | { readonly type: "collect"; readonly number: number }
  /** Asks for its figures, on behalf of another process; the same. */
  | { readonly type: "tell-figures"; readonly number: number; readonly request: FiguresRequest }
  /** Figures of the other processes that told them in time; the number is that of the question. */
  | {
      readonly type: "told-figures";
      readonly number: number;
      readonly told: readonly Uint8Array[];
    };

export type ToParent =
  /** It takes connections from now on. */
  | { readonly type: "serving" }
  /** It could not start, and ends. */
  | { readonly type: "failed"; readonly fault: Fault }
  /** Its own health. Comes when it changes, and otherwise so often that its absence is noticed. */
  | {
      readonly type: "health";
      readonly ready: boolean;
      readonly state: string;
      /** Why an operator wants no callers sent to it; empty otherwise. */
      readonly reason: string;
    }
  /** Its metrics; undefined: it collects none, or could not. */
  | {
      readonly type: "metrics";
      readonly number: number;
      readonly metrics: MetricSnapshot | undefined;
    }
  /** Its figures, encoded; undefined: it could not tell them. */
  | {
      readonly type: "figures";
      readonly number: number;
      readonly told: Uint8Array | undefined;
    }
  /** Asks for the figures of all other processes. */
  | {
      readonly type: "ask-figures";
      readonly number: number;
      readonly request: FiguresRequest;
      readonly timeoutMs: number;
    }
  /** Asks whether a place may belong to this store; the answer has the same number. */
  | {
      readonly type: "settle";
      readonly number: number;
      readonly place: string;
      readonly storeId: string;
    }
  /** The history of the store that it works in. */
  | { readonly type: "entered"; readonly incarnation: string }
  /** Asks what a probe is told; the answer has the same number. */
  | { readonly type: "probe"; readonly number: number; readonly of: Probe }
  /** The numbers of connections that arrived, and of those that ended, since the last time. */
  | {
      readonly type: "connections";
      readonly taken: readonly number[];
      readonly closed: readonly number[];
    };

/** An error that can be sent to another process. */
export interface Fault {
  /** Undefined: not an IdmintError. */
  readonly reason: Reason | undefined;
  /** Without the reason. */
  readonly text: string;
  readonly stack: string | undefined;
  readonly details: Omit<ErrorDetails, "cause">;
  readonly cause: Fault | undefined;
}

export function faultOf(thrown: unknown): Fault {
  if (!(thrown instanceof Error)) {
    return {
      reason: undefined,
      text: String(thrown),
      stack: undefined,
      details: {},
      cause: undefined,
    };
  }
  const { stack } = thrown;
  const cause = thrown.cause === undefined ? undefined : faultOf(thrown.cause);
  if (!(thrown instanceof IdmintError)) {
    return { reason: undefined, text: thrown.message, stack, details: {}, cause };
  }
  const { reason, message, metadata, violations, retryAfterMs } = thrown;
  const text = message.startsWith(`${reason}: `) ? message.slice(reason.length + 2) : message;
  const details = { metadata, violations, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  return { reason, text, stack, details, cause };
}

export function errorOf({ reason, text, stack, details, cause }: Fault): Error {
  const below = cause === undefined ? {} : { cause: errorOf(cause) };
  const error =
    reason === undefined
      ? new Error(text, below)
      : new IdmintError(reason, text, { ...details, ...below });
  if (stack !== undefined) error.stack = stack;
  return error;
}

import { type Clock, IdmintError } from "@idmint/core";
import { isDraining } from "../../api/draining.ts";
import type { Handler, StreamHandler, UnaryHandler, WatchHandler } from "../../api/method.ts";
import { statusOf } from "../../api/status/status.ts";
import type { WireStatus } from "../../api/status/wire-status.ts";
import type { InFlight } from "../../in-flight.ts";
import type { Access } from "../../service/access/access.ts";
import type { MethodTimes } from "../../service/call-times.ts";
import type { Counters } from "../../service/counters.ts";
import type { Emit } from "../../service/events.ts";
import type { Tracing } from "../../service/trace.ts";
import type { Answers } from "./answers.ts";
import type { Peer } from "./call-context.ts";
import type { Deadlines } from "./deadlines.ts";
import { FramingRefusal } from "./framing.ts";
import type { Head } from "../http2/head.ts";
import type { Held } from "../http2/limits.ts";
import type { Stream } from "../http2/stream.ts";

/** A stream of requests whose caller is to be known as long as it is open. */
export interface OpenStream {
  /** Ends it if its caller is not known any more. */
  recheck(): void;
  /** Reads no further, answers what waits, and ends. */
  stop(reason: unknown): void;
}

export interface CallsPorts {
  readonly clock: Clock;
  readonly access: Pick<Access, "assertKnown" | "identify">;
  readonly counters: Counters;
  /** Undefined: no call is traced. */
  readonly tracing?: Tracing | undefined;
  readonly emit: Emit;
  readonly deadlines: Deadlines;
  readonly inFlight: InFlight;
  readonly streams: Set<OpenStream>;
}

/** A row of the table, and how long its calls took. */
export interface RowOf<Its extends Handler> {
  readonly kind: Its["kind"];
  readonly handler: Its;
  /** Undefined: calls are not timed. */
  readonly times: MethodTimes | undefined;
}

export type Row = RowOf<UnaryHandler> | RowOf<StreamHandler> | RowOf<WatchHandler>;

export function rowOf(handler: Handler, times: MethodTimes | undefined): Row {
  return { kind: handler.kind, handler, times } as Row;
}

/** A call whose message came, and whose handler does not have it yet. */
export interface LateCall {
  goOn(): void;
}

/** What the calls of one connection share. */
export interface CallsOfConnection {
  readonly ports: CallsPorts;
  readonly peer: Peer;
  readonly answers: Answers;
  /** Sends soon what was answered outside of `receive`. */
  readonly flush: () => void;
  /** Asks the peer for no further calls on this connection. */
  readonly leave: () => void;
  /** The stream's call is over, and so is the stream. */
  readonly release: (stream: Stream) => void;
  /** Ends the stream at once: its caller does not wait any more. */
  readonly reset: (stream: Stream) => void;
  readonly pause: (stream: Stream) => void;
  readonly resume: (stream: Stream) => void;
  /** What is kept for the peer: messages that are not whole, or wait, and answers that it does not take. */
  readonly held: Held;
  /** Whether the peer cancels so much that it may not want what it asks for. */
  readonly isWasteful: () => boolean;
  /** Calls of such a peer, which begin behind all that came with them. */
  readonly late: Set<LateCall>;
}

/** What of a head traces are continued from. */
export function carried({ traceparent, tracestate }: Head): { get(key: string): unknown[] } {
  return {
    get: (key) => {
      const value = key === "traceparent" ? traceparent : key === "tracestate" ? tracestate : "";
      return value === "" ? [] : [value];
    },
  };
}

/**
 * The status of what was thrown in a call of this row.
 *
 * INVARIANT: whoever is refused because this server takes no calls reads GOAWAY before that, so that the call is not made again
 * on the same connection.
 */
export function refusalOf(
  thrown: unknown,
  { handler }: Row,
  { ports, leave }: CallsOfConnection,
): WireStatus {
  if (isDraining(thrown)) leave();
  return thrown instanceof FramingRefusal ? thrown.status : statusOf(thrown, handler.path, ports);
}

/** What those calls are told that outlive their connection. */
export function tooOld(): IdmintError {
  return new IdmintError("DRAINING", "this connection is too old; call on a new one", {
    retryAfterMs: 1,
  });
}

/** What a caller is told whose connection keeps as much of the server's memory as it may. */
export function tooMuchWaits(): IdmintError {
  const text =
    "too much of this connection waits: requests that are not whole, answers that are not read; read them, or use more connections";
  return new IdmintError("OVERLOADED", text, { retryAfterMs: 100 });
}

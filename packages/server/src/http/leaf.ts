// Leaf's paths: what a request asks for, and the answers, byte for byte as Leaf gives them. Pure.
import type { Code, IdmintError, Reason } from "@idmint/core";
import { type Form, unescaped } from "./form.ts";
import { errorHeaders } from "./error-headers.ts";
import type { HttpAnswer } from "./route.ts";

export type LeafPath =
  | { readonly asks: "segment" | "snowflake"; readonly tag: string }
  | { readonly asks: "decode" }
  /** Nothing that Leaf serves: an answer without a call. */
  | { readonly asks: "nothing"; readonly status: 400 | 404 };

const PREFIXES = { segment: "/api/segment/get/", snowflake: "/api/snowflake/get/" } as const;
const DECODE = "/decodeSnowflakeId";

const TEXT = { "content-type": "text/plain;charset=UTF-8" };
const JSON_TYPE = "application/json;charset=UTF-8";

/** Leaf's one layout: 41 bits of milliseconds, 10 of worker, 12 of sequence. */
const LEAF_ORIGIN_MS = 1_288_834_974_657n;
const LEAF_TIME_SHIFT = 22n;
const LEAF_WORKER_SHIFT = 12n;

export function isLeafPath(path: string): boolean {
  return (
    path.startsWith(PREFIXES.segment) || path.startsWith(PREFIXES.snowflake) || path === DECODE
  );
}

export function leafPathOf(path: string): LeafPath {
  if (path === DECODE) return { asks: "decode" };
  const asks = path.startsWith(PREFIXES.segment) ? "segment" : "snowflake";
  const rest = path.slice(PREFIXES[asks].length);
  if (/%2f|%5c/i.test(rest)) return { asks: "nothing", status: 400 };
  const tag = unescaped(rest);
  if (tag === undefined) return { asks: "nothing", status: 400 };
  if (tag === "" || tag.includes("/")) return { asks: "nothing", status: 404 };
  return { asks, tag };
}

/** The bare number, without a newline. */
export function leafId(id: bigint): HttpAnswer {
  return { status: 200, headers: TEXT, body: String(id) };
}

/**
 * Leaf's failure. Its codes say little, so the reason and its text stand in headers, which Leaf's callers do not read.
 */
export function leafFailure(
  asks: "segment" | "snowflake",
  error: IdmintError,
  { path, nowMs }: { readonly path: string; readonly nowMs: number },
): HttpAnswer {
  const code = asks === "segment" ? (SEGMENT_CODES[error.code] ?? -1) : snowflakeCode(error.reason);
  const body = {
    timestamp: nowMs,
    status: 500,
    error: "Internal Server Error",
    exception: "com.sankuai.inf.leaf.server.exception.LeafServerException",
    message: `Result{id=${code}, status=EXCEPTION}`,
    path,
  };
  const headers = { "content-type": JSON_TYPE, ...errorHeaders(error) };
  return { status: 500, headers, body: JSON.stringify(body) };
}

/** A path or query that Leaf does not take. */
export function leafRefusal(
  status: 400 | 404,
  { path, nowMs }: { readonly path: string; readonly nowMs: number },
): HttpAnswer {
  const error = status === 404 ? "Not Found" : "Bad Request";
  const body = { timestamp: nowMs, status, error, message: "No message available", path };
  return { status, headers: { "content-type": JSON_TYPE }, body: JSON.stringify(body) };
}

/** -2: there is no such tag; -3: ask again; any other is -1: this server does not serve it. */
const SEGMENT_CODES: Readonly<Partial<Record<Code, number>>> = {
  NOT_FOUND: -2,
  INVALID_ARGUMENT: -2,
  UNAVAILABLE: -3,
  RESOURCE_EXHAUSTED: -3,
  DEADLINE_EXCEEDED: -3,
};

/** -3: the clock went back; -2: anything else kept it from being made. */
function snowflakeCode(reason: Reason): number {
  return reason === "CLOCK_MOVED_BACKWARDS" || reason === "CLOCK_NOT_CONFIRMED" ? -3 : -2;
}

/** What a snowflake holds, in Leaf's words. */
export interface LeafParts {
  readonly worker: bigint | number;
  readonly sequence: bigint | number;
  readonly timeMs: number;
}

/** The id that a form asks to be taken apart; undefined: it has none, or one that is no id. */
export function leafIdOf(form: Form): bigint | undefined {
  const text = form.get("snowflakeId") ?? "";
  if (!/^\d{1,19}$/.test(text)) return undefined;
  const id = BigInt(text);
  return id < 1n << 63n ? id : undefined;
}

/** The parts of an id of Leaf's own layout. */
export function leafParts(id: bigint): LeafParts {
  const time = id >> LEAF_TIME_SHIFT;
  return {
    worker: (id >> LEAF_WORKER_SHIFT) & ((1n << (LEAF_TIME_SHIFT - LEAF_WORKER_SHIFT)) - 1n),
    sequence: id & ((1n << LEAF_WORKER_SHIFT) - 1n),
    timeMs: Number(time + LEAF_ORIGIN_MS),
  };
}

/** All are texts, and the time is told twice: as milliseconds, and in UTC. */
export function leafDecoded({ worker, sequence, timeMs }: LeafParts): HttpAnswer {
  const time = new Date(timeMs).toISOString().replace("T", " ").replace("Z", "");
  const body = {
    workerId: String(worker),
    sequenceId: String(sequence),
    timestamp: `${timeMs}(${time})`,
  };
  return { status: 200, headers: { "content-type": JSON_TYPE }, body: JSON.stringify(body) };
}

/** What Leaf answers for what is no id. */
export function leafNotDecoded(error?: IdmintError): HttpAnswer {
  const headers = {
    "content-type": JSON_TYPE,
    ...(error === undefined ? {} : errorHeaders(error)),
  };
  const body = JSON.stringify({ errorMsg: "snowflake Id反解析发生异常!" });
  return { status: 200, headers, body };
}

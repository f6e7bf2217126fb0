// Tinyid's paths: what a request asks for, and the answers, byte for byte as Tinyid gives them. Pure.
import { IdmintError, invalidField, MAX_ID, type Segment } from "@idmint/core";
import { errorHeaders } from "./error-headers.ts";
import type { Form } from "./form.ts";
import type { HttpAnswer } from "./route.ts";

/** What the last part of a path asks for, and whether the answer is bare text. */
const ASKS = {
  nextId: { asks: "ids", isSimple: false },
  nextIdSimple: { asks: "ids", isSimple: true },
  nextSegmentId: { asks: "segment", isSimple: false },
  nextSegmentIdSimple: { asks: "segment", isSimple: true },
} as const;

export type TinyidPath = (typeof ASKS)[keyof typeof ASKS];

const PREFIX = "/tinyid/id/";
const JSON_HEADERS = { "content-type": "application/json;charset=UTF-8" };
const TEXT_HEADERS = { "content-type": "text/plain;charset=UTF-8" };
const MAX_INT = 2_147_483_647;
/** A client asks for its next segment when it has issued so much of the present one. */
const LOADING_PERCENT = 20n;
/**
 * A client counts on past the end of its segment, once for each call that it cannot answer, and then compares. Above 2^63
 * it would compare negative numbers, and issue them. So no segment ends nearer to 2^63 than a client can count.
 */
const MAX_SEGMENT_END = MAX_ID - (1n << 53n);

export function tinyidPathOf(path: string): TinyidPath | undefined {
  if (!path.startsWith(PREFIX)) return undefined;
  const name = path.slice(PREFIX.length);
  return Object.hasOwn(ASKS, name) ? ASKS[name as keyof typeof ASKS] : undefined;
}

export function isTinyidPath(path: string): boolean {
  return tinyidPathOf(path) !== undefined;
}

/** What a form asks for. */
export interface TinyidAsked {
  readonly tag: string;
  readonly token: string;
  readonly count: number;
}

/** Undefined: batchSize is no number, which is an answer of its own. */
export function tinyidAsked(form: Form): TinyidAsked | undefined {
  const count = batchSizeOf(form.get("batchSize")?.trim() ?? "");
  if (count === undefined) return undefined;
  return { tag: form.get("bizType") ?? "", token: form.get("token") ?? "", count };
}

function batchSizeOf(text: string): number | undefined {
  if (text === "") return 1;
  if (!/^[+-]?\d{1,10}$/.test(text)) return undefined;
  const size = Number(text);
  return size > MAX_INT || size < -MAX_INT - 1 ? undefined : size;
}

/** The token of a URL as the header that shows it elsewhere. Of two tokens nobody knows which one is meant. */
export function authorizationOf(header: string | undefined, token: string): string | undefined {
  if (token === "") return header;
  return header === undefined ? `Bearer ${token}` : "";
}

export function tinyidIds(isSimple: boolean, ids: readonly bigint[]): HttpAnswer {
  return isSimple ? simple(ids.join(",")) : json(`[${ids.join(",")}]`);
}

/** The numbers of a segment, as a client of Tinyid counts with them. */
export interface TinyidSegment {
  /** Ids lie above it. */
  readonly currentId: bigint;
  readonly loadingId: bigint;
  /** The last one. */
  readonly maxId: bigint;
  readonly delta: number;
  readonly remainder: number;
}

/**
 * INVARIANT: a client issues base, base + increment, … and the last id of the segment, and nothing else. It begins at the
 * first number above currentId that leaves `remainder` when divided by `delta`, and ends at maxId.
 */
export function tinyidSegment({ base, increment, count }: Segment): TinyidSegment {
  const step = BigInt(increment);
  const maxId = base + step * BigInt(count - 1);
  if (maxId > MAX_SEGMENT_END) {
    const text = `ids above ${MAX_SEGMENT_END} are not handed out to Tinyid's clients, which would count past 2^63`;
    throw new IdmintError("TAG_EXHAUSTED", text);
  }
  const currentId = base - 1n;
  return {
    currentId,
    loadingId: currentId + ((maxId - currentId) * LOADING_PERCENT) / 100n,
    maxId,
    delta: increment,
    remainder: Number(base % step),
  };
}

export function tinyidSegmentAnswer(isSimple: boolean, segment: TinyidSegment): HttpAnswer {
  const { currentId, loadingId, maxId, delta, remainder } = segment;
  if (isSimple) return simple([currentId, loadingId, maxId, delta, remainder].join(","));
  return json(
    `{"maxId":${maxId},"loadingId":${loadingId},"currentId":${currentId},"delta":${delta},"remainder":${remainder}}`,
  );
}

/** A failure: 200 all the same, without data or without a body. Why stands in headers, too. */
export function tinyidFailure(isSimple: boolean, error: IdmintError): HttpAnswer {
  const headers = errorHeaders(error);
  if (isSimple) return { ...simple(""), headers: { ...TEXT_HEADERS, ...headers } };
  const isToken = TOKEN_CODES.has(error.code) || TAG_REASONS.has(error.reason);
  const code = isToken ? 5 : 6;
  const message = isToken ? "token is error" : error.message;
  const body = JSON.stringify({ data: null, code, message });
  return { status: 200, headers: { ...JSON_HEADERS, ...headers }, body };
}

/** In Tinyid a tag that is not there has no token either. */
const TOKEN_CODES: ReadonlySet<string> = new Set(["UNAUTHENTICATED", "PERMISSION_DENIED"]);
const TAG_REASONS: ReadonlySet<string> = new Set(["TAG_NOT_FOUND", "INVALID_NAME"]);

/** A batchSize that is no number never reaches Tinyid either. */
export function tinyidBadNumber(path: string, nowMs: number): HttpAnswer {
  const message = `batchSize must be a whole number from 1 to ${MAX_INT}`;
  const body = { timestamp: nowMs, status: 400, error: "Bad Request", message, path };
  return { status: 400, headers: JSON_HEADERS, body: JSON.stringify(body) };
}

/** The same refusal, in the words of Tinyid's callers. */
export function inTinyidWords(error: IdmintError): IdmintError {
  const [violation] = error.violations;
  if (violation?.field !== "count" || error.reason !== "COUNT_OUT_OF_RANGE") return error;
  const description = violation.description.replace("without as_list", "several times");
  return invalidField("batchSize", description, "COUNT_OUT_OF_RANGE");
}

function simple(body: string): HttpAnswer {
  return { status: 200, headers: TEXT_HEADERS, body };
}

/** Ids are numbers in it, which JSON.stringify does not write of bigints. */
function json(data: string): HttpAnswer {
  return { status: 200, headers: JSON_HEADERS, body: `{"data":${data},"code":200,"message":""}` };
}

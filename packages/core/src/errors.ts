/**
 * The codes of gRPC that idmint answers with. `DEADLINE_EXCEEDED` and `CANCELLED` are the caller's own doing, `INTERNAL`
 * is anything unforeseen.
 */
export type Code =
  | "ABORTED"
  | "ALREADY_EXISTS"
  | "CANCELLED"
  | "DEADLINE_EXCEEDED"
  | "FAILED_PRECONDITION"
  | "INTERNAL"
  | "INVALID_ARGUMENT"
  | "NOT_FOUND"
  | "OUT_OF_RANGE"
  | "PERMISSION_DENIED"
  | "RESOURCE_EXHAUSTED"
  | "UNAUTHENTICATED"
  | "UNAVAILABLE"
  | "UNIMPLEMENTED";

/** What is wrong with a request or one field of it. */
export type InvalidReason =
  | "INVALID_ARGUMENT"
  | "COUNT_OUT_OF_RANGE"
  | "FIELD_CONFLICT"
  | "FIELD_OUTPUT_ONLY"
  | "FIELD_REQUIRED"
  | "INVALID_FORMAT"
  | "INVALID_ID"
  | "INVALID_NAME"
  | "INVALID_PAGE_TOKEN"
  | "INVALID_UPDATE_MASK"
  | "MALFORMED_REQUEST"
  | "RAISE_TOO_LARGE"
  | "UNKNOWN_VALUE"
  | "VALUE_OUT_OF_RANGE";

/** What a violation of a field may say. */
export type FieldReason = InvalidReason | "NOT_CONFIGURED";

/** Why a call failed; the machine-readable half of an error. */
export type Reason =
  | InvalidReason
  | "CALL_CANCELLED"
  | "CLIENT_CLOSED"
  | "CLOCK_MOVED_BACKWARDS"
  | "CLOCK_NOT_CONFIRMED"
  | "DEADLINE_EXCEEDED"
  | "DRAINING"
  | "ETAG_MISMATCH"
  | "FIELD_IMMUTABLE"
  | "INTERNAL"
  | "ISSUING_STOPPED"
  | "KEY_UNKNOWN"
  | "MAX_NOT_RAISED"
  | "METHOD_NOT_FOUND"
  | "NODE_ALIVE"
  | "NOT_CONFIGURED"
  | "OVERLOADED"
  | "PERMISSION_DENIED"
  | "QUOTA_EXCEEDED"
  | "SCHEMA_MISMATCH"
  | "SEGMENT_INVALID"
  | "SEGMENT_NOT_READY"
  | "SERVER_UNAVAILABLE"
  | "SERVICE_NOT_FOUND"
  | "STORE_EPOCH_CHANGED"
  | "STORE_REFUSED"
  | "STORE_UNAVAILABLE"
  | "STORE_UNSAFE"
  | "TAG_EXHAUSTED"
  | "TAG_EXISTS"
  | "TAG_NOT_FOUND"
  | "TAG_PAUSED"
  | "TIMESTAMP_EXHAUSTED"
  | "TOKENS_EXHAUSTED"
  | "TOKEN_NOT_FOUND"
  | "UNAUTHENTICATED"
  | "UNSAFE_INTEGER"
  | "WORKER_IDS_EXHAUSTED"
  | "WORKER_LEASE_LOST"
  | "WRONG_KIND";

/** The closed table of reasons: each has exactly one code. docs/errors.md explains every row. */
export const CODE_OF_REASON: Readonly<Record<Reason, Code>> = {
  CALL_CANCELLED: "CANCELLED",
  CLIENT_CLOSED: "FAILED_PRECONDITION",
  CLOCK_MOVED_BACKWARDS: "UNAVAILABLE",
  CLOCK_NOT_CONFIRMED: "UNAVAILABLE",
  COUNT_OUT_OF_RANGE: "INVALID_ARGUMENT",
  DEADLINE_EXCEEDED: "DEADLINE_EXCEEDED",
  DRAINING: "UNAVAILABLE",
  ETAG_MISMATCH: "ABORTED",
  FIELD_CONFLICT: "INVALID_ARGUMENT",
  FIELD_IMMUTABLE: "FAILED_PRECONDITION",
  FIELD_OUTPUT_ONLY: "INVALID_ARGUMENT",
  FIELD_REQUIRED: "INVALID_ARGUMENT",
  INTERNAL: "INTERNAL",
  INVALID_ARGUMENT: "INVALID_ARGUMENT",
  INVALID_FORMAT: "INVALID_ARGUMENT",
  INVALID_ID: "INVALID_ARGUMENT",
  INVALID_NAME: "INVALID_ARGUMENT",
  INVALID_PAGE_TOKEN: "INVALID_ARGUMENT",
  INVALID_UPDATE_MASK: "INVALID_ARGUMENT",
  ISSUING_STOPPED: "FAILED_PRECONDITION",
  KEY_UNKNOWN: "FAILED_PRECONDITION",
  MALFORMED_REQUEST: "INVALID_ARGUMENT",
  MAX_NOT_RAISED: "UNAVAILABLE",
  METHOD_NOT_FOUND: "UNIMPLEMENTED",
  NODE_ALIVE: "FAILED_PRECONDITION",
  NOT_CONFIGURED: "FAILED_PRECONDITION",
  OVERLOADED: "RESOURCE_EXHAUSTED",
  PERMISSION_DENIED: "PERMISSION_DENIED",
  QUOTA_EXCEEDED: "RESOURCE_EXHAUSTED",
  RAISE_TOO_LARGE: "INVALID_ARGUMENT",
  SCHEMA_MISMATCH: "FAILED_PRECONDITION",
  SEGMENT_INVALID: "FAILED_PRECONDITION",
  SEGMENT_NOT_READY: "UNAVAILABLE",
  SERVER_UNAVAILABLE: "UNAVAILABLE",
  SERVICE_NOT_FOUND: "NOT_FOUND",
  STORE_EPOCH_CHANGED: "FAILED_PRECONDITION",
  STORE_REFUSED: "FAILED_PRECONDITION",
  STORE_UNAVAILABLE: "UNAVAILABLE",
  STORE_UNSAFE: "FAILED_PRECONDITION",
  TAG_EXHAUSTED: "OUT_OF_RANGE",
  TAG_EXISTS: "ALREADY_EXISTS",
  TAG_NOT_FOUND: "NOT_FOUND",
  TAG_PAUSED: "FAILED_PRECONDITION",
  TIMESTAMP_EXHAUSTED: "OUT_OF_RANGE",
  TOKENS_EXHAUSTED: "RESOURCE_EXHAUSTED",
  TOKEN_NOT_FOUND: "NOT_FOUND",
  UNAUTHENTICATED: "UNAUTHENTICATED",
  UNKNOWN_VALUE: "INVALID_ARGUMENT",
  UNSAFE_INTEGER: "OUT_OF_RANGE",
  VALUE_OUT_OF_RANGE: "INVALID_ARGUMENT",
  WORKER_IDS_EXHAUSTED: "RESOURCE_EXHAUSTED",
  WORKER_LEASE_LOST: "ABORTED",
  WRONG_KIND: "FAILED_PRECONDITION",
};

/** One bad field of a request: its path in the proto, what would be right, and in one word what is wrong. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
  /** Default: INVALID_ARGUMENT. NOT_CONFIGURED: nothing is wrong with it by itself, but this server cannot serve it. */
  readonly reason?: FieldReason;
}

/** What an error may carry besides its reason and text. */
export interface ErrorDetails {
  /** Facts for machines, e.g. the tag's name. Never a secret. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** For INVALID_ARGUMENT and NOT_CONFIGURED: every bad field. */
  readonly violations?: readonly FieldViolation[];
  /** For UNAVAILABLE and RESOURCE_EXHAUSTED: how long to wait before the next try, in milliseconds. */
  readonly retryAfterMs?: number;
  /** What went wrong below; logged, never sent over a wire. */
  readonly cause?: unknown;
}

/** How many frames a stack has is V8's own setting. */
const v8Error = Error as ErrorConstructor & { stackTraceLimit: number };
let hasStacks = true;

/**
 * From now on only INTERNAL errors of idmint have a stack, in this process. For servers: a stack takes as long as the
 * answers of two good calls, and nobody reads it when a caller is refused. The SDK never calls it.
 */
export function omitStacks(): void {
  hasStacks = false;
}

/**
 * The one error of idmint, in the domain, in the server and in the SDK. `code` and `reason` are stable; the text is for
 * people and may change.
 */
export class IdmintError extends Error {
  override readonly name = "IdmintError";
  readonly code: Code;
  readonly reason: Reason;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly FieldViolation[];
  readonly retryAfterMs: number | undefined;

  constructor(reason: Reason, text: string, details: ErrorDetails = {}) {
    const { stackTraceLimit } = v8Error;
    const isBare = !hasStacks && reason !== "INTERNAL";
    if (isBare) v8Error.stackTraceLimit = 0;
    super(`${reason}: ${text}`, details.cause === undefined ? undefined : { cause: details.cause });
    if (isBare) v8Error.stackTraceLimit = stackTraceLimit;
    this.code = CODE_OF_REASON[reason];
    this.reason = reason;
    this.metadata = details.metadata ?? {};
    this.violations = details.violations ?? [];
    this.retryAfterMs = details.retryAfterMs;
  }

  /** Whether the same call may succeed later: true for UNAVAILABLE only. */
  get retryable(): boolean {
    return this.code === "UNAVAILABLE";
  }

  /** Any thrown value as an IdmintError; what is not one becomes INTERNAL with a fixed text and keeps its cause. */
  static from(thrown: unknown): IdmintError {
    if (thrown instanceof IdmintError) return thrown;
    return new IdmintError("INTERNAL", "an unexpected error; the server log has the cause", {
      cause: thrown,
    });
  }
}

/** An INVALID_ARGUMENT for one field. */
export function invalidField(
  field: string,
  description: string,
  reason: InvalidReason = "INVALID_ARGUMENT",
): IdmintError {
  return invalidFields([{ field, description, reason }]);
}

/**
 * An INVALID_ARGUMENT that names every bad field; a FAILED_PRECONDITION where this server's configuration alone is to blame.
 * Its reason is what the fields have in common.
 */
export function invalidFields(violations: readonly FieldViolation[]): IdmintError {
  const text = violations.map((v) => `${v.field} ${v.description}`).join("; ");
  const [first = "INVALID_ARGUMENT", ...others] = new Set(violations.map((v) => v.reason));
  return new IdmintError(others.length === 0 ? first : "INVALID_ARGUMENT", text, { violations });
}

/** The refusal of a synchronous call of a tag with nothing in memory. */
export function notWarm(tag: string, retryAfterMs: number, cause?: IdmintError): IdmintError {
  const why = cause === undefined ? "" : `; the last try failed: ${cause.message}`;
  return new IdmintError(
    "SEGMENT_NOT_READY",
    `no id of tag "${tag}" is in memory, and synchronous calls do not wait; await tag.warm() first${why}`,
    { metadata: { tag }, retryAfterMs, ...(cause === undefined ? {} : { cause }) },
  );
}

/** Longest wait that a refusal can ask for, in milliseconds. */
const MAX_BUSY_MS = 30_000;

/**
 * For how long a busy server, or a quota, wants nobody to ask again: RESOURCE_EXHAUSTED with RetryInfo. Undefined for all other
 * errors. The same call may succeed after that; sent to another server at once it would only add to the load.
 */
export function busyMs({ code, retryAfterMs }: IdmintError): number | undefined {
  if (code !== "RESOURCE_EXHAUSTED" || retryAfterMs === undefined) return undefined;
  return Math.min(MAX_BUSY_MS, retryAfterMs);
}

/** Reasons of UNAVAILABLE that speak of one tag name that tag, and say when to come back. */
export function segmentNotReady(tag: string, retryAfterMs: number, cause?: unknown): IdmintError {
  const why = cause instanceof IdmintError ? `; the last try failed: ${cause.message}` : "";
  return new IdmintError("SEGMENT_NOT_READY", `no id of tag "${tag}" came in time${why}`, {
    metadata: { tag },
    retryAfterMs,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** For an id that no number holds; it is not issued. */
export function unsafeInteger(tag: string): IdmintError {
  const text = `the next id of tag "${tag}" is past 2^53 − 1 and no number holds it exactly; use next() or nextString()`;
  return new IdmintError("UNSAFE_INTEGER", text, { metadata: { tag } });
}

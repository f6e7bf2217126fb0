/** One bad field of a request: its path in the .proto file, what would be right, and in one word what is wrong. */
export interface Violation {
  readonly field: string;
  readonly description: string;
  readonly reason: string;
}

/** A call that failed: what the server said, or why there is no answer of it. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** A code of Connect, such as `unavailable`. */
  readonly code: string;
  /** A reason of docs/errors.md, or one of NO_ANSWER. */
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly Violation[];
  /** When the server wants to be asked again. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: string,
    reason: string,
    message: string,
    details: {
      readonly metadata?: Readonly<Record<string, string>>;
      readonly violations?: readonly Violation[];
      readonly retryAfterMs?: number | undefined;
    } = {},
  ) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.metadata = details.metadata ?? {};
    this.violations = details.violations ?? [];
    this.retryAfterMs = details.retryAfterMs;
  }

  /** Whether nothing is known of what the server did, or would have done. */
  get isNoAnswer(): boolean {
    return Object.values<string>(NO_ANSWER).includes(this.reason);
  }

  /** Whether a change that failed so may have been made. */
  get isOutcomeUnknown(): boolean {
    return this.isNoAnswer || ["deadline_exceeded", "internal", "unknown"].includes(this.code);
  }

  /** Whether the same call may succeed a moment later. */
  get isTransient(): boolean {
    return this.code === "unavailable" || this.code === "deadline_exceeded";
  }
}

/** Why there is no answer of the server. */
const NO_ANSWER = {
  unreachable: "CONSOLE_UNREACHABLE",
  late: "CONSOLE_TIMEOUT",
  garbled: "CONSOLE_GARBLED",
} as const;

/** What fetch rejected with: no connection, or one that broke. */
export function unreachable(): ApiError {
  return new ApiError("unavailable", NO_ANSWER.unreachable, "the server cannot be reached");
}

export function tooLate(ms: number): ApiError {
  return new ApiError("deadline_exceeded", NO_ANSWER.late, `no answer within ${ms / 1_000} s`);
}

/** Something answered that is no idmint server: a proxy in between, or a page of an error. */
export function garbled(status: number): ApiError {
  const code = status >= 500 || status === 429 ? "unavailable" : "unknown";
  return new ApiError(code, NO_ANSWER.garbled, `the answer is not one of idmint (HTTP ${status})`);
}

/** The error of Connect in a body, as docs/http.md has it; undefined if it is none. */
export function errorOfBody(body: unknown): ApiError | undefined {
  if (!isRecord(body) || typeof body["code"] !== "string") return undefined;
  const details = Array.isArray(body["details"]) ? body["details"].map(debugOf) : [];
  const info = details.find((detail) => typeof detail["reason"] === "string" && "domain" in detail);
  const violations = details.flatMap(violationsOf);
  const delay = details.map((detail) => millisecondsOf(detail["retryDelay"])).find(Number.isFinite);
  return new ApiError(body["code"], textOf(info?.["reason"]), textOf(body["message"]), {
    metadata: stringsOf(info?.["metadata"]),
    violations,
    retryAfterMs: delay,
  });
}

/** A detail as JSON: Connect sends it as `debug`, beside its bytes. */
function debugOf(detail: unknown): Readonly<Record<string, unknown>> {
  const debug = isRecord(detail) ? detail["debug"] : undefined;
  return isRecord(debug) ? debug : {};
}

function violationsOf(detail: Readonly<Record<string, unknown>>): readonly Violation[] {
  const list = detail["fieldViolations"];
  if (!Array.isArray(list)) return [];
  return list.filter(isRecord).map((one) => ({
    field: textOf(one["field"]),
    description: textOf(one["description"]),
    reason: textOf(one["reason"]),
  }));
}

/** "1.5s" in milliseconds. */
export function millisecondsOf(duration: unknown): number | undefined {
  if (typeof duration !== "string") return undefined;
  const [, seconds] = /^(-?\d+(?:\.\d+)?)s$/.exec(duration) ?? [];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}

function stringsOf(value: unknown): Readonly<Record<string, string>> {
  if (!isRecord(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, textOf(one)]));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

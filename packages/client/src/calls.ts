import {
  assertNoViolations,
  type Call,
  type Clock,
  countViolation,
  IdmintError,
  invalidField,
  MAX_SAFE_ID,
  MAX_SEGMENT_COUNT,
  tagNameViolation,
} from "@idmint/core";
import type { CallOptions } from "./api.ts";
import { MAX_DEADLINE_MS } from "./options.ts";

/** The deadline of calls without options: computed only when a call has to wait, so that a warm one costs nothing. */
export class StandardCall implements Call {
  readonly isImpatient = true;
  readonly #clock: Clock;
  readonly #deadlineMs: number;

  constructor(clock: Clock, deadlineMs: number) {
    this.#clock = clock;
    this.#deadlineMs = deadlineMs;
  }

  get deadline(): number {
    return this.#clock.now() + this.#deadlineMs;
  }
}

const CALL_OPTIONS: ReadonlySet<string> = new Set(["deadlineMs", "signal"]);
/** Options of a call whose id may be made from a name. */
export const TEXT_OPTIONS: ReadonlySet<string> = new Set([...CALL_OPTIONS, "name"]);

/**
 * Options of a call, checked. Throws INVALID_ARGUMENT that names what is wrong, and CALL_CANCELLED when the signal is aborted
 * already.
 */
export function callOf(
  options: CallOptions,
  clock: Clock,
  standardDeadlineMs: number,
  names: ReadonlySet<string> = CALL_OPTIONS,
): Call {
  assertOptions(options, names);
  const { deadlineMs = standardDeadlineMs, signal } = options;
  const isImpatient = options.deadlineMs === undefined;
  if (!(typeof deadlineMs === "number" && deadlineMs >= 1 && deadlineMs <= MAX_DEADLINE_MS)) {
    throw invalidField(
      "deadlineMs",
      `must be a number from 1 to ${MAX_DEADLINE_MS}, got ${String(deadlineMs)}`,
    );
  }
  if (signal !== undefined && typeof signal.addEventListener !== "function") {
    throw invalidField("signal", "must be an AbortSignal");
  }
  if (signal?.aborted === true) {
    throw new IdmintError("CALL_CANCELLED", "the signal was aborted before the call", {
      cause: signal.reason,
    });
  }
  return { deadline: clock.now() + deadlineMs, signal, isImpatient };
}

/** Callers without types may give anything. */
function assertOptions(options: unknown, names: ReadonlySet<string>): void {
  if (typeof options !== "object" || options === null) {
    const got = options === null ? "null" : typeof options;
    throw invalidField("options", `must be an object, as in { deadlineMs: 500 }, got ${got}`);
  }
  const given = options as Readonly<Record<string, unknown>>;
  // Each call comes here, so no list of the names is made.
  for (const name in given) {
    if (names.has(name) || given[name] === undefined) continue;
    throw invalidField(name, `is not an option of this call: ${[...names].join(", ")} are`);
  }
}

/** Throws INVALID_ARGUMENT for what cannot be the name of a tag. */
export function assertTagName(name: string): void {
  // Callers without types may give anything.
  if (typeof name !== "string") throw invalidField("tag", "must be text: the name of a tag");
  assertNoViolations(tagNameViolation("tag", name));
}

/** Throws INVALID_ARGUMENT for a count that no server could answer. */
export function assertCount(count: number): void {
  const wayOut = "split it into several calls";
  assertNoViolations(countViolation("count", count, MAX_SEGMENT_COUNT, wayOut));
}

/** An id as a number; UNSAFE_INTEGER, with the id in the metadata, where a number does not hold it exactly. */
export function numberOf(tag: string, id: bigint): number {
  if (id <= MAX_SAFE_ID) return Number(id);
  const text = `id ${id} of tag "${tag}" is past 2^53 − 1, so no number holds it exactly; use next() or nextString()`;
  throw new IdmintError("UNSAFE_INTEGER", text, { metadata: { tag, id: String(id) } });
}

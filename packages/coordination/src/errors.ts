/** The codes of gRPC that coordination uses; services can pass them on as they are. */
export type Code =
  | "ABORTED"
  | "CANCELLED"
  | "DEADLINE_EXCEEDED"
  | "FAILED_PRECONDITION"
  | "INVALID_ARGUMENT"
  | "OUT_OF_RANGE"
  | "RESOURCE_EXHAUSTED"
  | "UNAVAILABLE";

/** Why a call failed; the machine-readable half of an error. */
export type Reason =
  | "CALL_CANCELLED"
  | "CLOSED"
  | "DEADLINE_EXCEEDED"
  | "ELECTION_MISMATCH"
  | "INVALID_ARGUMENT"
  | "LOCK_HELD"
  | "LOCK_LOST"
  | "NODE_REFUSED"
  | "NODE_UNAVAILABLE"
  | "NOT_LEADER"
  | "NO_MAJORITY"
  | "OUTCOME_UNKNOWN"
  | "OVERLOADED"
  | "TOKEN_EXHAUSTED"
  | "TOKEN_WENT_BACK";

/** The closed table of reasons: each has exactly one code. The README explains every row. */
const CODE_OF_REASON: Readonly<Record<Reason, Code>> = {
  CALL_CANCELLED: "CANCELLED",
  CLOSED: "FAILED_PRECONDITION",
  DEADLINE_EXCEEDED: "DEADLINE_EXCEEDED",
  ELECTION_MISMATCH: "FAILED_PRECONDITION",
  INVALID_ARGUMENT: "INVALID_ARGUMENT",
  LOCK_HELD: "UNAVAILABLE",
  LOCK_LOST: "ABORTED",
  NODE_REFUSED: "FAILED_PRECONDITION",
  NODE_UNAVAILABLE: "UNAVAILABLE",
  NOT_LEADER: "ABORTED",
  NO_MAJORITY: "UNAVAILABLE",
  OUTCOME_UNKNOWN: "ABORTED",
  OVERLOADED: "RESOURCE_EXHAUSTED",
  TOKEN_EXHAUSTED: "OUT_OF_RANGE",
  TOKEN_WENT_BACK: "FAILED_PRECONDITION",
};

/** What one Redis node had to do with a failure. */
export interface NodeCause {
  /** host:port of the node. */
  readonly node: string;
  readonly error: CoordinationError;
}

/** What an error may carry besides its reason and text. */
export interface ErrorDetails {
  /** Every node that failed or refused, in the order of the nodes. */
  readonly nodes?: readonly NodeCause[];
  /** Facts for machines, e.g. the lock's name. Never a secret. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** What went wrong below. */
  readonly cause?: unknown;
}

/**
 * The one error of this package. `code` and `reason` are stable; the text is for people and may change. Neither it nor its
 * causes hold a password or the arguments of a command.
 */
export class CoordinationError extends Error {
  override readonly name = "CoordinationError";
  readonly code: Code;
  readonly reason: Reason;
  readonly nodes: readonly NodeCause[];
  readonly metadata: Readonly<Record<string, string>>;

  constructor(reason: Reason, text: string, details: ErrorDetails = {}) {
    const nodes = details.nodes ?? [];
    const causes = nodes.map(({ node, error }) => `${node}: ${error.message}`).join("; ");
    super(
      `${reason}: ${text}${causes === "" ? "" : ` (${causes})`}`,
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.code = CODE_OF_REASON[reason];
    this.reason = reason;
    this.nodes = nodes;
    this.metadata = details.metadata ?? {};
  }

  /** Whether the same call may succeed later: true for UNAVAILABLE only. */
  get retryable(): boolean {
    return this.code === "UNAVAILABLE";
  }
}

/** An INVALID_ARGUMENT for one field: its name, and what would be right. */
export function invalidField(field: string, description: string): CoordinationError {
  return new CoordinationError("INVALID_ARGUMENT", `${field} ${description}`, {
    metadata: { field },
  });
}

/** The error of a call whose AbortSignal fired; its cause is the signal's reason. */
export function cancelled(what: string, signal: AbortSignal): CoordinationError {
  return new CoordinationError("CALL_CANCELLED", `${what} was cancelled`, {
    cause: signal.reason,
  });
}

/** Any thrown value as a CoordinationError; what is not one counts as a node's fault. */
export function asError(thrown: unknown): CoordinationError {
  if (thrown instanceof CoordinationError) return thrown;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return new CoordinationError("NODE_UNAVAILABLE", text, { cause: thrown });
}

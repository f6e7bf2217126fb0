import { status } from "@grpc/grpc-js";
import {
  CODE_OF_REASON,
  type ErrorDetails,
  type FieldViolation,
  IdmintError,
  type FieldReason,
  millisecondsOf,
  type Reason,
} from "@idmint/core";
import {
  BadRequest,
  type BadRequest_FieldViolation as WireViolation,
  ErrorInfo,
  RetryInfo,
  Status,
} from "@idmint/proto/rpc";

const DOMAIN = "idmint";
const DETAILS_KEY = "grpc-status-details-bin";
const TYPE_PREFIX = "type.googleapis.com/google.rpc.";

/**
 * What a status without idmint's details means. An idmint server sends details with every error, so this one comes
 * from the connection, from a proxy, or from something that is no idmint server. Broken connections show under several
 * codes (UNAVAILABLE, INTERNAL for a reset stream, CANCELLED when the peer cancelled, UNKNOWN for an HTTP status), and
 * all of them mean that another try may go through.
 */
const REASON_OF_STATUS: Readonly<Partial<Record<number, Reason>>> = {
  [status.ABORTED]: "SERVER_UNAVAILABLE",
  [status.CANCELLED]: "SERVER_UNAVAILABLE",
  [status.DATA_LOSS]: "SERVER_UNAVAILABLE",
  [status.INTERNAL]: "SERVER_UNAVAILABLE",
  [status.UNAVAILABLE]: "SERVER_UNAVAILABLE",
  [status.UNKNOWN]: "SERVER_UNAVAILABLE",
  [status.DEADLINE_EXCEEDED]: "DEADLINE_EXCEEDED",
  [status.INVALID_ARGUMENT]: "INVALID_ARGUMENT",
  [status.PERMISSION_DENIED]: "PERMISSION_DENIED",
  [status.RESOURCE_EXHAUSTED]: "OVERLOADED",
  [status.UNAUTHENTICATED]: "UNAUTHENTICATED",
  [status.UNIMPLEMENTED]: "METHOD_NOT_FOUND",
};

/** What a failed call of gRPC is rejected with, as far as it matters here. The `ServiceError` of grpc-js is one. */
export interface GrpcFailure {
  /** The status code of gRPC, 1 to 16. */
  readonly code: number;
  /** The text of the status. */
  readonly details: string;
  /** The trailers; those whose names end with "-bin" are bytes. */
  readonly metadata: { get(key: string): readonly (string | Uint8Array)[] };
}

/**
 * A failed gRPC call as an IdmintError: by the details in `grpc-status-details-bin`, or by the status code where there
 * are none. Message texts are shown, never matched on.
 */
export function fromServiceError(error: GrpcFailure): IdmintError {
  return fromDetails(error) ?? fromStatus(error, "the server");
}

/** The same, of a try that had so long for its answer. */
export function failureOf(address: string, timeoutMs: number, error: GrpcFailure): IdmintError {
  const failure = fromDetails(error) ?? fromStatus(error, address);
  if (failure.reason !== "DEADLINE_EXCEEDED") return failure;
  return unanswered(address, timeoutMs, error);
}

/** The deadline was this try's, not the caller's: what the caller asked for may still be had in time. */
export function unanswered(address: string, timeoutMs: number, cause: unknown): IdmintError {
  const text = `${address} did not answer within ${timeoutMs} ms`;
  return new IdmintError("SERVER_UNAVAILABLE", text, { cause });
}

function fromStatus(error: GrpcFailure, server: string): IdmintError {
  const reason = REASON_OF_STATUS[error.code];
  const details = plainly(error.details);
  if (reason === "SERVER_UNAVAILABLE") {
    const text = `${server} cannot be reached: ${details}; check the address and the option tls`;
    return new IdmintError(reason, text, { cause: error });
  }
  const name = status[error.code] ?? String(error.code);
  const text = `${server} answered ${name} without idmint's details (${details}); is it an idmint server?`;
  return new IdmintError(reason ?? "INTERNAL", text, { cause: error });
}

/**
 * What gRPC says of a failure, without its words around the words of Node.js, and without times and the numbers of threads: two
 * failures of one cause have one text. The cause has all of it.
 */
function plainly(details: string): string {
  return details
    .replaceAll(/ ?\(?\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]+Z\)?/g, "")
    .replaceAll(/\b[0-9A-F]{8,16}:error:/g, "error:")
    .replace(/^No connection established\. Last error: (?:Error: )?/, "")
    .replace(/\.?\s*Resolution note: .*$/s, "")
    .replaceAll(/\s+/g, " ");
}

function fromDetails(error: GrpcFailure): IdmintError | undefined {
  const found = readDetails(error);
  if (found?.reason === undefined) return undefined;
  const { reason, ...details } = found;
  // The constructor puts the reason in front again.
  const prefix = `${reason}: `;
  const text = error.details.startsWith(prefix)
    ? error.details.slice(prefix.length)
    : error.details;
  return new IdmintError(reason, text, { ...details, cause: error });
}

function readDetails(error: GrpcFailure): (ErrorDetails & { reason?: Reason }) | undefined {
  const raw = error.metadata.get(DETAILS_KEY)[0];
  if (!(raw instanceof Uint8Array)) return undefined;
  let reason: Reason | undefined;
  let metadata: Readonly<Record<string, string>> = {};
  let violations: readonly FieldViolation[] = [];
  let retryAfterMs: number | undefined;
  try {
    for (const { typeUrl, value } of Status.decode(raw).details) {
      if (typeUrl === `${TYPE_PREFIX}ErrorInfo`) {
        const info = ErrorInfo.decode(value);
        if (info.domain !== DOMAIN) continue;
        reason = knownReason(info.reason);
        metadata = info.metadata;
      } else if (typeUrl === `${TYPE_PREFIX}BadRequest`) {
        violations = BadRequest.decode(value).fieldViolations.map(violationOf);
      } else if (typeUrl === `${TYPE_PREFIX}RetryInfo`) {
        retryAfterMs = millisecondsOf(RetryInfo.decode(value).retryDelay);
      }
    }
  } catch {
    // Details that do not decode are no details: the status code still tells what to do.
    return undefined;
  }
  return {
    metadata,
    violations,
    ...(reason === undefined ? {} : { reason }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** What is wrong with a field; what a newer server says of it is left out. */
function violationOf({ field, description, reason: text }: WireViolation): FieldViolation {
  const reason = knownReason(text);
  if (reason === undefined || reason === "INVALID_ARGUMENT") return { field, description };
  const isOfField = reason === "NOT_CONFIGURED" || CODE_OF_REASON[reason] === "INVALID_ARGUMENT";
  // The table has all other reasons of fields under this one code.
  return isOfField ? { field, description, reason: reason as FieldReason } : { field, description };
}

/** A reason of a newer server is none of ours: its status code decides then. */
function knownReason(reason: string): Reason | undefined {
  return Object.hasOwn(CODE_OF_REASON, reason) ? (reason as Reason) : undefined;
}

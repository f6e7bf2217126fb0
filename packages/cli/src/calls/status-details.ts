import { type FieldViolation, millisecondsOf } from "@idmint/core";
import { BadRequest, Code, ErrorInfo, RetryInfo, Status } from "@idmint/proto/rpc";
import type { ServiceError } from "@grpc/grpc-js";
import { CommandFailure, type Failure, failureOf } from "./failure.ts";
import { durationText } from "@idmint/core/kinds";

const TYPE = "type.googleapis.com/google.rpc.";

interface Details {
  readonly reason: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly fields: readonly FieldViolation[];
  readonly retryAfterMs: number | undefined;
}

/** The call that failed. */
interface FailedCall {
  readonly address: string;
  readonly timeoutMs: number;
  /** Set: the call was made with TLS. */
  readonly tls?: object | undefined;
  /** Whether Ctrl-C ended it. */
  readonly isInterrupted: boolean;
}

/**
 * Codes that, without idmint's details, stand for a broken connection: a reset stream, a peer that cancels, a proxy's
 * HTML page.
 */
const BROKEN: ReadonlySet<string> = new Set(["CANCELLED", "INTERNAL", "UNAVAILABLE", "UNKNOWN"]);

/** The failure to report for a failed call. */
export function failureOfCall(error: ServiceError, call: FailedCall): CommandFailure {
  return new CommandFailure(failureOfStatus(error, call), error);
}

function failureOfStatus(error: ServiceError, call: FailedCall): Failure {
  if (call.isInterrupted) return failureOf("CANCELLED", "CALL_CANCELLED", "interrupted");
  const code = codeName(error.code);
  const { reason, ...details } = detailsOf(error);
  if (reason !== undefined) return failureOf(code, reason, error.details, details);
  // Without details the error is gRPC's own: nothing answered, or something that is no idmint server.
  if (BROKEN.has(code)) {
    const why = error.details.replace(/ Resolution note: $/, "").replaceAll(/\s+/g, " ");
    const text = `no idmint server answers at ${call.address} (${code}: ${why})${tlsHint(why, call)}`;
    return failureOf("UNAVAILABLE", "SERVER_UNAVAILABLE", text);
  }
  if (code === "DEADLINE_EXCEEDED") {
    const text = `no answer from ${call.address} within ${durationText(call.timeoutMs)}; --timeout allows longer`;
    return failureOf(code, code, text);
  }
  return failureOf(code, code, error.details);
}

/** What Node.js says where one side speaks TLS and the other does not, or where the certificate is not trusted. */
function tlsHint(why: string, { tls }: FailedCall): string {
  if (tls === undefined) {
    const isHungUpOn = /Failed to connect|ECONNRESET|Protocol error|Connection dropped/.test(why);
    return isHungUpOn ? "; if it speaks TLS, add --tls or --ca-file" : "";
  }
  if (/wrong version number|packet length too long/.test(why)) {
    return "; it speaks no TLS, so leave out --tls and --ca-file";
  }
  return /self-signed|unable to (?:verify|get)/.test(why)
    ? "; name the authority that signed its certificate with --ca-file"
    : "";
}

/** The name of a gRPC code, or `CODE_<n>` for one that this version does not know. */
function codeName(code: number): string {
  const found = Object.entries(Code).find(([, value]) => value === code);
  return found?.[0] ?? `CODE_${code}`;
}

/** The details in `grpc-status-details-bin`. */
function detailsOf(error: ServiceError): Details {
  const raw = error.metadata.get("grpc-status-details-bin")[0];
  return detailsIn(() => (raw instanceof Uint8Array ? Status.decode(raw).details : []));
}

/** What the details of a status say. Details that cannot be read count as none. */
export function detailsIn(read: () => Status["details"]): Details {
  const found = {
    reason: undefined as string | undefined,
    metadata: {} as Readonly<Record<string, string>>,
    fields: [] as readonly FieldViolation[],
    retryAfterMs: undefined as number | undefined,
  };
  try {
    for (const { typeUrl, value } of read()) {
      if (typeUrl === `${TYPE}ErrorInfo`) {
        const info = ErrorInfo.decode(value);
        found.reason = info.reason;
        found.metadata = info.metadata;
      } else if (typeUrl === `${TYPE}BadRequest`) {
        found.fields = BadRequest.decode(value).fieldViolations.map((violation) => ({
          field: violation.field,
          description: violation.description,
        }));
      } else if (typeUrl === `${TYPE}RetryInfo`) {
        const delay = RetryInfo.decode(value).retryDelay;
        if (delay !== undefined) {
          found.retryAfterMs = Math.ceil(millisecondsOf(delay));
        }
      }
    }
  } catch {
    // These bytes are some proxy's. The code and the text still count.
  }
  return found;
}

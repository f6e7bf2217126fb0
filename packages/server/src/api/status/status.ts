import { type Code as CodeName, durationOf, IdmintError } from "@idmint/core";
import {
  type Any,
  BadRequest,
  Code,
  ErrorInfo,
  PreconditionFailure,
  QuotaFailure,
  RetryInfo,
  Status,
} from "@idmint/proto/rpc";
import { countRefusal, type Counters } from "../../service/counters.ts";
import type { Emit } from "../../service/events.ts";
import { RecentStatuses } from "./recent-statuses.ts";
import type { WireStatus } from "./wire-status.ts";

/** The domain of every reason. */
const DOMAIN = "idmint";
/** Waiting time of an UNAVAILABLE that does not know a better one. */
const DEFAULT_RETRY_MS = 1_000;
/** Details travel in a header of at most 8 KiB with the callers' defaults. */
const MAX_VIOLATIONS = 20;
const MAX_MESSAGE_LENGTH = 1_000;

/** Who counts what is refused, and hears of what nobody foresaw. */
export interface StatusPorts {
  readonly counters: Counters;
  readonly emit: Emit;
}

/** What errors that never change are on the wire: a server that refuses many calls makes each of them once. */
const frozen = new WeakMap<object, WireStatus>();
const recent = new RecentStatuses();

/** Any thrown value as the status of a call. */
export function statusOf(thrown: unknown, where: string, ports: StatusPorts): WireStatus {
  if (!(thrown instanceof IdmintError)) return newStatus(thrown, where, ports);
  const known = knownStatus(thrown);
  if (known !== undefined) {
    countRefusal(ports.counters, thrown);
    return known;
  }
  const status = newStatus(thrown, where, ports);
  if (Object.isFrozen(thrown)) frozen.set(thrown, Object.freeze(status));
  else if (thrown.reason !== "INTERNAL") recent.keep(thrown, status);
  return status;
}

function newStatus(thrown: unknown, where: string, ports: StatusPorts): WireStatus {
  const { code, message, details } = rpcStatusOf(thrown, where, ports);
  return { code, message, details: Status.encode({ code, message, details }).finish() };
}

/** Never of an INTERNAL, since each of them goes to the log. */
function knownStatus(error: IdmintError): WireStatus | undefined {
  return Object.isFrozen(error) ? frozen.get(error) : recent.of(error);
}

/**
 * Any thrown value as google.rpc.Status; what is not an IdmintError becomes a fixed text, and its cause goes to the log.
 */
export function rpcStatusOf(
  thrown: unknown,
  where: string,
  { counters, emit }: StatusPorts,
): Status {
  const error = IdmintError.from(thrown);
  countRefusal(counters, error);
  if (error.reason === "INTERNAL") {
    emit({ type: "internal-error", where, cause: error.cause ?? error });
  }
  const code = codeNumber(error.code);
  const message = error.message.slice(0, MAX_MESSAGE_LENGTH);
  return { code, message, details: detailsOf(error) };
}

function detailsOf(error: IdmintError): Any[] {
  const { reason, metadata, violations } = error;
  const details = [
    any("ErrorInfo", ErrorInfo.encode({ reason, domain: DOMAIN, metadata: { ...metadata } })),
  ];
  const isUnavailable = error.code === "UNAVAILABLE";
  const retryAfterMs = error.retryAfterMs ?? (isUnavailable ? DEFAULT_RETRY_MS : undefined);
  if (retryAfterMs !== undefined) {
    const retryDelay = durationOf(Math.ceil(retryAfterMs));
    details.push(any("RetryInfo", RetryInfo.encode({ retryDelay })));
  }
  if (violations.length > 0) {
    const fieldViolations = violations
      .slice(0, MAX_VIOLATIONS)
      .map(({ field, description, reason: why = "INVALID_ARGUMENT" }) => ({
        field,
        description: description.slice(0, MAX_MESSAGE_LENGTH),
        reason: why,
        localizedMessage: undefined,
      }));
    details.push(any("BadRequest", BadRequest.encode({ fieldViolations })));
  }
  const { tag, caller } = metadata;
  const subject =
    tag !== undefined ? `tag/${tag}` : caller !== undefined ? `caller/${caller}` : "server";
  const description = error.message.slice(0, MAX_MESSAGE_LENGTH);
  if (error.code === "FAILED_PRECONDITION") {
    const failure = PreconditionFailure.fromPartial({
      violations: [{ type: reason, subject, description }],
    });
    details.push(any("PreconditionFailure", PreconditionFailure.encode(failure)));
  }
  if (error.code === "RESOURCE_EXHAUSTED") {
    const failure = QuotaFailure.fromPartial({ violations: [{ subject, description }] });
    details.push(any("QuotaFailure", QuotaFailure.encode(failure)));
  }
  return details;
}

function any(name: string, message: { finish(): Uint8Array }): Any {
  return {
    typeUrl: `type.googleapis.com/google.rpc.${name}`,
    value: Buffer.from(message.finish()),
  };
}

function codeNumber(name: CodeName): number {
  return Code[name];
}

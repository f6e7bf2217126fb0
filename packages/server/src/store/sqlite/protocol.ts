import { type ErrorDetails, IdmintError, type Reason } from "@idmint/core";
import type { StoreCall } from "@idmint/core/server";
import type { SqliteConfig } from "../shared/config.ts";

/** A request of the main thread; `deadlineMs` is monotonic and means the same in both threads. */
export type Request =
  | {
      readonly id: number;
      readonly call: StoreCall;
      readonly args: readonly unknown[];
      readonly deadlineMs: number;
    }
  | { readonly close: true };

/** What the thread found; see Database.belong. */
export interface Opened {
  readonly schemaVersion: number;
  readonly storeId: string;
}

/** The answers of the store's thread. The first message says whether the file could be opened. */
export type Answer =
  | { readonly opened: Opened }
  | { readonly refused: WireError }
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: WireError };

export interface ThreadData {
  readonly config: SqliteConfig;
  /** The store that it belongs to; undefined: the one that it finds, if the main thread believes that. */
  readonly storeId: string | undefined;
  /** For tests: one 64-bit integer, milliseconds by which the wall clock differs from the host's. */
  readonly clockOffset: SharedArrayBuffer | undefined;
}

/** An IdmintError as plain data, which is what crosses between threads whole. */
export interface WireError {
  readonly reason: Reason;
  readonly text: string;
  readonly details: ErrorDetails;
}

export function toWire(thrown: unknown): WireError {
  const error = IdmintError.from(thrown);
  const { metadata, violations, retryAfterMs, cause } = error;
  return {
    reason: error.reason,
    text: error.message.slice(error.reason.length + ": ".length),
    details: {
      metadata,
      violations,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(cause === undefined ? {} : { cause: describe(cause) }),
    },
  };
}

export function fromWire(error: WireError): IdmintError {
  const { cause } = error.details;
  const details = cause === undefined ? error.details : { ...error.details, cause: revive(cause) };
  return new IdmintError(error.reason, error.text, details);
}

interface Described {
  readonly message: string;
  readonly code: string;
}

function describe(cause: unknown): Described {
  if (!(cause instanceof Error)) return { message: String(cause), code: "" };
  const { code, errcode } = cause as { code?: string; errcode?: number };
  const codes = [code, errcode].filter((part) => part !== undefined);
  return { message: cause.message, code: codes.join(" ") };
}

function revive(cause: unknown): Error {
  const { message, code } = cause as Described;
  return new Error(code === "" ? message : `${message} (${code})`);
}

import { IdmintError } from "@idmint/core";
import { isRefusal, storeUnavailable } from "@idmint/core/server";
import type { Difference } from "./differences.ts";

export function schemaMismatch(text: string): IdmintError {
  return new IdmintError("SCHEMA_MISMATCH", text);
}

/** Why a store does not do what it was asked, until an operator changes something; empty for what may pass by itself. */
export function refusalTextOf(error: IdmintError): string {
  return isRefusal(error) ? error.message.slice(`${error.reason}: `.length) : "";
}

export function tagExists(name: string, differences: readonly Difference[]): IdmintError {
  const told = differences.map(
    ({ field, present, wanted }) => `${field} is ${present}, not ${wanted}`,
  );
  return new IdmintError(
    "TAG_EXISTS",
    `tag "${name}" exists with other settings: ${told.join("; ")}`,
    { metadata: { tag: name, fields: differences.map(({ field }) => field).join(",") } },
  );
}

export function etagMismatch(name: string): IdmintError {
  return new IdmintError("ETAG_MISMATCH", `tag "${name}" has changed; read it again and retry`, {
    metadata: { tag: name },
  });
}

export function fieldImmutable(name: string): IdmintError {
  return new IdmintError(
    "FIELD_IMMUTABLE",
    `tag "${name}" has issued ids, so its kind, order, ceiling, start, period, time zone, backend, shard, time origin, layout, registry and slots cannot change any more`,
    { metadata: { tag: name } },
  );
}

export function writingImmutable(name: string): IdmintError {
  return new IdmintError(
    "FIELD_IMMUTABLE",
    `the format and keys of tag "${name}", and the settings they depend on, never change; if it has issued no ids, delete it and create it again`,
    { metadata: { tag: name } },
  );
}

export function withoutPeriods(name: string, kind: string): IdmintError {
  return new IdmintError(
    "WRONG_KIND",
    `tag "${name}" is a ${kind} without periods; only a sequence that restarts has them`,
    { metadata: { tag: name, kind } },
  );
}

/** The refusal of a store that was closed. */
export function storeClosed(): IdmintError {
  return storeUnavailable("the store is closed");
}

import type { ChangeOptions, Issuing } from "@idmint/core/server";
import type { Stamp } from "./change.ts";

/** Columns of the row `store`, and fields of its like; 64-bit integers as text or bigint. */
export interface IssuingRow {
  readonly issuing_revision: bigint | string | null;
  readonly stopped_at_ms: bigint | string | null;
}

export function issuingFromRow({ issuing_revision, stopped_at_ms }: IssuingRow): Issuing {
  return {
    revision: BigInt(issuing_revision ?? 0n),
    stoppedAtMs: stopped_at_ms === null ? undefined : Number(stopped_at_ms),
  };
}

/** What becomes of `old`, and whether that is to be written. */
export function issuingSet(
  old: Issuing,
  isStopped: boolean,
  { revision, nowMs }: Stamp,
  { validateOnly = false }: ChangeOptions = {},
): { readonly issuing: Issuing; readonly changed: boolean } {
  if ((old.stoppedAtMs !== undefined) === isStopped) return { issuing: old, changed: false };
  const issuing = { revision, stoppedAtMs: isStopped ? nowMs : undefined };
  return { issuing, changed: !validateOnly };
}

/** As people and programs read it; empty: servers issue. */
export function stoppedTimeOf({ stoppedAtMs }: Issuing): string {
  return stoppedAtMs === undefined ? "" : new Date(stoppedAtMs).toISOString();
}

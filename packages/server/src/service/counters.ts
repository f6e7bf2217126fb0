import { IdmintError, type Reason } from "@idmint/core";
import type { QuotaName } from "@idmint/core/server";

/** Numbers since the start, as plain fields: counting costs nothing on the warm path, whoever exports them reads. */
export interface Counters {
  /** Without those that callers returned. */
  issuedIds: number;
  returnedIds: number;
  wastedIds: number;
  grants: number;
  grantCalls: number;
  lookupCalls: number;
  polls: number;
  calls: number;
  refusedCalls: number;
  readonly refusals: Map<Reason, number>;
  /** Of those, for overload. */
  shedCalls: number;
  /** Of those, for a quota. */
  overQuotaCalls: number;
  readonly quotaRefusals: Map<QuotaName, number>;
  connections: number;
  /** Rows of the ledger, and those that there was no room for. */
  ledgerRows: number;
  ledgerDropped: number;
}

export function createCounters(): Counters {
  return {
    issuedIds: 0,
    returnedIds: 0,
    wastedIds: 0,
    grants: 0,
    grantCalls: 0,
    lookupCalls: 0,
    polls: 0,
    calls: 0,
    refusedCalls: 0,
    refusals: new Map(),
    shedCalls: 0,
    overQuotaCalls: 0,
    quotaRefusals: new Map(),
    connections: 0,
    ledgerRows: 0,
    ledgerDropped: 0,
  };
}

/** A call, or a request of a stream, was refused with whatever was thrown. */
export function countRefusal(counters: Counters, thrown: unknown): void {
  counters.refusedCalls++;
  countOne(counters.refusals, IdmintError.from(thrown).reason);
}

export function countOne<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

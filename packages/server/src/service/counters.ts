/** Numbers since the start, as plain fields: counting costs nothing on the warm path, whoever exports them reads. */
export interface Counters {
  issuedIds: number;
  wastedIds: number;
  grants: number;
  grantCalls: number;
  lookupCalls: number;
  polls: number;
  calls: number;
  refusedCalls: number;
  /** Of those, for overload. */
  shedCalls: number;
  /** Of those, for a quota. */
  overQuotaCalls: number;
  connections: number;
}

export function createCounters(): Counters {
  return {
    issuedIds: 0,
    wastedIds: 0,
    grants: 0,
    grantCalls: 0,
    lookupCalls: 0,
    polls: 0,
    calls: 0,
    refusedCalls: 0,
    shedCalls: 0,
    overQuotaCalls: 0,
    connections: 0,
  };
}

/** What may befall any fleet; `faults.ts` says how. */
export const FLEET_FAULTS = [
  "server killed",
  "server stopped",
  "server paused",
  "server suspended",
  "program killed",
  "program stopped",
  "program paused",
  "program suspended",
  "server's clock set",
  "program's clock set",
  "store's clock set",
  "server cut off from the store",
  "program cut off from a server",
  "messages lost",
  "messages slow",
  "slow way to the store",
  "requests sent twice",
  "store down",
  "store hangs",
  "store slow",
  "answers of the store lost",
  "store refuses connections at times",
  "store went back, as another one",
  "store went back, unseen",
] as const;

/** What may befall a fleet that counts in Redis. */
export const REDIS_FAULTS = [
  "Redis down",
  "Redis hangs",
  "Redis slow",
  "answers of Redis lost",
  "Redis takes no writes",
  "Redis restarts",
  "a replica of Redis takes over",
  "Redis emptied",
  "keys of Redis evicted",
  "Redis set back while it runs",
  "Redis' clock set",
  "server cut off from Redis",
] as const;

/** What may befall a fleet that has ticket databases. */
export const TICKET_FAULTS = [
  "ticket database down",
  "ticket database hangs",
  "ticket database slow",
  "answers of a ticket database lost",
  "ticket database went back",
  "server cut off from a ticket database",
  "slots of tickets moved",
] as const;

/** What befalls some fleets besides, for longer. */
export const LONG_FAULTS = [
  "store's disk full",
  "another store's server at an address",
  "two primaries",
] as const;

export const FAULT_KINDS = [
  ...FLEET_FAULTS,
  ...REDIS_FAULTS,
  ...TICKET_FAULTS,
  ...LONG_FAULTS,
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

import type { Mutant } from "./mutant.ts";

const registry = "packages/core/src/server/worker/registry-state.ts";
const leaseState = "packages/core/src/worker/lease-state.ts";
const generator = "packages/core/src/snowflake/generator-state.ts";
const workerScripts = "packages/server/src/store/redis/worker-scripts.ts";
const lead = ["packages/core/test/snowflake/lead.test.ts"];
const judged = ["packages/core/test/server/worker/registry-state.test.ts"];
const redisWorkers = ["packages/server/test/store/redis/workers.redis.test.ts"];

const source = "packages/server/src/service/kinds/snowflake/source.ts";
const sources = ["packages/server/test/service/snowflake-source.test.ts"];

/** Faults of leases that begin ahead of the clock, and of what ends with a lease. */
export const leaseMutants: readonly Mutant[] = [
  {
    name: "leases: who asks for more than is allowed is given nothing",
    file: registry,
    find: `const allowed = Math.min(reserveUntilMs, limit);`,
    replace: `const allowed = reserveUntilMs <= limit ? reserveUntilMs : 0;`,
    tests: lead,
  },
  {
    name: "leases: a reservation falls with the registry's clock",
    file: registry,
    find: `reservedUntilMs: Math.max(held.reservedUntilMs, allowed) };`,
    replace: `reservedUntilMs: allowed };`,
    tests: judged,
  },
  {
    name: "leases: a reservation in Redis falls with its clock",
    file: workerScripts,
    find: `math.max(before, math.min(tonumber(ARGV[7]), most))`,
    replace: `math.min(tonumber(ARGV[7]), most)`,
    tests: redisWorkers,
  },
  {
    name: "leases: Redis gives nothing to who asks for more than is allowed",
    file: workerScripts,
    find: `row.reserved = untilMs
row.token`,
    replace: `if tonumber(ARGV[7]) <= most then row.reserved = untilMs end
row.token`,
    tests: redisWorkers,
  },
  {
    name: "leases: what may be reserved counts from the clock, though the floor is ahead of it",
    file: registry,
    find: `Math.max(nowMs + reserveAheadMs, aboveFloor)`,
    replace: `nowMs + reserveAheadMs`,
    tests: lead,
  },
  {
    name: "leases: Redis counts from its clock, though the floor is ahead of it",
    file: workerScripts,
    find: `math.max(now + ahead, start +`,
    replace: `math.max(now + ahead, now +`,
    tests: redisWorkers,
  },
  {
    name: "leases: a lease may begin below the floor",
    file: registry,
    find: `const before = Math.max(old.reservedUntilMs, rules.closedUntilMs);`,
    replace: `const before = old.reservedUntilMs;`,
    tests: judged,
  },
  {
    name: "leases: a lead is asked for again and again",
    file: generator,
    find: `return Math.max(reading.wallMs, timeOf(state.layout, state.tick));`,
    replace: `return Math.max(reading.wallMs, carriedOn(state, reading));`,
    tests: lead,
  },
  {
    name: "leases: a lead goes on with the monotonic clock",
    file: generator,
    find: `Math.max(reading.wallMs, Math.min(carriedMs, nextMs));`,
    replace: `Math.max(reading.wallMs, carriedMs);`,
    tests: lead,
  },
  {
    name: "leases: a clock that was wrong counts as a lead that the registry allowed",
    file: leaseState,
    find: `return isAllowed || reservedUntilMs >= notBeforeMs ? leadMs : 0;`,
    replace: `return isAllowed || reservedUntilMs < notBeforeMs ? leadMs : 0;`,
    tests: lead,
  },
  {
    name: "leases: a clock counts as set back when quick restarts have used up the lead",
    file: leaseState,
    find: `return isAllowed || reservedUntilMs >= notBeforeMs ? leadMs : 0;`,
    replace: `return isAllowed && reservedUntilMs >= notBeforeMs ? leadMs : 0;`,
    tests: lead,
  },
  {
    name: "leases: an epoch that ends leases counts as another holder of the name",
    file: leaseState,
    find: ` || lost.epoch !== epoch) {`,
    replace: `) {`,
    tests: lead,
  },
  {
    name: "leases: two holders of one name are not told of",
    file: leaseState,
    find: `if (isShared) effects.push({ type: "name-shared", workerId });`,
    replace: ``,
    tests: lead,
  },
  {
    name: "leases: ids of a lease that ended are answered after an epoch change",
    file: source,
    find: `if (maker === this.#maker) return segments;`,
    replace: `if (maker !== undefined) return segments;`,
    tests: sources,
  },
  {
    name: "leases: a lease of another epoch is taken up",
    file: "packages/core/src/worker/holder.ts",
    find: `if (epoch !== undefined && lease.epoch !== epoch) throw`,
    replace: `if (epoch !== undefined && lease.epoch < epoch) throw`,
    tests: sources,
  },
  {
    name: "leases: a lease goes on in the next epoch",
    file: source,
    find: `    this.#epoch = epoch;
    this.#end(segmentNotReady(this.#name, RETRY_AFTER_MS));`,
    replace: `    this.#epoch = epoch;`,
    tests: sources,
  },
];

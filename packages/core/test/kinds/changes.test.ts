// What may change after the first id, and what a caller may leave to servers.
import { expect, test } from "vitest";
import type { TagKind } from "../../src/kinds/table.ts";
import { SNOWFLAKE_PRESETS } from "../../src/snowflake/layout.ts";
import { isSameButForPlace, isSameButForTuning } from "../../src/kinds/compare.ts";

const segment = { kind: "segment", start: 1n, min: 1, max: 2, holdForMs: 3, maxAgeMs: 4 } as const;
const periods = { unit: "DAY", timeZone: "UTC", keepForMs: 1 } as const;
const daily = { kind: "sequence", start: 1n, periods, redis: undefined } as const;
const redis = { server: "a", step: 1 } as const;
const counted = { kind: "sequence", start: 1n, periods: undefined, redis } as const;
const flake = { kind: "redis_snowflake", shard: 1, timeOriginMs: 0, redisServer: "a" } as const;
const ticket = { kind: "ticket", start: 1n, slots: 60, slotsId: "t.1" } as const;
const layout = SNOWFLAKE_PRESETS["41-5-5-12"];
const snowflake = {
  kind: "snowflake",
  layout,
  dataCenter: 0,
  clockPolicy: "REFUSE",
  clockWaitMs: 5,
  registry: "REDIS",
  redisServer: "a",
} as const;

test.each<[string, TagKind, TagKind, boolean]>([
  ["nothing", segment, { ...segment }, true],
  ["sizes and times", segment, { ...segment, min: 2, max: 3, holdForMs: 4, maxAgeMs: 5 }, true],
  ["the start of a segment", segment, { ...segment, start: 2n }, false],
  ["how long periods are kept", daily, { ...daily, periods: { ...periods, keepForMs: 2 } }, true],
  ["the unit", daily, { ...daily, periods: { ...periods, unit: "WEEK" } }, false],
  ["the zone", daily, { ...daily, periods: { ...periods, timeZone: "Asia/Tokyo" } }, false],
  ["periods at all", daily, { ...daily, periods: undefined }, false],
  ["the start of a sequence", counted, { ...counted, start: 2n }, false],
  ["step and server", counted, { ...counted, redis: { server: "b", step: 2 } }, true],
  ["the backend", counted, { ...counted, redis: undefined }, false],
  ["the Redis server of a snowflake", flake, { ...flake, redisServer: "b" }, true],
  ["the shard within ids", flake, { ...flake, shard: 2 }, false],
  ["where time begins", flake, { ...flake, timeOriginMs: 1 }, false],
  ["the number of slots", ticket, { ...ticket, slots: 61 }, false],
  ["the slots", ticket, { ...ticket, slotsId: "t.2" }, false],
  [
    "data center, policy and wait",
    snowflake,
    { ...snowflake, dataCenter: 1, clockWaitMs: 6 },
    true,
  ],
  ["the policy", snowflake, { ...snowflake, clockPolicy: "BACKUP_WORKER" }, true],
  ["the layout", snowflake, { ...snowflake, layout: { ...layout, workerBits: 6 } }, false],
  ["the registry", snowflake, { ...snowflake, registry: "STORE" }, false],
  ["the version", { kind: "uuid", version: 4 }, { kind: "uuid", version: 7 }, false],
  ["the kind", { kind: "uuid", version: 4 }, segment, false],
])("%s: whether it may change after the first id", (_what, one, other, mayChange) => {
  expect(isSameButForTuning(one, other)).toBe(mayChange);
  expect(isSameButForTuning(other, one)).toBe(mayChange);
});

test.each<[TagKind, TagKind, boolean]>([
  [counted, { ...counted, redis: { ...redis, server: "" } }, true],
  [counted, { ...counted, redis: { ...redis, step: 2 } }, false],
  [flake, { ...flake, redisServer: "" }, true],
  [flake, { ...flake, shard: 2 }, false],
  [ticket, { ...ticket, slotsId: "" }, true],
  [ticket, { ...ticket, slots: 61 }, false],
  [snowflake, { ...snowflake, redisServer: "" }, true],
  [snowflake, { ...snowflake, dataCenter: 1 }, false],
  [segment, { ...segment, maxAgeMs: 5 }, false],
])("whether %o and %o were asked for in the same words", (one, other, isSame) => {
  expect(isSameButForPlace(one, other)).toBe(isSame);
});

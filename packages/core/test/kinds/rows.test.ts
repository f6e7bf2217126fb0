// What rows hold is read by other releases: it never changes.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { TagKind } from "../../src/kinds/table.ts";
import { MAX_ID } from "../../src/limits.ts";
import { SNOWFLAKE_PRESETS } from "../../src/snowflake/layout.ts";
import { isSameButForTuning, isSameKind } from "../../src/kinds/compare.ts";
import { flatFields, isSameValue, valueAt } from "../../src/kinds/fields.ts";
import { KIND_NAMES, specOf, valuesOf } from "../../src/kinds/table.ts";

const layout = SNOWFLAKE_PRESETS["41-5-5-12"];

test.each<[TagKind, string]>([
  [
    {
      kind: "segment",
      start: MAX_ID,
      min: 1_000,
      max: 100_000_000,
      holdForMs: 900_000,
      maxAgeMs: 600_000,
    },
    '{"start":"9223372036854775807","min":1000,"max":100000000,"holdForMs":900000,"maxAgeMs":600000}',
  ],
  [
    {
      kind: "segment",
      start: 1n,
      min: 1,
      max: 2,
      holdForMs: 3,
      maxAgeMs: 4,
      tinyidStep: 100_000,
    },
    '{"start":"1","min":1,"max":2,"holdForMs":3,"maxAgeMs":4,"tinyidStep":100000}',
  ],
  [
    { kind: "sequence", start: 1n, periods: undefined, redis: undefined },
    '{"start":"1","periods":null,"redis":null}',
  ],
  [
    {
      kind: "sequence",
      start: 1n,
      periods: { unit: "WEEK", timeZone: "Asia/Shanghai", keepForMs: 86_400_000 },
      redis: undefined,
    },
    '{"start":"1","periods":{"unit":"WEEK","timeZone":"Asia/Shanghai","keepForMs":86400000},"redis":null}',
  ],
  [
    { kind: "sequence", start: 7n, periods: undefined, redis: { server: "a", step: 10_000 } },
    '{"start":"7","periods":null,"redis":{"shard":"a","step":10000}}',
  ],
  [
    {
      kind: "sequence",
      start: 7n,
      periods: undefined,
      redis: { server: "a", step: 100, maxSkip: 1_000 },
    },
    '{"start":"7","periods":null,"redis":{"shard":"a","step":100,"maxSkip":1000}}',
  ],
  [
    { kind: "redis_snowflake", shard: 60, timeOriginMs: 1_767_225_600_000, redisServer: "b" },
    '{"shard":60,"timeOriginMs":1767225600000,"redisShard":"b"}',
  ],
  [
    { kind: "ticket", start: 1n, slots: 60, slotsId: "coupons.x" },
    '{"start":"1","slots":60,"slotsId":"coupons.x"}',
  ],
  [
    {
      kind: "snowflake",
      layout,
      dataCenter: 3,
      clockPolicy: "BACKUP_WORKER",
      clockWaitMs: 5,
      registry: "STORE",
    },
    '{"layout":{"timeUnitMs":1,"timeOriginMs":1767225600000,"timeBits":41,"extensionBits":0,"dataCenterBits":5,"workerBits":5,"sequenceBits":12},"dataCenter":3,"clockPolicy":"BACKUP_WORKER","clockWaitMs":5,"registry":"STORE","redisShard":null}',
  ],
  [
    {
      kind: "snowflake",
      layout,
      dataCenter: 0,
      clockPolicy: "REFUSE",
      clockWaitMs: 0,
      registry: "REDIS",
      redisServer: "a",
    },
    '{"layout":{"timeUnitMs":1,"timeOriginMs":1767225600000,"timeBits":41,"extensionBits":0,"dataCenterBits":5,"workerBits":5,"sequenceBits":12},"dataCenter":0,"clockPolicy":"REFUSE","clockWaitMs":0,"registry":"REDIS","redisShard":"a"}',
  ],
  [{ kind: "uuid", version: 7 }, '{"version":7}'],
  [
    { kind: "uuid", version: 2, domain: "GROUP", number: 4_294_967_295 },
    '{"version":2,"domain":"GROUP","number":4294967295}',
  ],
  [
    { kind: "uuid", version: 5, namespace: "6ba7b810-9dad-11d1-80b4-00c04fd430c8" },
    '{"version":5,"namespace":"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}',
  ],
  [{ kind: "object_id", variant: "MACHINE_PROCESS" }, '{"variant":"MACHINE_PROCESS"}'],
])("the row of %o is as ever", (settings, text) => {
  const { row } = specOf(settings);
  expect(row.write(settings)).toBe(text);
  expect(row.read(JSON.parse(text) as Record<string, unknown>)).toEqual(settings);
});

const few = fc.integer({ min: 1, max: 2 });
const id = fc.bigInt({ min: 1n, max: 2n });
const place = fc.constantFrom("a", "b");
/** Settings of few values, so that two of them often agree in most. */
const settings: fc.Arbitrary<TagKind> = fc.oneof(
  fc.record({
    kind: fc.constant("segment" as const),
    start: id,
    min: few,
    max: few,
    holdForMs: few,
    maxAgeMs: few,
  }),
  fc.record({
    kind: fc.constant("sequence" as const),
    start: id,
    periods: fc.option(
      fc.record({
        unit: fc.constantFrom("DAY" as const, "WEEK" as const),
        timeZone: fc.constantFrom("UTC", "Asia/Shanghai"),
        keepForMs: few,
      }),
      { nil: undefined },
    ),
    redis: fc.option(
      fc.record({ server: place, step: few, maxSkip: few }, { requiredKeys: ["server", "step"] }),
      { nil: undefined },
    ),
  }),
  fc.record({
    kind: fc.constant("redis_snowflake" as const),
    shard: few,
    timeOriginMs: few,
    redisServer: place,
  }),
  fc.record({ kind: fc.constant("ticket" as const), start: id, slots: few, slotsId: place }),
  fc.record(
    {
      kind: fc.constant("snowflake" as const),
      layout: fc.record({
        timeUnitMs: few,
        timeOriginMs: few,
        timeBits: few,
        extensionBits: few,
        dataCenterBits: few,
        workerBits: few,
        sequenceBits: few,
      }),
      dataCenter: few,
      clockPolicy: fc.constantFrom("REFUSE" as const, "EXTENSION" as const),
      clockWaitMs: few,
      registry: fc.constantFrom("STORE" as const, "REDIS" as const),
      redisServer: place,
    },
    { requiredKeys: ["kind", "layout", "dataCenter", "clockPolicy", "clockWaitMs", "registry"] },
  ),
  fc.record({
    kind: fc.constant("uuid" as const),
    version: fc.constantFrom(1 as const, 7 as const),
  }),
  fc.record({
    kind: fc.constant("uuid" as const),
    version: fc.constant(2 as const),
    domain: fc.constantFrom("PERSON" as const, "ORG" as const),
    number: few,
  }),
  fc.record({
    kind: fc.constant("uuid" as const),
    version: fc.constantFrom(3 as const, 5 as const),
    namespace: place,
  }),
  fc.record({
    kind: fc.constant("object_id" as const),
    variant: fc.constantFrom("CLASSIC" as const, "MACHINE_PROCESS" as const),
  }),
);

test("the fields of a kind are all that its rows hold", () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(settings, settings, (one, other) => {
      seen.add(one.kind);
      fc.pre(one.kind === other.kind);
      const [a, b] = [valuesOf(one), valuesOf(other)];
      const isSame = flatFields(specOf(one).fields).every(([path, field]) =>
        isSameValue(field, valueAt(a, path), valueAt(b, path)),
      );
      expect(isSame).toBe(isSameKind(one, other));
      if (isSame) expect(isSameButForTuning(one, other)).toBe(true);
    }),
    { numRuns: 5_000 },
  );
  expect([...seen].toSorted()).toEqual([...KIND_NAMES].toSorted());
});

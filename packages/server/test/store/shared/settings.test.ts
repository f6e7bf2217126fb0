import { MAX_ID } from "@idmint/core";
import type { TagKind } from "@idmint/core/kinds";
import fc from "fast-check";
import { expect, test } from "vitest";
import { settingsFromText, settingsText } from "../../../src/store/shared/settings.ts";

const id = fc.bigInt({ min: 1n, max: MAX_ID });
const count = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const periods = fc.record({
  unit: fc.constantFrom("DAY" as const, "WEEK" as const, "MONTH" as const, "YEAR" as const),
  timeZone: fc.string(),
  keepForMs: count,
});
const kind: fc.Arbitrary<TagKind> = fc.oneof(
  fc.record({
    kind: fc.constant("segment" as const),
    start: id,
    min: count,
    max: count,
    holdForMs: count,
    maxAgeMs: count,
  }),
  fc.record({
    kind: fc.constant("sequence" as const),
    start: id,
    periods: fc.option(periods, { nil: undefined }),
    redis: fc.option(fc.record({ server: fc.string(), step: count }), { nil: undefined }),
  }),
  fc.record({
    kind: fc.constant("redis_snowflake" as const),
    shard: fc.nat(4_095),
    timeOriginMs: fc.nat(),
    redisServer: fc.string(),
  }),
  fc.record({
    kind: fc.constant("ticket" as const),
    start: id,
    slots: count,
    slotsId: fc.string(),
  }),
);

test("settings are read as they were written, and made into one and the same text", () => {
  fc.assert(
    fc.property(kind, (settings) => {
      const text = settingsText(settings);
      expect(settingsFromText("t", settings.kind, text)).toEqual(settings);
      // The order of an object's fields makes no difference.
      const entries = Object.entries(settings).toReversed();
      expect(settingsText(Object.fromEntries(entries) as unknown as TagKind)).toBe(text);
    }),
  );
});

const good = '{"start":"1","min":1,"max":2,"holdForMs":3,"maxAgeMs":4}';
const sequence = '{"start":"1","periods":null,"redis":null}';

test("the texts that the next tests spoil are good", () => {
  for (const [of, text] of [
    ["segment", good],
    ["sequence", sequence],
    ["sequence", sequence.replace("null", '{"unit":"DAY","timeZone":"UTC","keepForMs":1}')],
    ["ticket", '{"start":"1","slots":60,"slotsId":"t.1"}'],
  ] as const) {
    expect(settingsText(settingsFromText("t", of, text))).toBe(text);
  }
});

for (const [what, of, text] of [
  ["another kind's settings", "segment", sequence],
  ["an unknown kind", "snowflake", good],
  ["no JSON", "segment", good.slice(1)],
  ["no object", "segment", "null"],
  ["a field too many", "segment", good.replace("}", ',"more":1}')],
  ["a field too few", "segment", good.replace(',"maxAgeMs":4', "")],
  ["another order", "ticket", '{"slots":60,"start":"1","slotsId":"t.1"}'],
  ["a space", "ticket", '{"start":"1", "slots":60,"slotsId":"t.1"}'],
  ["an id as a number", "ticket", '{"start":1,"slots":60,"slotsId":"t.1"}'],
  ["an id of nothing", "ticket", '{"start":"","slots":60,"slotsId":"t.1"}'],
  ["an id of letters", "ticket", '{"start":"one","slots":60,"slotsId":"t.1"}'],
  ["id 0", "ticket", '{"start":"0","slots":60,"slotsId":"t.1"}'],
  ["an id past the last", "ticket", `{"start":"${MAX_ID + 1n}","slots":60,"slotsId":"t.1"}`],
  ["a number as text", "ticket", '{"start":"1","slots":"60","slotsId":"t.1"}'],
  ["a broken number", "ticket", '{"start":"1","slots":60.5,"slotsId":"t.1"}'],
  ["a number below its range", "ticket", '{"start":"1","slots":0,"slotsId":"t.1"}'],
  [
    "an unknown unit",
    "sequence",
    sequence.replace("null", '{"unit":"HOUR","timeZone":"UTC","keepForMs":1}'),
  ],
  ["half a period", "sequence", sequence.replace("null", '{"unit":"DAY","timeZone":"UTC"}')],
  [
    "a zone of no text",
    "sequence",
    sequence.replace("null", '{"unit":"DAY","timeZone":1,"keepForMs":1}'),
  ],
  ["periods left out", "sequence", '{"start":"1","redis":null}'],
] as const) {
  test(`settings with ${what} are refused`, () => {
    expect(() => settingsFromText("t", of, text)).toThrow(/SCHEMA_MISMATCH.*tag "t"/u);
  });
}

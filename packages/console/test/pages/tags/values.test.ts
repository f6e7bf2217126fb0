import { durationText, type Field } from "@idmint/core/kinds";
import fc from "fast-check";
import { expect, test } from "vitest";
import { timeOrigin } from "../../../../cli/src/flags/parse.ts";
import { effectView, leftText } from "../../../src/pages/tags/model/effect-state.ts";
import { idValue } from "../../../src/pages/tags/model/id-value.ts";
import { textOf, valueFrom } from "../../../src/pages/tags/model/typed.ts";
import { placed } from "../../../src/pages/tags/model/violations.ts";

const field = (type: Field["type"]): Field => ({ type, change: "any-time", help: "" });

test("a value is read as it is written", () => {
  const day = 86_400_000;
  const values: readonly (readonly [
    Field["type"],
    fc.Arbitrary<bigint | number | boolean | string>,
  ])[] = [
    ["id", fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
    ["int32", fc.integer()],
    ["uint32", fc.integer({ min: 0, max: 2 ** 32 - 1 })],
    [
      "duration",
      fc
        .integer({ min: 0, max: 3_650 * day })
        .filter((ms) => /^\d{1,9}[a-z]/u.test(durationText(ms))),
    ],
    ["time", fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) })],
    ["text", fc.string().filter((text) => text.trim() !== "")],
    ["bool", fc.constant(true)],
  ];
  for (const [type, value] of values) {
    fc.assert(
      fc.property(value, (one) => {
        expect(valueFrom(field(type), textOf(field(type), one))).toEqual({ value: one });
      }),
    );
  }
});

test("a time is what the command line takes for one", () => {
  const parse = timeOrigin("--time-origin");
  const digits = fc.stringMatching(/^\d{1,14}$/u);
  const dates = fc.stringMatching(
    /^20\d\d-[01]\d-[0-3]\d(?:T[0-2]\d:[0-5]\d:[0-6]\d(?:\.\d{3})?Z)?$/u,
  );
  fc.assert(
    fc.property(fc.oneof(digits, dates), (text) => {
      let typed: unknown;
      try {
        typed = { value: parse(text).getTime() };
      } catch {
        typed = { fault: "time" };
      }
      expect(valueFrom(field("time"), text)).toEqual(typed);
    }),
    { numRuns: 1_000 },
  );
});

test("numbers that their type cannot carry are no numbers", () => {
  for (const [type, text] of [
    ["id", "9223372036854775808"],
    ["int32", "2147483648"],
    ["uint32", "-1"],
    ["id", "1e3"],
    ["id", "0x10"],
    ["int32", "1.0"],
  ] as const) {
    expect(valueFrom(field(type), text)).toEqual({ fault: "number" });
  }
  expect(valueFrom(field("id"), " 007 ")).toEqual({ value: 7n });
});

test("an id is sent as the tag has ids, and never as a number of JavaScript", () => {
  expect(idValue(" 9223372036854775807 ", false)).toEqual({ id: "9223372036854775807" });
  expect(idValue("9223372036854775808", false)).toEqual({ text: "9223372036854775808" });
  expect(idValue("INV000000018", false)).toEqual({ text: "INV000000018" });
  expect(idValue("42", true)).toEqual({ text: "42" });
  expect(idValue("-1", false)).toEqual({ text: "-1" });
});

function violation(name: string, description: string): { field: string; description: string } {
  return { field: name, description };
}

test("a violation stands at its field, once; what has no field stands apart", () => {
  const { byPath, others } = placed(
    [
      violation("tag.segment.min", "must be less"),
      violation("tag.segment.min", "must be less"),
      violation("tag.segment.min", "must be odd"),
      violation("tag.snowflake.layout", "has 70 bits"),
      violation("tag.ticket", "cannot be made here"),
      violation("update_mask", "is required"),
    ],
    ["name", "segment.min", "snowflake.layout"],
  );
  expect(Object.fromEntries(byPath)).toEqual({
    "segment.min": ["must be less", "must be odd"],
    "snowflake.layout": ["has 70 bits"],
  });
  expect(others.map(({ field: name }) => name)).toEqual(["tag.ticket", "update_mask"]);
});

test("a change is in effect when the server says so, whatever the clocks say", () => {
  const answer = { effectiveTime: "2026-11-23T06:00:10Z", laggingNodeCount: 1 };
  const now = Date.parse("2026-11-23T06:00:00Z");
  expect(effectView(answer, now, 0)).toEqual({ state: "counting", leftMs: 10_000, lagging: 1 });
  // The server's clock is four seconds ahead.
  expect(effectView(answer, now, 4_000)).toMatchObject({ leftMs: 6_000 });
  expect(effectView(answer, now + 60_000, 0)).toEqual({ state: "due", lagging: 1 });
  expect(effectView({ ...answer, inEffect: true }, now, 0)).toEqual({ state: "done" });
  expect(effectView({ laggingNodeCount: 2, effectiveTime: null }, now, 0)).toEqual({
    state: "unknown",
    lagging: 2,
  });
});

test.each([
  [1, "1s"],
  [1_000, "1s"],
  [59_001, "1m"],
  [604_000, "10m 4s"],
  [3_600_000, "1h"],
  [3_661_000, "1h 1m"],
  [90_000_000, "25h"],
])("%d ms are shown as %s", (ms, text) => {
  expect(leftText(ms)).toBe(text);
});

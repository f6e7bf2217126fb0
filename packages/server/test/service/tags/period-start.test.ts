import { periodName } from "@idmint/core/server";
import { expect, test } from "vitest";
import { periodStart } from "../../../src/service/tags/period-start.ts";

const DAY_MS = 86_400_000;

test("every period is found by its name", () => {
  for (let atMs = Date.UTC(1995, 0, 2); atMs < Date.UTC(2035, 0, 1); atMs += DAY_MS) {
    const start = new Date(atMs).toISOString().slice(0, 10);
    expect(periodStart("DAY", start)).toBe(start);
    if (new Date(atMs).getUTCDay() === 1) {
      expect(periodStart("WEEK", periodName({ unit: "WEEK", start }))).toBe(start);
    }
  }
  expect(periodStart("MONTH", "2026-11")).toBe("2026-11-01");
  expect(periodStart("YEAR", "2026")).toBe("2026-01-01");
});

test.each([
  ["DAY", "2026-02-30"],
  ["DAY", "2026-11"],
  ["DAY", ""],
  ["WEEK", "2026-W54"],
  ["WEEK", "2025-W53"],
  ["WEEK", "2026-W00"],
  ["WEEK", "2026-11-16"],
  ["MONTH", "2026-13"],
  ["MONTH", "2026-11-01"],
  ["YEAR", "26"],
  ["YEAR", "2026-01"],
] as const)("no %s is called %j", (unit, name) => {
  expect(periodStart(unit, name)).toBeUndefined();
});

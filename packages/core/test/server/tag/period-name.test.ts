import { periodText } from "@idmint/core";
import { periodName } from "@idmint/core/server";
import { expect, test } from "vitest";

const DAY_MS = 86_400_000;

test.each([
  ["DAY", "2026-11-21", "2026-11-21", "20261121-1"],
  ["WEEK", "2026-11-16", "2026-W47", "2026W47-1"],
  ["MONTH", "2026-11-01", "2026-11", "202611-1"],
  ["YEAR", "2026-01-01", "2026", "2026-1"],
] as const)(
  "a %s that begins on %s is called %s, and its first id %s",
  (unit, start, name, text) => {
    expect(periodName({ unit, start })).toBe(name);
    expect(periodText(name, 1n)).toBe(text);
  },
);

test.each([
  ["2020-12-28", "2020-W53"],
  ["2021-01-04", "2021-W01"],
  ["2024-12-30", "2025-W01"],
  ["2018-12-31", "2019-W01"],
  ["2024-02-26", "2024-W09"],
  ["2024-03-04", "2024-W10"],
])("the week that begins on %s is %s", (start, name) => {
  expect(periodName({ unit: "WEEK", start })).toBe(name);
});

test("weeks of 400 years follow each other, and each belongs to the year of its Thursday", () => {
  let before = "";
  let week = 0;
  // A Monday.
  for (let at = Date.UTC(1900, 0, 1); at < Date.UTC(2300, 0, 1); at += 7 * DAY_MS) {
    const name = periodName({ unit: "WEEK", start: new Date(at).toISOString().slice(0, 10) });
    const year = String(new Date(at + 3 * DAY_MS).getUTCFullYear());
    week = before === year ? week + 1 : 1;
    before = year;
    expect(name).toBe(`${year}-W${String(week).padStart(2, "0")}`);
  }
});

import { IdmintError } from "@idmint/core";
import { durationText } from "@idmint/core/kinds";
import { expect, test } from "vitest";
import { address, ceiling, duration, id, oneOf, smallNumber, time } from "../../src/flags/parse.ts";

function violation(parse: () => unknown): string {
  try {
    parse();
  } catch (error) {
    if (!(error instanceof IdmintError)) throw error;
    const [first] = error.violations;
    return `${first?.field} ${first?.description}`;
  }
  throw new Error("nothing was refused");
}

test("an id is read exactly up to 2^63 − 1, and refused past it", () => {
  expect(id("--floor")("9223372036854775807")).toBe(2n ** 63n - 1n);
  expect(id("--floor")("9007199254740993")).toBe(9_007_199_254_740_993n);
  expect(violation(() => id("--floor")("9223372036854775808"))).toBe(
    '--floor must be a whole number from 1 to 9223372036854775807, got "9223372036854775808"',
  );
});

test.each([
  "",
  "0",
  "-1",
  "1.0",
  "1e3",
  "0x10",
  "1_000",
  "1,000",
  " 1",
  "١",
  "NaN",
  "9".repeat(400),
])("%j is no id", (text) => {
  expect(violation(() => id("--floor")(text))).toMatch(/^--floor must be a whole number from 1 to/);
});

test("a count keeps to its limits on both sides", () => {
  const parse = smallNumber("--count", { min: 1, max: 10 });
  expect([parse("1"), parse("10")]).toEqual([1, 10]);
  expect(violation(() => parse("0"))).toContain("from 1 to 10");
  expect(violation(() => parse("11"))).toContain("from 1 to 10");
});

test("a ceiling may be named after what must hold it", () => {
  const parse = ceiling("--ceiling");
  expect(["int32", "js", "int64", "77"].map(parse)).toEqual([
    2n ** 31n - 1n,
    2n ** 53n - 1n,
    2n ** 63n - 1n,
    77n,
  ]);
  expect(violation(() => parse("int16"))).toBe(
    '--ceiling must be an id or one of int32, js, int64, got "int16"',
  );
  expect(violation(() => parse("toString"))).toContain("one of int32");
  expect(violation(() => parse("0"))).toContain("from 1 to");
});

test("a time needs a unit and keeps to its limits", () => {
  const parse = duration("--hold-for", { minMs: 1_000, maxMs: 86_400_000 });
  expect(["1s", "1500ms", "15m", "15min", "24h"].map(parse)).toEqual([
    1_000, 1_500, 900_000, 900_000, 86_400_000,
  ]);
  for (const text of [
    "15",
    "15 m",
    "1.5h",
    "-1s",
    "m",
    "15M",
    "1h30m",
    "999ms",
    "25h",
    "1e9h",
    "",
  ]) {
    expect(
      violation(() => parse(text)),
      text,
    ).toContain("from 1s to 24h");
  }
});

test("long times are days", () => {
  const parse = duration("--keep-for", { minMs: 86_400_000, maxMs: 3_650 * 86_400_000 });
  expect(["1d", "24h", "400d", "3650d"].map(parse)).toEqual([
    86_400_000, 86_400_000, 34_560_000_000, 315_360_000_000,
  ]);
  for (const text of ["0d", "23h", "3651d", "1.5d", "1y"]) {
    expect(violation(() => parse(text))).toContain("from 24h to 3650d");
  }
});

test("a time of the calendar is in UTC, and there", () => {
  const parse = time("--time-origin");
  expect(parse("2026-01-01").getTime()).toBe(Date.UTC(2026, 0, 1));
  expect(parse("2024-02-29T23:59:59Z").getTime()).toBe(Date.UTC(2024, 1, 29, 23, 59, 59));
  expect(parse("2026-01-01T08:30:00.125Z").getTime()).toBe(Date.UTC(2026, 0, 1, 8, 30, 0, 125));
  for (const text of [
    "",
    "yesterday",
    "2026",
    "2026-1-1",
    "2026-13-01",
    "2026-02-30",
    "2026-01-01T08:30",
    "2026-01-01T08:30:00",
    "2026-01-01T08:30:00+08:00",
    "2026-01-01T24:00:00Z",
    "2026-01-01T08:60:00Z",
    "+012026-01-01",
  ]) {
    expect(violation(() => parse(text))).toContain("--time-origin must be a time in UTC such as");
  }
});

test("a time is shown in the largest unit that states it exactly", () => {
  const times = [1, 1_000, 90_000, 900_000, 86_400_000, 1_500, 172_800_000, 90_000_000];
  expect(times.map(durationText)).toEqual([
    "1ms",
    "1s",
    "90s",
    "15m",
    "24h",
    "1500ms",
    "2d",
    "25h",
  ]);
});

test("a word is one of those listed", () => {
  const parse = oneOf("--order", { strict: 3 });
  expect(parse("strict")).toBe(3);
  expect(violation(() => parse("Strict"))).toBe('--order must be one of strict, got "Strict"');
  expect(violation(() => parse("constructor"))).toContain("one of strict");
});

test("an address has a host and a port, or a scheme of gRPC's", () => {
  const parse = address("--address");
  for (const good of [
    "127.0.0.1:7600",
    "ids-1.internal:1",
    "[::1]:65535",
    "dns:///ids:7600",
    "unix:/tmp/s",
  ]) {
    expect(parse(good)).toBe(good);
  }
  for (const bad of [
    "",
    "localhost",
    ":7600",
    "a:0",
    "a:65536",
    "::1:7600",
    "http://a:1",
    "a b:1",
    "a:1/x",
  ]) {
    expect(
      violation(() => parse(bad)),
      bad,
    ).toContain("--address must be host:port");
  }
});

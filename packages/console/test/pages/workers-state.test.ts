import { expect, test } from "vitest";
import {
  centersOf,
  leaseStateOf,
  leasing,
  type Tag,
  type Worker,
  workerIdOf,
} from "../../src/pages/workers/workers-state.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");

test("only tags with leases are listed", () => {
  const tags = [
    { name: "a", segment: {} },
    { name: "b", snowflake: {} },
  ] as unknown[] as Tag[];
  expect(leasing(tags).map(({ name }) => name)).toEqual(["b"]);
});

test.each([
  [{ leased: true, reservedUntilTime: "2025-01-01T00:00:00Z" }, "leased"],
  [{ leased: false, reservedUntilTime: "2026-01-01T00:00:03Z" }, "reserved"],
  [{ leased: false, reservedUntilTime: "2025-12-31T23:59:59Z" }, "free"],
  [{ leased: false, reservedUntilTime: undefined }, "free"],
] as const)("%j is %s: nobody gets a worker id whose time is still reserved", (worker, state) => {
  expect(leaseStateOf(worker, NOW)).toBe(state);
});

test.each(["", "x", "-1", "1.5", "1e3", " 1", "9999999999"])("%j is no worker id", (typed) => {
  expect(workerIdOf(typed)).toBeUndefined();
});

test("worker ids are read as they are typed", () => {
  expect(["0", "7", "1023"].map(workerIdOf)).toEqual([0, 7, 1_023]);
});

test("workers stand by data center, in the order of the answer", () => {
  const workers = [0, 0, 3].map((dataCenter, workerId) => ({ dataCenter, workerId }) as Worker);
  const shown = centersOf(workers).map(({ dataCenter, workers: its }) => [dataCenter, its.length]);
  expect(shown).toEqual([
    [0, 2],
    [3, 1],
  ]);
});

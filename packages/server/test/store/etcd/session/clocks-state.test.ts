import { expect, test } from "vitest";
import { StoreClock } from "../../../../src/store/etcd/session/clocks-state.ts";

const NOON = Date.UTC(2026, 10, 20, 12);
const HOUR_MS = 3_600_000;

/** The store's time, as how far it is ahead of the right one, when others' clocks and one's own are so far ahead. */
function ahead(own: number, others: readonly number[], stillMs: readonly number[] = []): number {
  const clock = new StoreClock();
  const readings = (renewal: number, nowMs: number) =>
    others.map((ms, at) => ({ id: `n${at}`, renewal: `${renewal}`, clockMs: NOON + nowMs + ms }));
  clock.observe(readings(1, 0), 0);
  clock.observe(readings(2, 1_000), 1_000);
  for (const ms of stillMs) clock.observe(readings(2, 1_000), 1_000 + ms);
  const nowMs = 1_500 + (stillMs.at(-1) ?? 0);
  return clock.at(NOON + nowMs + own, nowMs) - NOON - nowMs;
}

test("a server alone takes its own clock", () => {
  expect(ahead(0, [])).toBe(0);
  expect(ahead(HOUR_MS, [])).toBe(HOUR_MS);
});

test("right clocks are taken as they are, with the few milliseconds that they differ", () => {
  expect(ahead(0, [0, 0])).toBe(0);
  expect(ahead(40, [0, -30])).toBe(40);
  expect(ahead(9_999, [0, 0])).toBe(9_999);
});

test("one clock of three that is wrong begins nothing and holds nothing back", () => {
  expect(ahead(0, [HOUR_MS, 0])).toBe(0);
  expect(ahead(0, [-HOUR_MS, 0])).toBe(0);
  // Its own server takes the others' time, and up to 10 s more.
  expect(ahead(HOUR_MS, [0, 0])).toBe(10_000);
  expect(ahead(-HOUR_MS, [0, 0])).toBe(0);
});

test("of two clocks the earlier one counts", () => {
  expect(ahead(HOUR_MS, [0])).toBe(10_000);
  expect(ahead(0, [HOUR_MS])).toBe(0);
  expect(ahead(0, [-HOUR_MS])).toBe(-HOUR_MS + 10_000);
  expect(ahead(-HOUR_MS, [0])).toBe(-HOUR_MS);
});

test("the time is in whole milliseconds, whatever the monotonic clock says", () => {
  const clock = new StoreClock();
  for (const [at, nowMs] of [0.3, 1_000.7].entries()) {
    clock.observe([{ id: "n", renewal: `${at}`, clockMs: NOON - HOUR_MS }], nowMs);
  }
  expect(clock.at(NOON, 1_001.9)).toBe(NOON - HOUR_MS + 10_001);
});

test("a server that is silent is not asked, nor one whose row was never seen to move", () => {
  expect(ahead(HOUR_MS, [0, 0], [1_000, 10_900])).toBe(10_000);
  expect(ahead(HOUR_MS, [0, 0], [1_000, 11_000])).toBe(HOUR_MS);
  // While the store is away nobody is silent.
  expect(ahead(HOUR_MS, [0, 0], [600_000])).toBe(10_000);
  const clock = new StoreClock();
  const dead = [{ id: "n", renewal: "1", clockMs: NOON - HOUR_MS }];
  for (const nowMs of [0, 1_000, 2_000]) clock.observe(dead, nowMs);
  expect(clock.at(NOON, 2_000)).toBe(NOON);
  // One that is gone is forgotten.
  clock.observe([{ id: "n", renewal: "2", clockMs: NOON - HOUR_MS }], 3_000);
  expect(clock.at(NOON, 3_000)).toBeLessThan(NOON);
  clock.observe([], 4_000);
  expect(clock.at(NOON, 4_000)).toBe(NOON);
});

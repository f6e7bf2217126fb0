import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type ForecastReading,
  type ForecastState,
  observeReading,
  raiseWanted,
  startForecast,
} from "../../../src/server/redis/forecast-state.ts";

const MINUTE = 60_000;
const options = { raiseBelowMs: 15 * MINUTE, raiseByMs: 30 * MINUTE };
const STEP = 10_000;

function reading(second: number, cur: number, max = 1e12, generation = 1n): ForecastReading {
  return { cur: BigInt(cur), max: BigInt(max), generation, atMs: second * 1_000 };
}

function afterRates(perSecond: readonly number[], inherited = 0): ForecastState {
  let cur = 0;
  let state = startForecast(reading(0, 0), inherited);
  for (const [at, rate] of perSecond.entries()) {
    cur += rate;
    state = observeReading(state, reading(at + 1, cur));
  }
  return state;
}

function still(seconds: number): number[] {
  return Array.from({ length: seconds }, () => 0);
}

function idle(left: number): ForecastState {
  return startForecast(reading(0, 100, 100 + left), 0);
}

test("the recent rate is that of the last second, the long-term one the average of five minutes", () => {
  const steady = afterRates(Array.from({ length: 600 }, () => 100));
  expect(steady.rates.recently).toBeCloseTo(100);
  expect(steady.rates.longTerm).toBeCloseTo(100, 0);
  const stopped = afterRates([...Array.from({ length: 600 }, () => 100), ...still(150)]);
  expect(stopped.rates.recently).toBe(0);
  expect(stopped.rates.longTerm).toBeGreaterThan(40);
  expect(stopped.rates.longTerm).toBeLessThan(60);
  const forgotten = afterRates([...Array.from({ length: 600 }, () => 100), ...still(320)]);
  expect(forgotten.rates.longTerm).toBeLessThan(5);
});

test("who takes over goes on with the rate that was written, until it has seen five minutes itself", () => {
  const [soon, half, all] = [1, 150, 301].map(
    (seconds) => afterRates(still(seconds), 90).rates.longTerm,
  );
  expect(soon).toBeCloseTo(90, 0);
  expect(half).toBeCloseTo(45, 0);
  expect(all).toBeCloseTo(0, 0);
});

test("with 15 minutes left nothing is raised; with less, by 30 minutes' worth", () => {
  const state = afterRates(Array.from({ length: 10 }, () => 1_000));
  const withLeft = (left: number): ForecastState =>
    observeReading(state, { ...reading(11, 11_000), max: BigInt(11_000 + left) });
  expect(raiseWanted(withLeft(900_000), { step: STEP }, options)).toBe(0n);
  expect(raiseWanted(withLeft(899_999), { step: STEP }, options)).toBe(1_800_000n);
  expect(raiseWanted(withLeft(899_999), { step: 5_000_000 }, options)).toBe(5_000_000n);
});

test("an idle sequence keeps half a step in hand, and is raised by a step", () => {
  expect(raiseWanted(idle(5_000), { step: STEP }, options)).toBe(0n);
  expect(raiseWanted(idle(4_999), { step: STEP }, options)).toBe(10_000n);
});

test("a bound on what may be left is kept, whatever rate and step ask for, and half of it is enough", () => {
  const state = afterRates(Array.from({ length: 10 }, () => 1_000));
  const withLeft = (left: number): ForecastState =>
    observeReading(state, { ...reading(11, 11_000), max: BigInt(11_000 + left) });
  const bounds = { step: 100, maxSkip: 1_000 };
  expect(raiseWanted(withLeft(0), bounds, options)).toBe(1_000n);
  expect(raiseWanted(withLeft(499), bounds, options)).toBe(501n);
  expect(raiseWanted(withLeft(500), bounds, options)).toBe(0n);
  // A bound that was lowered: what is there already stays.
  expect(raiseWanted(withLeft(1_800_000), bounds, options)).toBe(0n);
  // An idle one is raised by its step, and not up to the bound.
  expect(raiseWanted(idle(49), { step: 100, maxSkip: 1_000_000 }, options)).toBe(100n);
});

test("a new start of Redis is not taken for ids that were issued", () => {
  const before = afterRates([10, 10, 10]);
  const after = observeReading(before, reading(4, 1_000_000, 1e12, 2n));
  expect(after.rates.recently).toBe(0);
  const next = observeReading(after, reading(5, 1_000_010, 1e12, 2n));
  expect(next.rates.recently).toBeCloseTo(10);
});

test("rates are never negative, and what is raised is at least a step and lasts as long as it shall", () => {
  const event = fc.record({
    ids: fc.integer({ min: 0, max: 1_000_000 }),
    afterMs: fc.integer({ min: 0, max: 5_000 }),
    restart: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.array(event, { minLength: 1, maxLength: 400 }),
      fc.integer({ min: 0, max: 1_000_000_000 }),
      fc.integer({ min: 1, max: 1_000_000 }),
      (events, left, step) => {
        let at: ForecastReading = { cur: 0n, max: 0n, generation: 1n, atMs: 0 };
        let state = startForecast(at, 0);
        for (const { ids, afterMs, restart } of events) {
          const cur = at.cur + BigInt(ids);
          at = {
            cur,
            max: cur + BigInt(left),
            generation: at.generation + (restart ? 1n : 0n),
            atMs: at.atMs + afterMs,
          };
          state = observeReading(state, at);
          expect(state.rates.recently).toBeGreaterThanOrEqual(0);
          expect(state.rates.longTerm).toBeGreaterThanOrEqual(0);
          expect(state.samples.length).toBeLessThanOrEqual(31);
        }
        const by = raiseWanted(state, { step }, options);
        const rate = Math.max(state.rates.recently, state.rates.longTerm);
        const has = Number(state.last.max - state.last.cur);
        if (by === 0n) expect(has).toBeGreaterThanOrEqual(Math.floor(rate * 900));
        else {
          expect(by).toBeGreaterThanOrEqual(BigInt(step));
          expect(Number(by)).toBeGreaterThanOrEqual(Math.floor(rate * 1_800));
        }
      },
    ),
  );
});

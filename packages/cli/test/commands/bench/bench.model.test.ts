import fc from "fast-check";
import { expect, test } from "vitest";
import { Pacer } from "../../../src/commands/bench/pacer-state.ts";
import { Tally } from "../../../src/commands/bench/tally.ts";

/** What a server does to calls: milliseconds until each is answered. */
const delays = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 40 });

interface Simulated {
  /** Of each call that was sent: when it was due and when it was answered. */
  readonly calls: readonly (readonly [dueMs: number, answeredMs: number])[];
  readonly unsent: readonly number[];
  readonly mostInFlight: number;
}

/** Runs a pacer against calls that take as long as they are told, one millisecond after the other. */
function simulate(
  load: ConstructorParameters<typeof Pacer>[0],
  takes: readonly number[],
  startMs: number,
): Simulated {
  const pacer = new Pacer(load, startMs);
  const flight = new Map<number, number[]>();
  const calls: [number, number][] = [];
  let mostInFlight = 0;
  let nowMs = startMs;
  for (; !pacer.isOver(nowMs); nowMs += 1) {
    for (const _ of flight.get(nowMs) ?? []) pacer.answered();
    for (let due = pacer.send(nowMs); due !== undefined; due = pacer.send(nowMs)) {
      // A call takes at least a moment, or a closed loop would make all of them in one.
      const answeredMs = nowMs + 1 + (takes[calls.length % takes.length] ?? 0);
      flight.set(answeredMs, [...(flight.get(answeredMs) ?? []), 1]);
      calls.push([due, answeredMs]);
    }
    mostInFlight = Math.max(mostInFlight, pacer.inFlight);
  }
  return { calls, unsent: [...pacer.unsent(nowMs)], mostInFlight };
}

test("in an open loop every call that was due counts from when it was due, whatever the server does", () => {
  const loads = fc.record({
    ratePerSecond: fc.integer({ min: 1, max: 900 }),
    maxInFlight: fc.integer({ min: 1, max: 20 }),
    maxCalls: fc.integer({ min: 1, max: 500 }),
    durationMs: fc.integer({ min: 1, max: 1_500 }),
  });
  fc.assert(
    fc.property(
      loads,
      delays,
      fc.double({ min: 0, max: 1e7, noNaN: true }),
      (load, takes, start) => {
        const { calls, unsent, mostInFlight } = simulate(load, takes, start);
        const all = [...calls.map(([due]) => due), ...unsent];
        // No call is left out, none is made twice, and none is early.
        const wanted = Math.min(
          load.maxCalls,
          Math.ceil((load.durationMs * load.ratePerSecond) / 1_000),
        );
        expect(Math.abs(all.length - wanted)).toBeLessThanOrEqual(1);
        all.forEach((due, call) => {
          expect(due).toBeCloseTo(start + (call * 1_000) / load.ratePerSecond, 3);
        });
        for (const [due, answered] of calls) expect(answered).toBeGreaterThanOrEqual(due);
        expect(mostInFlight).toBeLessThanOrEqual(load.maxInFlight);
      },
    ),
  );
});

test("a closed loop keeps its callers busy, and makes no more calls than it may", () => {
  const loads = fc.record({
    ratePerSecond: fc.constant(undefined),
    maxInFlight: fc.integer({ min: 1, max: 20 }),
    maxCalls: fc.integer({ min: 1, max: 500 }),
    durationMs: fc.integer({ min: 1, max: 1_500 }),
  });
  fc.assert(
    fc.property(loads, delays, (load, takes) => {
      const { calls, unsent, mostInFlight } = simulate(load, takes, 0);
      expect(unsent).toEqual([]);
      expect(calls.length).toBeLessThanOrEqual(load.maxCalls);
      expect(mostInFlight).toBeLessThanOrEqual(load.maxInFlight);
      expect(calls.length).toBeGreaterThanOrEqual(Math.min(load.maxCalls, load.maxInFlight));
    }),
  );
});

test("a stall of one second is charged to all calls that were due meanwhile", () => {
  // 100 calls a second for 10 s. The server answers in a millisecond, and not at all in the sixth second.
  const load = { ratePerSecond: 100, maxInFlight: 10, maxCalls: 10_000, durationMs: 10_000 };
  const pacer = new Pacer(load, 0);
  const tally = new Tally();
  for (let nowMs = 0; nowMs < 10_000; nowMs += 1) {
    const isStalled = nowMs >= 5_000 && nowMs < 6_000;
    if (isStalled) continue;
    for (let due = pacer.send(nowMs); due !== undefined; due = pacer.send(nowMs)) {
      tally.answer({ segments: [], texts: [`${pacer.sent}`], period: "" }, nowMs + 1 - due);
      pacer.answered();
    }
  }
  const { latencyMs, answered } = tally.end();
  expect(answered).toBe(1_000);
  // A tenth of the calls waited, half of these for longer than half a second.
  expect(latencyMs["p50"]).toBeLessThan(2);
  expect(latencyMs["p99"]).toBeGreaterThan(850);
  expect(latencyMs["max"]).toBeGreaterThan(990);
});

test("the tally finds every id that came twice, within a period, and no other", () => {
  const ids = fc.array(
    fc.tuple(fc.constantFrom("", "2026-11-21"), fc.bigInt({ min: 1n, max: 60n })),
    {
      maxLength: 30,
    },
  );
  fc.assert(
    fc.property(ids, (all) => {
      const tally = new Tally();
      const seen = new Set<string>();
      let hasRepeat = false;
      for (const [period, base] of all) {
        const key = `${period} ${base}`;
        hasRepeat ||= seen.has(key);
        seen.add(key);
        tally.answer({ segments: [{ base, increment: 1, count: 1 }], texts: [], period }, 1);
      }
      const { ids: count, repeats, repeated } = tally.end();
      expect(count).toBe(BigInt(all.length));
      expect(repeats > 0).toBe(hasRepeat);
      expect(repeated.length > 0).toBe(hasRepeat);
    }),
  );
});

test("texts that came twice are found too", () => {
  const tally = new Tally();
  for (const text of ["a", "b", "a"]) tally.answer({ segments: [], texts: [text], period: "" }, 1);
  expect(tally.end()).toMatchObject({ ids: 3n, repeats: 1, repeated: ["a"] });
});

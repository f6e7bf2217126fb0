import * as fc from "fast-check";
import {
  admits,
  createOverloadState,
  lookAtCallers,
  type OverloadState,
  turnEnded,
} from "@idmint/core/server";
import { expect, test } from "vitest";

const OPTIONS = { ageMs: 25, calls: 256, lastsMs: 500, turnMs: 5, calmMs: 250 };
const COST_MS = 0.05;
/** What a turn admits: 5 ms of calls that take 0.05 ms. */
const PER_TURN = 100;

/** One turn of a calm server in which so many calls came. */
function calmTurn(state: OverloadState, calls: number, endedAt: number, busyMs = calls * COST_MS) {
  state.admitted += calls;
  return turnEnded(state, { endedAt, busyMs, idleMs: 0, held: 0 });
}

/** A server that has just been found overloaded. Answers when. */
function overload(state: OverloadState): number {
  let now = 0;
  for (let turn = 0; turn < 100; turn++) {
    now += 1_000 * COST_MS;
    if (calmTurn(state, 1_000, now) === "began") return now;
  }
  throw new Error("1,000 calls in each turn are too many");
}

/** One turn of an overloaded server: calls by their callers, in order. Answers what was admitted of each. */
function turnOf(state: OverloadState, callers: readonly string[], now: number, held = 0) {
  const admitted = new Map<string, number>();
  for (const caller of callers) {
    if (admits(state, caller)) admitted.set(caller, (admitted.get(caller) ?? 0) + 1);
  }
  const count = [...admitted.values()].reduce((sum, each) => sum + each, 0);
  // A refused call takes time too.
  const busyMs = callers.length * COST_MS;
  const change = turnEnded(state, { endedAt: now, busyMs, idleMs: 0, held });
  return { admitted, count, change };
}

test("a queue that stands is an overload; a burst, a stop of the process and slowness are not", () => {
  const state = createOverloadState(OPTIONS);
  // A burst of two turns, again and again.
  let now = 0;
  for (let burst = 0; burst < 20; burst++) {
    for (const calls of [2_000, 2_000, 10]) {
      now += calls * COST_MS;
      expect(calmTurn(state, calls, now)).toBeUndefined();
    }
  }
  // A process that was stopped for a minute, with whatever came meanwhile.
  expect(calmTurn(state, 2_000, (now += 60_000), 60_000)).toBeUndefined();
  expect(calmTurn(state, 50, (now += 10))).toBeUndefined();
  // A machine that gives it a tenth of its time, and few callers.
  for (let turn = 0; turn < 100; turn++) {
    expect(calmTurn(state, 100, (now += 50), 50)).toBeUndefined();
  }
  expect(state.since).toBeUndefined();
  expect(overload(createOverloadState(OPTIONS))).toBeLessThanOrEqual(OPTIONS.lastsMs + 100);
});

test("an overloaded server admits what fits into a turn, on average, whoever asks", () => {
  const storms = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(fc.array(storms, { minLength: 20, maxLength: 60 }), (turns) => {
      const state = createOverloadState(OPTIONS);
      let now = overload(state);
      let admitted = 0;
      const callers = new Set<string>();
      for (const calls of turns) {
        const asked = calls.flatMap((count, who) => Array<string>(count).fill(`caller-${who}`));
        for (const caller of asked) callers.add(caller);
        now += 10;
        // Held refusals keep it overloaded.
        const { count } = turnOf(state, asked, now, 10_000);
        admitted += count;
      }
      // Nothing is saved up by the server, and by each caller four turns of its share.
      const saved = callers.size * Math.max(1, (4 * PER_TURN) / 2);
      expect(admitted).toBeLessThanOrEqual(turns.length * PER_TURN * 1.01 + PER_TURN + saved);
    }),
    { numRuns: 50 },
  );
});

test("who asks for no more than its share is not refused, and one caller alone gets all", () => {
  const others = fc.integer({ min: 0, max: 8 });
  const order = fc.constantFrom("before", "after");
  fc.assert(
    fc.property(others, order, fc.integer({ min: 1, max: 500 }), (storms, place, size) => {
      const state = createOverloadState(OPTIONS);
      let now = overload(state);
      const share = Math.max(1, Math.floor(PER_TURN / 2 / (storms + 1)) - 1);
      const modest = Array<string>(share).fill("modest");
      const storm = Array.from({ length: storms }, (_, who) =>
        Array<string>(size).fill(`storm-${who}`),
      ).flat();
      for (let turn = 0; turn < 50; turn++) {
        now += 10;
        const asked = place === "before" ? [...modest, ...storm] : [...storm, ...modest];
        const { admitted } = turnOf(state, asked, now, 10_000);
        expect(admitted.get("modest")).toBe(share);
      }
    }),
    { numRuns: 50 },
  );
  const state = createOverloadState(OPTIONS);
  let now = overload(state);
  const alone = Array<string>(1_000).fill("alone");
  const counts = Array.from({ length: 40 }, () => turnOf(state, alone, (now += 50)).count);
  const after = counts.slice(20);
  const average = after.reduce((sum, count) => sum + count, 0) / after.length;
  expect(average).toBeGreaterThan(PER_TURN * 0.95);
  expect(average).toBeLessThan(PER_TURN * 1.05);
});

test("refusing calls does not look like the end of an overload, and their end does", () => {
  const state = createOverloadState(OPTIONS);
  let now = overload(state);
  const storm = Array<string>(1_000).fill("storm");
  for (let turn = 0; turn < 200; turn++) {
    expect(turnOf(state, storm, (now += 50)).change).toBeUndefined();
  }
  // Nearly all of the storm is held, so that few calls come: it is not over.
  for (let turn = 0; turn < 200; turn++) {
    expect(turnOf(state, ["storm"], (now += 5), 1_000).change).toBeUndefined();
  }
  const began = now;
  let change: string | undefined;
  while (change === undefined) change = turnOf(state, ["modest"], (now += 5)).change;
  expect(change).toBe("ended");
  expect(now - began).toBeLessThanOrEqual(OPTIONS.calmMs + 10);
  expect(state.callers.size).toBe(0);
});

test("an overload ends also when no call comes any more", () => {
  const state = createOverloadState(OPTIONS);
  const now = overload(state);
  // One that has just begun is not over because nobody was refused yet.
  expect(lookAtCallers(state, 0)).toBeUndefined();
  turnOf(state, Array<string>(1_000).fill("storm"), now + 50);
  expect(lookAtCallers(state, 0)).toBeUndefined();
  expect(lookAtCallers(state, 5)).toBeUndefined();
  expect(lookAtCallers(state, 0)).toBe("ended");
  expect(state.since).toBeUndefined();
});

test("who comes after a pause finds what the server had time for meanwhile", () => {
  const state = createOverloadState(OPTIONS);
  let now = overload(state);
  const storm = Array<string>(2_000).fill("storm");
  for (let turn = 0; turn < 20; turn++) turnOf(state, storm, (now += 100), 10_000);
  turnEnded(state, { endedAt: (now += 10), busyMs: 0, idleMs: 10, held: 10_000 });
  const { count } = turnOf(state, storm, (now += 100), 10_000);
  // 10 ms of calls, and the caller's share of two turns.
  expect(count).toBeGreaterThanOrEqual(200);
  expect(count).toBeLessThanOrEqual(320);
  turnEnded(state, { endedAt: (now += 60_000), busyMs: 0, idleMs: 60_000, held: 10_000 });
  expect(turnOf(state, storm, (now += 100), 10_000).count).toBeLessThanOrEqual(4 * PER_TURN * 1.6);
});

test("an overload is wide when most callers are refused, and not when one storms", () => {
  const state = createOverloadState(OPTIONS);
  let now = overload(state);
  const storm = Array<string>(1_000).fill("storm");
  turnOf(state, storm, (now += 50));
  lookAtCallers(state, 0);
  expect(state.isWide).toBe(true);
  turnOf(state, [...storm, "modest"], (now += 50));
  lookAtCallers(state, 0);
  expect(state.isWide).toBe(false);
});

test("callers beyond the limit are told apart no more", () => {
  const state = createOverloadState(OPTIONS);
  overload(state);
  for (let i = 0; i < 20_000; i++) admits(state, `caller-${i}`);
  expect(state.callers.size).toBeLessThanOrEqual(10_001);
});

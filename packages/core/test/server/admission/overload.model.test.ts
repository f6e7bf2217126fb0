import fc from "fast-check";
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
function calmTurn(
  state: OverloadState,
  calls: number,
  endedAt: number,
  busyMs = calls * COST_MS,
  idleMs = 0,
) {
  state.admitted += calls;
  return turnEnded(state, { endedAt, busyMs, idleMs, held: 0 });
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
  // A burst of two turns, again and again, with some time between.
  let now = 0;
  for (const betweenMs of [150, 300]) {
    for (let burst = 0; burst < 20; burst++) {
      now += betweenMs + 10 * COST_MS;
      expect(calmTurn(state, 10, now, 10 * COST_MS, betweenMs)).toBeUndefined();
      for (let turn = 0; turn < 2; turn++) {
        now += 2_000 * COST_MS;
        expect(calmTurn(state, 2_000, now)).toBeUndefined();
      }
    }
  }
  // A process that was stopped for a minute, with whatever came meanwhile.
  now += 1_000;
  expect(calmTurn(state, 2_000, (now += 60_000), 60_000)).toBeUndefined();
  expect(calmTurn(state, 50, (now += 10))).toBeUndefined();
  // A machine that gives it a tenth of its time, and few callers.
  for (let turn = 0; turn < 100; turn++) {
    expect(calmTurn(state, 100, (now += 50), 50)).toBeUndefined();
  }
  expect(state.since).toBeUndefined();
  expect(overload(createOverloadState(OPTIONS))).toBeLessThanOrEqual(OPTIONS.lastsMs + 100);
});

/** Turns as long as what is admitted and refused in them takes; refusals take half. Answers how long they were. */
function turnsOf(state: OverloadState, turns: readonly (readonly string[])[], from: number) {
  let now = from;
  return turns.map((callers) => {
    let count = 0;
    for (const caller of callers) if (admits(state, caller)) count++;
    const tookMs = (count + (callers.length - count) / 2) * COST_MS;
    now += tookMs;
    // Held refusals keep it overloaded.
    turnEnded(state, { endedAt: now, busyMs: tookMs, idleMs: 0, held: 10_000 });
    return { count, admittedMs: count * COST_MS, tookMs };
  });
}

test("a queue that stands is found, however many short turns lie between the long ones", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 30, maxLength: 30 }),
      (gaps) => {
        const state = createOverloadState(OPTIONS);
        let now = 0;
        const began = gaps.some((short) => {
          for (let turn = 0; turn < short; turn++) calmTurn(state, 50, (now += 50 * COST_MS));
          return calmTurn(state, 2_000, (now += 2_000 * COST_MS)) === "began";
        });
        expect(began).toBe(true);
        expect(now).toBeLessThan(OPTIONS.lastsMs + 200);
      },
    ),
  );
});

test("a queue of connections that take turns is an overload, and that of one connection is not", () => {
  const several = createOverloadState(OPTIONS);
  const one = createOverloadState(OPTIONS);
  let began = false;
  let now = 0;
  for (let round = 0; round < 20; round++) {
    for (const calls of [700, 120, 240]) {
      now += 40;
      if (calmTurn(several, calls, now, 40) === "began") began = true;
      expect(calmTurn(one, Math.min(calls, 250), now, 40)).toBeUndefined();
    }
  }
  expect(began).toBe(true);
});

test("a turn admits half of the time of those before, half of a turn, and what callers have saved", () => {
  const storms = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(fc.array(storms, { minLength: 20, maxLength: 60 }), (calls) => {
      const state = createOverloadState(OPTIONS);
      const from = overload(state);
      const asked = calls.map((counts) =>
        counts.flatMap((count, who) => Array<string>(count).fill(`caller-${who}`)),
      );
      const callers = new Set(asked.flat()).size;
      const turns = turnsOf(state, asked, from);
      const admittedMs = turns.reduce((sum, turn) => sum + turn.admittedMs, 0);
      const passedMs = turns.reduce((sum, turn) => sum + turn.tookMs, 0);
      // What a call is taken to cost follows what turns take, which refusals make less.
      const savedMs = callers * Math.max(COST_MS, 250);
      const most = passedMs / 2 + savedMs + (turns.length + 1) * (OPTIONS.turnMs / 2 + COST_MS);
      expect(admittedMs).toBeLessThanOrEqual(most * 2);
    }),
    { numRuns: 50 },
  );
});

test("under a storm of several callers turns settle at about what they are to take", () => {
  for (const callers of [1, 2, 5, 50]) {
    const state = createOverloadState(OPTIONS);
    const from = overload(state);
    const storm = Array.from({ length: 200 }, (_, at) => `caller-${at % callers}`);
    const turns = turnsOf(state, Array<string[]>(200).fill(storm), from).slice(100);
    const average = turns.reduce((sum, { admittedMs }) => sum + admittedMs, 0) / turns.length;
    // 5 ms, and half of what the refusals of a turn take, of which there are 100 or more.
    expect(average).toBeGreaterThan(4.5);
    expect(average).toBeLessThan(9);
  }
});

test("who asks for no more than its share is not refused, in short turns and in long ones", () => {
  const others = fc.integer({ min: 0, max: 8 });
  const order = fc.constantFrom("before", "after");
  const lengths = fc.array(fc.integer({ min: 3, max: 400 }), { minLength: 10, maxLength: 40 });
  fc.assert(
    fc.property(others, order, lengths, (storms, place, turnMs) => {
      const state = createOverloadState(OPTIONS);
      let now = overload(state);
      const perMs = 0.5 / COST_MS / (storms + 1);
      let lastMs = 50;
      for (const ms of turnMs) {
        // What it may ask for in the time of a turn comes to be read in the next one.
        const modest = Array<string>(Math.floor(lastMs * perMs * 0.9)).fill("modest");
        lastMs = ms;
        const rest = ms / COST_MS - modest.length;
        const size = Math.max(1, Math.ceil(rest / Math.max(1, storms)));
        const storm = Array.from({ length: storms }, (_, who) =>
          Array<string>(size).fill(`storm-${who}`),
        ).flat();
        const asked = place === "before" ? [...modest, ...storm] : [...storm, ...modest];
        // Turns cost what they cost, so that the cost of a call is known.
        const { admitted } = turnOf(state, asked, (now += ms), 10_000);
        expect(admitted.get("modest") ?? 0).toBe(modest.length);
      }
    }),
    { numRuns: 50 },
  );
});

test("one caller alone gets all", () => {
  const state = createOverloadState(OPTIONS);
  const storm = Array<string>(1_000).fill("alone");
  const turns = turnsOf(state, Array<string[]>(60).fill(storm), overload(state)).slice(30);
  for (const { count } of turns) expect(count).toBeGreaterThan(PER_TURN * 0.95);
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
  // 10 ms of calls, and the caller's share of the time since its last one.
  expect(count).toBeGreaterThanOrEqual(200);
  expect(count).toBeLessThanOrEqual(200 + 110 * 10 + 10);
  turnEnded(state, { endedAt: (now += 60_000), busyMs: 0, idleMs: 60_000, held: 10_000 });
  const most = 4 * PER_TURN + 500 * 10 + 10;
  const flood = Array<string>(20_000).fill("storm");
  expect(turnOf(state, flood, (now += 100), 10_000).count).toBeLessThanOrEqual(most);
});

test("an overload is wide when most callers are refused, and not when one storms", () => {
  const state = createOverloadState(OPTIONS);
  let now = overload(state);
  const storm = Array<string>(1_000).fill("storm");
  turnOf(state, [...storm, ...storm], (now += 50));
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

import { IdmintError } from "@idmint/core";
import type { QuotaName, Rates } from "@idmint/core/server";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { Admission } from "../../../src/service/admission/admission.ts";
import { callerOf } from "../../../src/api/caller.ts";
import { createCounters } from "../../../src/service/counters.ts";
import type { ServerEvent } from "../../../src/service/events.ts";

const NONE = { byDefault: undefined, named: new Map<string, number>() };
const NO_QUOTAS = { caller_calls: NONE, caller_ids: NONE, tag_calls: NONE, tag_ids: NONE };
/** What a call takes of the loop. */
const COST_MS = 0.05;

/** An admission whose event loop the test turns. */
function setUp(maxWaiting = 1_000, rates: Partial<Record<QuotaName, Rates>> = {}) {
  const time = new FakeTime(1_000_000);
  const events: ServerEvent[] = [];
  const counters = createCounters();
  let idle = 0;
  let endOfTurn: (() => void)[] = [];
  const admission = new Admission(
    {
      clock: time,
      timers: time,
      afterTurn: (run) => endOfTurn.push(run),
      idleMs: () => idle,
      counters,
      emit: (event) => events.push(event),
    },
    {
      quotas: { rates: { ...NO_QUOTAS, ...rates }, burstMs: 1_000, maxBuckets: 100 },
      adminQuotas: { rates: {}, burstMs: 1_000, maxBuckets: 100 },
      maxWaiting,
    },
  );
  const callOf = (caller: string, leftMs = 10_000) => ({
    caller,
    deadline: time.now() + leftMs,
    principal: undefined,
    signal: new AbortController().signal,
  });
  const outcomes = { admitted: 0, refused: 0, held: 0 };
  const refusals: IdmintError[] = [];
  const arrive = (caller: string, leftMs?: number): "admitted" | "refused" => {
    try {
      const held = admission.arrived(callOf(caller, leftMs));
      if (held === undefined) {
        outcomes.admitted++;
        return "admitted";
      }
      outcomes.held++;
      held.catch((error: unknown) => {
        outcomes.held--;
        outcomes.refused++;
        refusals.push(IdmintError.from(error));
      });
    } catch (error) {
      outcomes.refused++;
      refusals.push(IdmintError.from(error));
    }
    return "refused";
  };
  /** One turn in which these calls come, and the loop works for each. */
  const turn = (calls: Readonly<Record<string, number>>, idleMs = 0): Record<string, number> => {
    idle += idleMs;
    time.advance(idleMs);
    const admitted: Record<string, number> = {};
    let total = 0;
    for (const [caller, count] of Object.entries(calls)) {
      admitted[caller] = 0;
      for (let i = 0; i < count; i++) if (arrive(caller) === "admitted") admitted[caller]++;
      total += count;
    }
    time.advance(total * COST_MS);
    const ends = endOfTurn;
    endOfTurn = [];
    for (const end of ends) end();
    return admitted;
  };
  return { time, events, counters, admission, callOf, arrive, turn, outcomes, refusals };
}

const typesOf = (events: readonly ServerEvent[]) => events.map(({ type }) => type);

test("a storm is shed, a modest caller is not, and it ends with the storm", async () => {
  const it = setUp();
  for (let i = 0; i < 10; i++) it.turn({ storm: 2_000, modest: 5 });
  expect(typesOf(it.events)).toEqual(["overloaded"]);
  for (let i = 0; i < 20; i++) {
    const { storm = 0, modest } = it.turn({ storm: 2_000, modest: 5 });
    expect(modest).toBe(5);
    expect(storm).toBeLessThan(600);
  }
  expect(it.counters.shedCalls).toBeGreaterThan(25_000);
  // Whoever was held is answered, and the next calls of the same caller are admitted.
  for (let i = 0; i < 450; i++) {
    it.turn({ modest: 1 }, 10);
    await Promise.resolve();
  }
  expect(it.outcomes.held).toBe(0);
  expect(typesOf(it.events)).toEqual(["overloaded", "overload-over"]);
  expect(it.turn({ storm: 100 })).toEqual({ storm: 100 });
  for (const refusal of it.refusals) {
    expect(refusal).toMatchObject({ reason: "OVERLOADED", code: "RESOURCE_EXHAUSTED" });
    expect(refusal.retryAfterMs).toBeGreaterThanOrEqual(1_000);
  }
});

test("refusals of a storm come at a bounded rate, and before the deadlines of their callers", async () => {
  const it = setUp();
  for (let i = 0; i < 10; i++) it.turn({ storm: 2_000 });
  await Promise.resolve();
  const { refused, held } = it.outcomes;
  expect(held).toBeGreaterThan(1_000);
  // A fiftieth of the time, at 0.05 ms each.
  it.time.advance(100);
  await Promise.resolve();
  expect(it.outcomes.refused - refused).toBeLessThanOrEqual(100);
  expect(it.outcomes.refused - refused).toBeGreaterThan(20);
  it.time.advance(4_000);
  await Promise.resolve();
  expect(it.outcomes.held).toBe(0);
  // A short deadline.
  for (let i = 0; i < 10; i++) it.turn({ storm: 2_000 });
  while (it.arrive("storm", 200) === "admitted");
  const before = it.outcomes.held;
  for (let i = 0; i < 99; i++) it.arrive("storm", 200);
  it.time.advance(175);
  await Promise.resolve();
  expect(it.outcomes.held).toBeLessThanOrEqual(before);
});

test("what piled up before a connection was narrow is refused soon, and no other refusal", async () => {
  const it = setUp();
  const refusedIn100Ms = async (): Promise<number> => {
    const before = it.outcomes.refused;
    it.time.advance(100);
    await Promise.resolve();
    return it.outcomes.refused - before;
  };
  for (let i = 0; i < 10; i++) it.turn({ storm: 2_000 });
  await Promise.resolve();
  expect(it.admission.held.get("storm")).toBeGreaterThan(1_000);
  it.admission.narrowed(new Set(["another"]));
  expect(await refusedIn100Ms()).toBeLessThanOrEqual(100);
  it.admission.narrowed(new Set(["storm"]));
  expect(await refusedIn100Ms()).toBeGreaterThan(500);
  for (let i = 0; i < 200 && (it.admission.held.get("storm") ?? 0) > 256; i++) {
    await refusedIn100Ms();
  }
  // What a narrow connection may have in flight comes at the usual pace.
  await refusedIn100Ms();
  expect(await refusedIn100Ms()).toBeLessThanOrEqual(100);
});

test("a server that stops answers who was held, and holds nobody any more", async () => {
  const it = setUp();
  for (let i = 0; i < 12; i++) it.turn({ storm: 2_000 });
  expect(it.outcomes.held).toBeGreaterThan(0);
  it.admission.stop();
  await Promise.resolve();
  expect(it.outcomes.held).toBe(0);
  it.turn({ storm: 2_000 });
  expect(it.outcomes.held).toBe(0);
  expect(it.time.pending).toBeLessThanOrEqual(1);
});

test("health follows an overload that lasts and that most callers feel", () => {
  const it = setUp();
  const storm = (seconds: number, calls: Readonly<Record<string, number>>): void => {
    const end = it.time.now() + seconds * 1_000;
    while (it.time.now() < end) {
      for (let i = 0; i < 10; i++) it.turn(calls);
      it.admission.check(1);
    }
  };
  storm(9, { storm: 2_000 });
  expect(typesOf(it.events)).toEqual(["overloaded"]);
  expect(it.admission.isLasting).toBe(false);
  storm(3, { storm: 2_000 });
  expect(it.admission.isLasting).toBe(true);
  // The storm of one caller that leaves the others alone.
  storm(3, { storm: 2_000, modest: 5 });
  expect(it.admission.isLasting).toBe(false);
  storm(3, { storm: 2_000 });
  expect(it.admission.isLasting).toBe(true);
  for (let i = 0; i < 250; i++) it.turn({ modest: 1 }, 10);
  it.admission.check(1);
  expect(it.admission.isLasting).toBe(false);
});

test("an overload whose callers all went away is over", () => {
  const it = setUp();
  for (let i = 0; i < 12; i++) it.turn({ storm: 2_000 });
  it.time.advance(5_000);
  for (let i = 0; i < 3; i++) it.admission.check(1);
  expect(typesOf(it.events)).toEqual(["overloaded", "overload-over"]);
  expect(it.turn({ storm: 1_000 })).toEqual({ storm: 1_000 });
});

test("calls that wait are limited, and a caller whose calls do not wait goes on", async () => {
  const it = setUp(100);
  const { promise, resolve } = Promise.withResolvers<void>();
  const waiting: Promise<void>[] = [];
  let refused = 0;
  for (let i = 0; i < 200; i++) {
    if (it.arrive("storm") === "admitted") {
      waiting.push(it.admission.waits(it.callOf("storm"), promise));
    } else refused++;
  }
  expect([waiting.length, refused]).toEqual([50, 150]);
  expect(it.arrive("modest")).toBe("admitted");
  resolve();
  await Promise.all(waiting);
  expect(it.arrive("storm")).toBe("admitted");
  it.time.advance(4_000);
  await Promise.resolve();
  expect(it.refusals[0]?.message).toContain("limits.calls is 100");
  expect(it.refusals).toHaveLength(150);
});

test("a call that failed gives its ids back, whether at once or later", async () => {
  const rate = { byDefault: 1, named: new Map<string, number>() };
  const it = setUp(100, { tag_ids: rate });
  const charged = (work: () => number | Promise<number>) =>
    it.admission.charged(it.callOf("a"), { tag: "t", ids: 1_000 }, work);
  const fault = new IdmintError("TAG_NOT_FOUND", "no");
  const fail = (): never => {
    throw fault;
  };
  for (let i = 0; i < 3; i++) expect(() => charged(fail)).toThrow(fault);
  for (let i = 0; i < 3; i++)
    await expect(charged(() => Promise.reject(fault))).rejects.toBe(fault);
  expect(charged(() => 7)).toBe(7);
  expect(() => charged(() => 7)).toThrow(/QUOTA_EXCEEDED: tag "t" is over its quota of 1 ids\/s/);
});

test("a share of a quota follows the number of servers, and stays when it is not known", () => {
  const rate = { byDefault: 60, named: new Map<string, number>() };
  const it = setUp(100, { caller_calls: rate });
  const admitted = (caller: string): number => {
    let count = 0;
    for (let i = 0; i < 200; i++) {
      try {
        const answer = it.admission.charged(it.callOf(caller), { tag: "t", ids: 1 }, () => 1);
        if (answer === 1) count++;
        else void (answer as Promise<number>).catch(() => undefined);
      } catch {}
    }
    return count;
  };
  expect(admitted("a")).toBe(60);
  it.admission.check(3);
  expect(admitted("b")).toBe(20);
  it.admission.check(undefined);
  expect(admitted("c")).toBe(20);
});

test.each([
  ["192.0.2.1:4711", "192.0.2.1"],
  ["::ffff:192.0.2.1:4711", "192.0.2.1"],
  ["2001:db8:0:1:2:3:4:5:4711", "2001:db8:0:1::/64"],
  ["2001:db8::5:4711", "2001:db8:0:0::/64"],
  ["::1:4711", "0:0:0:0::/64"],
  ["fe80::1%eth0:4711", "fe80:0:0:0::/64"],
  ["unknown", "unknown"],
])("the caller behind %s is %s", (peer, caller) => {
  expect(callerOf(peer)).toBe(caller);
});

test("refusals of quotas that wait are no overload", async () => {
  const rate = { byDefault: 1, named: new Map<string, number>() };
  const it = setUp(100, { caller_calls: rate });
  let held = 0;
  for (let i = 0; i < 5_000; i++) {
    try {
      const answer = it.admission.charged(it.callOf("a"), { tag: "t", ids: 1 }, () => 1);
      if (answer instanceof Promise) {
        held++;
        answer.catch(() => undefined);
      }
    } catch {}
  }
  expect(held).toBeGreaterThan(4_000);
  for (let i = 0; i < 100; i++) it.turn({ b: 600 }, 5);
  await Promise.resolve();
  expect(it.events).toEqual([]);
});

import fc from "fast-check";
import {
  createQuotaState,
  giveBackIds,
  type QuotaOptions,
  setServers,
  sweepQuotas,
  takeOfQuotas,
} from "@idmint/core/server";
import { describe, expect, test } from "vitest";

const NONE = { byDefault: undefined, named: new Map<string, number>() };
const rateOf = (byDefault: number) => ({ byDefault, named: new Map<string, number>() });

function optionsOf(rates: Partial<QuotaOptions["rates"]>, more: Partial<QuotaOptions> = {}) {
  const all = { caller_calls: NONE, caller_ids: NONE, tag_calls: NONE, tag_ids: NONE, ...rates };
  return { rates: all, burstMs: 1_000, maxBuckets: 1_000, ...more };
}

/** A call at a time, of so many ids. */
interface Asked {
  readonly afterMs: number;
  readonly ids: number;
}

const asks = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3_000 })),
    ids: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 5_000 })),
  }),
  { minLength: 1, maxLength: 200 },
);

/** What was admitted of them, and when. */
function admittedOf(rate: number, burstMs: number, asked: readonly Asked[], sweeps = false) {
  const state = createQuotaState(optionsOf({ tag_ids: rateOf(rate) }, { burstMs }));
  const admitted: { readonly at: number; readonly ids: number }[] = [];
  let now = 0;
  for (const { afterMs, ids } of asked) {
    now += afterMs;
    if (sweeps) sweepQuotas(state, now);
    const over = takeOfQuotas(state, { caller: "a", tag: "t", ids }, now);
    if (over === undefined) admitted.push({ at: now, ids });
    else expect(over.waitMs).toBeGreaterThan(0);
  }
  return admitted;
}

describe("a quota", () => {
  test.each([false, true])(
    "is never exceeded in any stretch of time by more than one call (swept: %s)",
    (sweeps) => {
      const rates = fc.integer({ min: 1, max: 2_000 });
      const bursts = fc.integer({ min: 10, max: 5_000 });
      fc.assert(
        fc.property(rates, bursts, asks, (rate, burstMs, asked) => {
          const admitted = admittedOf(rate, burstMs, asked, sweeps);
          const burst = Math.max(1, (rate / 1_000) * burstMs);
          for (let from = 0; from < admitted.length; from++) {
            const start = admitted[from]?.at ?? 0;
            let before = 0;
            for (const { at, ids } of admitted.slice(from)) {
              // All but the last call fit into what there was: the last one may go into debt.
              expect(before).toBeLessThanOrEqual(burst + ((at - start) * rate) / 1_000 - 1 + 1e-6);
              before += ids;
            }
          }
        }),
      );
    },
  );

  test("admits any call at the time that its refusal names, so nobody waits for ever", () => {
    const wishes = fc.integer({ min: 1, max: 100_000 });
    fc.assert(
      fc.property(wishes, wishes, fc.integer({ min: 1, max: 2_000 }), (debt, wish, rate) => {
        const state = createQuotaState(optionsOf({ tag_ids: rateOf(rate) }));
        const most = rate + rate * 3_600;
        const take = (ids: number) => ({ caller: "a", tag: "t", ids: Math.min(ids, most) });
        expect(takeOfQuotas(state, take(debt), 0)).toBeUndefined();
        const over = takeOfQuotas(state, take(wish), 0);
        if (over === undefined) return;
        expect(takeOfQuotas(state, take(wish), over.waitMs * 0.999 - 0.01)).toBeDefined();
        expect(takeOfQuotas(state, take(wish), over.waitMs)).toBeUndefined();
      }),
    );
  });

  test("of 100 calls a second admits 90 to 110 of 1,000 in every second after the first", () => {
    const state = createQuotaState(optionsOf({ caller_calls: rateOf(100) }));
    const admitted: number[] = [];
    for (let second = 0; second < 60; second++) {
      let count = 0;
      for (let ms = 0; ms < 1_000; ms++) {
        const now = second * 1_000 + ms;
        const take = { caller: "a", tag: "t", ids: 1 };
        if (takeOfQuotas(state, take, now) === undefined) count++;
      }
      admitted.push(count);
    }
    // The first second has the burst too.
    expect(admitted[0]).toBeGreaterThanOrEqual(190);
    expect(admitted[0]).toBeLessThanOrEqual(210);
    for (const count of admitted.slice(1)) {
      expect(count).toBeGreaterThanOrEqual(90);
      expect(count).toBeLessThanOrEqual(110);
    }
  });

  test("is divided by the number of servers, and all of them together keep it", () => {
    const servers = Array.from({ length: 4 }, () => {
      const state = createQuotaState(optionsOf({ tag_ids: rateOf(1_000) }));
      setServers(state, 4);
      return state;
    });
    let ids = 0;
    for (let now = 0; now < 10_000; now++) {
      for (const state of servers) {
        const take = { caller: "a", tag: "t", ids: 10 };
        if (takeOfQuotas(state, take, now) === undefined) ids += 10;
      }
    }
    // Ten seconds, one of burst, and less than one call more of each.
    expect(ids).toBeLessThanOrEqual(11_000 + 4 * 10);
    expect(ids).toBeGreaterThanOrEqual(10_500);
  });
});

test("a call takes from all of its buckets or from none", () => {
  const state = createQuotaState(
    optionsOf({ caller_calls: rateOf(10), tag_ids: rateOf(1_000) }, { burstMs: 1_000 }),
  );
  const take = (caller: string, tag: string, ids: number) =>
    takeOfQuotas(state, { caller, tag, ids }, 0);
  expect(take("a", "t", 1_000)).toBeUndefined();
  // Refused for the tag, so no call is counted: nine more are admitted.
  for (let i = 0; i < 20; i++) expect(take("a", "t", 1)).toMatchObject({ quota: "tag_ids" });
  for (let i = 0; i < 9; i++) expect(take("a", "u", 1)).toBeUndefined();
  expect(take("a", "v", 1)).toMatchObject({ quota: "caller_calls", subject: "a", rate: 10 });
  // Refused for the caller, so no ids are counted.
  expect(take("b", "v", 1_000)).toBeUndefined();
});

test("a call above the burst is admitted on debt, and the debt is paid before the next call", () => {
  const state = createQuotaState(optionsOf({ tag_ids: rateOf(100) }));
  const take = (ids: number, now: number) =>
    takeOfQuotas(state, { caller: "a", tag: "t", ids }, now);
  expect(take(1_100, 0)).toBeUndefined();
  // 1,000 ids of debt, and one more that has to be there.
  expect(take(1, 0)?.waitMs).toBeCloseTo(10_010);
  expect(take(1, 10_000)).toBeDefined();
  expect(take(1, 10_010)).toBeUndefined();
});

test("what could not be paid within an hour is refused, and the refusal says how much may be", () => {
  const state = createQuotaState(optionsOf({ caller_ids: rateOf(10) }));
  const take = (ids: number) => takeOfQuotas(state, { caller: "a", tag: "t", ids }, 0);
  const most = 10 + 10 * 3_600;
  expect(take(most + 1)).toMatchObject({ quota: "caller_ids", most });
  expect(take(4_294_967_295)).toMatchObject({ most });
  expect(take(most)).toBeUndefined();
  expect(take(1)?.waitMs).toBeLessThanOrEqual(3_600_000 + 1_000);
});

test("ids that a call did not get are given back, and its call is not", () => {
  const state = createQuotaState(optionsOf({ caller_calls: rateOf(2), caller_ids: rateOf(100) }));
  const call = { caller: "a", tag: "t", ids: 5_000 };
  expect(takeOfQuotas(state, call, 0)).toBeUndefined();
  giveBackIds(state, call, 0);
  expect(takeOfQuotas(state, { ...call, ids: 1 }, 0)).toBeUndefined();
  expect(takeOfQuotas(state, { ...call, ids: 1 }, 0)).toMatchObject({ quota: "caller_calls" });
  // What is given back never makes a bucket fuller than full.
  giveBackIds(state, call, 0);
  expect(takeOfQuotas(state, { caller: "a", tag: "t", ids: 200 }, 60_000)).toBeUndefined();
  expect(takeOfQuotas(state, { caller: "a", tag: "t", ids: 1 }, 60_000)).toMatchObject({
    quota: "caller_ids",
  });
});

test("some have a quota of their own, and others none", () => {
  const named = new Map([
    ["big", 1_000],
    ["free", undefined],
  ]);
  const state = createQuotaState(optionsOf({ tag_calls: { byDefault: 1, named } }));
  const admitted = (tag: string): number => {
    let count = 0;
    for (let i = 0; i < 5_000; i++) {
      if (takeOfQuotas(state, { caller: "a", tag, ids: 1 }, 0) === undefined) count++;
    }
    return count;
  };
  expect([admitted("big"), admitted("free"), admitted("other")]).toEqual([1_000, 5_000, 1]);
});

test("forgetting a bucket gives nobody more, and newcomers beyond the limit share one", () => {
  const state = createQuotaState(optionsOf({ caller_calls: rateOf(10) }, { maxBuckets: 3 }));
  const take = (caller: string, now: number) =>
    takeOfQuotas(state, { caller, tag: "t", ids: 1 }, now) === undefined;
  for (const caller of ["a", "b", "c"]) expect(take(caller, 0)).toBe(true);
  let together = 0;
  for (let i = 0; i < 100; i++) if (take(`x${i}`, 0)) together++;
  expect(together).toBe(10);
  const [, table] = state.tables[0] ?? [];
  expect(table?.buckets.size).toBe(4);
  // Swept too early it forgets nothing; later, what is full again.
  sweepQuotas(state, 99);
  expect(table?.buckets.size).toBe(4);
  for (let now = 5_000; now < 5_010; now++) sweepQuotas(state, now);
  expect(table?.buckets.size).toBe(0);
  // Names that no tag can have take no room.
  expect(take("y".repeat(10_000), 6_000)).toBe(true);
  expect([...(table?.buckets.keys() ?? [])].every((name) => name.length <= 128)).toBe(true);
});

test("ids that are given back never make a bucket fuller than it was full", () => {
  const state = createQuotaState(optionsOf({ caller_ids: rateOf(100) }));
  const call = { caller: "a", tag: "t", ids: 50 };
  expect(takeOfQuotas(state, call, 0)).toBeUndefined();
  // Meanwhile the bucket is full again.
  giveBackIds(state, call, 10_000);
  const taken = [100, 1].map((ids) => takeOfQuotas(state, { ...call, ids }, 10_000)?.quota);
  expect(taken).toEqual([undefined, "caller_ids"]);
});

test("each caller has a bucket of its own", () => {
  const state = createQuotaState(optionsOf({ caller_calls: rateOf(1) }));
  const quotaOf = (caller: string) => takeOfQuotas(state, { caller, tag: "t", ids: 1 }, 0)?.quota;
  expect(["a", "b", "a", "b"].map(quotaOf)).toEqual([
    undefined,
    undefined,
    "caller_calls",
    "caller_calls",
  ]);
});

test("a clock that goes back fills no bucket, then or when it comes back", () => {
  const state = createQuotaState(optionsOf({ caller_calls: rateOf(1) }));
  const quotaAt = (now: number) =>
    takeOfQuotas(state, { caller: "a", tag: "t", ids: 1 }, now)?.quota;
  expect([10_000, 5_000, 10_000].map(quotaAt)).toEqual([undefined, "caller_calls", "caller_calls"]);
  expect(quotaAt(10_999)).toBe("caller_calls");
  expect(quotaAt(11_000)).toBeUndefined();
});

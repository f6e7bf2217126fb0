// What a holder's file says of a lease, through renewals and restarts: time is used once, and never beyond what is reserved.
import type { WorkerRenewal } from "@idmint/core";
import {
  answerOf,
  hasTimeLeft,
  KEPT_RESERVE_AHEAD_MS,
  type KeptLease,
  keptLease,
  raised,
  renewalAhead,
  renewedAhead,
  takenUp,
} from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";

const ANSWERED = {
  token: 1n,
  ttlMs: 30_000,
  extension: 0,
  epoch: 1n,
  dataCenter: 2,
  workerId: 3,
  notBeforeMs: 10_001,
  reservedUntilMs: 70_000,
  nowMs: 10_500,
};

/** A lease at 100 on the holder's clock. */
function leased(more: Partial<typeof ANSWERED> = {}): KeptLease {
  return keptLease({ tag: "t", instance: "i" }, { ...ANSWERED, ...more }, 100);
}

const renewal = (more: Partial<WorkerRenewal> = {}): WorkerRenewal => ({
  tag: "t",
  dataCenter: 2,
  workerId: 3,
  token: 1n,
  extension: 0,
  reserveUntilMs: 15_000,
  reserveAheadMs: 3_000,
  ...more,
});

test("a lease that was answered has used nothing of what is reserved for it", () => {
  expect(leased()).toMatchObject({
    tag: "t",
    instance: "i",
    dataCenter: 2,
    workerId: 3,
    usedUntilMs: 10_000,
    reservedUntilMs: 70_000,
    registryMs: 10_500,
    at: 100,
    leadMs: 0,
  });
  // An answer that reserves nothing.
  expect(leased({ reservedUntilMs: 5 }).reservedUntilMs).toBe(10_000);
});

test("what is taken up begins above what may have been used, and goes as far ahead as was asked", () => {
  const { kept, lease } = takenUp(leased(), 3_000, 350.6);
  expect(lease).toEqual({
    token: 1n,
    ttlMs: 30_000,
    extension: 0,
    epoch: 1n,
    dataCenter: 2,
    workerId: 3,
    notBeforeMs: 10_001,
    nowMs: 10_750,
    reservedUntilMs: 13_750,
  });
  expect([kept.usedUntilMs, kept.leadMs]).toEqual([13_750, 0]);
  // The next run begins above that, ahead of the registry's clock.
  const next = takenUp(kept, 3_000, 1_100);
  expect(next.lease).toMatchObject({ notBeforeMs: 13_751, reservedUntilMs: 16_750, nowMs: 11_500 });
  expect(next.kept.leadMs).toBe(2_250);
});

test("a clock that went back shows the registry's time of its last answer", () => {
  expect(answerOf(leased(), 40).nowMs).toBe(10_500);
  expect(answerOf(leased(), 101.9).nowMs).toBe(10_501);
});

test("more time is at most ten seconds beyond what is asked ahead, and what is reserved", () => {
  const { kept } = takenUp(leased(), 3_000, 100);
  expect(raised(kept, renewal(), 100).usedUntilMs).toBe(15_000);
  expect(raised(kept, renewal({ reserveUntilMs: 60_000 }), 100.5).usedUntilMs).toBe(23_500);
  expect(
    raised({ ...kept, leadMs: 400 }, renewal({ reserveUntilMs: 60_000 }), 100).usedUntilMs,
  ).toBe(23_900);
  expect(raised(kept, renewal({ reserveUntilMs: 90_000 }), 99_000).usedUntilMs).toBe(70_000);
  // Never less than before.
  expect(raised(kept, renewal({ reserveUntilMs: 12_000 }), 100).usedUntilMs).toBe(13_500);
});

test("the registry is asked for a minute where the holder asks for less", () => {
  const asked = renewalAhead({ ...leased(), token: 9n }, renewal());
  expect(KEPT_RESERVE_AHEAD_MS).toBe(60_000);
  expect(asked).toEqual(renewal({ token: 9n, reserveAheadMs: 60_000, reserveUntilMs: 72_000 }));
});

const RENEWED = {
  token: 2n,
  ttlMs: 20_000,
  extension: 0,
  epoch: 4n,
  reservedUntilMs: 80_000,
  nowMs: 20_000,
};

test("a renewal reserves more of the same time, or begins anew under the next extension", () => {
  const { kept } = takenUp(leased(), 3_000, 100);
  const same = renewedAhead({ ...kept, leadMs: 7 }, renewal(), RENEWED, 900);
  const told = { token: 2n, ttlMs: 20_000, epoch: 4n, registryMs: 20_000, at: 900 };
  expect(same).toEqual({ ...kept, ...told, leadMs: 7, reservedUntilMs: 80_000 });
  expect(renewedAhead(kept, renewal(), { ...RENEWED, reservedUntilMs: 5 }, 900)).toMatchObject({
    reservedUntilMs: 70_000,
  });
  const next = { ...RENEWED, extension: 1 };
  const asked = renewal({ extension: 1, reserveUntilMs: 24_000 });
  expect(renewedAhead({ ...kept, leadMs: 7 }, asked, next, 900)).toEqual({
    ...kept,
    ...told,
    extension: 1,
    reservedUntilMs: 80_000,
    usedUntilMs: 24_000,
    leadMs: 0,
  });
  const less = { ...next, reservedUntilMs: 23_000 };
  expect(renewedAhead(kept, asked, less, 900).usedUntilMs).toBe(23_000);
});

test("time is left while some that is reserved is neither used nor over", () => {
  const kept = { ...leased(), reservedUntilMs: 20_000, usedUntilMs: 15_000 };
  expect([9_598, 9_599, 9_600].map((now) => hasTimeLeft(kept, now))).toEqual([true, true, false]);
  expect(hasTimeLeft({ ...kept, usedUntilMs: 20_000 }, 100)).toBe(false);
  expect(hasTimeLeft({ ...kept, usedUntilMs: 19_999 }, 100)).toBe(true);
});

const steps = fc.array(
  fc.record({
    what: fc.constantFrom("raise", "renew", "extend", "restart"),
    afterMs: fc.integer({ min: -500, max: 8_000 }),
    wantMs: fc.integer({ min: -1_000, max: 40_000 }),
  }),
  { maxLength: 30 },
);

test("no time is used twice or beyond what is reserved, whatever is renewed and restarted", () => {
  fc.assert(
    fc.property(steps, (all) => {
      let now = 100;
      let { kept } = takenUp(leased(), 3_000, now);
      for (const { what, afterMs, wantMs } of all) {
        now += afterMs;
        const before = kept;
        const wish = renewal({ reserveUntilMs: kept.usedUntilMs + wantMs });
        if (what === "raise") kept = raised(kept, wish, now);
        else if (what === "restart") {
          const next = takenUp(kept, 3_000, now);
          expect(next.lease.notBeforeMs).toBe(before.usedUntilMs + 1);
          expect(next.lease.reservedUntilMs).toBe(next.kept.usedUntilMs);
          kept = next.kept;
        } else {
          const extension = kept.extension + (what === "extend" ? 1 : 0);
          const ahead = renewalAhead(kept, { ...wish, extension });
          const nowMs = kept.registryMs + 1_000;
          const reservedUntilMs = Math.min(ahead.reserveUntilMs, nowMs + 70_000);
          const answer = { ...RENEWED, token: kept.token + 1n, extension, reservedUntilMs, nowMs };
          kept = renewedAhead(kept, { ...wish, extension }, answer, now);
        }
        if (kept.extension === before.extension) {
          expect(kept.usedUntilMs).toBeGreaterThanOrEqual(before.usedUntilMs);
          expect(kept.reservedUntilMs).toBeGreaterThanOrEqual(before.reservedUntilMs);
        }
        expect(kept.usedUntilMs).toBeLessThanOrEqual(kept.reservedUntilMs);
      }
    }),
    { numRuns: 500 },
  );
});

import { elapsedClock } from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Deadlines } from "../../../src/fast/calls/deadlines.ts";

/** How late a deadline may be noticed: the tick behind it, and the timer's. */
const LATE_MS = 2 * 16;

interface Wait {
  readonly afterMs: number;
  readonly forMs: number;
  /** Given up so long after it began; beyond its time, it is not. */
  readonly endsAfterMs: number;
}

const wait: fc.Arbitrary<Wait> = fc.record({
  afterMs: fc.nat(50),
  forMs: fc.oneof(fc.integer({ min: -100, max: 200 }), fc.double({ min: 0, max: 50, noNaN: true })),
  endsAfterMs: fc.nat(400),
});

test("each one that waits ends once, never early and soon after its time, unless it was given up", () => {
  fc.assert(
    fc.property(fc.array(wait, { maxLength: 30 }), fc.nat(1_000_000), (waits, startMs) => {
      const time = new FakeTime(startMs);
      const deadlines = new Deadlines({ clock: time, timers: time });
      for (const { afterMs, forMs, endsAfterMs } of waits) {
        time.advance(afterMs);
        const begunAt = time.now();
        const deadline = begunAt + forMs;
        const seen = { count: 0, isGivenUp: false };
        const timed = {
          expired: () => {
            seen.count++;
            expect(seen.isGivenUp).toBe(false);
            expect(time.now()).toBeGreaterThanOrEqual(deadline);
            expect(time.now()).toBeLessThanOrEqual(Math.max(deadline, begunAt) + LATE_MS);
          },
        };
        const tick = deadlines.add(timed, deadline);
        const isEarly = endsAfterMs < forMs;
        if (isEarly) {
          time.after(endsAfterMs, () => {
            if (seen.count > 0) return;
            seen.isGivenUp = true;
            deadlines.remove(timed, tick);
          });
        }
        time.after(Math.max(0, forMs) + LATE_MS + 1, () => {
          expect(seen.count).toBe(isEarly ? 0 : 1);
        });
      }
      time.advance(1_000);
      // Whoever waits for nothing keeps no timer.
      expect(time.pending).toBe(0);
    }),
  );
});

test("after a long stop all that is due ends, in its order", () => {
  let now = 0;
  let run: (() => void) | undefined;
  const timers = {
    after: (_: number, then: () => void) => {
      run = then;
      return () => undefined;
    },
  };
  const deadlines = new Deadlines({ clock: { now: () => now }, timers });
  const ended: number[] = [];
  for (const deadline of [5_000, 100, 86_400_000, 3_000, 3_600_000, 3_600_001]) {
    deadlines.add({ expired: () => ended.push(deadline) }, deadline);
  }
  // The machine slept for an hour.
  now = 3_600_000;
  run?.();
  const due = [100, 3_000, 5_000, 3_600_000];
  expect(ended).toEqual(due);
  now += 16;
  run?.();
  expect(ended).toEqual([...due, 3_600_001]);
  now = 90_000_000;
  run?.();
  expect(ended.at(-1)).toBe(86_400_000);
});

test.each([-3_600_000, 3_600_000])(
  "who sets the wall clock by %i ms ends nobody's time, early or late",
  (stepMs) => {
    const time = new FakeTime(1_000);
    let wallMs = 1_700_000_000_000;
    const now = (): number => time.now();
    const clock = elapsedClock({ monotonicMs: now, wallMs: () => wallMs + now(), uptimeMs: now });
    const deadlines = new Deadlines({ clock, timers: time });
    const endedAt: number[] = [];
    const timed = { expired: () => void endedAt.push(time.now()) };
    deadlines.add(timed, clock.now() + 500);
    time.advance(100);
    wallMs += stepMs;
    deadlines.add(timed, clock.now() + 500);
    time.advance(2_000);
    expect(endedAt).toHaveLength(2);
    for (const [at, due] of [1_500, 1_600].entries()) {
      expect(endedAt[at]).toBeGreaterThanOrEqual(due);
      expect(endedAt[at]).toBeLessThanOrEqual(due + LATE_MS);
    }
  },
);

// Whoever holds must stop believing so before Redis forgets the key, whatever renewals, clocks and pauses do.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  ended,
  heldSince,
  type LeaseState,
  looked,
  refused,
  remainingMs,
  renewed,
} from "../../src/lease/lease-state.ts";
import type { Instant } from "../../src/time.ts";

const step = fc.record({
  /** Real time that passes before the step, and on the way to Redis and back. */
  beforeMs: fc.integer({ min: 0, max: 400 }),
  thereMs: fc.integer({ min: 0, max: 200 }),
  backMs: fc.integer({ min: 0, max: 200 }),
  what: fc.constantFrom("renew", "look", "refuse", "end", "set wall clock back", "set it ahead"),
});

/** The holder's clocks: the monotonic one runs as fast as real time or up to 0.5 % faster or slower. */
function clocks(rate: number): (realMs: number, setMs: number) => Instant {
  return (realMs, setMs) => ({ monotonicMs: realMs * rate, wallMs: realMs * rate + setMs });
}

function at(ms: number): Instant {
  return { monotonicMs: ms, wallMs: ms };
}

test("no holder believes in what Redis has forgotten", () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 30 }),
      fc.integer({ min: 20, max: 1_000 }),
      fc.double({ min: 0.995, max: 1.005, noNaN: true }),
      (steps, ttlMs, rate) => {
        const read = clocks(rate);
        let real = 1_000;
        let setMs = 0;
        // Redis' clock runs by real time here; the key was set just after it was asked for.
        let expiresAt = real + 1 + ttlMs;
        let state: LeaseState = heldSince(read(real, setMs), ttlMs);
        let wasOver = false;
        for (const { what, beforeMs, thereMs, backMs } of steps) {
          real += beforeMs;
          const askedAt = read(real, setMs);
          if (what === "renew") {
            real += thereMs;
            const isThere = real < expiresAt;
            if (isThere) expiresAt = real + ttlMs;
            real += backMs;
            if (isThere) state = renewed(state, askedAt, read(real, setMs));
            else state = refused(state);
          }
          if (what === "look") state = looked(state, read(real, setMs));
          if (what === "refuse") state = refused(state);
          if (what === "end") state = ended(state);
          // Set back, it says less time has passed, which the monotonic clock knows better.
          if (what === "set wall clock back") setMs -= 5_000;
          if (what === "set it ahead") setMs += 5_000;
          const left = remainingMs(state, read(real, setMs));
          if (left > 0) expect(real + left / rate).toBeLessThanOrEqual(expiresAt);
          if (wasOver) expect(left).toBe(0);
          wasOver ||= state.phase !== "held";
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

test("a machine that was suspended notices by its wall clock", () => {
  const state = heldSince({ monotonicMs: 100, wallMs: 1_000_000 }, 1_000);
  expect(remainingMs(state, { monotonicMs: 200, wallMs: 1_000_100 })).toBe(888);
  expect(remainingMs(state, { monotonicMs: 200, wallMs: 1_005_000 })).toBe(0);
  expect(looked(state, { monotonicMs: 200, wallMs: 1_005_000 }).phase).toBe("lost");
});

test("renewals that arrive out of order count by when they were asked for", () => {
  let state = heldSince(at(0), 1_000);
  state = renewed(state, at(500), at(510));
  state = renewed(state, at(300), at(520));
  expect(remainingMs(state, at(520))).toBe(988 - 20);
});

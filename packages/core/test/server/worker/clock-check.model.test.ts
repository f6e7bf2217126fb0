import {
  checkClock,
  type ClockCheckState,
  createClockCheckState,
  sawPeers,
  sawStore,
  wantsPeers,
} from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";

const START_MS = 1_800_000_000_000;
const MAX_OFFSET_MS = 5_000;

/** A server whose clock is off, between a store and peers whose clocks may be off too. */
class Fleet {
  now = 0;
  offsetMs = 0;
  storeOffsetMs: number | undefined = 0;
  peerOffsetsMs: readonly number[] = [];
  readonly state: ClockCheckState;

  constructor(reportedMs?: number) {
    this.state = createClockCheckState(MAX_OFFSET_MS, reportedMs);
  }

  time(offsetMs: number): number {
    return START_MS + this.now + offsetMs;
  }

  /** As the shell does it. */
  check() {
    const { state, now: at } = this;
    if (wantsPeers(state)) {
      const peers = this.peerOffsetsMs.map((offsetMs, number) => ({
        peer: `peer-${number}`,
        timeMs: this.time(offsetMs),
        at,
      }));
      sawPeers(state, peers);
    }
    if (this.storeOffsetMs !== undefined) {
      sawStore(state, { timeMs: this.time(this.storeOffsetMs), at });
    }
    return checkClock(state, { wallMs: this.time(this.offsetMs), monotonicMs: at });
  }

  get why() {
    return this.state.refusal?.why;
  }
}

test("a server whose clock is behind its last report starts when the clock has reached it", () => {
  const fleet = new Fleet(START_MS + 4_000);
  expect(fleet.check()).toMatchObject([
    { type: "refused", refusal: { why: "behind-report", driftMs: -4_000 } },
  ]);
  fleet.now = 3_999;
  expect(fleet.check()).toEqual([]);
  fleet.now = 4_000;
  expect(fleet.check()).toEqual([{ type: "recovered", afterMs: 4_000 }]);
  // From then on clocks that go back are the generators' matter.
  fleet.offsetMs = -60_000;
  expect(fleet.check()).toEqual([]);
});

test("a server starts within max_offset of the mean of the peers that answer, and not beyond", () => {
  const fleet = new Fleet();
  fleet.peerOffsetsMs = [-2_000, 3_000, 8_000];
  fleet.offsetMs = -2_001;
  fleet.check();
  expect(fleet.state.refusal).toMatchObject({ why: "off-peers", driftMs: -5_001 });
  expect(fleet.state.refusal?.detail).toBe(
    "peer-0: 1 ms behind, peer-1: 5001 ms behind, peer-2: 10001 ms behind",
  );
  fleet.offsetMs = -2_000;
  expect(fleet.check()).toMatchObject([{ type: "recovered" }]);
});

test("a peer with a wrong clock takes no running server out", () => {
  const fleet = new Fleet();
  fleet.peerOffsetsMs = [0, 0];
  fleet.check();
  fleet.peerOffsetsMs = [0, -3_600_000];
  for (fleet.now = 0; fleet.now < 60_000; fleet.now += 3_000) expect(fleet.check()).toEqual([]);
});

test("a jump ahead is held back until a peer, or the store, confirms it, or it is undone", () => {
  for (const cure of ["peer", "store", "undone"] as const) {
    const fleet = new Fleet();
    fleet.check();
    fleet.now = 3_000;
    fleet.offsetMs = 3_600_000;
    expect(fleet.check()).toMatchObject([{ type: "refused", refusal: { why: "ahead" } }]);
    fleet.now = 6_000;
    expect(fleet.check()).toEqual([]);
    if (cure === "peer") fleet.peerOffsetsMs = [3_600_000, 0];
    else if (cure === "store") fleet.storeOffsetMs = 3_600_000;
    else fleet.offsetMs = 0;
    fleet.now = 9_000;
    expect(fleet.check()).toEqual([{ type: "recovered", afterMs: 6_000 }]);
  }
});

test("without anybody to ask, a clock is measured by what was confirmed last", () => {
  const fleet = new Fleet();
  fleet.check();
  fleet.storeOffsetMs = undefined;
  fleet.now = 20_000;
  fleet.offsetMs = 10_000;
  expect(fleet.check()).toEqual([]);
  // Small jumps add up.
  fleet.now = 40_000;
  fleet.offsetMs = 10_001;
  expect(fleet.check()).toMatchObject([{ type: "refused", refusal: { why: "ahead" } }]);
  fleet.storeOffsetMs = 5_000;
  expect(fleet.check()).toMatchObject([{ type: "recovered" }]);
});

test("a server that starts alone, with nobody to ask, starts", () => {
  const fleet = new Fleet();
  fleet.storeOffsetMs = undefined;
  fleet.offsetMs = 3_600_000;
  expect(fleet.check()).toEqual([]);
  expect(fleet.why).toBeUndefined();
});

test("a store whose clock is behind takes nobody out as long as peers confirm", () => {
  const fleet = new Fleet();
  fleet.storeOffsetMs = -60_000;
  fleet.peerOffsetsMs = [0];
  for (fleet.now = 0; fleet.now < 120_000; fleet.now += 3_000) expect(fleet.check()).toEqual([]);
});

const offsets = fc.oneof(
  fc.integer({ min: -20, max: 20 }),
  fc.integer({ min: -20_000, max: 20_000 }),
  fc.constantFrom(-3_600_000, 3_600_000),
);

test("whatever clocks do: never believed beyond what confirms, always back when all are right", () => {
  fc.assert(
    fc.property(
      fc.option(offsets, { nil: undefined }),
      fc.array(
        fc.record({
          waitMs: fc.integer({ min: 0, max: 30_000 }),
          own: offsets,
          store: fc.option(offsets, { nil: undefined }),
          peers: fc.array(offsets, { maxLength: 4 }),
        }),
        { minLength: 1, maxLength: 20 },
      ),
      (reported, script) => {
        const fleet = new Fleet(reported === undefined ? undefined : START_MS + reported);
        let isRefused = false;
        let hasStarted = false;
        let seenStore: { offset: number; at: number } | undefined;
        for (const { waitMs, own, store, peers } of script) {
          fleet.now += waitMs;
          fleet.offsetMs = own;
          fleet.storeOffsetMs = store;
          fleet.peerOffsetsMs = peers;
          const asked = wantsPeers(fleet.state);
          for (const effect of fleet.check()) isRefused = effect.type === "refused";
          expect(fleet.why !== undefined).toBe(isRefused);
          if (store !== undefined) seenStore = { offset: store, at: fleet.now };
          if (isRefused) continue;
          const drifts = (asked ? peers : []).map((offset) => own - offset);
          const isFresh = seenStore !== undefined && fleet.now - seenStore.at <= 10_000;
          if (isFresh) drifts.push(own - (seenStore?.offset ?? 0));
          if (asked && drifts.length > 0) expect(Math.min(...drifts)).toBeLessThanOrEqual(10_000);
          if (!hasStarted) {
            if (reported !== undefined) {
              expect(fleet.time(own)).toBeGreaterThanOrEqual(START_MS + reported);
            }
            const mean = peers.reduce((sum, offset) => sum + own - offset, 0) / peers.length;
            if (peers.length > 0) expect(Math.abs(mean)).toBeLessThanOrEqual(MAX_OFFSET_MS);
          }
          hasStarted = true;
        }
        fleet.now += 4_000_000;
        fleet.offsetMs = 0;
        fleet.storeOffsetMs = 0;
        fleet.peerOffsetsMs = [0, 0];
        fleet.check();
        expect(fleet.why).toBeUndefined();
      },
    ),
    { numRuns: 2_000 },
  );
});

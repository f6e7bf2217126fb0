import { expect, test } from "vitest";
import { CoordinationError } from "../../src/errors.ts";
import { type Answer, Lease, type LeaseOptions } from "../../src/lease/lease.ts";
import { FakeRuntime } from "../fake-runtime.ts";

const gone = new CoordinationError("LOCK_LOST", "gone");
const unreachable: Answer = {
  type: "unknown",
  error: new CoordinationError("NODE_UNAVAILABLE", "no answer"),
};

async function confirm(): Promise<Answer> {
  return { type: "confirmed" };
}

function start(more: Partial<LeaseOptions> = {}): {
  runtime: FakeRuntime;
  lease: Lease;
  lost: CoordinationError[];
} {
  const runtime = new FakeRuntime();
  const lost: CoordinationError[] = [];
  const lease = new Lease({
    runtime,
    ttlMs: 1_000,
    askedAt: runtime.now(),
    isRenewed: false,
    graceMs: 100,
    renew: confirm,
    verify: confirm,
    over: (cause) => new CoordinationError("LOCK_LOST", "over", { cause }),
    onLost: (error) => lost.push(error),
    ...more,
  });
  return { runtime, lease, lost };
}

test("a lease that nobody renews fires just before Redis forgets it, once", async () => {
  const { runtime, lease, lost } = start();
  await runtime.pass(985);
  expect(lease.isHeld).toBe(true);
  await runtime.pass(5);
  expect(lease.signal.aborted).toBe(true);
  expect(lease.signal.reason).toBe(lost[0]);
  await runtime.pass(5_000);
  expect(lost.map(({ message }) => message)).toEqual(["LOCK_LOST: over"]);
  expect(runtime.time.pending).toBe(0);
});

test("a renewed lease stays, each third of its time", async () => {
  let renewals = 0;
  const { runtime, lease, lost } = start({
    isRenewed: true,
    renew: async () => {
      renewals++;
      return { type: "confirmed" };
    },
  });
  await runtime.pass(10_000);
  expect(lease.isHeld).toBe(true);
  expect(lost).toEqual([]);
  expect(renewals).toBeGreaterThanOrEqual(29);
  expect(renewals).toBeLessThanOrEqual(30);
  expect(lease.end()).toBe(true);
  expect(runtime.time.pending).toBe(0);
  expect(lease.signal.aborted).toBe(false);
});

test("a refused renewal loses it at once", async () => {
  const { runtime, lease, lost } = start({
    isRenewed: true,
    renew: async () => ({ type: "refused", error: gone }),
  });
  await runtime.pass(340);
  expect(lease.signal.reason).toBe(gone);
  expect(lost).toEqual([gone]);
});

test("renewals without an answer are tried again, until its time is over", async () => {
  let tries = 0;
  const { runtime, lease, lost } = start({
    isRenewed: true,
    renew: async () => {
      tries++;
      return unreachable;
    },
  });
  await runtime.pass(980);
  expect(lease.isHeld).toBe(true);
  expect(tries).toBeGreaterThanOrEqual(6);
  await runtime.pass(10);
  expect(lost.map(({ message }) => message)).toEqual(["LOCK_LOST: over"]);
});

test("an answer that comes too late does not bring it back", async () => {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const { runtime, lease, lost } = start({ renew: () => promise });
  const renewal = lease.renew();
  await runtime.pass(1_100);
  resolve({ type: "confirmed" });
  expect(await renewal).toMatchObject({ type: "refused" });
  expect(lease.isHeld).toBe(false);
  expect(lost).toHaveLength(1);
});

test("a process that was paused sees the end before its timers do", () => {
  const { runtime, lease } = start();
  runtime.wallOffsetMs = 2_000;
  expect(lease.remainingMs).toBe(0);
  expect(lease.signal.aborted).toBe(true);
});

test("a broken connection loses it after the grace, unless Redis confirms before", async () => {
  const broken = start({ verify: async () => unreachable });
  broken.lease.suspect();
  await broken.runtime.pass(90);
  expect(broken.lease.isHeld).toBe(true);
  await broken.runtime.pass(50);
  expect(broken.lost.map(({ cause }) => cause)).toEqual([unreachable.error]);

  let looks = 0;
  const mended = start({
    verify: async () => (++looks < 3 ? unreachable : { type: "confirmed" }),
  });
  mended.lease.suspect();
  await mended.runtime.pass(500);
  expect(looks).toBe(3);
  expect(mended.lease.isHeld).toBe(true);

  const restarted = start({ verify: async () => ({ type: "refused", error: gone }) });
  restarted.lease.suspect();
  await restarted.runtime.pass(5);
  expect(restarted.lost).toEqual([gone]);
});

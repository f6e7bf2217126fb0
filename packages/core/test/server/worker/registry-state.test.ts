import {
  instanceViolation,
  MAX_LEAD_MS,
  reserveAheadViolation,
  SNOWFLAKE_PRESETS,
  WORKER_TTL_MS,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import {
  dataCenterOf,
  isFree,
  leasedWorker,
  releasedWorker,
  renewedWorker,
  type Worker,
} from "@idmint/core/server";
import { expect, test } from "vitest";

const NOW = 1_800_000_000_000;
const AHEAD = 3_000;
const layout = { ...SNOWFLAKE_PRESETS["41-5-5-12"], workerBits: 1, extensionBits: 0 };
const pool = { layout, dataCenter: 2, closedUntilMs: 0 };
const request: WorkerLeaseRequest = {
  tag: "t",
  instance: "pod-1",
  dataCenter: 2,
  reserveAheadMs: AHEAD,
};
const none = { own: undefined, used: 0, free: undefined };

function rowOf(change: Partial<Worker> = {}): Worker {
  return {
    dataCenter: 2,
    workerId: 1,
    instance: "pod-1",
    token: 7n,
    extension: 0,
    reservedUntilMs: NOW - 60_000,
    expiresAtMs: NOW - 30_000,
    ...change,
  };
}

function renewalOf(change: Partial<WorkerRenewal> = {}): WorkerRenewal {
  const key = { tag: "t", dataCenter: 2, workerId: 1, token: 7n };
  return { ...key, reserveUntilMs: NOW + AHEAD, reserveAheadMs: AHEAD, extension: 0, ...change };
}

test("the first lease has worker id 0, and time from the layout's origin to a little ahead", () => {
  const { row, answer } = leasedWorker(none, request, pool, NOW);
  expect(row).toEqual({
    dataCenter: 2,
    workerId: 0,
    instance: "pod-1",
    token: 1n,
    extension: 0,
    reservedUntilMs: NOW + AHEAD,
    expiresAtMs: NOW + WORKER_TTL_MS,
  });
  expect(answer).toEqual({
    dataCenter: 2,
    workerId: 0,
    token: 1n,
    ttlMs: WORKER_TTL_MS,
    extension: 0,
    notBeforeMs: layout.timeOriginMs,
    reservedUntilMs: NOW + AHEAD,
    nowMs: NOW,
  });
});

test("an instance gets its own worker id back, though others were never used, above its reservation", () => {
  const own = rowOf({ reservedUntilMs: NOW + 1_000, expiresAtMs: NOW + 29_000 });
  const { row, answer } = leasedWorker({ ...none, own, used: 1 }, request, pool, NOW);
  expect(row).toMatchObject({ workerId: 1, token: 8n, reservedUntilMs: NOW + 1_000 + AHEAD });
  expect(answer).toMatchObject({ workerId: 1, notBeforeMs: NOW + 1_001 });
});

test("one that was never used goes before one that is free, and there are no more than the layout has", () => {
  const free = rowOf({ instance: "pod-9", workerId: 0, extension: 3 });
  expect(leasedWorker({ own: undefined, used: 1, free }, request, pool, NOW).row.workerId).toBe(1);
  const { row, answer } = leasedWorker({ own: undefined, used: 2, free }, request, pool, NOW);
  expect(row).toMatchObject({ workerId: 0, instance: "pod-1", token: 8n, extension: 3 });
  expect(answer).toMatchObject({ notBeforeMs: free.reservedUntilMs + 1, extension: 3 });
  const full = { own: undefined, used: 2, free: undefined };
  expect(() => leasedWorker(full, request, pool, NOW)).toThrow(
    /WORKER_IDS_EXHAUSTED: all 2 worker ids of tag "t" in data center 2/,
  );
});

test("a worker id is free when its lease and its reservation are over, by the registry's clock", () => {
  expect(isFree(rowOf({ expiresAtMs: NOW, reservedUntilMs: NOW }), NOW)).toBe(true);
  expect(isFree(rowOf({ expiresAtMs: NOW + 1 }), NOW)).toBe(false);
  expect(isFree(rowOf({ reservedUntilMs: NOW + 1 }), NOW)).toBe(false);
});

test("a lease reserves no further ahead than allowed, and never less than was reserved", () => {
  const limit = NOW + AHEAD + MAX_LEAD_MS;
  for (const [reservedUntilMs, expected] of [
    [NOW + MAX_LEAD_MS - 1, limit - 1],
    [limit - 1, limit],
    [limit, limit],
    [NOW + 3_600_000, NOW + 3_600_000],
  ] as const) {
    const own = rowOf({ reservedUntilMs });
    const { row, answer } = leasedWorker({ ...none, own, used: 2 }, request, pool, NOW);
    expect(row.reservedUntilMs).toBe(expected);
    expect(answer.reservedUntilMs).toBe(expected);
    expect(answer.notBeforeMs).toBe(reservedUntilMs + 1);
  }
});

test("a renewal raises the reservation and uses the token up", () => {
  const { row, answer } = renewedWorker(rowOf(), renewalOf(), pool, NOW);
  expect(row).toEqual(
    rowOf({ token: 8n, reservedUntilMs: NOW + AHEAD, expiresAtMs: NOW + WORKER_TTL_MS }),
  );
  expect(answer).toEqual({
    token: 8n,
    ttlMs: WORKER_TTL_MS,
    extension: 0,
    reservedUntilMs: NOW + AHEAD,
    nowMs: NOW,
  });
  expect(() => renewedWorker(row, renewalOf(), pool, NOW)).toThrow(/^WORKER_LEASE_LOST: worker/);
  expect(() => renewedWorker(row, renewalOf({ token: 9n }), pool, NOW)).toThrow("LEASE_LOST");
  expect(() => renewedWorker(undefined, renewalOf(), pool, NOW)).toThrow("LEASE_LOST");
});

test("a renewal never lowers a reservation, and does not raise it too far ahead", () => {
  const limit = NOW + AHEAD + MAX_LEAD_MS;
  const held = rowOf({ reservedUntilMs: NOW + 500 });
  for (const [reserveUntilMs, expected] of [
    [0, NOW + 500],
    [NOW + 499, NOW + 500],
    [limit, limit],
    [limit + 1, limit],
    [NOW + 3_600_000, limit],
  ] as const) {
    const { row, answer } = renewedWorker(held, renewalOf({ reserveUntilMs }), pool, NOW);
    expect(row.reservedUntilMs).toBe(expected);
    expect(answer.reservedUntilMs).toBe(expected);
    expect(row.token).toBe(8n);
  }
});

test("a registry whose clock went back lowers no reservation, and keeps the lease", () => {
  const held = rowOf({ reservedUntilMs: NOW + 500 });
  for (const reserveUntilMs of [NOW + 400, NOW + AHEAD, NOW + 3_600_000]) {
    const renewal = renewalOf({ reserveUntilMs });
    const { row } = renewedWorker(held, renewal, pool, NOW - 3_600_000);
    expect(row).toMatchObject({ reservedUntilMs: NOW + 500, token: 8n });
  }
});

test("leases begin above the floor, and what may be reserved counts from it", () => {
  const closedUntilMs = NOW + 370_000;
  const closed = { ...pool, closedUntilMs };
  const used = { own: rowOf(), used: 2, free: undefined };
  for (const candidates of [none, used]) {
    const { row, answer } = leasedWorker(candidates, request, closed, NOW);
    expect(answer).toMatchObject({ notBeforeMs: closedUntilMs + 1 });
    expect(row.reservedUntilMs).toBe(closedUntilMs + AHEAD);
    const limit = closedUntilMs + AHEAD + MAX_LEAD_MS;
    const key = { workerId: row.workerId, token: row.token };
    for (const asked of [limit - 1, limit, limit + 1]) {
      const renewal = renewalOf({ ...key, reserveUntilMs: asked });
      const renewed = renewedWorker(row, renewal, closed, NOW);
      expect(renewed.row.reservedUntilMs).toBe(Math.min(asked, limit));
    }
  }
});

test("an extension is the same or the next, within the layout; the next begins anew", () => {
  const wide = { layout: { ...layout, extensionBits: 1 }, closedUntilMs: 0 };
  const ahead = rowOf({ reservedUntilMs: NOW + 3_600_000 });
  const { row } = renewedWorker(ahead, renewalOf({ extension: 1 }), wide, NOW);
  expect(row).toMatchObject({ extension: 1, reservedUntilMs: NOW + AHEAD });
  const tooFar = { extension: 1, reserveUntilMs: NOW + 3_600_000 };
  expect(renewedWorker(rowOf(), renewalOf(tooFar), wide, NOW).row).toMatchObject({
    extension: 0,
    reservedUntilMs: NOW - 60_000,
  });
  // One that was skipped would be begun by whoever counts on from the row.
  for (const [extensionBits, from, to] of [
    [1, 0, 2],
    [1, 1, 2],
    [1, 1, 0],
    [2, 0, 2],
    [2, 1, 3],
  ] as const) {
    const held = rowOf({ extension: from });
    const rules = { layout: { ...layout, extensionBits }, closedUntilMs: 0 };
    const run = () => renewedWorker(held, renewalOf({ extension: to }), rules, NOW);
    expect(run).toThrow(/INVALID_ARGUMENT: extension must be/);
  }
});

test("a release ends the lease, keeps the reservation and uses the token up", () => {
  const held = rowOf({ reservedUntilMs: NOW + 2_000, expiresAtMs: NOW + 20_000 });
  const key = { tag: "t", dataCenter: 2, workerId: 1, token: 7n };
  const row = releasedWorker(held, key, NOW);
  expect(row).toEqual({ ...held, token: 8n, expiresAtMs: NOW });
  expect(() => releasedWorker(row, key, NOW)).toThrow("WORKER_LEASE_LOST");
  // A clock that went back makes no lease longer.
  expect(releasedWorker(rowOf(), key, NOW).expiresAtMs).toBe(rowOf().expiresAtMs);
});

test("data centers are those of the layout, by default that of the tag", () => {
  const kind = {
    kind: "snowflake",
    layout,
    dataCenter: 3,
    clockPolicy: "REFUSE",
    clockWaitMs: 5,
    registry: "STORE",
  } as const;
  expect(dataCenterOf(kind, undefined)).toBe(3);
  expect(dataCenterOf(kind, 31)).toBe(31);
  for (const bad of [32, -1, 0.5]) {
    expect(() => dataCenterOf(kind, bad)).toThrow(
      /VALUE_OUT_OF_RANGE: data_center must be 0 to 31/,
    );
  }
});

test("names of instances and how far ahead is reserved have limits", () => {
  for (const good of ["a", "pod-1", "10.0.0.1:7700", "a/b#3", "x".repeat(128)]) {
    expect(instanceViolation("instance", good)).toBeUndefined();
  }
  for (const bad of ["", "-a", "a b", "ä", "x".repeat(129)]) {
    expect(instanceViolation("instance", bad)?.field).toBe("instance");
  }
  for (const good of [1_000, 60_000]) expect(reserveAheadViolation("f", good)).toBeUndefined();
  for (const bad of [999, 60_001, 1_000.5, Number.NaN]) {
    expect(reserveAheadViolation("f", bad)?.field).toBe("f");
  }
});

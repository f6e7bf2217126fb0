import { IdmintError, type RenewedWorkerLease, type WorkerLease } from "@idmint/core";
import { expect, test } from "vitest";
import {
  callDue,
  callFailed,
  createLeaseState,
  end,
  hurry,
  leased,
  type LeaseState,
  renewed,
} from "../../src/worker/lease-state.ts";

const options = {
  tag: "t",
  instance: "pod-1",
  dataCenter: undefined,
  reserveAheadMs: 3_000,
  renewEveryMs: 1_000,
};
const demand = { timeMs: 50_000.5, wantsExtension: false };
const answer: RenewedWorkerLease = {
  token: 2n,
  ttlMs: 30_000,
  extension: 1,
  reservedUntilMs: 53_000,
  nowMs: 50_000,
  epoch: 1n,
};
const lease: WorkerLease = {
  ...answer,
  token: 1n,
  dataCenter: 3,
  workerId: 7,
  notBeforeMs: 40_000,
};
const half = () => 0.5;

function failure(reason: ConstructorParameters<typeof IdmintError>[0]): IdmintError {
  return new IdmintError(reason, "of a test");
}

function held(): LeaseState {
  const state = createLeaseState(options);
  expect(callDue(state, 0, demand)).toEqual([{ type: "lease", call: 1 }]);
  leased(state, 1, lease, 10);
  return state;
}

test("what is leased is what the answer says", () => {
  const state = createLeaseState(options);
  callDue(state, 0, demand);
  const { dataCenter, workerId, token, extension, reservedUntilMs, notBeforeMs } = lease;
  expect(leased(state, 1, lease, 10)).toEqual([
    {
      type: "take-up",
      lease: { dataCenter, workerId, token, extension, reservedUntilMs },
      notBeforeMs,
      leadMs: 0,
    },
  ]);
});

test("a renewal asks for time ahead of the time ids are made of, with the last token", () => {
  const state = held();
  expect(callDue(state, 1_009, demand)).toEqual([]);
  expect(callDue(state, 1_010, demand)).toEqual([
    {
      type: "renew",
      call: 2,
      renewal: {
        tag: "t",
        dataCenter: 3,
        workerId: 7,
        token: 1n,
        reserveUntilMs: 53_001,
        reserveAheadMs: 3_000,
        extension: 1,
      },
    },
  ]);
  expect(callDue(state, 5_000, demand)).toEqual([]);
  expect(renewed(state, 2, answer, 5_000)).toEqual([{ type: "extend", reservedUntilMs: 53_000 }]);
  expect(callDue(state, 6_000, demand)).toMatchObject([{ renewal: { token: 2n } }]);
});

test("the next extension counts when the answer says so, with what it reserved", () => {
  const state = held();
  const wanted = { ...demand, wantsExtension: true };
  expect(callDue(state, 2_000, wanted)).toMatchObject([{ renewal: { extension: 2 } }]);
  expect(renewed(state, 2, answer, 2_000)).toEqual([{ type: "extend", reservedUntilMs: 53_000 }]);
  expect(callDue(state, 3_000, wanted)).toMatchObject([{ renewal: { extension: 2, token: 2n } }]);
  const next = { ...answer, token: 3n, extension: 2, reservedUntilMs: 11_000 };
  expect(renewed(state, 3, next, 3_000)).toEqual([
    {
      type: "take-up",
      lease: { dataCenter: 3, workerId: 7, token: 3n, extension: 2, reservedUntilMs: 11_000 },
      notBeforeMs: 0,
      leadMs: 0,
    },
  ]);
});

test("an answer is taken once, under its own number, and never after the end", () => {
  const state = held();
  callDue(state, 2_000, demand);
  expect(renewed(state, 1, answer, 2_000)).toEqual([]);
  expect(callFailed(state, 9, failure("WORKER_LEASE_LOST"), 2_000, half)).toEqual([]);
  expect(renewed(state, 2, answer, 2_000)).toHaveLength(1);
  expect(renewed(state, 2, answer, 2_000)).toEqual([]);
  callDue(state, 3_000, demand);
  expect(end(state)).toBeUndefined();
  expect(renewed(state, 3, answer, 3_000)).toEqual([]);
  expect(callDue(state, 9_000, demand)).toEqual([]);
  const fresh = createLeaseState(options);
  callDue(fresh, 0, demand);
  end(fresh);
  expect(leased(fresh, 1, lease, 10)).toEqual([]);
});

test("a lease is released at the end, unless its token may be used up", () => {
  expect(end(held())).toMatchObject({ workerId: 7, token: 1n });
  expect(end(createLeaseState(options))).toBeUndefined();
});

test("after an unknown outcome the same token is tried again, later and later", () => {
  const state = held();
  let now = 2_000;
  const waits: number[] = [];
  for (let call = 2; call < 8; call++) {
    expect(callDue(state, now, demand)).toMatchObject([{ type: "renew", renewal: { token: 1n } }]);
    expect(callFailed(state, call, failure("STORE_UNAVAILABLE"), now, half)).toEqual([]);
    hurry(state, now);
    waits.push(state.dueAt - now);
    now = state.dueAt;
  }
  expect(waits).toEqual([75, 125, 225, 425, 825, 1_025]);
  expect(callDue(state, now, demand)).toHaveLength(1);
  renewed(state, 8, answer, now);
  expect(state.error).toBeUndefined();
});

test("a lost lease is given up, and another asked for at once, but not without end", () => {
  const state = held();
  callDue(state, 2_000, demand);
  const lost = failure("WORKER_LEASE_LOST");
  expect(callFailed(state, 2, lost, 2_000, half)).toEqual([{ type: "give-up", error: lost }]);
  expect(callDue(state, 2_000, demand)).toEqual([{ type: "lease", call: 3 }]);
  callFailed(state, 3, failure("WORKER_LEASE_LOST"), 2_000, half);
  expect(callDue(state, 2_000, demand)).toEqual([]);
});

test.each(["TAG_PAUSED", "TAG_NOT_FOUND", "STORE_EPOCH_CHANGED", "WORKER_IDS_EXHAUSTED"] as const)(
  "told %s the holder makes nothing more, and asks again later",
  (reason) => {
    const state = held();
    callDue(state, 2_000, demand);
    const error = failure(reason);
    expect(callFailed(state, 2, error, 2_000, half)).toEqual([{ type: "give-up", error }]);
    expect(state.error).toBe(error);
    expect(callDue(state, 2_000, demand)).toEqual([]);
    expect(callDue(state, 4_000, demand)).toEqual([{ type: "lease", call: 3 }]);
  },
);

test.each(["OVERLOADED", "INTERNAL"] as const)(
  "%s says nothing of a lease: it is kept to its end, and renewed later",
  (reason) => {
    const state = held();
    callDue(state, 2_000, demand);
    const error = failure(reason);
    expect(callFailed(state, 2, error, 2_000, half)).toEqual([]);
    expect(state.error).toBe(error);
    expect(callDue(state, 2_000, demand)).toEqual([]);
    expect(callDue(state, 4_000, demand)).toMatchObject([
      { type: "renew", renewal: { token: 1n } },
    ]);
    // Who has none is told why.
    const fresh = createLeaseState(options);
    callDue(fresh, 0, demand);
    expect(callFailed(fresh, 1, error, 0, half)).toEqual([{ type: "give-up", error }]);
  },
);

test("who waits makes the next call come sooner, a tenth of a second after the one before", () => {
  const state = held();
  callDue(state, 2_000, demand);
  renewed(state, 2, answer, 2_010);
  hurry(state, 2_020);
  expect(state.dueAt).toBe(2_100);
  hurry(state, 2_500);
  expect(state.dueAt).toBe(2_100);
});

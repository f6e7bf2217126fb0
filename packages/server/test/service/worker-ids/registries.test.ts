import {
  IdmintError,
  type WorkerLease,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import type { WorkerRegistry } from "@idmint/core/server";
import { expect, test } from "vitest";
import { guardedRegistry } from "../../../src/service/worker-ids/registries.ts";

const WISH: WorkerLeaseRequest = {
  tag: "t",
  instance: "a",
  dataCenter: undefined,
  reserveAheadMs: 3_000,
};
const LEASE: WorkerLease = {
  dataCenter: 0,
  workerId: 5,
  token: 1n,
  ttlMs: 30_000,
  extension: 0,
  notBeforeMs: 1,
  reservedUntilMs: 3_000,
  nowMs: 0,
  epoch: 1n,
};

/** A guarded registry whose answers the test gives, in the order it likes. */
function guarded() {
  const waiting: {
    readonly resolve: (answer: WorkerLease) => void;
    readonly reject: (error: Error) => void;
  }[] = [];
  const asked = async (): Promise<WorkerLease> => {
    const { promise, resolve, reject } = Promise.withResolvers<WorkerLease>();
    waiting.push({ resolve, reject });
    return promise;
  };
  const inner: WorkerRegistry = {
    leaseWorker: asked,
    renewWorker: asked,
    releaseWorker: async () => void (await asked()),
    listWorkers: async () => [],
  };
  const wentBack: string[] = [];
  const registry = guardedRegistry(inner, (tag, detail) => wentBack.push(`${tag}: ${detail}`));
  const answer = (at: number, token: bigint, workerId = 5): void =>
    waiting[at]?.resolve({ ...LEASE, token, workerId });
  const fail = (at: number, error: Error): void => waiting[at]?.reject(error);
  return { registry, wentBack, answer, fail };
}

function renewal(token: bigint): WorkerRenewal {
  const rest = { dataCenter: 0, workerId: 5, extension: 0 };
  return { tag: "t", token, ...rest, reserveUntilMs: 0, reserveAheadMs: 3_000 };
}

test("a token that is not above one that was answered before says that the store went back", async () => {
  for (const [seen, later] of [
    [7n, 7n],
    [7n, 3n],
  ] as const) {
    const { registry, wentBack, answer } = guarded();
    const first = registry.leaseWorker(WISH);
    answer(0, seen - 1n);
    await first;
    const second = registry.renewWorker(renewal(seen - 1n));
    answer(1, seen);
    await second;
    const third = registry.leaseWorker({ ...WISH, instance: "b" });
    answer(2, later);
    await expect(third).rejects.toMatchObject({ reason: "STORE_EPOCH_CHANGED" });
    expect(wentBack).toEqual([
      `t: worker id 5 was answered token ${later}, and ${seen} was seen before`,
    ]);
  }
});

test("so does the renewal of a token that the store has again", async () => {
  const { registry, wentBack, answer } = guarded();
  for (const [at, token] of [8n, 9n].entries()) {
    const renewed = registry.renewWorker(renewal(token - 1n));
    answer(at, token);
    await renewed;
  }
  const again = registry.renewWorker(renewal(7n));
  answer(2, 8n);
  await expect(again).rejects.toMatchObject({ reason: "STORE_EPOCH_CHANGED" });
  expect(wentBack).toHaveLength(1);
});

test("answers that overtake each other, and those of other worker ids, say nothing", async () => {
  const { registry, wentBack, answer } = guarded();
  const slow = registry.leaseWorker(WISH);
  const fast = registry.leaseWorker(WISH);
  answer(1, 6n);
  await fast;
  answer(0, 5n);
  expect(await slow).toMatchObject({ token: 5n });
  const other = registry.leaseWorker(WISH);
  answer(2, 2n, 6);
  await other;
  expect(wentBack).toEqual([]);
  // What was overtaken is not what is remembered.
  const back = registry.leaseWorker(WISH);
  answer(3, 6n);
  await expect(back).rejects.toMatchObject({ reason: "STORE_EPOCH_CHANGED" });
});

test("a store that says itself that it went back is told of, and no other refusal is", async () => {
  const { registry, wentBack, fail } = guarded();
  const calls = [
    registry.leaseWorker(WISH),
    registry.renewWorker(renewal(1n)),
    registry.releaseWorker(renewal(1n)),
    registry.leaseWorker(WISH),
  ];
  for (const at of [0, 1, 2]) fail(at, new IdmintError("STORE_EPOCH_CHANGED", "of a test"));
  fail(3, new IdmintError("WORKER_LEASE_LOST", "of a test"));
  const reasons = await Promise.allSettled(calls);
  expect(reasons.map(({ status }) => status)).toEqual(Array(4).fill("rejected"));
  expect(wentBack).toHaveLength(3);
});

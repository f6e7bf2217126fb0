// What callers are told of leases while an operator stops issuing.
import {
  IdmintError,
  type RenewedWorkerLease,
  SNOWFLAKE_PRESETS,
  type WorkerLease,
} from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import type { WorkerRegistry } from "@idmint/core/server";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { AdminGate } from "../../../src/service/admin-gate.ts";
import type { Patience } from "../../../src/service/call.ts";
import { WorkerService } from "../../../src/service/worker-ids/service.ts";

const call: Patience = { deadline: 10_000, signal: new AbortController().signal };
const renewed: RenewedWorkerLease = {
  token: 2n,
  ttlMs: 30_000,
  extension: 0,
  reservedUntilMs: 53_000,
  nowMs: 50_000,
  epoch: 1n,
};
const lease: WorkerLease = { ...renewed, dataCenter: 0, workerId: 1, notBeforeMs: 40_000 };

/** A service whose registry answers when the test says so, and a tag that may be stopped meanwhile. */
function setUp() {
  const time = new FakeTime();
  const answers: (() => void)[] = [];
  const later = <T>(value: T): Promise<T> =>
    new Promise((resolve) => answers.push(() => resolve(value)));
  const registry = {
    leaseWorker: () => later(lease),
    renewWorker: () => later(renewed),
  } as unknown as WorkerRegistry;
  const kind = { kind: "snowflake", layout: SNOWFLAKE_PRESETS["41-5-5-12"] } as SnowflakeKind;
  const stop: { error: IdmintError | undefined } = { error: undefined };
  const workersOf = () => Promise.resolve({ kind, registry, epoch: 1n, refusal: () => stop.error });
  const service = new WorkerService({ workersOf, gate: new AdminGate(time, 1_000) });
  const answer = async (): Promise<void> => {
    while (answers.length === 0) await Promise.resolve();
    answers.shift()?.();
  };
  return { service, stop, answer };
}

const wish = { tag: "t", instance: "pod-1", dataCenter: undefined, reserveAheadMs: undefined };
const renewal = {
  tag: "t",
  dataCenter: 0,
  workerId: 1,
  token: 1n,
  extension: 0,
  reserveUntilMs: 53_000n,
  reserveAheadMs: undefined,
};

test.each(["lease", "renewal"] as const)(
  "a %s that the registry answers after a stop reaches nobody, and one before it does",
  async (what) => {
    const { service, stop, answer } = setUp();
    const ask = (): Promise<unknown> =>
      what === "lease" ? service.lease(wish, call) : service.renew(renewal, call);
    const before = ask();
    await answer();
    expect(await before).toMatchObject({ token: 2n, reservedUntilMs: 53_000 });
    const during = ask().catch((thrown: unknown) => thrown);
    stop.error = new IdmintError("ISSUING_STOPPED", "an operator stopped issuing");
    await answer();
    expect(await during).toMatchObject({ reason: "ISSUING_STOPPED" });
  },
);

// What every registry of worker ids must do, wherever it keeps them.
import { SNOWFLAKE_PRESETS } from "@idmint/core";
import { expect, test } from "vitest";
import { codeOf, reasonOf } from "../store/support.ts";
import {
  type OpenRegistry,
  type RegistryHarness,
  TTL_MS,
  AHEAD_MS,
  LEAD_MS,
  SLACK_MS,
  snowflakeOf,
  leaseOf,
  renewalOf,
  all,
  type WorkerSuite,
} from "./support.ts";
import { tagCases } from "./suite-tags.ts";

const TIMEOUT_MS = 30_000;

/** Registers the suite; `makeHarness` is called once a test. */
export function workerSuite(name: string, makeHarness: () => Promise<RegistryHarness>): void {
  const suite: WorkerSuite = (title, run) => {
    test(`${name}: ${title}`, { timeout: TIMEOUT_MS }, async () => {
      const harness = await makeHarness();
      const handles: OpenRegistry[] = [];
      const open = async (): Promise<OpenRegistry> => {
        const handle = await harness.open();
        handles.push(handle);
        return handle;
      };
      try {
        await run(await open(), harness, open);
      } finally {
        await Promise.all(handles.map((handle) => handle.close()));
        await harness.remove();
      }
    });
  };
  leaseCases(suite);
  renewalCases(suite);
  endCases(suite);
  tagCases(suite);
  concurrencyCases(suite);
}

function leaseCases(suite: WorkerSuite): void {
  suite("a lease is the lowest worker id of its data center", async (registry, harness) => {
    const { timeOriginMs } = SNOWFLAKE_PRESETS["41-10-12"];
    await registry.createTag(snowflakeOf("t", harness, { dataCenter: 5 }));
    const first = await registry.leaseWorker(leaseOf("a"));
    expect(first).toMatchObject({ dataCenter: 5, workerId: 0, extension: 0, ttlMs: TTL_MS });
    expect(first.epoch).toBe(1n);
    expect(Math.abs(first.nowMs - Date.now())).toBeLessThan(SLACK_MS);
    expect(first.notBeforeMs).toBeGreaterThanOrEqual(timeOriginMs);
    expect(first.notBeforeMs).toBeLessThan(first.nowMs);
    expect(first.reservedUntilMs).toBe(first.nowMs + AHEAD_MS);
    expect(await registry.leaseWorker(leaseOf("b"))).toMatchObject({ dataCenter: 5, workerId: 1 });
    const other = await registry.leaseWorker(leaseOf("a", { dataCenter: 0 }));
    expect(other).toMatchObject({ dataCenter: 0, workerId: 0 });
    const ids = (await all(registry)).map(
      (row) => `${row.dataCenter}/${row.workerId} ${row.instance}`,
    );
    expect(ids).toEqual(["0/0 a", "5/0 a", "5/1 b"]);
  });

  suite("the same instance gets its worker id back, above its reservation", async (registry, h) => {
    await registry.createTag(snowflakeOf("t", h));
    const first = await registry.leaseWorker(leaseOf("a", { reserveAheadMs: 60_000 }));
    await registry.leaseWorker(leaseOf("b"));
    const again = await registry.leaseWorker(leaseOf("a"));
    expect(again.workerId).toBe(0);
    expect(again.notBeforeMs).toBe(first.reservedUntilMs + 1);
    expect(again.token).not.toBe(first.token);
    // Not further ahead of the clock than what is asked for and 10 s: nothing could be reserved, and it is told.
    expect(again.reservedUntilMs).toBe(first.reservedUntilMs);
    expect(again.reservedUntilMs).toBeLessThan(again.notBeforeMs);
    expect(await reasonOf(registry.renewWorker(renewalOf(first)))).toBe("WORKER_LEASE_LOST");
    await h.pass(60_000);
    const later = await registry.renewWorker(renewalOf(again));
    expect(later.reservedUntilMs).toBe(again.nowMs + AHEAD_MS);
  });

  suite(
    "when all are leased nobody gets one, and none is begun with again",
    async (registry, h) => {
      await registry.createTag(snowflakeOf("t", h));
      for (const instance of ["a", "b", "c", "d"]) await registry.leaseWorker(leaseOf(instance));
      const before = await all(registry);
      expect(await reasonOf(registry.leaseWorker(leaseOf("e")))).toBe("WORKER_IDS_EXHAUSTED");
      expect(await all(registry)).toEqual(before);
      expect(await registry.leaseWorker(leaseOf("e", { dataCenter: 1 }))).toMatchObject({
        workerId: 0,
      });
      expect((await registry.leaseWorker(leaseOf("c"))).workerId).toBe(2);
    },
  );

  suite("the one that ended longest ago goes to others, above its reservation", async (r, h) => {
    await r.createTag(snowflakeOf("t", h, { workerBits: 1 }));
    const first = await r.leaseWorker(leaseOf("a"));
    await h.pass(5_000);
    const second = await r.leaseWorker(leaseOf("b"));
    await h.pass(TTL_MS - 10_000);
    expect(await reasonOf(r.leaseWorker(leaseOf("c")))).toBe("WORKER_IDS_EXHAUSTED");
    await h.pass(11_000);
    const third = await r.leaseWorker(leaseOf("c"));
    expect(third.workerId).toBe(first.workerId);
    expect(third.notBeforeMs).toBe(first.reservedUntilMs - 5_000 - TTL_MS + 10_000 - 11_000 + 1);
    expect(third.reservedUntilMs).toBe(third.nowMs + AHEAD_MS);
    expect(await reasonOf(r.renewWorker(renewalOf(first)))).toBe("WORKER_LEASE_LOST");
    // Its lease has ended too, but nobody took it.
    expect((await r.renewWorker(renewalOf(second))).ttlMs).toBe(TTL_MS);
    expect(await reasonOf(r.leaseWorker(leaseOf("d")))).toBe("WORKER_IDS_EXHAUSTED");
  });

  suite("one whose reservation is still to come goes to nobody else", async (registry, h) => {
    await registry.createTag(snowflakeOf("t", h, { workerBits: 0 }));
    await registry.leaseWorker(leaseOf("a", { reserveAheadMs: 60_000 }));
    await h.pass(TTL_MS + 5_000);
    expect(await reasonOf(registry.leaseWorker(leaseOf("b")))).toBe("WORKER_IDS_EXHAUSTED");
    await h.pass(60_000 - TTL_MS);
    expect((await registry.leaseWorker(leaseOf("b"))).workerId).toBe(0);
  });

  suite("a data center outside the layout is refused", async (registry, harness) => {
    await registry.createTag(snowflakeOf("t", harness));
    for (const dataCenter of [-1, 8, 0.5]) {
      const work = registry.leaseWorker(leaseOf("a", { dataCenter }));
      expect(await codeOf(work)).toBe("INVALID_ARGUMENT");
    }
    expect(await all(registry)).toEqual([]);
  });
}

function renewalCases(suite: WorkerSuite): void {
  suite("a renewal reserves what is asked for, and its token is the next", async (registry, h) => {
    await registry.createTag(snowflakeOf("t", h));
    const lease = await registry.leaseWorker(leaseOf("a"));
    const reserveUntilMs = lease.reservedUntilMs + 1_234;
    const renewed = await registry.renewWorker(renewalOf(lease, { reserveUntilMs }));
    expect(renewed).toMatchObject({ reservedUntilMs: reserveUntilMs, extension: 0, epoch: 1n });
    expect(renewed.token).not.toBe(lease.token);
    const [row] = await all(registry);
    expect(row).toMatchObject({
      instance: "a",
      token: renewed.token,
      reservedUntilMs: reserveUntilMs,
    });
    expect(row?.expiresAtMs).toBe(renewed.nowMs + TTL_MS);
  });

  suite(
    "a used token reserves nothing: of two copies one is stopped",
    async (registry, h, open) => {
      await registry.createTag(snowflakeOf("t", h));
      const lease = await registry.leaseWorker(leaseOf("a"));
      const copies = [registry, await open(), await open()];
      const reserveUntilMs = lease.nowMs + 5_000;
      const answers = await Promise.allSettled(
        copies.map((copy) => copy.renewWorker(renewalOf(lease, { reserveUntilMs }))),
      );
      expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      const late = registry.renewWorker(renewalOf(lease, { reserveUntilMs: lease.nowMs + 9_000 }));
      expect(await reasonOf(late)).toBe("WORKER_LEASE_LOST");
      expect((await all(registry))[0]?.reservedUntilMs).toBe(reserveUntilMs);
    },
  );

  suite("a reservation never falls, and goes no further than is allowed", async (registry, h) => {
    await registry.createTag(snowflakeOf("t", h));
    let lease = await registry.leaseWorker(leaseOf("a"));
    const renew = async (reserveUntilMs: number, reserveAheadMs = AHEAD_MS): Promise<number> => {
      const renewed = await registry.renewWorker(
        renewalOf(lease, { reserveUntilMs, reserveAheadMs }),
      );
      lease = { ...lease, ...renewed };
      return renewed.reservedUntilMs;
    };
    const { nowMs, reservedUntilMs } = lease;
    expect(await renew(0)).toBe(reservedUntilMs);
    expect(await renew(nowMs - 50_000)).toBe(reservedUntilMs);
    expect(await renew(nowMs + AHEAD_MS + LEAD_MS)).toBe(nowMs + AHEAD_MS + LEAD_MS);
    const most = await renew(nowMs + 3_600_000);
    expect(most).toBeGreaterThanOrEqual(nowMs + AHEAD_MS + LEAD_MS);
    expect(most).toBeLessThan(nowMs + AHEAD_MS + LEAD_MS + SLACK_MS);
    expect(await renew(nowMs + 4_000)).toBe(most);
    expect(await renew(nowMs + 60_000, 60_000)).toBe(nowMs + 60_000);
    expect(await renew(nowMs + 4_000)).toBe(nowMs + 60_000);
  });

  suite("a registry whose clock went back lowers no reservation", async (registry, h) => {
    await registry.createTag(snowflakeOf("t", h));
    const lease = await registry.leaseWorker(leaseOf("a"));
    await h.pass(-3_600_000);
    const reserved = lease.reservedUntilMs + 3_600_000;
    let renewed = await registry.renewWorker(renewalOf(lease));
    for (const reserveUntilMs of [0, reserved - 1, reserved + 1, reserved + 3_600_000]) {
      expect(renewed.reservedUntilMs).toBe(reserved);
      renewed = await registry.renewWorker(renewalOf({ ...lease, ...renewed }, { reserveUntilMs }));
    }
    expect((await all(registry))[0]?.reservedUntilMs).toBe(reserved);
    // Whoever has it next begins above, when its time has come.
    const next = await registry.leaseWorker(leaseOf("a"));
    expect([next.notBeforeMs, next.reservedUntilMs]).toEqual([reserved + 1, reserved]);
  });

  suite("the next extension begins anew; there is none after the last", async (registry, h) => {
    if (h.place.registry === "REDIS") return;
    await registry.createTag(snowflakeOf("t", h, { clockPolicy: "EXTENSION" }));
    const lease = await registry.leaseWorker(leaseOf("a"));
    const back = { extension: 1, reserveUntilMs: lease.nowMs - 100_000 };
    const far = { extension: 1, reserveUntilMs: lease.nowMs + 60_000 };
    const kept = await registry.renewWorker(renewalOf(lease, far));
    expect(kept).toMatchObject({ extension: 0, reservedUntilMs: lease.reservedUntilMs });
    const next = await registry.renewWorker(renewalOf({ ...lease, ...kept }, back));
    expect(next).toMatchObject({ extension: 1, reservedUntilMs: back.reserveUntilMs });
    const now = { ...lease, ...next };
    for (const extension of [0, 2, -1]) {
      const work = registry.renewWorker(renewalOf(now, { extension }));
      expect(await codeOf(work)).toBe("INVALID_ARGUMENT");
    }
    expect((await all(registry))[0]).toMatchObject({ extension: 1, token: next.token });
    // Whoever has it next goes on in the last extension.
    const again = await registry.leaseWorker(leaseOf("a"));
    expect(again).toMatchObject({ extension: 1, notBeforeMs: back.reserveUntilMs + 1 });
  });

  suite("what nobody leased cannot be renewed or released", async (registry, harness) => {
    await registry.createTag(snowflakeOf("t", harness));
    const lease = await registry.leaseWorker(leaseOf("a"));
    for (const wrong of [{ workerId: 1 }, { dataCenter: 1 }, { token: lease.token + 1n }]) {
      const renewal = registry.renewWorker(renewalOf(lease, wrong));
      expect(await reasonOf(renewal)).toBe("WORKER_LEASE_LOST");
      const release = registry.releaseWorker({ ...renewalOf(lease), ...wrong });
      expect(await reasonOf(release)).toBe("WORKER_LEASE_LOST");
    }
  });
}

function endCases(suite: WorkerSuite): void {
  suite("a released worker id is free when its reservation is over", async (registry, h) => {
    await registry.createTag(snowflakeOf("t", h, { workerBits: 0 }));
    const lease = await registry.leaseWorker(leaseOf("a"));
    expect(await reasonOf(registry.leaseWorker(leaseOf("b")))).toBe("WORKER_IDS_EXHAUSTED");
    await registry.releaseWorker(renewalOf(lease));
    expect((await all(registry))[0]?.expiresAtMs).toBeLessThanOrEqual(Date.now() + SLACK_MS);
    expect(await reasonOf(registry.renewWorker(renewalOf(lease)))).toBe("WORKER_LEASE_LOST");
    expect(await reasonOf(registry.releaseWorker(renewalOf(lease)))).toBe("WORKER_LEASE_LOST");
    await h.pass(AHEAD_MS + 100);
    const next = await registry.leaseWorker(leaseOf("b"));
    expect(next.notBeforeMs).toBe(lease.reservedUntilMs - AHEAD_MS - 100 + 1);
  });

  suite("workers are listed page by page", async (registry, harness) => {
    await registry.createTag(snowflakeOf("t", harness));
    await registry.createTag(snowflakeOf("other", harness));
    await registry.leaseWorker(leaseOf("x", { tag: "other" }));
    for (const dataCenter of [2, 0, 7]) {
      for (const instance of ["a", "b"]) {
        await registry.leaseWorker(leaseOf(instance, { dataCenter }));
      }
    }
    const ids: string[] = [];
    let after: { dataCenter: number; workerId: number } | undefined;
    for (;;) {
      const page = await registry.listWorkers({ tag: "t", after, limit: 4 });
      ids.push(...page.map(({ dataCenter, workerId }) => `${dataCenter}/${workerId}`));
      after = page.at(-1);
      if (after === undefined) break;
    }
    expect(ids).toEqual(["0/0", "0/1", "2/0", "2/1", "7/0", "7/1"]);
    expect(await all(registry, "nobody")).toEqual([]);
  });
}

function concurrencyCases(suite: WorkerSuite): void {
  suite("leases of several handles at once are of different worker ids", async (first, h, open) => {
    const handles = [first, await open(), await open()];
    await first.createTag(snowflakeOf("t", h, { workerBits: 4 }));
    const work = handles.flatMap((handle, at) =>
      [0, 1, 2, 3, 4, 5, 6, 7].map((each) => handle.leaseWorker(leaseOf(`i${at}-${each}`))),
    );
    const answers = await Promise.allSettled(work);
    const leases = answers.flatMap((answer) =>
      answer.status === "fulfilled" ? [answer.value.workerId] : [],
    );
    expect(leases.toSorted((a, b) => a - b)).toEqual([...Array(16).keys()]);
    const refused = await Promise.all(
      answers.flatMap((answer) =>
        answer.status === "rejected" ? [reasonOf(Promise.reject(answer.reason as Error))] : [],
      ),
    );
    expect(new Set(refused)).toEqual(new Set(["WORKER_IDS_EXHAUSTED"]));
  });
}

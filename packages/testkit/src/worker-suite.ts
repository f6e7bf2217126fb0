// What every registry of worker ids must do, wherever it keeps them.
import {
  DEFAULT_RESERVE_AHEAD_MS,
  MAX_ID,
  maxIdOf,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
  type WorkerLease,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import type {
  AcceptStore,
  TagSettings,
  TagStore,
  Worker,
  WorkerRegistry,
} from "@idmint/core/server";
import { expect, test } from "vitest";
import { codeOf, reasonOf } from "./store-suite-support.ts";

/** A registry with the tags its workers are of, as if in a server of its own. */
export type OpenRegistry = WorkerRegistry &
  TagStore &
  AcceptStore & {
    close(): Promise<void>;
  };

/** A fresh, empty registry for one test. */
export interface RegistryHarness {
  /** Where its tags have their workers. */
  readonly place: Pick<SnowflakeKind, "registry" | "redisServer">;
  /** Opens another handle. */
  open(): Promise<OpenRegistry>;
  /** Moves what all rows of workers say of time into the past, as if so many milliseconds had gone by. */
  pass(ms: number): Promise<void>;
  /** Removes the registry; its handles are closed by then. */
  remove(): Promise<void>;
}

const TIMEOUT_MS = 30_000;
export const TTL_MS = 30_000;
const AHEAD_MS = 3_000;
/** The furthest that a reservation leads the registry's clock beyond what was asked ahead. */
const LEAD_MS = 10_000;
/** Registries answer by their own clock, and tests run for a while. */
const SLACK_MS = 15_000;

/** Settings of a tag of kind snowflake: 3 data centers' bits, 2 of workers, 1 of extension, unless told otherwise. */
export function snowflakeOf(
  name: string,
  harness: Pick<RegistryHarness, "place">,
  more: Partial<Omit<SnowflakeKind, "kind" | "layout">> & Partial<SnowflakeLayout> = {},
): TagSettings {
  const { dataCenter, clockPolicy, clockWaitMs, registry, redisServer, ...bits } = more;
  const layout: SnowflakeLayout = {
    ...SNOWFLAKE_PRESETS["41-10-12"],
    extensionBits: harness.place.registry === "STORE" ? 1 : 0,
    dataCenterBits: 3,
    workerBits: 2,
    ...bits,
  };
  const place = {
    ...harness.place,
    ...(registry === undefined ? {} : { registry }),
    ...(redisServer === undefined ? {} : { redisServer }),
  };
  return {
    name,
    description: "",
    order: "UNORDERED",
    ceiling: maxIdOf(layout),
    kind: {
      kind: "snowflake",
      layout,
      dataCenter: dataCenter ?? 0,
      clockPolicy: clockPolicy ?? "REFUSE",
      clockWaitMs: clockWaitMs ?? 5,
      ...place,
    },
  };
}

export function leaseOf(
  instance: string,
  more: Partial<WorkerLeaseRequest> = {},
): WorkerLeaseRequest {
  return { tag: "t", instance, dataCenter: undefined, reserveAheadMs: AHEAD_MS, ...more };
}

export function renewalOf(
  lease: Pick<WorkerLease, "dataCenter" | "workerId" | "token" | "extension" | "nowMs">,
  more: Partial<WorkerRenewal> = {},
): WorkerRenewal {
  const { dataCenter, workerId, token, extension, nowMs } = lease;
  const reserveAheadMs = AHEAD_MS;
  const reserveUntilMs = nowMs + reserveAheadMs;
  const key = { tag: "t", dataCenter, workerId, token };
  return { ...key, extension, reserveUntilMs, reserveAheadMs, ...more };
}

type WorkerSuite = (
  title: string,
  run: (
    registry: OpenRegistry,
    harness: RegistryHarness,
    open: () => Promise<OpenRegistry>,
  ) => Promise<void>,
) => void;

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

async function all(registry: WorkerRegistry, tag = "t"): Promise<readonly Worker[]> {
  return registry.listWorkers({ tag, after: undefined, limit: 1_000 });
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

function tagCases(suite: WorkerSuite): void {
  suite("only tags that have workers lease them, while they are active", async (registry, h) => {
    const reason = async (): Promise<string> => reasonOf(registry.leaseWorker(leaseOf("a")));
    expect(await reason()).toBe("TAG_NOT_FOUND");
    await registry.createTag(snowflakeOf("t", h));
    const lease = await registry.leaseWorker(leaseOf("a"));
    await registry.setTagState("t", "PAUSED", undefined);
    expect(await reason()).toBe("TAG_PAUSED");
    expect(await reasonOf(registry.renewWorker(renewalOf(lease)))).toBe("TAG_PAUSED");
    await registry.setTagState("t", "DELETED", undefined);
    expect(await reason()).toBe("TAG_NOT_FOUND");
    expect(await reasonOf(registry.renewWorker(renewalOf(lease)))).toBe("TAG_NOT_FOUND");
    const start = { start: 1n, min: 1, max: 1, holdForMs: 1, maxAgeMs: 1 };
    const kind = { kind: "segment", ...start } as const;
    const settings = { description: "", order: "UNORDERED", ceiling: MAX_ID, kind } as const;
    await registry.createTag({ name: "s", ...settings });
    const work = registry.leaseWorker(leaseOf("a", { tag: "s" }));
    expect(await reasonOf(work)).toBe("WRONG_KIND");
  });

  suite("the layout is immutable from the first lease on", async (registry, harness) => {
    const old = snowflakeOf("t", harness);
    const { order, ceiling, kind } = snowflakeOf("t", harness, { workerBits: 5 });
    const change = { settings: { order, ceiling, kind } };
    await registry.createTag(old);
    await registry.updateTag("t", change, undefined);
    await registry.leaseWorker(leaseOf("a"));
    const back = { ...change, settings: { order, ceiling: old.ceiling, kind: old.kind } };
    expect(await reasonOf(registry.updateTag("t", back, undefined))).toBe("FIELD_IMMUTABLE");
  });

  suite(
    "a change of the layout begins an epoch, and nothing is leased in another",
    async (r, h) => {
      const { epoch } = await r.createTag(snowflakeOf("t", h));
      const { order, ceiling, kind } = snowflakeOf("t", h, { workerBits: 5 });
      const settings = { order, ceiling, kind };
      const changed = await r.updateTag("t", { settings }, undefined);
      expect(changed.epoch).toBe(epoch + 1n);
      const old = leaseOf("a", { epoch });
      expect(await reasonOf(r.leaseWorker(old))).toBe("SEGMENT_NOT_READY");
      const other = {
        settings: { order, ceiling, kind: { ...kind, clockWaitMs: 9 } as typeof kind },
      };
      expect(await r.updateTag("t", { ...other }, undefined)).toMatchObject({
        epoch: changed.epoch,
        version: 0n,
      });
      const lease = await r.leaseWorker(leaseOf("a", { epoch: changed.epoch }));
      expect(lease.epoch).toBe(changed.epoch);
      expect(await reasonOf(r.leaseWorker(old))).toBe("SEGMENT_NOT_READY");
    },
  );

  suite("a tag made over a tombstone goes on above all that was reserved", async (registry, h) => {
    await registry.createTag(snowflakeOf("t", h));
    const lease = await registry.leaseWorker(leaseOf("a"));
    await registry.setTagState("t", "DELETED", undefined);
    const other = registry.createTag(snowflakeOf("t", h, { sequenceBits: 10 }));
    expect(await codeOf(other)).toBe("INVALID_ARGUMENT");
    await registry.createTag(snowflakeOf("t", h));
    const again = await registry.leaseWorker(leaseOf("z"));
    if (again.workerId === lease.workerId) {
      expect(again.notBeforeMs).toBeGreaterThan(lease.reservedUntilMs);
    }
    expect(await reasonOf(registry.renewWorker(renewalOf(lease)))).toBe("WORKER_LEASE_LOST");
  });

  suite("after an operator raised the floor, leases begin above it", async (registry, harness) => {
    const { kind, ...settings } = snowflakeOf("t", harness);
    await registry.createTag({ ...settings, kind });
    const lease = await registry.leaseWorker(leaseOf("a"));
    const { layout } = kind as SnowflakeKind;
    const until = lease.nowMs + 9_000;
    const low = BigInt(layout.workerBits + layout.dataCenterBits + layout.extensionBits + 12);
    const floor = (BigInt(until - layout.timeOriginMs) << low) + 5n;
    const options = { maxRaise: MAX_ID, validateOnly: false, expectedRevision: undefined };
    await registry.advanceTag("t", floor, options);
    expect(await reasonOf(registry.renewWorker(renewalOf(lease)))).toBe("WORKER_LEASE_LOST");
    for (const instance of ["a", "b"]) {
      const next = await registry.leaseWorker(leaseOf(instance));
      expect(next.notBeforeMs).toBeGreaterThan(until);
      expect(next.extension).toBe(2 ** layout.extensionBits - 1);
      expect(next.reservedUntilMs).toBeGreaterThanOrEqual(next.notBeforeMs);
    }
  });

  suite(
    "after an accept, leases begin above all that was lost, and reserve from there",
    async (registry, harness) => {
      await registry.createTag(snowflakeOf("t", harness));
      const lease = await registry.leaseWorker(leaseOf("a"));
      await registry.accept(0n);
      expect(await reasonOf(registry.renewWorker(renewalOf(lease)))).toBe("WORKER_LEASE_LOST");
      for (const instance of ["a", "b"]) {
        const next = await registry.leaseWorker(leaseOf(instance));
        const floorMs = next.notBeforeMs - 1;
        expect(floorMs).toBeGreaterThanOrEqual(next.nowMs + 370_000 - SLACK_MS);
        expect(next.reservedUntilMs).toBe(floorMs + AHEAD_MS);
        const reserveUntilMs = floorMs + 3_600_000;
        const renewed = await registry.renewWorker(renewalOf(next, { reserveUntilMs }));
        expect(renewed.reservedUntilMs).toBe(floorMs + AHEAD_MS + LEAD_MS);
      }
      // Who asks for a minute ahead gets no more than others above a floor that is ahead of the clock.
      const greedy = await registry.leaseWorker(leaseOf("c", { reserveAheadMs: 60_000 }));
      expect(greedy.reservedUntilMs).toBeLessThanOrEqual(
        greedy.notBeforeMs + DEFAULT_RESERVE_AHEAD_MS + LEAD_MS,
      );
    },
  );
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

// Worker ids of tags that change.
import { DEFAULT_RESERVE_AHEAD_MS, MAX_ID } from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import { expect } from "vitest";
import { codeOf, reasonOf } from "../store/support.ts";
import {
  AHEAD_MS,
  LEAD_MS,
  SLACK_MS,
  snowflakeOf,
  leaseOf,
  renewalOf,
  type WorkerSuite,
} from "./support.ts";

export function tagCases(suite: WorkerSuite): void {
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
    "an accept soon after another one is above what was leased between them",
    async (registry, harness) => {
      await registry.createTag(snowflakeOf("t", harness));
      await registry.accept(0n);
      const lease = await registry.leaseWorker(leaseOf("a"));
      const reserveUntilMs = lease.notBeforeMs + 3_600_000;
      const { reservedUntilMs } = await registry.renewWorker(renewalOf(lease, { reserveUntilMs }));
      await registry.accept(0n);
      // Its worker id has no row, or one that went with the accept: as if a store that went back had lost it.
      const next = await registry.leaseWorker(leaseOf("b"));
      expect(next.notBeforeMs).toBeGreaterThan(reservedUntilMs);
    },
  );

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

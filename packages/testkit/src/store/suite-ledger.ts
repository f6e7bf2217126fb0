// Who was given which ids.
import { MAX_ID } from "@idmint/core";
import { holderOf, type LedgerRow, type PlacedLedgerRow, type Store } from "@idmint/core/server";
import { expect } from "vitest";
import { granted, reasonOf, settingsOf, type Suite } from "./support.ts";

const LIMITS = { keepForMs: 3_600_000, maxRows: 1_000_000 };

function rowOf(firstId: bigint, lastId: bigint, more: Partial<LedgerRow> = {}): LedgerRow {
  return {
    entry: "allocation",
    tag: "t",
    firstId,
    lastId,
    version: 1n,
    epoch: 1n,
    nodeId: "n1",
    server: "host-1:7600",
    sequence: 1n,
    instance: "orders/7f",
    principal: "",
    atMs: 1_000,
    ...more,
  };
}

/** What a store has of an id, without positions. */
async function found(store: Store, id: bigint, tag = "t"): Promise<readonly LedgerRow[]> {
  const { rows } = await store.findInLedger({ tag, id });
  return rows.map((row) => {
    const { position: _, ...rest } = row as PlacedLedgerRow;
    return rest;
  });
}

export function ledgerCases(suite: Suite): void {
  suite("rows of the ledger are found by any of their ids", async (store, open, harness) => {
    if (harness.keepsLedger === false) {
      const reasons = [
        reasonOf(store.recordLedger([rowOf(1n, 1n)], LIMITS)),
        reasonOf(store.findInLedger({ tag: "t", id: 1n })),
        reasonOf(store.listLedger({ tag: "t", after: undefined, limit: 1 })),
      ];
      expect(new Set(await Promise.all(reasons))).toEqual(new Set(["NOT_CONFIGURED"]));
      return;
    }
    const other = await open();
    const rows = [
      rowOf(0n, 0n),
      rowOf(1n, 1_000n),
      rowOf(1_001n, 2_024n, { version: 3n, principal: "payments", instance: "" }),
      rowOf(1n, 100_000_000n, { entry: "grant", version: 2n, sequence: 2n }),
      rowOf(0n, MAX_ID, { entry: "gap", version: 9n }),
      rowOf(MAX_ID - 5n, MAX_ID, { version: 4n }),
      rowOf(1n, 1_000n, { tag: "u", entry: "release", sequence: 7n }),
    ];
    await store.recordLedger(rows, LIMITS);
    const [zero, thousand, next, grant, all, last, others] = rows;
    expect(await found(other, 0n)).toEqual([all, zero]);
    expect(await found(other, 1n)).toEqual([all, grant, thousand]);
    expect(await found(other, 1_000n)).toEqual([all, grant, thousand]);
    expect(await found(other, 1_001n)).toEqual([all, next, grant]);
    expect(await found(other, 2_024n)).toEqual([all, next, grant]);
    expect(await found(other, 2_025n)).toEqual([all, grant]);
    expect(await found(other, 100_000_001n)).toEqual([all]);
    expect(await found(other, MAX_ID)).toEqual([all, last]);
    expect(await found(other, 500n, "u")).toEqual([others]);
    expect(await store.findInLedger({ tag: "v", id: 1n })).toEqual({ rows: [], forgotten: 0n });
  });

  suite("of rows of one version the last one comes first", async (store, _open, harness) => {
    if (harness.keepsLedger === false) return;
    const rows = [1n, 2n, 3n].map((sequence) => rowOf(1n, 10n, { sequence }));
    await store.recordLedger(rows, LIMITS);
    expect((await found(store, 5n)).map(({ sequence }) => sequence)).toEqual([3n, 2n, 1n]);
  });

  suite(
    "a give-back that names its server writes its row, or nothing",
    async (store, _, harness) => {
      await store.createTag(settingsOf("t"));
      const grant = await granted(store, "t", { count: 100 });
      const giver = { nodeId: "n1", server: "host-1:7600", atMs: 5_000 };
      const request = { tag: "t", from: 41n, to: 100n, version: grant.version };
      expect(await store.giveBack([{ ...request, version: 7n, giver }])).toEqual([0]);
      expect(await store.giveBack([{ ...request, giver }])).toEqual([60]);
      if (harness.keepsLedger === false) return;
      const { epoch } = grant;
      const range = { firstId: 41n, lastId: 100n, version: grant.version + 1n, epoch };
      const row = { entry: "give-back", tag: "t", ...range, ...giver, sequence: 0n } as const;
      expect(await found(store, 41n)).toEqual([{ ...row, instance: "", principal: "" }]);
      expect(await found(store, 40n)).toEqual([]);
      const again = await granted(store, "t", { count: 100 });
      const back = { tag: "t", from: 41n, to: 140n, version: again.version };
      expect(await store.giveBack([back])).toEqual([100]);
      expect(await found(store, 41n)).toHaveLength(1);
    },
  );

  suite("old rows go, and are remembered as forgotten", async (store, _open, harness) => {
    if (harness.keepsLedger === false) return;
    const rows = Array.from({ length: 30 }, (_, at) =>
      rowOf(BigInt(at * 10), BigInt(at * 10 + 9), { version: BigInt(at + 1) }),
    );
    await store.recordLedger(rows, { ...LIMITS, maxRows: 10 });
    const { rows: gone, forgotten } = await store.findInLedger({ tag: "t", id: 5n });
    expect([gone, forgotten]).toEqual([[], 20n]);
    const kept = await store.findInLedger({ tag: "t", id: 299n });
    expect(holderOf(kept).why).toBe("ALLOCATED");
    // What comes late of a version that was forgotten is told by it.
    await store.recordLedger([rowOf(50n, 59n, { version: 6n })], LIMITS);
    expect(holderOf(await store.findInLedger({ tag: "t", id: 55n })).why).toBe("FORGOTTEN");
    // No tag forgets for another one.
    expect(await store.findInLedger({ tag: "u", id: 1n })).toEqual({ rows: [], forgotten: 0n });
    await store.recordLedger([rowOf(1n, 1n, { tag: "u" })], { ...LIMITS, keepForMs: -60_000 });
    expect(await store.findInLedger({ tag: "u", id: 1n })).toEqual({ rows: [], forgotten: 1n });
    // Tags in one database lose their rows together.
    const all = (await store.findInLedger({ tag: "t", id: 1n })).forgotten;
    expect(all).toBe(harness.spreads === true ? 20n : 30n);
  });

  suite(
    "an accept forgets what the lost history may have changed",
    async (store, _open, harness) => {
      if (harness.keepsLedger === false) return;
      await store.createTag(settingsOf("t"));
      const grant = await granted(store, "t");
      const { version } = grant;
      await store.recordLedger([rowOf(1n, 10n, { version })], LIMITS);
      await store.accept(1_000n);
      expect(holderOf(await store.findInLedger({ tag: "t", id: 5n })).why).toBe("FORGOTTEN");
      const later = await granted(store, "t");
      const end = later.base + 9n;
      await store.recordLedger([rowOf(later.base, end, { version: later.version })], LIMITS);
      expect(holderOf(await store.findInLedger({ tag: "t", id: end })).why).toBe("ALLOCATED");
    },
  );

  suite("the rows of a tag are listed in pages, oldest first", async (store, _open, harness) => {
    if (harness.keepsLedger === false) return;
    const rows = [1n, 2n, 3n, 4n, 5n].flatMap((at) => [
      rowOf(at, at, { sequence: at }),
      rowOf(at, at, { sequence: at, tag: "u" }),
    ]);
    await store.recordLedger(rows, LIMITS);
    const listed: LedgerRow[] = [];
    let pages = 0;
    for (let page = await store.listLedger({ tag: "t", after: undefined, limit: 2 }); ; pages++) {
      expect(page.rows.length).toBeLessThanOrEqual(2);
      listed.push(...page.rows);
      const { next } = page;
      if (next === undefined) break;
      page = await store.listLedger({ tag: "t", after: next, limit: 2 });
    }
    expect(pages).toBeGreaterThan(1);
    expect(listed.map(({ sequence }) => sequence)).toEqual([1n, 2n, 3n, 4n, 5n]);
    expect(new Set(listed.map(({ tag }) => tag))).toEqual(new Set(["t"]));
  });
}

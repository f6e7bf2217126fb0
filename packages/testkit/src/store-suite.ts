// What every store must do, whatever it is made of. A backend's test file registers this and adds cases of its own.
import { MAX_ID } from "@idmint/core";
import type { Grant, Granted, Store, Tag } from "@idmint/core/server";
import { expect, test } from "vitest";
import { auditCases } from "./store-suite-audit.ts";
import { claimCases } from "./store-suite-claims.ts";
import { kindCases } from "./store-suite-kinds.ts";
import { ledgerCases } from "./store-suite-ledger.ts";
import { markCases } from "./store-suite-marks.ts";
import { issuingCases } from "./store-suite-issuing.ts";
import { nodeCases } from "./store-suite-nodes.ts";
import { noonZone, periodCases } from "./store-suite-periods.ts";
import { raiseCases } from "./store-suite-raises.ts";
import { readCases } from "./store-suite-reads.ts";
import { sequenceCases } from "./store-suite-sequences.ts";
import { tokenCases } from "./store-suite-tokens.ts";
import {
  assertDisjoint,
  assertSeamless,
  FREE,
  granted,
  nextOf,
  NO_CHECK,
  raiseOf,
  reasonOf,
  refusal,
  settingsOf,
  type StoreHarness,
  type Suite,
  wish,
} from "./store-suite-support.ts";
import { workerSuite } from "./worker-suite.ts";

export * from "./store-suite-support.ts";
export {
  leaseOf,
  type OpenRegistry,
  type RegistryHarness,
  renewalOf,
  snowflakeOf,
  workerSuite,
} from "./worker-suite.ts";
export { tokenOf } from "./store-suite-tokens.ts";
export { noonZone };
export { auditOf, noteOf } from "./store-suite-audit.ts";
export { nodeOf, renewalOf as nodeRenewalOf } from "./store-suite-nodes.ts";

/** Real stores write to a disk, and start threads and connections. */
const TIMEOUT_MS = 30_000;

/** Registers the suite; `makeStore` is called once a test. */
export function storeSuite(name: string, makeStore: () => Promise<StoreHarness>): void {
  const suite: Suite = (title, run) => {
    test(`${name}: ${title}`, { timeout: TIMEOUT_MS }, async () => {
      const harness = await makeStore();
      const handles: Store[] = [];
      const open = async (): Promise<Store> => {
        const handle = await harness.open();
        handles.push(handle);
        return handle;
      };
      try {
        await run(await open(), open, harness);
      } finally {
        await Promise.all(handles.map((handle) => handle.close()));
        await harness.remove();
      }
    });
  };
  grantCases(suite);
  giveBackCases(suite);
  sequenceCases(suite);
  periodCases(suite);
  raiseCases(suite);
  markCases(suite);
  ledgerCases(suite);
  tokenCases(suite);
  kindCases(suite);
  tagCases(suite);
  operatorCases(suite);
  changeCases(suite);
  issuingCases(suite);
  auditCases(suite);
  nodeCases(suite);
  readCases(suite);
  acceptCases(suite);
  claimCases(suite);
  concurrencyCases(suite);
  closeCases(suite);
  workerSuite(name, async () => {
    const harness = await makeStore();
    return { ...harness, place: { registry: "STORE" }, pass: (ms) => harness.passWorkers(ms) };
  });
}

function grantCases(suite: Suite): void {
  suite(
    "a grant is the range above the floor, and the row tells floor and version",
    async (store) => {
      await store.createTag(settingsOf("orders", { description: "order numbers" }));
      const first = await granted(store, "orders", { count: 1_000 });
      expect(first).toEqual({
        outcome: "granted",
        tag: "orders",
        base: 1n,
        count: 1_000,
        version: 1n,
        epoch: 1n,
      });
      const second = await granted(store, "orders", { count: 5 });
      expect([second.base, second.count, second.version]).toEqual([1_001n, 5, 2n]);
      const [row] = await store.getTags(["orders"]);
      expect(row).toMatchObject({
        floor: 1_005n,
        version: 2n,
        epoch: 1n,
        description: "order numbers",
      });
    },
  );

  suite("grants begin at the tag's start", async (store) => {
    await store.createTag(settingsOf("t", { start: 500n }));
    expect((await granted(store, "t")).base).toBe(500n);
  });

  for (const [title, ceiling] of [
    ["2^31", 2n ** 31n - 1n],
    ["2^53", 2n ** 53n - 1n],
    ["2^63", MAX_ID],
  ] as const) {
    suite(`ids are exact up to ${title} − 1, and no further`, async (store) => {
      await store.createTag(settingsOf("t", { start: ceiling - 49n, ceiling }));
      expect((await granted(store, "t", { count: 30 })).base).toBe(ceiling - 49n);
      const rest = await granted(store, "t", { count: 1_000_000_000 });
      expect([rest.base, rest.count]).toEqual([ceiling - 19n, 20]);
      expect(await refusal(store, "t")).toBe("TAG_EXHAUSTED");
      const [row] = await store.getTags(["t"]);
      expect([row?.floor, row?.version]).toEqual([ceiling, 2n]);
    });
  }

  suite("ids are exact across 2^53", async (store) => {
    await store.createTag(settingsOf("t", { start: 2n ** 53n - 50n }));
    await granted(store, "t", { count: 99 });
    expect((await granted(store, "t")).base).toBe(2n ** 53n + 49n);
  });

  suite("a grant smaller than the least count is refused, and nothing is taken", async (store) => {
    await store.createTag(settingsOf("t", { ceiling: 9n }));
    expect(await refusal(store, "t", { count: 20, minCount: 10 })).toBe("TAG_EXHAUSTED");
    expect((await granted(store, "t", { count: 20, minCount: 9 })).count).toBe(9);
  });

  suite("an unknown and a deleted tag are not found", async (store) => {
    expect(await refusal(store, "none")).toBe("TAG_NOT_FOUND");
    await store.createTag(settingsOf("t"));
    await store.setTagState("t", "DELETED", NO_CHECK);
    expect(await refusal(store, "t")).toBe("TAG_NOT_FOUND");
  });

  suite("names are told apart by case", async (store) => {
    await store.createTag(settingsOf("Orders"));
    expect(await refusal(store, "orders")).toBe("TAG_NOT_FOUND");
  });

  suite("a paused tag is refused until it is resumed, in a new epoch", async (store) => {
    await store.createTag(settingsOf("t"));
    await store.setTagState("t", "PAUSED", NO_CHECK);
    expect(await refusal(store, "t")).toBe("TAG_PAUSED");
    await store.setTagState("t", "ACTIVE", NO_CHECK);
    expect((await granted(store, "t")).epoch).toBe(3n);
  });

  suite("an `after` above the floor is refused, one at the floor is not", async (store) => {
    await store.createTag(settingsOf("t"));
    await granted(store, "t");
    expect(await refusal(store, "t", { after: 11n })).toBe("AFTER_ABOVE_FLOOR");
    expect((await granted(store, "t", { after: 10n })).base).toBe(11n);
  });

  suite("a version higher than the row's means that the store went back", async (store) => {
    await store.createTag(settingsOf("t"));
    await granted(store, "t");
    expect(await refusal(store, "t", { seenVersion: 2n })).toBe("STORE_EPOCH_CHANGED");
    expect((await granted(store, "t", { seenVersion: 1n })).version).toBe(2n);
    expect(await refusal(store, "gone", { seenVersion: 1n })).toBe("STORE_EPOCH_CHANGED");
  });

  suite("of several refusals the gravest is told", async (store) => {
    await store.createTag(settingsOf("t", { ceiling: 5n }));
    const all = { after: 9n, count: 9, minCount: 9 };
    expect(await refusal(store, "t", all)).toBe("AFTER_ABOVE_FLOOR");
    await store.setTagState("t", "PAUSED", NO_CHECK);
    expect(await refusal(store, "t", all)).toBe("TAG_PAUSED");
    await store.setTagState("t", "DELETED", NO_CHECK);
    expect(await refusal(store, "t", all)).toBe("TAG_NOT_FOUND");
    expect(await refusal(store, "t", { ...all, seenVersion: 1n })).toBe("STORE_EPOCH_CHANGED");
  });

  suite(
    "a batch is answered in its order, and a refused tag leaves the others alone",
    async (store) => {
      for (const tag of ["c", "a", "b"]) await store.createTag(settingsOf(tag));
      await store.setTagState("b", "PAUSED", NO_CHECK);
      const grants = await store.grant([
        wish("c", { count: 3 }),
        wish("nobody"),
        wish("b"),
        wish("a", { count: 7 }),
      ]);
      expect(grants.map((grant) => [grant.tag, describe(grant)])).toEqual([
        ["c", "1 + 3"],
        ["nobody", "TAG_NOT_FOUND"],
        ["b", "TAG_PAUSED"],
        ["a", "1 + 7"],
      ]);
    },
  );

  suite("a batch may be as large as the store says", async (store) => {
    const names = Array.from({ length: Math.min(store.maxBatch, 300) }, (_, i) => `t${i}`);
    for (const tag of names) await store.createTag(settingsOf(tag));
    const grants = await store.grant(names.map((tag) => wish(tag)));
    expect(new Set(grants.map(describe))).toEqual(new Set(["1 + 10"]));
    expect(grants.map(({ tag }) => tag)).toEqual(names);
  });
}

function describe(grant: Grant): string {
  if (grant.outcome === "granted") return `${grant.base} + ${grant.count}`;
  return grant.outcome === "refused" ? grant.reason : "locked";
}

function endOf({ base, count }: Granted): bigint {
  return base + BigInt(count) - 1n;
}

function giveBackCases(suite: Suite): void {
  suite("the unused end of the last grant is taken back, and granted again", async (store) => {
    await store.createTag(settingsOf("t"));
    const grant = await granted(store, "t", { count: 100 });
    const request = { tag: "t", from: 41n, to: endOf(grant), version: grant.version };
    expect(await store.giveBack([request])).toEqual([60]);
    expect(await granted(store, "t")).toMatchObject({ base: 41n, version: 3n });
  });

  suite("a whole grant can be given back", async (store) => {
    await store.createTag(settingsOf("t"));
    const grant = await granted(store, "t");
    expect(await store.giveBack([{ tag: "t", from: 1n, to: 10n, version: grant.version }])).toEqual(
      [10],
    );
    expect((await granted(store, "t")).base).toBe(1n);
  });

  suite("a grant that another one followed is not taken back", async (store) => {
    await store.createTag(settingsOf("t"));
    const grant = await granted(store, "t");
    await granted(store, "t");
    expect(await store.giveBack([{ tag: "t", from: 5n, to: 10n, version: grant.version }])).toEqual(
      [0],
    );
    expect((await granted(store, "t")).base).toBe(21n);
  });

  suite("a give-back that is sent twice counts once", async (store) => {
    await store.createTag(settingsOf("t"));
    const grant = await granted(store, "t");
    const request = { tag: "t", from: 5n, to: 10n, version: grant.version };
    expect(await store.giveBack([request])).toEqual([6]);
    expect(await store.giveBack([request])).toEqual([0]);
    expect((await granted(store, "t")).base).toBe(5n);
  });

  suite("a floor that came back to a grant's end is not the grant's floor", async (store) => {
    // First grant 1 … 10 goes back whole; the second one ends at 10 again and belongs to somebody else.
    await store.createTag(settingsOf("t"));
    const first = await granted(store, "t");
    await store.giveBack([{ tag: "t", from: 1n, to: 10n, version: first.version }]);
    const second = await granted(store, "t");
    expect(endOf(second)).toBe(10n);
    expect(await store.giveBack([{ tag: "t", from: 1n, to: 10n, version: first.version }])).toEqual(
      [0],
    );
    expect((await granted(store, "t")).base).toBe(11n);
  });

  suite("a give-back after the floor was raised does nothing", async (store) => {
    await store.createTag(settingsOf("t"));
    const grant = await granted(store, "t");
    await store.advanceTag("t", 1_000n, FREE);
    expect(await store.giveBack([{ tag: "t", from: 5n, to: 10n, version: grant.version }])).toEqual(
      [0],
    );
    expect((await granted(store, "t")).base).toBe(1_001n);
  });

  suite("several give-backs are answered in their order, each for itself", async (store) => {
    for (const tag of ["a", "b"]) await store.createTag(settingsOf(tag));
    const [b, a] = [await granted(store, "b"), await granted(store, "a")];
    const counts = await store.giveBack([
      { tag: "b", from: 10n, to: 10n, version: b.version },
      { tag: "none", from: 1n, to: 10n, version: 1n },
      { tag: "a", from: 6n, to: 10n, version: a.version },
    ]);
    expect(counts).toEqual([1, 0, 5]);
  });

  suite("a tag at its very end takes ids back", async (store) => {
    await store.createTag(settingsOf("t", { start: MAX_ID - 9n }));
    const grant = await granted(store, "t");
    const request = { tag: "t", from: MAX_ID, to: MAX_ID, version: grant.version };
    expect(await store.giveBack([request])).toEqual([1]);
    expect(await granted(store, "t")).toMatchObject({ base: MAX_ID, count: 1 });
  });
}

function tagCases(suite: Suite): void {
  suite("a new tag has its settings, and has issued nothing", async (store) => {
    const settings = settingsOf("t", {
      description: "ids — with a dash",
      order: "PER_CLIENT",
      ceiling: 1_000_000n,
      start: 77n,
      min: 3,
      max: 30,
      holdForMs: 5_000,
      maxAgeMs: 6_000,
    });
    const tag = await store.createTag(settings);
    expect(tag).toEqual({
      ...settings,
      state: "ACTIVE",
      floor: 76n,
      periodStart: "",
      generation: 0n,
      version: 0n,
      epoch: 1n,
      revision: tag.revision,
      createdAtMs: tag.createdAtMs,
      updatedAtMs: tag.createdAtMs,
    });
    expect(Math.abs(tag.createdAtMs - Date.now())).toBeLessThan(60_000);
    expect(await store.getTags(["t"])).toEqual([tag]);
  });

  suite("making a tag again with the same settings answers it unchanged", async (store) => {
    await store.createTag(settingsOf("t"));
    await granted(store, "t");
    const before = await store.getTags(["t"]);
    expect([await store.createTag(settingsOf("t"))]).toEqual(before);
  });

  for (const [what, other] of [
    ["description", { description: "other" }],
    ["order", { order: "PER_CLIENT" }],
    ["ceiling", { ceiling: 5_000n }],
    ["start", { start: 2n }],
    ["min", { min: 999 }],
    ["max", { max: 99_999_999 }],
    ["hold_for", { holdForMs: 1_000 }],
    ["max_age", { maxAgeMs: 1_000 }],
  ] as const) {
    suite(`making a tag again with another ${what} is refused`, async (store) => {
      await store.createTag(settingsOf("t"));
      expect(await reasonOf(store.createTag(settingsOf("t", other)))).toBe("TAG_EXISTS");
      expect((await store.getTags(["t"]))[0]).toMatchObject(settingsOf("t"));
    });
  }

  suite("a tag made over a tombstone goes on above its floor, version and epoch", async (store) => {
    await store.createTag(settingsOf("t"));
    await granted(store, "t", { count: 100 });
    const tombstone = await store.setTagState("t", "DELETED", NO_CHECK);
    expect(tombstone).toMatchObject({ state: "DELETED", floor: 100n, version: 1n, epoch: 2n });
    const again = await store.createTag(settingsOf("t", { order: "PER_CLIENT", start: 7n }));
    expect(again).toMatchObject({
      state: "ACTIVE",
      order: "PER_CLIENT",
      floor: 100n,
      version: 2n,
      epoch: 3n,
    });
    expect((await granted(store, "t")).base).toBe(101n);
  });

  suite("a tag made over a tombstone begins at its start where that is higher", async (store) => {
    await store.createTag(settingsOf("t"));
    await store.setTagState("t", "DELETED", NO_CHECK);
    await store.createTag(settingsOf("t", { start: 5_000n }));
    expect((await granted(store, "t")).base).toBe(5_000n);
  });

  suite("a tag whose ceiling lies below its tombstone's floor is not made", async (store) => {
    await store.createTag(settingsOf("t"));
    await granted(store, "t", { count: 100 });
    await store.setTagState("t", "DELETED", NO_CHECK);
    const work = store.createTag(settingsOf("t", { ceiling: 99n }));
    expect(await reasonOf(work)).toBe("INVALID_ARGUMENT");
    expect(await refusal(store, "t")).toBe("TAG_NOT_FOUND");
  });

  suite("tags are read by name, tombstones included, unknown ones left out", async (store) => {
    for (const tag of ["a", "b", "c"]) await store.createTag(settingsOf(tag));
    await store.setTagState("b", "DELETED", NO_CHECK);
    const tags = await store.getTags(["c", "nobody", "b"]);
    const states = tags.map(({ name, state }) => `${name} ${state}`);
    expect(states.toSorted()).toEqual(["b DELETED", "c ACTIVE"]);
    expect(await store.getTags([])).toEqual([]);
  });

  suite("tags are listed by code point, page by page, by prefix", async (store) => {
    const names = ["a", "a.1", "a-1", "a1", "aZ", "a_", "ab", "B", "Z", "b:1"];
    for (const tag of names) await store.createTag(settingsOf(tag));
    await store.setTagState("ab", "DELETED", NO_CHECK);
    const page = async (
      afterName: string,
      more: { prefix?: string; showDeleted?: boolean; limit?: number } = {},
    ): Promise<string[]> => {
      const query = { afterName, prefix: "", showDeleted: false, limit: 100, ...more };
      return (await store.listTags(query)).map(({ name }) => name);
    };
    const sorted = names.toSorted((a, b) => (a < b ? -1 : 1));
    const live = sorted.filter((tag) => tag !== "ab");
    expect(await page("")).toEqual(live);
    expect(await page("", { showDeleted: true })).toEqual(sorted);
    expect(await page("", { limit: 3 })).toEqual(live.slice(0, 3));
    expect(await page(live[2] ?? "", { limit: 3 })).toEqual(live.slice(3, 6));
    expect(await page("zzz")).toEqual([]);
    expect(await page("", { prefix: "a" })).toEqual(live.filter((tag) => tag.startsWith("a")));
    expect(await page("a1", { prefix: "a" })).toEqual(["aZ", "a_"]);
    expect(await page("", { prefix: "a_" })).toEqual(["a_"]);
    expect(await page("", { prefix: "%" })).toEqual([]);
  });
}

function operatorCases(suite: Suite): void {
  suite("an update changes what it names, under a new revision", async (store) => {
    const old = await store.createTag(settingsOf("t"));
    const tag = await store.updateTag("t", { description: "new" }, old.revision);
    expect(tag).toEqual({
      ...old,
      description: "new",
      revision: old.revision + 1n,
      updatedAtMs: tag.updatedAtMs,
    });
    expect(await store.getTags(["t"])).toEqual([tag]);
  });

  suite("the start of a tag that issued nothing can move", async (store) => {
    await store.createTag(settingsOf("t"));
    const { order, ceiling, kind } = settingsOf("t", { start: 300n, order: "PER_CLIENT" });
    const change = { settings: { order, ceiling, kind } };
    expect(await store.updateTag("t", change, NO_CHECK)).toMatchObject({
      floor: 299n,
      version: 0n,
    });
    expect((await granted(store, "t")).base).toBe(300n);
  });

  suite("what is immutable after the first id is refused then", async (store) => {
    await store.createTag(settingsOf("t"));
    await granted(store, "t");
    const { order, ceiling, kind } = settingsOf("t", { ceiling: 500n });
    const change = { settings: { order, ceiling, kind } };
    expect(await reasonOf(store.updateTag("t", change, NO_CHECK))).toBe("FIELD_IMMUTABLE");
    expect((await store.getTags(["t"]))[0]?.ceiling).toBe(MAX_ID);
  });

  suite("sizes change after the first id too", async (store) => {
    await store.createTag(settingsOf("t"));
    await granted(store, "t");
    const { order, ceiling, kind } = settingsOf("t", { min: 5, max: 50 });
    const change = { settings: { order, ceiling, kind } };
    const tag = await store.updateTag("t", change, NO_CHECK);
    expect(tag).toMatchObject({ floor: 10n, version: 1n, epoch: 1n, kind: { min: 5, max: 50 } });
  });

  suite("the floor is raised once, in a new version and epoch", async (store) => {
    await store.createTag(settingsOf("t"));
    const first = await store.advanceTag("t", 1_000n, FREE);
    expect(first.raised).toBe(true);
    expect(first.tag).toMatchObject({ floor: 1_000n, version: 1n, epoch: 2n });
    expect(await store.advanceTag("t", 1_000n, FREE)).toEqual({ tag: first.tag, raised: false });
    expect(await store.advanceTag("t", 5n, FREE)).toEqual({ tag: first.tag, raised: false });
    expect((await granted(store, "t")).base).toBe(1_001n);
  });

  suite("a floor may be raised to the ceiling and not past it", async (store) => {
    await store.createTag(settingsOf("t", { ceiling: 100n }));
    expect(await reasonOf(store.advanceTag("t", 101n, FREE))).toBe("INVALID_ARGUMENT");
    expect((await store.advanceTag("t", 100n, FREE)).raised).toBe(true);
    expect(await refusal(store, "t")).toBe("TAG_EXHAUSTED");
  });

  suite("a raise by more than is meant is refused", async (store) => {
    await store.createTag(settingsOf("t"));
    const options = { ...FREE, maxRaise: 1_000n };
    expect(await reasonOf(store.advanceTag("t", 1_001n, options))).toBe("RAISE_TOO_LARGE");
    expect((await store.advanceTag("t", 1_000n, options)).raised).toBe(true);
  });

  suite("a raise that is only to be validated changes nothing", async (store) => {
    const old = await store.createTag(settingsOf("t"));
    const options = { ...FREE, validateOnly: true };
    const would = await store.advanceTag("t", 9n, options);
    expect([would.raised, would.tag.floor]).toEqual([true, 9n]);
    expect(await reasonOf(store.advanceTag("nobody", 9n, options))).toBe("TAG_NOT_FOUND");
    expect(await store.getTags(["t"])).toEqual([old]);
  });

  suite("a change that is only to be validated is answered, and changes nothing", async (store) => {
    const only = { validateOnly: true };
    const made = await store.createTag(settingsOf("t"), only);
    expect(made).toMatchObject({ name: "t", state: "ACTIVE", epoch: 1n });
    expect(await store.getTags(["t"])).toEqual([]);
    const old = await store.createTag(settingsOf("t"));
    const seen = { since: 0n, watched: [], limit: 10 };
    const { revision } = await store.changes(seen);
    const change = { description: "other" };
    expect(await store.updateTag("t", change, NO_CHECK, only)).toMatchObject({
      description: "other",
    });
    for (const state of ["PAUSED", "DELETED"] as const) {
      expect(await store.setTagState("t", state, NO_CHECK, only)).toMatchObject({ state });
    }
    const stale = store.setTagState("t", "PAUSED", old.revision - 1n, only);
    expect(await reasonOf(stale)).toBe("ETAG_MISMATCH");
    expect(await reasonOf(store.createTag(settingsOf("t", { ceiling: 9n }), only))).toBe(
      "TAG_EXISTS",
    );
    expect(await store.getTags(["t"])).toEqual([old]);
    expect((await store.changes(seen)).revision).toBe(revision);
  });

  suite("a state that is there already changes nothing", async (store) => {
    const old = await store.createTag(settingsOf("t"));
    expect(await store.setTagState("t", "ACTIVE", NO_CHECK)).toEqual(old);
    const paused = await store.setTagState("t", "PAUSED", NO_CHECK);
    expect(paused).toMatchObject({ state: "PAUSED", epoch: 2n, version: 0n });
    expect(await store.setTagState("t", "PAUSED", NO_CHECK)).toEqual(paused);
  });

  suite("every change of an unknown or deleted tag is not found", async (store) => {
    await store.createTag(settingsOf("gone"));
    await store.setTagState("gone", "DELETED", NO_CHECK);
    for (const tag of ["nobody", "gone"]) {
      const works = [
        store.updateTag(tag, { description: "x" }, NO_CHECK),
        store.advanceTag(tag, 5n, FREE),
        store.setTagState(tag, "PAUSED", NO_CHECK),
        store.setTagState(tag, "DELETED", NO_CHECK),
      ];
      expect(new Set(await Promise.all(works.map(reasonOf)))).toEqual(new Set(["TAG_NOT_FOUND"]));
    }
  });

  suite("a stale revision is refused by every change, and changes nothing", async (store) => {
    const { revision } = await store.createTag(settingsOf("t"));
    const now = await store.setTagState("t", "PAUSED", revision);
    const works = [
      store.updateTag("t", { description: "x" }, revision),
      store.advanceTag("t", 5n, { ...FREE, expectedRevision: revision }),
      store.setTagState("t", "ACTIVE", revision),
      store.setTagState("t", "DELETED", revision),
    ];
    expect(new Set(await Promise.all(works.map(reasonOf)))).toEqual(new Set(["ETAG_MISMATCH"]));
    expect(await store.getTags(["t"])).toEqual([now]);
  });

  suite("grants change neither revision nor epoch", async (store) => {
    const { revision, updatedAtMs } = await store.createTag(settingsOf("t"));
    await granted(store, "t");
    expect((await store.getTags(["t"]))[0]).toMatchObject({ revision, epoch: 1n, updatedAtMs });
  });
}

function changeCases(suite: Suite): void {
  const all = { since: 0n, watched: [], limit: 100 } as const;

  suite("a poll of an empty store answers its clock and nothing else", async (store) => {
    const poll = await store.changes(all);
    expect(poll).toMatchObject({ revision: 0n, changed: [], more: false, behind: [], fenced: "" });
    expect(poll.incarnation).not.toBe("");
    expect(Math.abs(poll.nowMs - Date.now())).toBeLessThan(60_000);
  });

  suite(
    "a poll answers what operators changed, oldest first, and not what was granted",
    async (store, open, { spreads = false }) => {
      const other = await open();
      await other.createTag(settingsOf("a"));
      await other.createTag(settingsOf("b"));
      const before = await store.changes(all);
      const inOrder = (texts: string[]): string[] => (spreads ? texts.toSorted() : texts);
      expect(inOrder(before.changed.map(({ name }) => name))).toEqual(["a", "b"]);
      await granted(other, "a");
      const since = before.revision;
      expect(await store.changes({ ...all, since })).toMatchObject({
        revision: since,
        changed: [],
      });
      await other.setTagState("a", "PAUSED", NO_CHECK);
      await other.setTagState("b", "DELETED", NO_CHECK);
      const after = await store.changes({ ...all, since });
      const changed = after.changed.map(({ name, state }) => `${name} ${state}`);
      expect(inOrder(changed)).toEqual(["a PAUSED", "b DELETED"]);
      expect(after.revision).toBe(nextOf(after, since));
      expect(after.revision).toBeGreaterThan(since);
      expect(after.incarnation).toBe(before.incarnation);
    },
  );

  suite("a poll answers in pages that miss nothing", async (store, _open, { spreads = false }) => {
    for (let i = 0; i < 7; i++) await store.createTag(settingsOf(`t${i}`));
    const names: string[] = [];
    let since = 0n;
    for (;;) {
      const changes = await store.changes({ since, watched: [], limit: 3 });
      names.push(...changes.changed.map(({ name }) => name));
      since = nextOf(changes, since);
      if (!changes.more) break;
    }
    expect(spreads ? names.toSorted() : names).toEqual(["t0", "t1", "t2", "t3", "t4", "t5", "t6"]);
  });

  suite("a poll names the watched tags that went back", async (store) => {
    await store.createTag(settingsOf("a"));
    await granted(store, "a");
    const watched = [
      { tag: "a", version: 1n },
      { tag: "gone", version: 4n },
    ];
    expect((await store.changes({ ...all, watched })).behind).toEqual(["gone"]);
    const ahead = [{ tag: "a", version: 2n }];
    expect((await store.changes({ ...all, watched: ahead })).behind).toEqual(["a"]);
  });
}

function acceptCases(suite: Suite): void {
  suite("accepting raises every floor by the gap, at most to the ceiling", async (store) => {
    await store.createTag(settingsOf("a"));
    await store.createTag(settingsOf("end", { start: MAX_ID - 99n }));
    await store.createTag(settingsOf("off"));
    await store.setTagState("off", "PAUSED", NO_CHECK);
    for (const tag of ["a", "end"]) await granted(store, tag);
    const before = await store.changes({ since: 0n, watched: [], limit: 100 });
    const startedAt = BigInt(Math.floor(Date.now() / 1_000));
    expect(await store.accept(1_000n)).toEqual({ tags: 3 });
    const tags = new Map((await store.getTags(["a", "end", "off"])).map((tag) => [tag.name, tag]));
    expect(tags.get("a")).toMatchObject({ floor: 1_010n, version: 2n, state: "ACTIVE" });
    expect(tags.get("end")).toMatchObject({ floor: MAX_ID, version: 2n });
    expect(tags.get("off")).toMatchObject({ floor: 1_000n, version: 1n, state: "PAUSED" });
    for (const { epoch } of tags.values()) expect(epoch).toBeGreaterThanOrEqual(startedAt - 60n);
    const after = await store.changes({ since: before.revision, watched: [], limit: 100 });
    expect(after.incarnation).not.toBe(before.incarnation);
    expect(after.changed.map(({ name }) => name).toSorted()).toEqual(["a", "end", "off"]);
    expect(after.fenced).toBe("");
    expect((await granted(store, "a")).base).toBe(1_011n);
  });

  suite("a second accept raises epochs once more", async (store) => {
    await store.createTag(settingsOf("a"));
    await store.accept(1n);
    const epoch = (await store.getTags(["a"]))[0]?.epoch ?? 0n;
    await store.accept(1n);
    const [tag] = await store.getTags(["a"]);
    expect(tag?.epoch).toBeGreaterThan(epoch);
    expect(tag?.floor).toBe(2n);
  });

  suite("what accept changed can be polled in pages", async (store) => {
    for (let i = 0; i < 5; i++) await store.createTag(settingsOf(`t${i}`));
    const { revision } = await store.changes({ since: 0n, watched: [], limit: 100 });
    await store.accept(1n);
    const first = await store.changes({ since: revision, watched: [], limit: 3 });
    const since = nextOf(first, 0n);
    const second = await store.changes({ since, watched: [], limit: 3 });
    expect([first.more, second.more]).toEqual([true, false]);
    const names = [...first.changed, ...second.changed].map(({ name }) => name);
    expect(names.toSorted()).toEqual(["t0", "t1", "t2", "t3", "t4"]);
  });

  suite("a gap that is no gap is refused", async (store) => {
    expect(await reasonOf(store.accept(-1n))).toBe("INVALID_ARGUMENT");
    expect(await reasonOf(store.accept(MAX_ID + 1n))).toBe("INVALID_ARGUMENT");
  });

  suite("an empty store can be accepted", async (store) => {
    const before = await store.changes({ since: 0n, watched: [], limit: 1 });
    expect(await store.accept(5n)).toEqual({ tags: 0 });
    const after = await store.changes({ since: 0n, watched: [], limit: 1 });
    expect(after.incarnation).not.toBe(before.incarnation);
  });
}

function concurrencyCases(suite: Suite): void {
  suite(
    "grants of several handles at once never overlap, and leave no gap",
    async (first, open) => {
      const handles = [first, await open(), await open()];
      const names = ["a", "b", "c", "d"];
      for (const tag of names) await first.createTag(settingsOf(tag));
      const grants: Granted[] = [];
      await Promise.all(
        handles.flatMap((handle, at) =>
          [0, 1].map(async (lane) => {
            for (let round = 0; round < 25; round++) {
              // Each lane asks for other tags in another order, which is what deadlocks would need.
              const tags = [...names.slice(at + lane), ...names.slice(0, at + lane)].slice(0, 3);
              const asked = tags.map((tag) => wish(tag, { count: 1 + ((round + at) % 7) }));
              for (const grant of await handle.grant(asked)) {
                if (grant.outcome === "granted") grants.push(grant);
                else throw new Error(describe(grant));
              }
            }
          }),
        ),
      );
      for (const tag of names) assertSeamless(grants.filter((grant) => grant.tag === tag));
    },
  );

  suite(
    "grants, give-backs and an operator at once never let an id be granted twice",
    async (first, open) => {
      const handles = [first, await open(), await open()];
      await first.createTag(settingsOf("t"));
      const kept: { from: bigint; to: bigint }[] = [];
      const lanes = handles.map(async (handle) => {
        for (let round = 0; round < 40; round++) {
          const [grant] = await handle.grant([wish("t", { count: 10 })]);
          if (grant?.outcome !== "granted") continue;
          const to = grant.base + 9n;
          const from = grant.base + BigInt(round % 10);
          const [back] = await handle.giveBack([{ tag: "t", from, to, version: grant.version }]);
          // The ids before `from` were issued in any case; those after it only where nothing was taken back.
          const end = back === 0 ? to : from - 1n;
          if (end >= grant.base) kept.push({ from: grant.base, to: end });
        }
      });
      const operator = (async (): Promise<void> => {
        for (let round = 0; round < 10; round++) {
          await first.setTagState("t", round % 2 === 0 ? "PAUSED" : "ACTIVE", NO_CHECK);
          const [tag] = await first.getTags(["t"]);
          await first.advanceTag("t", (tag?.floor ?? 0n) + 3n, FREE);
        }
      })();
      await Promise.all([...lanes, operator]);
      assertDisjoint(kept);
    },
  );

  suite(
    "revisions of changes made at once are all different, and polls miss none",
    async (first, open, { spreads = false }) => {
      const handles = [first, await open(), await open()];
      const seen = new Set<string>();
      let done = false;
      const poller = (async (): Promise<void> => {
        let since = 0n;
        for (;;) {
          const wasDone = done;
          const changes = await first.changes({ since, watched: [], limit: 4 });
          for (const { name } of changes.changed) seen.add(name);
          since = nextOf(changes, since);
          if (wasDone && !changes.more) return;
        }
      })();
      const made = await Promise.all(
        handles.map(async (handle, at) => {
          const tags: Tag[] = [];
          for (let i = 0; i < 10; i++) tags.push(await handle.createTag(settingsOf(`t${at}.${i}`)));
          return tags;
        }),
      );
      done = true;
      await poller;
      const tags = made.flat();
      if (!spreads) expect(new Set(tags.map(({ revision }) => revision)).size).toBe(30);
      expect(seen.size).toBe(30);
    },
  );

  suite(
    "of several who make the same tag at once one does, and all get it",
    async (first, open) => {
      const handles = [first, await open(), await open()];
      const tags = await Promise.all(handles.map((handle) => handle.createTag(settingsOf("t"))));
      expect(new Set(tags.map(({ revision }) => revision))).toEqual(new Set([1n]));
    },
  );

  suite("a revision can be spent once", async (first, open) => {
    const handles = [first, await open(), await open()];
    const { revision } = await first.createTag(settingsOf("t"));
    const outcomes = await Promise.allSettled(
      handles.map((handle, at) => handle.updateTag("t", { description: `by ${at}` }, revision)),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  suite("another handle sees what was granted", async (first, open) => {
    const other = await open();
    await first.createTag(settingsOf("t"));
    await granted(first, "t");
    expect(await granted(other, "t", { seenVersion: 1n })).toMatchObject({
      base: 11n,
      version: 2n,
    });
  });
}

function closeCases(suite: Suite): void {
  suite("a closed store refuses everything", async (store) => {
    await store.createTag(settingsOf("t"));
    await store.close();
    const works = [
      store.grant([wish("t")]),
      store.giveBack([{ tag: "t", from: 1n, to: 1n, version: 1n }]),
      store.raise(raiseOf("t")),
      store.listPeriods({ tag: "t", before: "", limit: 1 }),
      store.createTag(settingsOf("t")),
      store.getTags(["t"]),
      store.changes({ since: 0n, watched: [], limit: 1 }),
    ];
    expect(new Set(await Promise.all(works.map(reasonOf)))).toEqual(new Set(["STORE_UNAVAILABLE"]));
    await store.close();
  });

  suite("what was asked before the close is answered, and stays", async (store, open) => {
    await store.createTag(settingsOf("t"));
    const grant = store.grant([wish("t")]);
    await store.close();
    expect((await grant)[0]).toMatchObject({ outcome: "granted", base: 1n });
    expect((await granted(await open(), "t")).base).toBe(11n);
  });
}

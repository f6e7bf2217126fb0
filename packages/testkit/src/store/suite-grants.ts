// Grants, and what is given back of them.
import { MAX_ID } from "@idmint/core";
import type { Grant, Granted } from "@idmint/core/server";
import { expect } from "vitest";
import { FREE, granted, NO_CHECK, refusal, settingsOf, wish, type Suite } from "./support.ts";

export function grantCases(suite: Suite): void {
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
      expect(grants.map((grant) => [grant.tag, outcomeOf(grant)])).toEqual([
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
    expect(new Set(grants.map(outcomeOf))).toEqual(new Set(["1 + 10"]));
    expect(grants.map(({ tag }) => tag)).toEqual(names);
  });
}

/** What a grant gave, or why it did not. */
export function outcomeOf(grant: Grant): string {
  if (grant.outcome === "granted") return `${grant.base} + ${grant.count}`;
  return grant.outcome === "refused" ? grant.reason : "locked";
}

function endOf({ base, count }: Granted): bigint {
  return base + BigInt(count) - 1n;
}

export function giveBackCases(suite: Suite): void {
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

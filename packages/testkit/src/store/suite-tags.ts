// Tags, and what operators change of them.
import { MAX_ID } from "@idmint/core";
import { expect } from "vitest";
import { FREE, granted, NO_CHECK, reasonOf, refusal, settingsOf, type Suite } from "./support.ts";

export function tagCases(suite: Suite): void {
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
      return (await store.listTags(query)).tags.map(({ name }) => name);
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

export function operatorCases(suite: Suite): void {
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

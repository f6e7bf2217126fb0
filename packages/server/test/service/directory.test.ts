import { IdmintError, MAX_ID, type TagSettings, VersionGuard } from "@idmint/core";
import { FakeTime, MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import { createCounters } from "../../src/service/counters.ts";
import { Directory } from "../../src/service/directory.ts";
import { Grants } from "../../src/service/grants.ts";
import { sourceMaker } from "../../src/service/sources.ts";
import { Lookup } from "../../src/service/lookup.ts";

const SETTINGS: TagSettings = {
  name: "orders",
  description: "",
  order: "UNORDERED",
  ceiling: MAX_ID,
  kind: { kind: "segment", start: 1n, min: 10, max: 10, holdForMs: 1_000, maxAgeMs: 1_000 },
};

/** A directory on a store in memory, whose answers to lookups the test may hold back. */
function setUp() {
  const time = new FakeTime();
  const store = new MemoryStore();
  const guard = new VersionGuard();
  const counters = createCounters();
  const common = { store, guard, clock: time, timers: time, counters };
  const shared = {
    ...common,
    storeTimeoutMs: 1_000,
    afterTurn: queueMicrotask,
    emit: () => undefined,
  };
  const grants = new Grants({ ...shared, onWentBack: () => undefined });
  const lookup = new Lookup({ ...shared, onTags: (tags) => directory.admit(tags) });
  const makeSource = sourceMaker(
    { ...shared, grants, elsewhere: () => undefined },
    { maxWaiters: 10, maxCount: 100 },
  );
  const directory = new Directory(
    { ...shared, grants, lookup, random: () => 0.5, makeSource },
    { prefetchShare: 0.1, maxWaiters: 10, maxTags: 10, storeTimeoutMs: 1_000 },
  );
  const call = { deadline: 10_000, signal: new AbortController().signal };
  return { time, store, directory, call };
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 100; i++) await Promise.resolve();
};

test("a call that looks a tag up while the poll shows that it exists gets it, also from an answer of before", async () => {
  const { time, store, directory, call } = setUp();
  const answer = Promise.withResolvers<void>();
  // The store has looked, found nothing, and its answer is still on the way.
  store.faults = { after: (operation) => (operation === "getTags" ? answer.promise : undefined) };
  const found = directory.find("orders", call);
  await settled();
  store.faults = {};
  const tag = await store.createTag(SETTINGS);
  await directory.apply([tag], directory.history);
  answer.resolve();
  await settled();
  // Lookups keep a pause between them.
  time.advance(100);
  expect((await found).name).toBe("orders");
});

test("a tag that appears and is gone again before it is looked up is not found", async () => {
  const { time, store, directory, call } = setUp();
  const answer = Promise.withResolvers<void>();
  store.faults = { after: (operation) => (operation === "getTags" ? answer.promise : undefined) };
  const found = directory.find("orders", call).catch((thrown: unknown) => thrown);
  await settled();
  store.faults = {};
  const tag = await store.createTag(SETTINGS);
  await directory.apply([tag], directory.history);
  await directory.apply(
    [await store.setTagState("orders", "DELETED", undefined)],
    directory.history,
  );
  answer.resolve();
  await settled();
  time.advance(100);
  await settled();
  expect(await found).toBeInstanceOf(IdmintError);
  expect(await found).toMatchObject({ reason: "TAG_NOT_FOUND" });
});

const SEQUENCE: TagSettings = {
  ...SETTINGS,
  order: "STRICT",
  kind: { kind: "sequence", start: 1n, periods: undefined, redis: undefined },
};

test("a name that is deleted and made again as another kind is served by what that kind needs", async () => {
  const { store, directory, call } = setUp();
  await store.createTag(SETTINGS);
  const before = directory.find("orders", call);
  await settled();
  const segments = await before;
  await segments.buffer?.next(call);
  await store.setTagState("orders", "DELETED", undefined);
  // The poll shows what the tag is now, and not that it was deleted in between.
  await directory.apply([await store.createTag(SEQUENCE)], directory.history);
  const sequence = directory.get("orders");
  expect(sequence?.buffer).toBeUndefined();
  expect(() => segments.buffer?.tryNext()).toThrow("SEGMENT_NOT_READY");
  await store.setTagState("orders", "DELETED", undefined);
  await directory.apply([await store.createTag(SETTINGS)], directory.history);
  expect(directory.get("orders")?.buffer).toBeDefined();
});

test("a fenced store fences sequences too, and they issue again when the fence is lifted", async () => {
  const { store, directory, call } = setUp();
  await store.createTag(SEQUENCE);
  const found = directory.find("orders", call);
  await settled();
  const entry = await found;
  if (entry.buffer !== undefined) throw new Error("a sequence with a buffer");
  directory.fenceAll("it is another one");
  await expect(entry.source.take(1, call)).rejects.toMatchObject({ reason: "STORE_EPOCH_CHANGED" });
  directory.unfenceAll();
  const taken = await entry.source.take(1, call);
  expect(taken.segments).toMatchObject([{ base: 1n, count: 1 }]);
  expect(directory.holdsIds).toBe(false);
  expect([directory.size, directory.bufferedTags]).toEqual([1, 0]);
  expect(await directory.drain(new IdmintError("DRAINING", "over"))).toEqual({
    givenBack: 0,
    wasted: 0,
  });
  await expect(entry.source.take(1, call)).rejects.toMatchObject({ reason: "DRAINING" });
});

test("a sequence that nobody asks for makes room like any other tag", async () => {
  const { store, directory } = setUp();
  for (let tag = 0; tag < 10; tag++) {
    await store.createTag({ ...SEQUENCE, name: `t${tag}` });
  }
  directory.admit(await store.getTags(Array.from({ length: 10 }, (_, tag) => `t${tag}`)));
  expect(directory.size).toBe(10);
  await directory.sample();
  const used = directory.get("t5");
  await directory.sample();
  directory.get("t5");
  await directory.sample();
  expect(directory.size).toBe(9);
  expect(directory.get("t5")).toBe(used);
});

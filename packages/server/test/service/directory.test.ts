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

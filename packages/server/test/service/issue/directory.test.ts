import { IdmintError } from "@idmint/core";
import { expect, test } from "vitest";
import { SEQUENCE, SETTINGS, settled, setUp } from "../directory-world.ts";

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

test("records that a poll brought of a history that is over change nothing in the present one", async () => {
  const { store, directory, call } = setUp();
  const tag = await store.createTag(SETTINGS);
  directory.admit([tag]);
  const revision = tag.revision + 5n;
  const late = directory.apply([{ ...tag, state: "PAUSED", revision }], directory.history);
  directory.startHistory();
  directory.admit([tag]);
  await late;
  expect(await directory.get("orders")?.buffer?.next(call)).toBe(1n);
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

test("what a fenced tag held is not given back: the store may have granted it again", async () => {
  const { time, store, directory, call } = setUp();
  await store.createTag(SETTINGS);
  await store.createTag({ ...SETTINGS, name: "bills" });
  for (const name of ["orders", "bills"]) {
    const found = directory.find(name, call);
    await settled();
    time.advance(100);
    await settled();
    await (await found).buffer?.next(call);
  }
  // The next load of each is there too.
  await settled();
  directory.fenceTag("orders", "its version is lower than was seen");
  // What the other tag held goes back.
  expect(await directory.drain(new IdmintError("DRAINING", "over"))).toMatchObject({
    givenBack: 19,
  });
  const rows = await store.getTags(["orders", "bills"]);
  expect(rows.map(({ name, floor }) => [name, floor])).toEqual([
    ["orders", 20n],
    ["bills", 1n],
  ]);
});

test("a tag that made room goes on with the ids it gave back", async () => {
  const { store, directory, call } = setUp();
  const names = Array.from({ length: 10 }, (_, tag) => `t${tag}`);
  for (const name of names) await store.createTag({ ...SETTINGS, name });
  const takeOne = async (name: string): Promise<bigint | undefined> => {
    const id = await directory.get(name)?.buffer?.next(call);
    await settled();
    return id;
  };
  directory.admit(await store.getTags(names));
  for (const name of names) expect(await takeOne(name)).toBe(1n);
  await directory.sample();
  await directory.sample();
  expect(directory.size).toBe(9);
  const gone = names.find((name) => directory.get(name) === undefined) ?? "";
  directory.admit(await store.getTags([gone]));
  expect(await takeOne(gone)).toBe(2n);
});

test("ids that a caller had straight from the store stay granted here when what is held below them is given back", async () => {
  const { store, guard, directory, call } = setUp();
  await store.createTag(SETTINGS);
  const found = directory.find("orders", call);
  await settled();
  const { buffer } = await found;
  await buffer?.next(call);
  await settled();
  // Of a caller that has seen all ids up to the floor elsewhere.
  const [tag] = await store.getTags(["orders"]);
  const floor = tag?.floor ?? 0n;
  expect(await buffer?.take(5, call, floor)).toMatchObject([{ base: floor + 1n, count: 5 }]);
  const { givenBack } = await directory.drain(new IdmintError("DRAINING", "over"));
  expect(givenBack).toBe(0);
  expect([...guard.claims()]).toEqual([{ tag: "orders", period: "", last: floor + 5n }]);
});

test("floors that a lookup or a poll showed are claimed, also those that this server had no part in", async () => {
  const { store, guard, directory, call } = setUp();
  await store.createTag(SEQUENCE);
  const claimed = () => [...guard.claims()].map(({ last }) => last);
  const request = { tag: "orders", kind: "sequence", count: 40, minCount: 40 } as const;
  await store.grant([{ ...request, after: 0n, seenVersion: 0n }]);
  const found = directory.find("orders", call);
  await settled();
  await found;
  expect(claimed()).toEqual([40n]);
  const options = { maxRaise: 1_000n, expectedRevision: undefined };
  const { tag } = await store.advanceTag("orders", 500n, options);
  await directory.apply([tag], directory.history);
  expect(claimed()).toEqual([500n]);
  // What was asked in a history that is over says nothing of this one.
  const late = directory.apply([{ ...tag, floor: 900n }], directory.history);
  directory.startHistory();
  await late;
  expect(claimed()).toEqual([500n]);
});

test.each<[string, boolean, number]>([
  ["put back", false, 5],
  ["a gap when all was fenced meanwhile, also once it is not any more", true, 0],
])("what a caller returns is %s", async (_, isFenced, accepted) => {
  const { store, directory, ids, call } = setUp();
  await store.createTag(SETTINGS);
  const allocating = ids.allocateSegment({ tag: "orders", count: 10, after: 0n }, call);
  await settled();
  const { releaseToken } = await allocating;
  if (isFenced) {
    directory.fenceAll("another timeline");
    directory.unfenceAll();
  }
  const released = await ids.releaseSegment({ tag: "orders", releaseToken, unusedCount: 5 });
  expect(released).toBe(accepted);
});

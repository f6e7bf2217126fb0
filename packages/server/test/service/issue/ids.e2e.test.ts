import { IdServiceService, NodeServiceService, StoreState, TagServiceService } from "@idmint/proto";
import { MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, test } from "vitest";
import {
  call,
  createTag,
  generateId,
  idsOf,
  refusalOf,
  sleep,
  startTest,
  until,
  holdBack,
} from "../../support.ts";

test("ids are minted one by one, in order, with the tag's epoch", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  expect(await generateId(it, "orders")).toMatchObject({ id: 1n, epoch: 1n });
  expect(await generateId(it, "orders")).toMatchObject({ id: 2n, epoch: 1n });
});

test("several ids come as segments or one by one, and never twice", async () => {
  const it = await startTest();
  await createTag(it, "orders", { min: 10 });
  const seen = new Set<bigint>();
  for (const asList of [true, false, true]) {
    const answer = await call(it.ids, IdServiceService.generateIds, {
      tag: "orders",
      count: 25,
      asList,
    });
    const ids = asList ? answer.ids : idsOf(answer.segments);
    expect(asList ? answer.segments : answer.ids).toEqual([]);
    expect(ids).toHaveLength(25);
    for (const id of ids) seen.add(id);
  }
  expect(seen.size).toBe(75);
});

test("1,000 concurrent first calls on a cold tag of min 10 need few statements and see no error", async () => {
  const it = await startTest();
  await createTag(it, "cold", { min: 10 });
  const before = it.store.count();
  const answers = await Promise.all(
    Array.from({ length: 1_000 }, () => generateId(it, "cold", 60_000)),
  );
  expect(new Set(answers.map((answer) => answer.id)).size).toBe(1_000);
  expect(it.store.count() - before).toBeLessThanOrEqual(110);
});

test("a storm of unknown tags costs the store a bounded trickle of statements", async () => {
  const it = await startTest();
  const before = it.store.count("getTags");
  const startedAt = performance.now();
  const refusals = await Promise.all(
    Array.from({ length: 1_500 }, (_, at) => refusalOf(generateId(it, `ghost-${at}`, 60_000))),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  expect(new Set(refusals.map((refusal) => refusal.reason))).toEqual(new Set(["TAG_NOT_FOUND"]));
  // Batches start at least 50 ms apart.
  expect(it.store.count("getTags") - before).toBeLessThanOrEqual(1 + Math.ceil(seconds * 20));
  expect(refusals[0]?.message).toContain("idmint tag create ghost-0 --kind segment");
});

test("an absence is remembered, so that asking again costs no statement", async () => {
  const it = await startTest();
  await refusalOf(generateId(it, "ghost"));
  const before = it.store.count("getTags");
  for (let calls = 0; calls < 20; calls++) await refusalOf(generateId(it, "ghost"));
  expect(it.store.count("getTags")).toBe(before);
});

test("a tag made on another server is found within a second, though it was called absent before", async () => {
  const one = await startTest();
  const two = await startTest({ store: new MemoryStore({ database: one.store.database }) });
  await refusalOf(generateId(two, "late"));
  await createTag(one, "late");
  const madeAt = performance.now();
  await until(() =>
    generateId(two, "late").then(
      () => true,
      () => false,
    ),
  );
  expect(performance.now() - madeAt).toBeLessThan(1_000);
});

test("an advance on one server reaches the others within a second, without a statement per call", async () => {
  const one = await startTest();
  const two = await startTest({ store: new MemoryStore({ database: one.store.database }) });
  await createTag(one, "orders");
  expect((await generateId(two, "orders")).epoch).toBe(1n);
  await call(one.tags, TagServiceService.advanceTag, {
    name: "orders",
    floor: 50_000n,
    validateOnly: false,
    allowLargeRaise: false,
    etag: "",
  });
  const raisedAt = performance.now();
  // The server that was told obeys at once.
  expect(await generateId(one, "orders")).toMatchObject({ epoch: 2n });
  const grants = two.store.count("grant");
  await until(async () => (await generateId(two, "orders")).id > 50_000n);
  expect(performance.now() - raisedAt).toBeLessThan(1_000);
  expect(two.store.count("grant")).toBeLessThanOrEqual(grants + 2);
});

test("a paused tag is refused at once here and within a second elsewhere, and issues again when resumed", async () => {
  const one = await startTest();
  const two = await startTest({ store: new MemoryStore({ database: one.store.database }) });
  await createTag(one, "orders");
  await generateId(one, "orders");
  await generateId(two, "orders");
  await call(one.tags, TagServiceService.pauseTag, {
    name: "orders",
    etag: "",
    validateOnly: false,
  });
  expect(await refusalOf(generateId(one, "orders"))).toMatchObject({
    code: "FAILED_PRECONDITION",
    reason: "TAG_PAUSED",
  });
  await until(
    () =>
      generateId(two, "orders").then(
        () => false,
        () => true,
      ),
    1_000,
  );
  const { tag } = await call(one.tags, TagServiceService.resumeTag, {
    name: "orders",
    etag: "",
    validateOnly: false,
  });
  expect(tag?.epoch).toBe(3n);
  expect((await generateId(one, "orders")).epoch).toBe(3n);
  await until(
    () =>
      generateId(two, "orders").then(
        () => true,
        () => false,
      ),
    1_000,
  );
});

test("a deleted tag is gone, and one made again under its name continues above its floor", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const { id } = await generateId(it, "orders");
  await call(it.tags, TagServiceService.deleteTag, {
    name: "orders",
    etag: "",
    validateOnly: false,
  });
  expect(await refusalOf(generateId(it, "orders"))).toMatchObject({ reason: "TAG_NOT_FOUND" });
  await createTag(it, "orders");
  const again = await generateId(it, "orders");
  expect(again.id).toBeGreaterThan(id);
  expect(again.epoch).toBe(3n);
});

test("loads of several tags that begin together share one statement", async () => {
  const it = await startTest();
  const names = Array.from({ length: 50 }, (_, at) => `tag-${at}`);
  for (const name of names) await createTag(it, name);
  const before = it.store.count("grant");
  const lookups = it.store.count("getTags");
  await Promise.all(names.map((name) => generateId(it, name)));
  expect(it.store.count("getTags") - lookups).toBeLessThanOrEqual(3);
  expect(it.store.count("grant") - before).toBeLessThanOrEqual(5);
});

test("while ids are in memory a dead store is not noticed by callers", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  await generateId(it, "orders");
  it.store.faults = { before: storeIsDown };
  for (let calls = 0; calls < 500; calls++) await generateId(it, "orders");
  await until(() => it.events.some((event) => event.type === "store-lost"));
  const status = await call(it.nodes, NodeServiceService.getNodeStatus, {});
  expect(status).toMatchObject({ state: 3, store: { state: StoreState.UNREACHABLE } });
});

test("with nothing left a call is refused 50 ms before its deadline, with RetryInfo", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  await createTag(it, "orders");
  // The store hangs: the load is under way until it times out.
  await generateId(it, "orders");
  await createTag(it, "other");
  holdBack(store, "grant");
  const startedAt = performance.now();
  const refusal = await refusalOf(generateId(it, "other", 1_000));
  const tookMs = performance.now() - startedAt;
  expect(refusal).toMatchObject({ code: "UNAVAILABLE", reason: "SEGMENT_NOT_READY" });
  expect(refusal.retryAfterMs).toBeGreaterThan(0);
  expect(tookMs).toBeGreaterThan(900);
});

test("when the store is back, calls that wait are served at once", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  await createTag(it, "orders", { min: 10 });
  await call(it.ids, IdServiceService.generateIds, { tag: "orders", count: 10, asList: true });
  store.faults = { before: storeIsDown };
  await until(() => it.events.some((event) => event.type === "store-lost"));
  await sleep(1_000);
  const waiting = generateId(it, "orders", 5_000).catch((error: unknown) => error);
  store.faults = {};
  const backAt = performance.now();
  await until(() =>
    generateId(it, "orders", 2_000).then(
      () => true,
      () => false,
    ),
  );
  expect(performance.now() - backAt).toBeLessThan(2_000);
  await waiting;
});

test("a caller that goes away takes no id with it", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  await createTag(it, "orders", { min: 10 });
  await generateId(it, "orders");
  const release = holdBack(store, "grant");
  const gone = call(
    it.ids,
    IdServiceService.generateIds,
    { tag: "orders", count: 100, asList: false },
    150,
  );
  await refusalOf(gone);
  const issued = it.server.counters.issuedIds;
  release();
  await sleep(50);
  expect(it.server.counters.issuedIds).toBe(issued);
});

test("with too many tags in memory the least used go, and their unused ids go back to the store", async () => {
  const it = await startTest({ flags: { "limits-tags": "10" } });
  const names = Array.from({ length: 11 }, (_, at) => `tag-${at}`);
  for (const name of names) await createTag(it, name);
  const used = names.slice(0, 10);
  for (const name of used) await generateId(it, name);
  expect(await refusalOf(generateId(it, "tag-10"))).toMatchObject({ reason: "OVERLOADED" });
  // All but the first stay in use.
  await until(async () => {
    for (const name of used.slice(1)) await generateId(it, name);
    return it.store.database.rows.get("tag-0")?.floor === 1n;
  }, 5_000);
  expect((await generateId(it, "tag-10")).id).toBe(1n);
});

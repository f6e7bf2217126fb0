import {
  AllocateSegmentRequest,
  ReleaseSegmentRequest,
  IdServiceService,
  NodeServiceService,
  TagServiceService,
} from "@idmint/proto";
import { MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import {
  call,
  createTag,
  generateId,
  idsOf,
  refusalOf,
  startTest,
  type TestServer,
  until,
  holdBack,
} from "../../support.ts";

function allocate(
  { ids }: Pick<TestServer, "ids">,
  request: { tag: string; count: number; after?: bigint },
) {
  return call(ids, IdServiceService.allocateSegment, AllocateSegmentRequest.fromPartial(request));
}

function release(
  { ids }: Pick<TestServer, "ids">,
  request: { tag: string; releaseToken: string; unusedCount: number },
) {
  return call(
    ids,
    IdServiceService.releaseSegment,
    ReleaseSegmentRequest.fromPartial(request),
  ).then((response) => response.reclaimedCount);
}

const UNORDERED = 1;
const PER_CLIENT = 2;

test("an allocation is exactly what was asked for, and says how long it may be kept", async () => {
  const it = await startTest();
  await createTag(it, "orders", { min: 10, maxAgeS: 90n });
  const answer = await allocate(it, { tag: "orders", count: 25 });
  expect(idsOf(answer.segments)).toEqual(Array.from({ length: 25 }, (_, at) => BigInt(at + 1)));
  expect(answer).toMatchObject({ epoch: 1n, order: UNORDERED, maxAge: { seconds: 90n, nanos: 0 } });
  expect(answer.releaseToken).not.toBe("");
});

test("at the tag's end an allocation is what is left, and after that there is nothing", async () => {
  const it = await startTest();
  await createTag(it, "small", { ceiling: 10n });
  await generateId(it, "small");
  const answer = await allocate(it, { tag: "small", count: 100 });
  expect(idsOf(answer.segments)).toHaveLength(9);
  expect(await refusalOf(allocate(it, { tag: "small", count: 100 }))).toMatchObject({
    reason: "TAG_EXHAUSTED",
  });
});

test("ids at 2^63 − 1 are exact, and then the tag is exhausted", async () => {
  const it = await startTest();
  await createTag(it, "huge");
  await call(it.tags, TagServiceService.advanceTag, {
    name: "huge",
    floor: 2n ** 63n - 51n,
    validateOnly: false,
    allowLargeRaise: true,
    etag: "",
  });
  const listed = await call(it.ids, IdServiceService.generateIds, {
    tag: "huge",
    count: 49,
    asList: true,
  });
  expect(listed.ids.at(0)).toBe(2n ** 63n - 50n);
  expect((await generateId(it, "huge")).id).toBe(2n ** 63n - 1n);
  expect(await refusalOf(generateId(it, "huge"))).toMatchObject({ code: "OUT_OF_RANGE" });
});

test("what comes back is issued again, once, and nothing else twice", async () => {
  const it = await startTest();
  await createTag(it, "orders", { min: 10, max: 10 });
  const answer = await allocate(it, { tag: "orders", count: 10 });
  const { releaseToken } = answer;
  expect(await release(it, { tag: "orders", releaseToken, unusedCount: 4 })).toBe(4);
  expect(await release(it, { tag: "orders", releaseToken, unusedCount: 4 })).toBe(0);
  const seen = new Set(idsOf(answer.segments).slice(0, 6));
  for (let calls = 0; calls < 30; calls++) {
    const { id } = await generateId(it, "orders");
    expect(seen).not.toContain(id);
    seen.add(id);
  }
  for (const id of [7n, 8n, 9n, 10n]) expect(seen).toContain(id);
});

test("a token is worth nothing for another tag, another server, or an older epoch", async () => {
  const one = await startTest();
  const two = await startTest({ store: new MemoryStore({ database: one.store.database }) });
  await createTag(one, "orders");
  await createTag(one, "other");
  await generateId(one, "other");
  const token = async (): Promise<string> =>
    (await allocate(one, { tag: "orders", count: 10 })).releaseToken;
  expect(await release(one, { tag: "other", releaseToken: await token(), unusedCount: 1 })).toBe(0);
  expect(await release(two, { tag: "orders", releaseToken: await token(), unusedCount: 1 })).toBe(
    0,
  );
  const old = await token();
  await call(one.tags, TagServiceService.pauseTag, {
    name: "orders",
    etag: "",
    validateOnly: false,
  });
  await call(one.tags, TagServiceService.resumeTag, {
    name: "orders",
    etag: "",
    validateOnly: false,
  });
  expect(await release(one, { tag: "orders", releaseToken: old, unusedCount: 10 })).toBe(0);
});

test("a made-up token is no waste, and one of an older epoch is", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const { releaseToken } = await allocate(it, { tag: "orders", count: 10 });
  const wasted = async () => (await call(it.nodes, NodeServiceService.getNodeStatus, {})).wastedIds;
  for (const made of ["0.made-up", "made-up", `${releaseToken}x`]) {
    const request = { tag: "orders", releaseToken: made, unusedCount: 10_000_000 };
    expect(await release(it, request)).toBe(0);
  }
  expect(await wasted()).toBe(0n);
  expect(await release(it, { tag: "orders", releaseToken, unusedCount: 4 })).toBe(4);
  // Used tokens are forgotten.
  expect(await release(it, { tag: "orders", releaseToken, unusedCount: 4 })).toBe(0);
  expect(await wasted()).toBe(0n);
  const old = (await allocate(it, { tag: "orders", count: 10 })).releaseToken;
  const named = { name: "orders", etag: "", validateOnly: false };
  await call(it.tags, TagServiceService.pauseTag, named);
  await call(it.tags, TagServiceService.resumeTag, named);
  const before = await wasted();
  expect(await release(it, { tag: "orders", releaseToken: old, unusedCount: 3 })).toBe(0);
  expect((await wasted()) - before).toBe(3n);
});

test("more than was allocated cannot come back, and the token stays good", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const { releaseToken } = await allocate(it, { tag: "orders", count: 10 });
  const refusal = await refusalOf(release(it, { tag: "orders", releaseToken, unusedCount: 11 }));
  expect(refusal.fields.map((each) => each.field)).toEqual(["unused_count"]);
  expect(await release(it, { tag: "orders", releaseToken, unusedCount: 10 })).toBe(10);
});

test("ordered tags give no token, and every id is above what the caller names", async () => {
  const one = await startTest();
  const two = await startTest({ store: new MemoryStore({ database: one.store.database }) });
  await createTag(one, "ordered", { min: 10, max: 10, order: PER_CLIENT });
  let after = 0n;
  for (let calls = 0; calls < 20; calls++) {
    const server = calls % 2 === 0 ? one : two;
    const answer = await allocate(server, { tag: "ordered", count: 3, after });
    expect(answer).toMatchObject({ releaseToken: "", order: PER_CLIENT });
    const ids = idsOf(answer.segments);
    expect(ids).toHaveLength(3);
    for (const id of ids) {
      expect(id).toBeGreaterThan(after);
      after = id;
    }
  }
});

test("unordered tags take no notice of after", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const answer = await allocate(it, { tag: "orders", count: 1, after: 2n ** 62n });
  expect(idsOf(answer.segments)).toEqual([1n]);
});

test("a count above the tag's max comes in one piece", async () => {
  const it = await startTest();
  await createTag(it, "orders", { min: 10, max: 10 });
  await generateId(it, "orders");
  const answer = await allocate(it, { tag: "orders", count: 5_000_000 });
  expect(answer.segments.reduce((sum, segment) => sum + segment.count, 0)).toBe(5_000_000);
});

test("an allocation under way when the tag is advanced is not answered with old ids", async () => {
  const one = await startTest();
  await createTag(one, "orders", { min: 10, max: 10 });
  await generateId(one, "orders");
  const release = holdBack(one.store, "grant", "after");
  const waiting = allocate(one, { tag: "orders", count: 100 });
  await until(() => one.store.count("grant") >= 2);
  await call(one.tags, TagServiceService.advanceTag, {
    name: "orders",
    floor: 500_000n,
    validateOnly: false,
    allowLargeRaise: false,
    etag: "",
  });
  release();
  const answer = await waiting;
  expect(answer.epoch).toBe(2n);
  for (const id of idsOf(answer.segments)) expect(id).toBeGreaterThan(500_000n);
});

import {
  AdvanceTagRequest,
  CreateTagRequest,
  ListTagsRequest,
  Tag,
  UpdateTagRequest,
  TagServiceService,
} from "@idmint/proto";
import { expect, test } from "vitest";
import {
  call,
  createTag,
  generateId,
  refusalOf,
  startTest,
  type TestServer,
} from "../../support.ts";

function get({ tags }: TestServer, name: string): Promise<Tag> {
  return call(tags, TagServiceService.getTag, { name }).then(({ tag }) => tag ?? Tag.create());
}

function update({ tags }: TestServer, request: Parameters<typeof UpdateTagRequest.fromPartial>[0]) {
  return call(tags, TagServiceService.updateTag, UpdateTagRequest.fromPartial(request)).then(
    ({ tag }) => tag,
  );
}

function list({ tags }: TestServer, request: Parameters<typeof ListTagsRequest.fromPartial>[0]) {
  return call(tags, TagServiceService.listTags, ListTagsRequest.fromPartial(request));
}

function advance(
  { tags }: TestServer,
  request: Parameters<typeof AdvanceTagRequest.fromPartial>[0],
) {
  return call(tags, TagServiceService.advanceTag, AdvanceTagRequest.fromPartial(request));
}

test("a new tag has its defaults filled in", async () => {
  const it = await startTest();
  const tag = await createTag(it, "orders");
  expect(tag).toMatchObject({
    name: "orders",
    order: 1,
    ceiling: 2n ** 63n - 1n,
    floor: 0n,
    version: 0n,
    epoch: 1n,
    state: 1,
    kind: {
      value: {
        start: 1n,
        min: 1_000,
        max: 100_000_000,
        holdFor: { seconds: 900n, nanos: 0 },
        maxAge: { seconds: 600n, nanos: 0 },
      },
    },
  });
  expect(tag.etag).not.toBe("");
  expect(await get(it, "orders")).toEqual(tag);
});

test("making a tag again with the same settings answers the one that is there", async () => {
  const it = await startTest();
  const first = await createTag(it, "orders");
  await generateId(it, "orders");
  expect((await createTag(it, "orders")).createTime).toEqual(first.createTime);
  const other = await refusalOf(createTag(it, "orders", { ceiling: 9n }));
  expect(other).toMatchObject({ code: "ALREADY_EXISTS", metadata: { tag: "orders" } });
});

test("pages go through all tags once, in the order of their names", async () => {
  const it = await startTest();
  const names = Array.from({ length: 23 }, (_, at) => `tag-${String(at).padStart(2, "0")}`);
  for (const name of names.toReversed()) await createTag(it, name);
  await createTag(it, "other");
  const seen: string[] = [];
  let pageToken = "";
  do {
    const page = await list(it, { pageSize: 5, prefix: "tag-", pageToken });
    expect(page.tags.length).toBeLessThanOrEqual(5);
    seen.push(...page.tags.map((tag) => tag.name));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(seen).toEqual(names);
});

test("a page is never larger than the server's limit, whatever was asked for", async () => {
  const it = await startTest();
  const kind = { kind: "uuid", version: 4 } as const;
  const settings = { description: "", order: "UNORDERED", ceiling: 1n, kind } as const;
  for (let at = 0; at < 1_002; at++) await it.store.createTag({ ...settings, name: `t${at}` });
  for (const pageSize of [1_000, 1_001, 2 ** 31 - 1]) {
    const page = await list(it, { pageSize });
    expect(page.tags).toHaveLength(1_000);
    expect((await list(it, { pageSize, pageToken: page.nextPageToken })).tags).toHaveLength(2);
  }
  expect((await list(it, {})).tags).toHaveLength(50);
});

test("a page token belongs to its list", async () => {
  const it = await startTest();
  for (const name of ["a", "b", "c"]) await createTag(it, name);
  const { nextPageToken: pageToken } = await list(it, { pageSize: 1 });
  for (const other of [{ prefix: "a" }, { showDeleted: true }]) {
    const refusal = await refusalOf(list(it, { pageToken, ...other }));
    expect(refusal.fields.map((each) => each.field)).toEqual(["page_token"]);
  }
});

test("deleted tags are listed only when asked for", async () => {
  const it = await startTest();
  await createTag(it, "a");
  await createTag(it, "b");
  await call(it.tags, TagServiceService.deleteTag, { name: "a", etag: "", validateOnly: false });
  expect((await list(it, {})).tags.map((tag) => tag.name)).toEqual(["b"]);
  const all = await list(it, { showDeleted: true });
  expect(all.tags.map((tag) => [tag.name, tag.state])).toEqual([
    ["a", 3],
    ["b", 1],
  ]);
});

test("an update changes what its mask names and nothing else", async () => {
  const it = await startTest();
  await createTag(it, "orders", { min: 10 });
  const kind = { $case: "segment" as const, value: { min: 77, max: 99_999 } };
  const tag = await update(it, {
    tag: { name: "orders", description: "ignored", kind },
    updateMask: ["segment.min", "segment.max"],
  });
  expect(tag).toMatchObject({ description: "", kind: { value: { min: 77, max: 99_999 } } });
  const reset = await update(it, { tag: { name: "orders" }, updateMask: ["segment.min"] });
  expect(reset).toMatchObject({ kind: { value: { min: 1_000, max: 99_999 } } });
});

test("a wide path stands for all those below it, and * for all that the tag has", async () => {
  const it = await startTest();
  const made = await createTag(it, "orders", { min: 10, maxAgeS: 60n });
  const value = { min: 77, max: 99_999 };
  const parent = await update(it, {
    tag: { name: "orders", description: "ignored", kind: { $case: "segment", value } },
    updateMask: ["segment"],
  });
  // What was left empty has its default again.
  const whole = { ...value, start: 1n, maxAge: { seconds: 600n }, holdFor: { seconds: 900n } };
  expect(parent).toMatchObject({ description: "", kind: { value: whole } });
  const all = await update(it, {
    tag: { ...made, description: "everything", ceiling: 5_000n, etag: "" },
    updateMask: ["*"],
  });
  expect(all).toMatchObject({ description: "everything", ceiling: 5_000n, kind: made.kind! });
  const withoutKind = update(it, { tag: { name: "orders" }, updateMask: ["*"] });
  expect((await refusalOf(withoutKind)).fields).toMatchObject([{ field: "tag.kind" }]);
  const otherParent = update(it, { tag: { name: "orders" }, updateMask: ["sequence"] });
  expect((await refusalOf(otherParent)).fields).toMatchObject([{ field: "update_mask" }]);
});

test("a tag of any kind that is read and sent back as it was stays as it is", async () => {
  const it = await startTest();
  const kinds = [
    { $case: "segment", value: {} },
    { $case: "sequence", value: { period: 1, timeZone: "UTC" } },
    { $case: "snowflake", value: { layout: { timeBits: 41, sequenceBits: 12, workerBits: 3 } } },
    { $case: "uuid", value: { version: 5, namespace: "DNS" } },
    { $case: "objectId", value: {} },
  ] as const;
  for (const kind of kinds) {
    const request = CreateTagRequest.fromPartial({ tag: { name: kind.$case, kind } });
    const { tag } = await call(it.tags, TagServiceService.createTag, request);
    const { etag: _, updateTime: __, ...settings } = tag!;
    expect(await update(it, { tag: tag!, updateMask: ["*"] })).toMatchObject(settings);
    const described = { ...settings, description: "d" };
    expect(await update(it, { tag: described, updateMask: ["*"] })).toMatchObject({
      description: "d",
      kind: tag!.kind!,
    });
  }
});

test("a wide path drops no value in silence: what never changes must be as it is", async () => {
  const it = await startTest();
  const create = (tag: object) =>
    call(it.tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag }));
  await create({ name: "s", kind: { $case: "sequence", value: {} } });
  await create({ name: "u", kind: { $case: "uuid", value: { version: 4 } } });
  await create({ name: "f", kind: { $case: "segment", value: {} }, format: { template: "A{id}" } });
  const cases = [
    [{ name: "s", kind: { $case: "segment", value: {} } }, "*", "tag.kind"],
    [
      { name: "s", kind: { $case: "sequence", value: { backend: 2 } } },
      "sequence",
      "tag.sequence.backend",
    ],
    [{ name: "u", kind: { $case: "uuid", value: { version: 7 } } }, "*", "tag.uuid.version"],
    [
      { name: "f", kind: { $case: "segment", value: {} }, format: { template: "B{id}" } },
      "*",
      "tag.format.template",
    ],
    [
      { name: "s", kind: { $case: "sequence", value: {} }, unguessable: { keyId: 1 } },
      "*",
      "tag.unguessable",
    ],
  ] as const;
  for (const [tag, path, field] of cases) {
    const refusal = await refusalOf(update(it, { tag, updateMask: [path] }));
    expect(refusal).toMatchObject({ code: "FAILED_PRECONDITION", metadata: { field } });
    expect(refusal.message).toContain(field);
  }
  expect(await get(it, "f")).toMatchObject({ format: { template: "A{id}" } });
});

test("what is immutable may change until the first id, and may be written as it is after", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const raised = await update(it, {
    tag: {
      name: "orders",
      ceiling: 100n,
      order: 2,
      kind: { $case: "segment", value: { start: 50n } },
    },
    updateMask: ["ceiling", "order", "segment.start"],
  });
  expect(raised).toMatchObject({ ceiling: 100n, order: 2 });
  expect((await generateId(it, "orders")).id).toBe(50n);
  const same = { tag: { name: "orders", ceiling: 100n }, updateMask: ["ceiling"] };
  expect(await update(it, same)).toMatchObject({ ceiling: 100n });
  const other = { tag: { name: "orders", ceiling: 101n }, updateMask: ["ceiling"] };
  expect(await refusalOf(update(it, other))).toMatchObject({
    code: "FAILED_PRECONDITION",
    reason: "FIELD_IMMUTABLE",
    metadata: { tag: "orders" },
  });
});

test("an etag is refused once somebody else was faster, and without one updates do not lose each other", async () => {
  const it = await startTest();
  const { etag } = await createTag(it, "orders");
  await update(it, {
    tag: { name: "orders", description: "one", etag },
    updateMask: ["description"],
  });
  const late = update(it, {
    tag: { name: "orders", description: "two", etag },
    updateMask: ["description"],
  });
  expect(await refusalOf(late)).toMatchObject({ code: "ABORTED", reason: "ETAG_MISMATCH" });
  // Right in each order of the updates, which nobody promises.
  const value = { min: 5, max: 5_000 };
  await Promise.all([
    update(it, {
      tag: { name: "orders", kind: { $case: "segment", value } },
      updateMask: ["segment.min"],
    }),
    update(it, {
      tag: { name: "orders", kind: { $case: "segment", value } },
      updateMask: ["segment.max"],
    }),
    update(it, { tag: { name: "orders", description: "three" }, updateMask: ["description"] }),
  ]);
  expect(await get(it, "orders")).toMatchObject({ description: "three", kind: { value } });
});

test("an advance raises the floor once, says when the last old id can be gone, and never lowers it", async () => {
  const it = await startTest();
  await createTag(it, "orders", { maxAgeS: 60n });
  const request = { name: "orders", floor: 5_000n };
  const planned = await advance(it, { ...request, validateOnly: true });
  expect(planned).toMatchObject({ raised: true, tag: { floor: 5_000n } });
  expect((await get(it, "orders")).floor).toBe(0n);
  const now = Date.now();
  const done = await advance(it, request);
  expect(done).toMatchObject({ raised: true, tag: { floor: 5_000n, epoch: 2n } });
  const effectiveIn = Number(done.effectiveTime) - now;
  expect(effectiveIn).toBeGreaterThanOrEqual(60_000);
  expect(effectiveIn).toBeLessThan(63_000);
  expect(await advance(it, request)).toMatchObject({ raised: false, tag: { epoch: 2n } });
  expect(await advance(it, { ...request, floor: 10n })).toMatchObject({ raised: false });
  expect((await generateId(it, "orders")).id).toBe(5_001n);
});

test("a raise by more than 10^12 must be meant", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const request = { name: "orders", floor: 10n ** 12n + 1n };
  expect((await refusalOf(advance(it, request))).fields.map((each) => each.field)).toEqual([
    "floor",
  ]);
  expect(await advance(it, { ...request, allowLargeRaise: true })).toMatchObject({ raised: true });
});

test("pausing twice changes nothing the second time, nor does resuming", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const pause = () =>
    call(it.tags, TagServiceService.pauseTag, { name: "orders", etag: "", validateOnly: false });
  const resume = () =>
    call(it.tags, TagServiceService.resumeTag, { name: "orders", etag: "", validateOnly: false });
  expect((await pause()).tag).toMatchObject({ state: 2, epoch: 2n });
  expect((await pause()).tag).toMatchObject({ state: 2, epoch: 2n });
  expect((await resume()).tag).toMatchObject({ state: 1, epoch: 3n });
  expect((await resume()).tag).toMatchObject({ state: 1, epoch: 3n });
});

test("every name and value of a description survives the way", async () => {
  const it = await startTest();
  const description = "ids of “orders” ✓ 訂單";
  const request = CreateTagRequest.fromPartial({
    tag: { name: "A.b_c:d-9", description, kind: { $case: "segment", value: {} } },
  });
  const { tag } = await call(it.tags, TagServiceService.createTag, request);
  expect(tag).toMatchObject({ name: "A.b_c:d-9", description });
});

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { decodeObjectId, decodeUuid } from "@idmint/core";
import {
  CreateTagRequest,
  type DecodeIdRequest,
  GenerateIdsRequest,
  IdServiceService,
  PeriodUnit,
  StreamIdsRequest,
  type StreamIdsResponse,
  Tag,
  TagServiceService,
  UpdateTagRequest,
} from "@idmint/proto";
import { MemoryStore } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { call, generateId, refusalOf, startTest, type TestServer } from "../../support.ts";

const SEGMENT: Tag["kind"] = {
  $case: "segment",
  value: { start: 0n, min: 0, max: 0, holdFor: undefined, maxAge: undefined, tinyidStep: 0 },
};

function keyFile(byte: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-key-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, "key");
  writeFileSync(file, byte.repeat(32));
  chmodSync(file, 0o400);
  return file;
}

async function create(it: TestServer, tag: Parameters<typeof Tag.fromPartial>[0]): Promise<Tag> {
  const request = CreateTagRequest.fromPartial({ tag });
  const answer = await call(it.tags, TagServiceService.createTag, request);
  return answer.tag ?? Tag.create();
}

function generateMany(it: TestServer, tag: string, count: number, asList = true) {
  const request = GenerateIdsRequest.fromPartial({ tag, count, asList });
  return call(it.ids, IdServiceService.generateIds, request);
}

function decode(it: TestServer, tag: string, value: DecodeIdRequest["value"]) {
  return call(it.ids, IdServiceService.decodeId, { tag, value });
}

const textOf = (value: string): DecodeIdRequest["value"] => ({ $case: "text", value });
const idOf = (value: bigint): DecodeIdRequest["value"] => ({ $case: "id", value });

function streamed(it: TestServer, request: object): Promise<StreamIdsResponse> {
  return new Promise((resolve, reject) => {
    const stream = it.ids.streamIds();
    stream.on("data", (answer: StreamIdsResponse) => {
      stream.end();
      resolve(answer);
    });
    stream.on("error", reject);
    stream.write(StreamIdsRequest.fromPartial(request));
  });
}

test("a stream answers what a call of its own would, with names and ends of periods", async () => {
  const it = await startTest();
  const named = { version: 5, namespace: "DNS" };
  await create(it, { name: "urls", kind: { $case: "uuid", value: named } });
  const { text } = await call(it.ids, IdServiceService.generateId, { tag: "urls", name: "a.b" });
  expect(await streamed(it, { tag: "urls", name: "a.b" })).toMatchObject({
    result: { $case: "one", value: { text } },
  });
  for (const request of [{ name: "" }, { name: "a.b", count: 2 }]) {
    const { result } = await streamed(it, { tag: "urls", ...request });
    expect(result).toMatchObject({ $case: "error", value: { code: 3 } });
  }
  const daily = { period: PeriodUnit.DAY, timeZone: "Asia/Shanghai" };
  await create(it, { name: "bills", kind: { $case: "sequence", value: daily } });
  const first = await call(it.ids, IdServiceService.generateId, { tag: "bills", name: "" });
  const { result } = await streamed(it, { tag: "bills" });
  expect(result).toEqual({
    $case: "one",
    value: { ...first, id: 2n, text: first.text.replace(/1$/, "2") },
  });
  expect(first.periodEndTime).toBeInstanceOf(Date);
  const many = (await streamed(it, { tag: "bills", count: 2 })).result;
  expect(many).toMatchObject({
    $case: "many",
    value: { period: first.period, periodEndTime: first.periodEndTime },
  });
});

test("a format makes texts of ids, in every way they are asked for", async () => {
  const it = await startTest();
  const format = { template: "INV{id:8}{luhn}" };
  const tag = await create(it, { name: "invoices", kind: SEGMENT, ceiling: 99_999_999n, format });
  expect(tag.format).toEqual(format);
  expect(await generateId(it, "invoices")).toMatchObject({
    id: 0n,
    text: "INV000000018",
    epoch: 1n,
  });
  expect(await generateMany(it, "invoices", 2)).toMatchObject({
    ids: [],
    segments: [],
    texts: ["INV000000026", "INV000000034"],
  });
  expect(await streamed(it, { call: 7, tag: "invoices" })).toMatchObject({
    call: 7,
    result: { $case: "one", value: { id: 0n, text: "INV000000042" } },
  });
  expect(await streamed(it, { tag: "invoices", count: 2 })).toMatchObject({
    result: { $case: "many", value: { segments: [], texts: ["INV000000059", "INV000000067"] } },
  });
  expect(await decode(it, "invoices", textOf("INV000000042"))).toMatchObject({
    id: 4n,
    parts: [
      { name: "", value: "INV" },
      { name: "id", value: "00000004" },
      { name: "luhn", value: "2" },
    ],
  });
  expect((await refusalOf(decode(it, "invoices", textOf("INV000000043")))).fields).toMatchObject([
    {
      field: "text",
      description: "at position 12: the check digit does not fit the text before it",
    },
  ]);
  expect(await refusalOf(decode(it, "invoices", idOf(4n)))).toMatchObject({
    fields: [
      { field: "id", description: "must be empty: the ids of this tag are text, so send text" },
    ],
  });
});

test("texts are asked for one by one, and their numbers are not handed out", async () => {
  const it = await startTest();
  await create(it, { name: "orders", kind: SEGMENT, format: { template: "order_{id:radix58}" } });
  expect(await refusalOf(generateMany(it, "orders", 2, false))).toMatchObject({
    code: "INVALID_ARGUMENT",
    fields: [{ field: "as_list", description: "must be true: the ids of this tag are text" }],
  });
  const allocate = call(it.ids, IdServiceService.allocateSegment, {
    tag: "orders",
    count: 10,
    after: 0n,
    instance: "",
  });
  expect(await refusalOf(allocate)).toMatchObject({
    reason: "WRONG_KIND",
    metadata: { tag: "orders", kind: "segment", text: "true", max_count: "10000" },
  });
  const named = call(it.ids, IdServiceService.generateId, { tag: "orders", name: "x" });
  expect((await refusalOf(named)).fields).toMatchObject([
    { field: "name", description: "must be empty: the ids of this tag have no names" },
  ]);
});

test.each([
  ["outgrows its padding", { format: { template: "{id:8}" } }, "tag.format.template", "widen it"],
  ["is none", { format: { template: "{id" } }, "tag.format.template", "at position 1"],
  ["shows a time", { format: { template: "{yyyy}{id}" } }, "tag.format.template", "snowflake"],
])("a template that %s is refused when the tag is made", async (_, settings, field, what) => {
  const it = await startTest();
  const refusal = await refusalOf(create(it, { name: "t", kind: SEGMENT, ...settings }));
  expect(refusal.reason).toBe("INVALID_FORMAT");
  expect(refusal.fields).toHaveLength(1);
  expect(refusal.fields[0]?.field).toBe(field);
  expect(refusal.fields[0]?.description).toContain(what);
});

test("sequences with periods show them in the format", async () => {
  const it = await startTest();
  const kind: Tag["kind"] = {
    $case: "sequence",
    value: {
      start: 0n,
      keepFor: undefined,
      backend: 0,
      step: 0,
      maxSkip: 0,
      redisServer: "",
      period: 1,
      timeZone: "UTC",
    },
  };
  const format = { template: "{period:yyyyMMdd}{id:6}" };
  await create(it, { name: "daily", kind, ceiling: 999_999n, format });
  const { text, id, period } = await generateId(it, "daily");
  expect([text, id]).toEqual([`${period.replaceAll("-", "")}000001`, 0n]);
  const wrong = create(it, { name: "d2", kind, ceiling: 999_999n, format: { template: "{id:6}" } });
  expect((await refusalOf(wrong)).fields[0]?.description).toContain("must show the period");
});

test("unguessable ids: each once, by the key in front, and back to their numbers", async () => {
  const it = await startTest({
    flags: { "unguessable-keys": `1=${keyFile("a1")},2=${keyFile("b2")}` },
  });
  const ceiling = 99_999_999n;
  const unguessable = { keyId: 1, keyDigits: 0 };
  const made = await create(it, { name: "coupons", kind: SEGMENT, ceiling, unguessable });
  expect(made.unguessable).toEqual({ keyId: 1, keyDigits: 1 });
  const { ids } = await generateMany(it, "coupons", 1_000);
  expect(new Set(ids).size).toBe(1_000);
  expect(ids.every((id) => id > 100_000_000n && id <= 199_999_999n)).toBe(true);
  expect(await decode(it, "coupons", idOf(ids[41]!))).toMatchObject({ id: 42n, keyId: 1 });

  const updateMask = ["unguessable.key_id"];
  const update = UpdateTagRequest.fromPartial({
    tag: { name: "coupons", unguessable: { keyId: 2 } },
    updateMask,
  });
  const { tag } = await call(it.tags, TagServiceService.updateTag, update);
  expect(tag?.unguessable).toEqual({ keyId: 2, keyDigits: 1 });
  const { id } = await generateId(it, "coupons");
  expect(id / 100_000_000n).toBe(2n);
  expect(await decode(it, "coupons", idOf(id))).toMatchObject({ id: 1_001n, keyId: 2 });
  expect(await decode(it, "coupons", idOf(ids[0]!))).toMatchObject({ id: 1n, keyId: 1 });
  // Made once more with the same settings, it is there already.
  const again = { name: "coupons", kind: SEGMENT, ceiling, unguessable: { keyId: 2 } };
  expect((await create(it, again)).unguessable).toEqual({ keyId: 2, keyDigits: 1 });

  expect(await refusalOf(generateMany(it, "coupons", 1_001))).toMatchObject({
    fields: [
      { field: "count", description: "must be at most 1000, got 1001; ask several times for more" },
    ],
  });
  const three = UpdateTagRequest.fromPartial({
    tag: { name: "coupons", unguessable: { keyId: 3 } },
    updateMask,
  });
  expect(await refusalOf(call(it.tags, TagServiceService.updateTag, three))).toMatchObject({
    code: "FAILED_PRECONDITION",
    reason: "KEY_UNKNOWN",
    metadata: { key_id: "3" },
  });
});

test("a server with another key under the number, or none, issues nothing", async () => {
  const store = new MemoryStore();
  const first = await startTest({ store, flags: { "unguessable-keys": `1=${keyFile("a1")}` } });
  const unguessable = { keyId: 1, keyDigits: 1 };
  await create(first, { name: "codes", kind: SEGMENT, ceiling: 99_999_999n, unguessable });
  await generateId(first, "codes");
  const other = await startTest({ store, flags: { "unguessable-keys": `1=${keyFile("ee")}` } });
  const refusal = await refusalOf(generateId(other, "codes"));
  expect(refusal).toMatchObject({ code: "FAILED_PRECONDITION", reason: "KEY_UNKNOWN" });
  expect(refusal.message).not.toContain("eeee");
  const none = await startTest({ store });
  expect((await refusalOf(generateId(none, "codes"))).reason).toBe("KEY_UNKNOWN");
  expect((await refusalOf(generateMany(none, "codes", 2))).reason).toBe("KEY_UNKNOWN");
});

test.each([1, 4, 6, 7])("UUIDs of version %i", async (version) => {
  const it = await startTest();
  const kind = { $case: "uuid", value: { version, namespace: "", domain: 0, number: 0 } } as const;
  await create(it, { name: "u", kind });
  const { text, id } = await generateId(it, "u");
  expect([decodeUuid(text)?.version, id]).toEqual([version, 0n]);
  const { texts } = await generateMany(it, "u", 500);
  expect(new Set([text, ...texts]).size).toBe(501);
  expect(await decode(it, "u", textOf(text))).toMatchObject({ uuidVersion: version, id: 0n });
});

test("UUIDs of names, and of numbers", async () => {
  const it = await startTest();
  const value = { version: 5, namespace: "DNS", domain: 0, number: 0 } as const;
  const tag = await create(it, { name: "named", kind: { $case: "uuid", value } });
  expect(tag.kind?.value).toMatchObject({ namespace: "6ba7b810-9dad-11d1-80b4-00c04fd430c8" });
  const name = "www.example.com";
  const { text } = await call(it.ids, IdServiceService.generateId, { tag: "named", name });
  expect(text).toBe("2ed6657d-e927-568b-95e1-2665a8aea6a2");
  expect((await refusalOf(generateId(it, "named"))).fields[0]?.field).toBe("name");
  expect((await refusalOf(generateMany(it, "named", 2))).fields[0]?.description).toContain(
    "GenerateId",
  );
  const dce = { version: 2, namespace: "", domain: 2, number: 1_000 } as const;
  await create(it, { name: "dce", kind: { $case: "uuid", value: dce } });
  expect((await generateId(it, "dce")).text).toMatch(/^000003e8-.{4}-2.{3}-..01-/);
  const allocate = call(it.ids, IdServiceService.allocateSegment, {
    tag: "dce",
    count: 10,
    after: 0n,
    instance: "",
  });
  const metadata = { tag: "dce", kind: "uuid", text: "true", version: "2", domain: "GROUP" };
  expect((await refusalOf(allocate)).metadata).toEqual({ ...metadata, number: "1000" });
});

test("ObjectIds", async () => {
  const it = await startTest();
  await create(it, { name: "o", kind: { $case: "objectId", value: { variant: 2 } } });
  const { texts } = await generateMany(it, "o", 500);
  expect(texts.toSorted()).toEqual(texts);
  const { time } = await decode(it, "o", textOf(texts[0]!));
  expect(time?.getTime()).toBe(decodeObjectId(texts[0]!));
});

test.each([
  ["version", { version: 8 }, "tag.uuid.version"],
  ["namespace", { version: 3 }, "tag.uuid.namespace"],
  ["namespace", { version: 4, namespace: "DNS" }, "tag.uuid.namespace"],
  ["number", { version: 4, number: 5 }, "tag.uuid.number"],
  ["domain", { version: 2, domain: 9 }, "tag.uuid.domain"],
])("a UUID tag with a wrong %s is refused", async (_, settings, field) => {
  const it = await startTest();
  const value = { namespace: "", domain: 0, number: 0, ...settings };
  const kind = { $case: "uuid", value } as Tag["kind"];
  expect((await refusalOf(create(it, { name: "u", kind }))).fields[0]?.field).toBe(field);
});

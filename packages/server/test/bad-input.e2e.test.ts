import { makeGenericClientConstructor, Metadata, type ServiceError } from "@grpc/grpc-js";
import {
  AdvanceTagRequest,
  AllocateSegmentRequest,
  CreateTagRequest,
  type DeepPartial,
  DeleteTagRequest,
  GenerateIdRequest,
  GenerateIdsRequest,
  GetNodeStatusRequest,
  GetNodeTimeRequest,
  GetTagRequest,
  ListTagsRequest,
  type MessageFns,
  PauseTagRequest,
  ReleaseSegmentRequest,
  ResumeTagRequest,
  UpdateTagRequest,
} from "@idmint/proto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startServer } from "../src/app.ts";
import { loadConfig } from "../src/config/load.ts";
import type { RunningServer } from "../src/main/running.ts";
import { MemoryStore } from "@idmint/testkit";
import { Refusal, refusalOf } from "./support.ts";
import { credentials } from "@grpc/grpc-js";

/** Calls of bytes, so that a case can send what no client would. */
const Raw = makeGenericClientConstructor({}, "raw");

let server: RunningServer;
let client: InstanceType<typeof Raw>;

beforeAll(async () => {
  const defaults = {
    "grpc.address": "127.0.0.1:0",
    "http.address": "127.0.0.1:0",
    "log.level": "silent",
  };
  server = await startServer(loadConfig({ defaults }), { store: new MemoryStore() });
  client = new Raw(server.grpcAddress, credentials.createInsecure());
  const segment = { $case: "segment" as const, value: {} };
  for (const tag of [
    { name: "orders", kind: segment },
    { name: "ordered", kind: segment, order: 2 as const },
    { name: "small", kind: segment, ceiling: 100n },
    { name: "issued", kind: segment },
    { name: "paused", kind: segment },
  ]) {
    await send("TagService/CreateTag", CreateTagRequest, { tag });
  }
  await send("IdService/GenerateId", GenerateIdRequest, { tag: "issued" });
  await send("IdService/GenerateId", GenerateIdRequest, { tag: "ordered" });
  await send("TagService/PauseTag", PauseTagRequest, { name: "paused" });
});

afterAll(async () => {
  client.close();
  await server.close();
});

function sendBytes(method: string, bytes: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      `/idmint.v1.${method}`,
      (value: Buffer) => value,
      (value: Buffer) => value,
      bytes,
      new Metadata(),
      { deadline: Date.now() + 5_000 },
      (error: ServiceError | null, value?: Buffer) => {
        if (error === null) resolve(value ?? Buffer.alloc(0));
        else reject(new Refusal(error));
      },
    );
  });
}

function send<T>(method: string, codec: MessageFns<T>, message: object): Promise<Buffer> {
  return sendBytes(
    method,
    Buffer.from(codec.encode(codec.fromPartial(message as DeepPartial<T>)).finish()),
  );
}

interface Case {
  readonly what: string;
  readonly send: () => Promise<Buffer>;
  readonly code: string;
  readonly reason: string;
  /** Every field that must be named; none: no BadRequest at all. */
  readonly fields: readonly string[];
}

const LONG = "a".repeat(129);
const MAX = 2n ** 63n - 1n;
const MIN = -(2n ** 63n);

function bad(what: string, answer: () => Promise<Buffer>, ...fields: string[]): Case {
  return { what, send: answer, code: "INVALID_ARGUMENT", reason: "INVALID_ARGUMENT", fields };
}

function refused(what: string, answer: () => Promise<Buffer>, code: string, reason: string): Case {
  return { what, send: answer, code, reason, fields: [] };
}

const generateId = (message: object) => () =>
  send("IdService/GenerateId", GenerateIdRequest, message);
const generateIds = (message: object) => () =>
  send("IdService/GenerateIds", GenerateIdsRequest, message);
const allocate = (message: object) => () =>
  send("IdService/AllocateSegment", AllocateSegmentRequest, message);
const release = (message: object) => () =>
  send("IdService/ReleaseSegment", ReleaseSegmentRequest, message);
const create = (tag?: object) => () =>
  send("TagService/CreateTag", CreateTagRequest, tag === undefined ? {} : { tag });
const createSegment = (value: object, more: object = {}) =>
  create({ name: "new", kind: { $case: "segment", value }, ...more });
const get = (name: string) => () => send("TagService/GetTag", GetTagRequest, { name });
const list = (message: object) => () => send("TagService/ListTags", ListTagsRequest, message);
const update = (message: object) => () => send("TagService/UpdateTag", UpdateTagRequest, message);
const advance = (message: object) => () =>
  send("TagService/AdvanceTag", AdvanceTagRequest, message);

const names: readonly (readonly [string, string])[] = [
  ["empty", ""],
  ["too long", LONG],
  ["with a space", "a b"],
  ["with a slash", "a/b"],
  ["beginning with a dot", ".a"],
  ["not ASCII", "größe"],
  ["with a NUL", "a\0b"],
  ["with a line break", "a\n"],
];

const cases: readonly Case[] = [
  ...names.map(([what, tag]) => bad(`GenerateId, name ${what}`, generateId({ tag }), "tag")),
  refused("GenerateId, unknown tag", generateId({ tag: "ghost" }), "NOT_FOUND", "TAG_NOT_FOUND"),
  refused("GenerateId, another case", generateId({ tag: "Orders" }), "NOT_FOUND", "TAG_NOT_FOUND"),
  refused("GenerateId, paused", generateId({ tag: "paused" }), "FAILED_PRECONDITION", "TAG_PAUSED"),
  bad("GenerateIds, no count", generateIds({ tag: "orders" }), "count"),
  bad("GenerateIds, negative count", generateIds({ tag: "orders", count: -1 }), "count"),
  bad(
    "GenerateIds, one segment id too many",
    generateIds({ tag: "orders", count: 10_000_001 }),
    "count",
  ),
  bad(
    "GenerateIds, one listed id too many",
    generateIds({ tag: "orders", count: 10_001, asList: true }),
    "count",
  ),
  bad("GenerateIds, everything wrong", generateIds({ tag: "", count: 0 }), "tag", "count"),
  refused(
    "GenerateIds, more than the tag has left",
    generateIds({ tag: "small", count: 101 }),
    "OUT_OF_RANGE",
    "TAG_EXHAUSTED",
  ),
  bad("AllocateSegment, no count", allocate({ tag: "orders" }), "count"),
  bad(
    "AllocateSegment, count over the limit",
    allocate({ tag: "orders", count: 2 ** 31 - 1 }),
    "count",
  ),
  bad(
    "AllocateSegment, negative after",
    allocate({ tag: "ordered", count: 1, after: -1n }),
    "after",
  ),
  bad("AllocateSegment, lowest after", allocate({ tag: "ordered", count: 1, after: MIN }), "after"),
  bad(
    "AllocateSegment, after above the floor",
    allocate({ tag: "ordered", count: 1, after: MAX }),
    "after",
  ),
  bad(
    "AllocateSegment, bad name and after",
    allocate({ tag: "?", count: 1, after: -1n }),
    "tag",
    "after",
  ),
  refused(
    "AllocateSegment, unknown tag",
    allocate({ tag: "ghost", count: 1 }),
    "NOT_FOUND",
    "TAG_NOT_FOUND",
  ),
  bad("ReleaseSegment, nothing set", release({}), "tag", "release_token", "unused_count"),
  bad("ReleaseSegment, no token", release({ tag: "orders", unusedCount: 1 }), "release_token"),
  bad(
    "ReleaseSegment, token too long",
    release({ tag: "orders", releaseToken: "x".repeat(65), unusedCount: 1 }),
    "release_token",
  ),
  bad(
    "ReleaseSegment, negative count",
    release({ tag: "orders", releaseToken: "x", unusedCount: -5 }),
    "unused_count",
  ),
  bad("CreateTag, no tag", create(), "tag"),
  bad("CreateTag, empty tag", create({}), "tag.name", "tag.kind"),
  bad("CreateTag, no kind", create({ name: "new" }), "tag.kind"),
  bad("CreateTag, bad name", createSegment({}, { name: "-" }), "tag.name"),
  bad(
    "CreateTag, long description",
    createSegment({}, { description: "x".repeat(257) }),
    "tag.description",
  ),
  bad("CreateTag, strict order", createSegment({}, { order: 3 }), "tag.order"),
  bad("CreateTag, unknown order", createSegment({}, { order: 9 }), "tag.order"),
  bad("CreateTag, negative ceiling", createSegment({}, { ceiling: -1n }), "tag.ceiling"),
  bad("CreateTag, negative start", createSegment({ start: -1n }), "tag.segment.start"),
  bad(
    "CreateTag, start above the ceiling",
    createSegment({ start: 11n }, { ceiling: 10n }),
    "tag.segment.start",
  ),
  bad("CreateTag, negative min", createSegment({ min: -1 }), "tag.segment.min"),
  bad("CreateTag, min above max", createSegment({ min: 11, max: 10 }), "tag.segment.min"),
  bad("CreateTag, the default min above max", createSegment({ max: 10 }), "tag.segment.min"),
  bad("CreateTag, max too large", createSegment({ max: 1_000_000_001 }), "tag.segment.max"),
  bad("CreateTag, negative max", createSegment({ max: -1 }), "tag.segment.max"),
  bad(
    "CreateTag, hold_for too short",
    createSegment({ holdFor: { seconds: 0n, nanos: 999_000_000 } }),
    "tag.segment.hold_for",
  ),
  bad(
    "CreateTag, hold_for too long",
    createSegment({ holdFor: { seconds: 86_401n, nanos: 0 } }),
    "tag.segment.hold_for",
  ),
  bad(
    "CreateTag, hold_for of huge seconds",
    createSegment({ holdFor: { seconds: MAX, nanos: 0 } }),
    "tag.segment.hold_for",
  ),
  bad(
    "CreateTag, max_age of half a millisecond",
    createSegment({ maxAge: { seconds: 5n, nanos: 500_000 } }),
    "tag.segment.max_age",
  ),
  bad(
    "CreateTag, negative max_age",
    createSegment({ maxAge: { seconds: -5n, nanos: 0 } }),
    "tag.segment.max_age",
  ),
  bad(
    "CreateTag, output-only fields",
    createSegment(
      {},
      {
        floor: 1n,
        version: 1n,
        epoch: 1n,
        state: 1,
        createTime: new Date(),
        updateTime: new Date(),
        etag: "x",
      },
    ),
    "tag.floor",
    "tag.version",
    "tag.epoch",
    "tag.state",
    "tag.create_time",
    "tag.update_time",
    "tag.etag",
  ),
  bad(
    "CreateTag, several faults at once",
    createSegment({ min: -1, start: -1n }, { name: "", order: 3, ceiling: -1n, floor: 5n }),
    "tag.name",
    "tag.order",
    "tag.ceiling",
    "tag.segment.start",
    "tag.segment.min",
    "tag.floor",
  ),
  refused(
    "CreateTag, there with other settings",
    create({ name: "orders", ceiling: 5n, kind: { $case: "segment", value: {} } }),
    "ALREADY_EXISTS",
    "TAG_EXISTS",
  ),
  bad("GetTag, no name", get(""), "name"),
  bad("GetTag, bad name", get("a b"), "name"),
  refused("GetTag, unknown", get("ghost"), "NOT_FOUND", "TAG_NOT_FOUND"),
  bad("ListTags, negative page", list({ pageSize: -1 }), "page_size"),
  bad("ListTags, page too large", list({ pageSize: 1_001 }), "page_size"),
  bad("ListTags, made-up token", list({ pageToken: "abc" }), "page_token"),
  bad("ListTags, endless token", list({ pageToken: "a".repeat(10_000) }), "page_token"),
  bad("ListTags, bad prefix", list({ prefix: "a b" }), "prefix"),
  bad(
    "ListTags, everything wrong",
    list({ pageSize: -1, pageToken: "x", prefix: "?" }),
    "page_size",
    "page_token",
    "prefix",
  ),
  bad("UpdateTag, no tag", update({ updateMask: ["description"] }), "tag"),
  bad("UpdateTag, no mask", update({ tag: { name: "orders" } }), "update_mask"),
  bad("UpdateTag, no name and no mask", update({ tag: {} }), "tag.name", "update_mask"),
  bad(
    "UpdateTag, unknown path",
    update({ tag: { name: "orders" }, updateMask: ["colour"] }),
    "update_mask",
  ),
  bad(
    "UpdateTag, output-only path",
    update({ tag: { name: "orders" }, updateMask: ["floor"] }),
    "update_mask",
  ),
  bad(
    "UpdateTag, a thousand paths",
    update({ tag: { name: "orders" }, updateMask: Array(1_000).fill("x") }),
    "update_mask",
  ),
  bad(
    "UpdateTag, value out of range",
    update({
      tag: { name: "orders", kind: { $case: "segment", value: { max: -1 } } },
      updateMask: ["segment.max"],
    }),
    "tag.segment.max",
  ),
  bad(
    "UpdateTag, strict order",
    update({ tag: { name: "orders", order: 3 }, updateMask: ["order"] }),
    "tag.order",
  ),
  refused(
    "UpdateTag, immutable after the first id",
    update({ tag: { name: "issued", ceiling: 7_000n }, updateMask: ["ceiling"] }),
    "FAILED_PRECONDITION",
    "FIELD_IMMUTABLE",
  ),
  refused(
    "UpdateTag, stale etag",
    update({
      tag: { name: "orders", etag: "nonsense", description: "x" },
      updateMask: ["description"],
    }),
    "ABORTED",
    "ETAG_MISMATCH",
  ),
  refused(
    "UpdateTag, unknown tag",
    update({ tag: { name: "ghost" }, updateMask: ["description"] }),
    "NOT_FOUND",
    "TAG_NOT_FOUND",
  ),
  bad("DeleteTag, no name", () => send("TagService/DeleteTag", DeleteTagRequest, {}), "name"),
  refused(
    "DeleteTag, stale etag",
    () => send("TagService/DeleteTag", DeleteTagRequest, { name: "orders", etag: "r0" }),
    "ABORTED",
    "ETAG_MISMATCH",
  ),
  bad("AdvanceTag, nothing set", advance({}), "name", "floor"),
  bad("AdvanceTag, negative floor", advance({ name: "orders", floor: MIN }), "floor"),
  bad("AdvanceTag, floor above the ceiling", advance({ name: "small", floor: 101n }), "floor"),
  bad("AdvanceTag, large raise", advance({ name: "orders", floor: 10n ** 13n }), "floor"),
  refused(
    "AdvanceTag, unknown tag",
    advance({ name: "ghost", floor: 1n }),
    "NOT_FOUND",
    "TAG_NOT_FOUND",
  ),
  bad("PauseTag, no name", () => send("TagService/PauseTag", PauseTagRequest, {}), "name"),
  refused(
    "ResumeTag, unknown tag",
    () => send("TagService/ResumeTag", ResumeTagRequest, { name: "ghost" }),
    "NOT_FOUND",
    "TAG_NOT_FOUND",
  ),
  ...[
    "IdService/GenerateId",
    "IdService/GenerateIds",
    "IdService/AllocateSegment",
    "IdService/ReleaseSegment",
    "TagService/CreateTag",
    "TagService/GetTag",
    "TagService/ListTags",
    "TagService/UpdateTag",
    "TagService/DeleteTag",
    "TagService/AdvanceTag",
    "TagService/PauseTag",
    "TagService/ResumeTag",
    "NodeService/GetNodeStatus",
    "NodeService/GetNodeTime",
  ].map((method) =>
    bad(`${method}, bytes that are no message`, () =>
      sendBytes(method, Buffer.from([0x0a, 0xff, 0x01])),
    ),
  ),
];

test.each(cases)("$what → $code $reason", async ({ send: answer, code, reason, fields }) => {
  const refusal = await refusalOf(answer());
  expect(refusal).toMatchObject({ code, reason, domain: "idmint" });
  expect(refusal.fields.map((each) => each.field)).toEqual(fields);
  expect(refusal.message.startsWith(`${reason}: `)).toBe(true);
  for (const { description } of refusal.fields) expect(description.length).toBeGreaterThan(10);
});

test("a method nobody knows is UNIMPLEMENTED", async () => {
  const refusal = await refusalOf(sendBytes("IdService/GenerateWishes", Buffer.alloc(0)));
  expect(refusal.code).toBe("UNIMPLEMENTED");
});

test("a message of more than 64 KiB is refused before it is read", async () => {
  const refusal = await refusalOf(
    send("IdService/GenerateId", GenerateIdRequest, { tag: "a".repeat(100_000) }),
  );
  expect(refusal.code).toBe("RESOURCE_EXHAUSTED");
});

test("what a node is asked takes no field, and unknown fields are ignored", async () => {
  await send("NodeService/GetNodeStatus", GetNodeStatusRequest, {});
  await send("NodeService/GetNodeTime", GetNodeTimeRequest, {});
  await sendBytes("NodeService/GetNodeTime", Buffer.from([0xf8, 0x07, 0x01]));
});

test("a kind that is missing is answered with the kinds there are", async () => {
  const { fields } = await refusalOf(create({ name: "new" })());
  expect(fields[0]?.description).toContain("segment");
});

import { makeGenericClientConstructor, Metadata, type ServiceError } from "@grpc/grpc-js";
import {
  AdvanceTagRequest,
  AllocateSegmentRequest,
  CreateTagRequest,
  DecodeIdRequest,
  type DeepPartial,
  DeleteTagRequest,
  GenerateIdRequest,
  GenerateIdsRequest,
  GetNodeStatusRequest,
  GetNodeTimeRequest,
  GetTagRequest,
  ListPeriodsRequest,
  ListTagsRequest,
  type MessageFns,
  MoveTagRequest,
  PauseTagRequest,
  ReleaseSegmentRequest,
  ResumeTagRequest,
  UpdateTagRequest,
} from "@idmint/proto";
import { CODE_OF_REASON, type Reason } from "@idmint/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startServer } from "../../src/main/app.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { RunningServer } from "../../src/main/running.ts";
import { serverEnv, MemoryStore } from "@idmint/testkit";
import { Refusal, refusalOf } from "../support.ts";
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
  server = await startServer(loadConfig({ env: serverEnv(), defaults }), {
    store: new MemoryStore(),
  });
  client = new Raw(server.grpcAddress, credentials.createInsecure());
  const segment = { $case: "segment" as const, value: {} };
  for (const tag of [
    { name: "orders", kind: segment },
    { name: "ordered", kind: segment, order: 2 as const },
    { name: "small", kind: segment, ceiling: 100n },
    { name: "issued", kind: segment },
    { name: "paused", kind: segment },
    { name: "bills", kind: { $case: "sequence" as const, value: {} } },
    {
      name: "daily",
      kind: { $case: "sequence" as const, value: { period: 1 as const, timeZone: "UTC" } },
    },
  ]) {
    await send("TagService/CreateTag", CreateTagRequest, { tag });
  }
  await send("IdService/GenerateId", GenerateIdRequest, { tag: "issued" });
  await send("IdService/GenerateId", GenerateIdRequest, { tag: "ordered" });
  await send("IdService/GenerateId", GenerateIdRequest, { tag: "daily" });
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
  /** Undefined: what the fields' reasons have in common. */
  readonly reason: string | undefined;
  /** Every field that must be named; none: no BadRequest at all. */
  readonly fields: readonly string[];
}

const LONG = "a".repeat(129);
const MAX = 2n ** 63n - 1n;
const MIN = -(2n ** 63n);

function bad(what: string, answer: () => Promise<Buffer>, ...fields: string[]): Case {
  return { what, send: answer, code: "INVALID_ARGUMENT", reason: undefined, fields };
}

function refused(what: string, answer: () => Promise<Buffer>, code: string, reason: string): Case {
  return { what, send: answer, code, reason, fields: [] };
}

/** Something that another server might do. */
function notHere(what: string, answer: () => Promise<Buffer>, field: string): Case {
  const [code, reason] = ["FAILED_PRECONDITION", "NOT_CONFIGURED"];
  return { what, send: answer, code, reason, fields: [field] };
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
const createSequence = (value: object, more: object = {}) =>
  create({ name: "new", kind: { $case: "sequence", value }, ...more });
const createDaily = (value: object, more: object = {}) =>
  createSequence({ period: 1, timeZone: "Asia/Shanghai", ...value }, more);
const createSnowflake = (value: object, more: object = {}) =>
  create({ name: "new", kind: { $case: "redisSnowflake", value }, ...more });
const createTicket = (value: object, more: object = {}) =>
  create({ name: "new", kind: { $case: "ticket", value }, ...more });
const updateSequence = (name: string, value: object, ...updateMask: string[]) =>
  update({ tag: { name, kind: { $case: "sequence", value } }, updateMask });
const listPeriods = (message: object) => () =>
  send("TagService/ListPeriods", ListPeriodsRequest, message);
const move = (message: object) => () => send("TagService/MoveTag", MoveTagRequest, message);
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
  ...sequenceCases(),
  ...elsewhereCases(),
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
    "TagService/MoveTag",
    "TagService/ListPeriods",
    "NodeService/GetNodeStatus",
    "NodeService/GetNodeTime",
  ].map((method) =>
    refused(
      `${method}, bytes that are no message`,
      () => sendBytes(method, Buffer.from([0x0a, 0xff, 0x01])),
      "INVALID_ARGUMENT",
      "MALFORMED_REQUEST",
    ),
  ),
];

function sequenceCases(): readonly Case[] {
  return [
    refused(
      "AllocateSegment, of a sequence",
      allocate({ tag: "bills", count: 1 }),
      "FAILED_PRECONDITION",
      "WRONG_KIND",
    ),
    bad("GenerateIds, no count of a sequence", generateIds({ tag: "bills" }), "count"),
    bad(
      "GenerateIds, one id too many of a sequence",
      generateIds({ tag: "bills", count: 10_000_001 }),
      "count",
    ),
    bad("CreateTag, sequence unordered", createSequence({}, { order: 1 }), "tag.order"),
    bad("CreateTag, sequence per client", createSequence({}, { order: 2 }), "tag.order"),
    bad("CreateTag, negative start", createSequence({ start: -1n }), "tag.sequence.start"),
    bad(
      "CreateTag, sequence starts above its ceiling",
      createSequence({ start: 11n }, { ceiling: 10n }),
      "tag.sequence.start",
    ),
    bad("CreateTag, unknown period", createDaily({ period: 9 }), "tag.sequence.period"),
    bad(
      "CreateTag, period without a zone",
      createSequence({ period: 1 }),
      "tag.sequence.time_zone",
    ),
    bad(
      "CreateTag, zone without a period",
      createSequence({ timeZone: "UTC" }),
      "tag.sequence.time_zone",
    ),
    ...["Asia/Atlantis", "CET", "+08:00", "UTC+8", "../etc/passwd", "Asia/Shanghai\0", LONG].map(
      (timeZone) =>
        bad(
          `CreateTag, time zone ${JSON.stringify(timeZone)}`,
          createDaily({ timeZone }),
          "tag.sequence.time_zone",
        ),
    ),
    bad("CreateTag, daily from 5", createDaily({ start: 5n }), "tag.sequence.start"),
    bad(
      "CreateTag, keep_for without a period",
      createSequence({ keepFor: { seconds: 86_400n, nanos: 0 } }),
      "tag.sequence.keep_for",
    ),
    ...[
      { seconds: 86_399n, nanos: 999_000_000 },
      { seconds: 315_360_000n, nanos: 1_000_000 },
      { seconds: 86_400n, nanos: 1 },
      { seconds: -86_400n, nanos: 0 },
      { seconds: MAX, nanos: 0 },
    ].map((keepFor) =>
      bad(
        `CreateTag, keep_for of ${keepFor.seconds} s and ${keepFor.nanos} ns`,
        createDaily({ keepFor }),
        "tag.sequence.keep_for",
      ),
    ),
    bad("CreateTag, unknown backend", createSequence({ backend: 9 }), "tag.sequence.backend"),
    bad(
      "CreateTag, max_skip without Redis",
      createSequence({ maxSkip: 5 }),
      "tag.sequence.max_skip",
    ),
    bad("CreateTag, step without Redis", createSequence({ step: 5 }), "tag.sequence.step"),
    bad(
      "CreateTag, Redis server named",
      createSequence({ redisServer: "a" }),
      "tag.sequence.redis_server",
    ),
    bad("CreateTag, period named", createSequence({}, { period: "2026-11-21" }), "tag.period"),
    bad(
      "CreateTag, several faults of a sequence",
      createSequence(
        { start: -1n, period: 1, keepFor: { seconds: 1n, nanos: 0 }, step: -1, backend: 9 },
        { order: 1 },
      ),
      "tag.order",
      "tag.sequence.start",
      "tag.sequence.backend",
      "tag.sequence.step",
      "tag.sequence.time_zone",
      "tag.sequence.keep_for",
    ),
    bad(
      "UpdateTag, a segment's field of a sequence",
      update({ tag: { name: "bills" }, updateMask: ["segment.min"] }),
      "update_mask",
    ),
    bad(
      "UpdateTag, a sequence's field of a segment tag",
      updateSequence("orders", { start: 5n }, "sequence.start"),
      "update_mask",
    ),
    bad(
      "UpdateTag, a value in another kind",
      update({
        tag: { name: "bills", kind: { $case: "segment", value: { start: 5n } } },
        updateMask: ["sequence.start"],
      }),
      "tag.kind",
    ),
    bad(
      "UpdateTag, backend",
      updateSequence("bills", { backend: 2 }, "sequence.backend"),
      "update_mask",
    ),
    bad(
      "UpdateTag, period without a zone",
      updateSequence("bills", { period: 1 }, "sequence.period"),
      "tag.sequence.time_zone",
    ),
    refused(
      "UpdateTag, another zone after the first id",
      updateSequence("daily", { timeZone: "Asia/Shanghai" }, "sequence.time_zone"),
      "FAILED_PRECONDITION",
      "FIELD_IMMUTABLE",
    ),
    bad("ListPeriods, no name", listPeriods({}), "name"),
    bad("ListPeriods, negative page", listPeriods({ name: "daily", pageSize: -1 }), "page_size"),
    bad("ListPeriods, made-up token", listPeriods({ name: "daily", pageToken: "x" }), "page_token"),
    bad(
      "ListPeriods, a token with no date in it",
      listPeriods({ name: "daily", pageToken: token("1/periods/daily/x") }),
      "page_token",
    ),
    bad(
      "ListPeriods, a token of another tag's list",
      listPeriods({ name: "daily", pageToken: token("1/periods/other/2026-11-21") }),
      "page_token",
    ),
    refused("ListPeriods, unknown", listPeriods({ name: "ghost" }), "NOT_FOUND", "TAG_NOT_FOUND"),
    refused(
      "ListPeriods, of a tag without periods",
      listPeriods({ name: "bills" }),
      "FAILED_PRECONDITION",
      "WRONG_KIND",
    ),
  ];
}

function token(text: string): string {
  return Buffer.from(text).toString("base64url");
}

/** Kinds that count where this server cannot reach. */
function elsewhereCases(): readonly Case[] {
  const backend = 2;
  return [
    notHere(
      "CreateTag, Redis that is not there",
      createSequence({ backend }),
      "tag.sequence.backend",
    ),
    bad(
      "CreateTag, a period in Redis",
      createDaily({ backend }),
      "tag.sequence.backend",
      "tag.sequence.period",
    ),
    bad(
      "CreateTag, past what Redis counts to",
      createSequence({ backend }, { ceiling: 2n ** 53n }),
      "tag.ceiling",
      "tag.sequence.backend",
    ),
    ...[-1, 1_000_000_001].map((step) =>
      bad(
        `CreateTag, a step of ${step}`,
        createSequence({ backend, step }),
        "tag.sequence.step",
        "tag.sequence.backend",
      ),
    ),
    notHere("CreateTag, snowflake without Redis", createSnowflake({}), "tag.redis_snowflake"),
    bad(
      "CreateTag, snowflake strict",
      createSnowflake({}, { order: 3 }),
      "tag.order",
      "tag.redis_snowflake",
    ),
    ...[-1, 4_096].map((shard) =>
      bad(
        `CreateTag, snowflake of shard ${shard}`,
        createSnowflake({ shard }),
        "tag.redis_snowflake.shard",
        "tag.redis_snowflake",
      ),
    ),
    ...[new Date(-1), new Date("2999-01-01")].map((timeOrigin) =>
      bad(
        `CreateTag, snowflake from ${timeOrigin.getUTCFullYear()}`,
        createSnowflake({ timeOrigin }),
        "tag.redis_snowflake.time_origin",
        "tag.redis_snowflake",
      ),
    ),
    bad(
      "CreateTag, snowflake with a ceiling and what only the server says",
      createSnowflake({ redisServer: "a", endTime: new Date() }, { ceiling: 5n }),
      "tag.ceiling",
      "tag.redis_snowflake",
      "tag.redis_snowflake.redis_server",
      "tag.redis_snowflake.end_time",
    ),
    notHere("CreateTag, ticket without databases", createTicket({}), "tag.ticket"),
    bad("CreateTag, ticket per client", createTicket({}, { order: 2 }), "tag.order", "tag.ticket"),
    bad(
      "CreateTag, ticket from −1",
      createTicket({ start: -1n }),
      "tag.ticket.start",
      "tag.ticket",
    ),
    ...[-1, 1_025].map((slots) =>
      bad(
        `CreateTag, ticket of ${slots} slots`,
        createTicket({ slots }),
        "tag.ticket.slots",
        "tag.ticket",
      ),
    ),
    bad("MoveTag, nothing set", move({}), "name", "redis_server"),
    notHere(
      "MoveTag, to a Redis server nobody knows",
      move({ name: "bills", redisServer: "a" }),
      "redis_server",
    ),
  ];
}

test.each(cases)("$what → $code $reason", async ({ send: answer, code, reason, fields }) => {
  const refusal = await refusalOf(answer());
  const reasons = [...new Set(refusal.fields.map((each) => each.reason))];
  const common = reasons.length === 1 ? reasons[0] : "INVALID_ARGUMENT";
  expect(refusal).toMatchObject({ code, reason: reason ?? common, domain: "idmint" });
  expect(CODE_OF_REASON[refusal.reason as Reason]).toBe(code);
  expect(refusal.fields.map((each) => each.field)).toEqual(fields);
  expect(refusal.message.startsWith(`${refusal.reason}: `)).toBe(true);
  for (const { description } of refusal.fields) expect(description.length).toBeGreaterThan(10);
});

test.each<[string, () => Promise<Buffer>]>([
  ["FIELD_REQUIRED", get("")],
  ["INVALID_NAME", get("a b")],
  ["INVALID_NAME", list({ prefix: "?" })],
  ["COUNT_OUT_OF_RANGE", generateIds({ tag: "orders", count: 0 })],
  ["COUNT_OUT_OF_RANGE", generateIds({ tag: "orders", count: 2 ** 31 - 1 })],
  ["VALUE_OUT_OF_RANGE", list({ pageSize: -1 })],
  ["VALUE_OUT_OF_RANGE", createSegment({ min: -1 })],
  ["INVALID_PAGE_TOKEN", list({ pageToken: "x" })],
  ["INVALID_UPDATE_MASK", update({ tag: { name: "orders" }, updateMask: ["floor"] })],
  ["FIELD_OUTPUT_ONLY", create({ name: "new", floor: 5n, kind: { $case: "segment", value: {} } })],
  ["FIELD_CONFLICT", createSequence({ timeZone: "UTC" })],
  ["UNKNOWN_VALUE", createSequence({ period: 1, timeZone: "Mars/Base" })],
  [
    "INVALID_FORMAT",
    create({ name: "new", format: { template: "{" }, kind: { $case: "segment", value: {} } }),
  ],
  [
    "INVALID_ID",
    () =>
      send("IdService/DecodeId", DecodeIdRequest, {
        tag: "orders",
        value: { $case: "id", value: -1n },
      }),
  ],
  ["RAISE_TOO_LARGE", advance({ name: "orders", floor: 10n ** 13n })],
  ["MALFORMED_REQUEST", () => sendBytes("IdService/GenerateId", Buffer.from([0xff, 0xff, 0xff]))],
  // Two things are wrong, and neither is the whole of it.
  ["INVALID_ARGUMENT", generateIds({ tag: "a b", count: 0 })],
])("what is wrong has a reason of its own: %s", async (reason, answer) => {
  expect(await refusalOf(answer())).toMatchObject({ code: "INVALID_ARGUMENT", reason });
});

test("a method nobody knows is UNIMPLEMENTED", async () => {
  const refusal = await refusalOf(sendBytes("IdService/GenerateWishes", Buffer.alloc(0)));
  expect(refusal.code).toBe("UNIMPLEMENTED");
});

test("a message of more than 16 KiB is refused before it is read", async () => {
  const refusal = await refusalOf(
    send("IdService/GenerateId", GenerateIdRequest, { tag: "a".repeat(16_400) }),
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
  expect(fields[0]?.description).toContain("segment, sequence, redis_snowflake, ticket");
});

test.each([
  ["Redis", createSequence({ backend: 2 }), "redis.urls"],
  ["Redis' clock", createSnowflake({}), "redis.urls"],
  ["ticket databases", createTicket({}), "ticket.urls"],
  ["a Redis server", move({ name: "bills", redisServer: "a" }), "redis.urls"],
])(
  "a wish for %s that this server has not names the option that brings it",
  async (_, answer, option) => {
    const { code, reason, fields } = await refusalOf(answer());
    expect({ code, reason }).toEqual({ code: "FAILED_PRECONDITION", reason: "NOT_CONFIGURED" });
    expect(fields.map(({ description }) => description).join()).toContain(option);
  },
);

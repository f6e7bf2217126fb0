// Leaf's and Tinyid's paths on the real server: what they answer, whom they let in, and that they refuse what gRPC refuses.
import { createHash } from "node:crypto";
import {
  AdvanceTagRequest,
  AuditServiceService,
  ListAuditEventsRequest,
  LookupIdRequest,
  NodeServiceService,
  Order,
  PauseTagRequest,
  PeriodUnit,
  SnowflakeLayout,
  TagServiceService,
  UpdateTagRequest,
} from "@idmint/proto";
import { AuditServiceClient } from "@idmint/proto/grpc-js";
import { credentials } from "@grpc/grpc-js";
import { type Token, tokenText } from "@idmint/core/server";
import { MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { call, createTag, generateId, startTest, until } from "../support.ts";
import { asking, type DropIn, makeStepTag, makeTag, startDropIn } from "./drop-in-support.ts";
import { clientOf } from "./tinyid-client.ts";

const TEXT = "text/plain;charset=UTF-8";
const JSON_TYPE = "application/json;charset=UTF-8";
const SEGMENT = "/api/segment/get/";
const SNOWFLAKE = "/api/snowflake/get/";
const TINYID = "/tinyid/id/";
const DAY_MS = 86_400_000;

const codeOf = (body: string): string | undefined => /id=(-\d)/.exec(body)?.[1];

test("neither is there unless an option says so", async () => {
  const { server } = await startTest();
  const ask = asking(server.httpAddress);
  expect((await ask("/other")).body).not.toContain("option");
  for (const path of [`${SEGMENT}a`, `${SNOWFLAKE}a`, "/decodeSnowflakeId", `${TINYID}nextId`]) {
    const { status, body } = await ask(path);
    expect(status, path).toBe(404);
    expect(body).toContain(path.startsWith(TINYID) ? "http.tinyid" : "http.leaf");
  }
});

test("Leaf's callers get ids of a segment, by any method", async () => {
  const it = await startDropIn();
  await createTag(it, "order.v1");
  const methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
  for (const [at, method] of methods.entries()) {
    const answer = await it.ask(`${SEGMENT}order.v1`, method, { "content-length": "0" });
    expect(answer).toMatchObject({ status: 200, type: TEXT, body: String(at + 1) });
  }
  // They come out of the same count as those of gRPC, and count like them.
  expect((await generateId(it, "order.v1")).id).toBe(7n);
  expect(it.server.counters.issuedIds).toBe(7);
});

test("Leaf's callers of a snowflake get one of the tag's layout, and may take it apart", async () => {
  const it = await startDropIn();
  const timeOrigin = new Date(1_288_834_974_657);
  const layout = SnowflakeLayout.fromPartial({
    timeBits: 41,
    workerBits: 10,
    sequenceBits: 12,
    timeOrigin,
  });
  await makeTag(it, { name: "leaf", kind: { $case: "snowflake", value: { layout } } });
  const before = Date.now();
  const { status, body: id } = await it.ask(`${SNOWFLAKE}leaf`);
  expect(status).toBe(200);
  const own = await it.ask(`/decodeSnowflakeId?snowflakeId=${id}`);
  expect(own).toMatchObject({ status: 200, type: JSON_TYPE });
  const parts = JSON.parse(own.body) as Record<string, string>;
  expect(Object.keys(parts)).toEqual(["workerId", "sequenceId", "timestamp"]);
  const ms = Number(/^\d+/.exec(parts["timestamp"] ?? "")?.[0]);
  expect(Math.abs(ms - before)).toBeLessThan(60_000);
  expect(await it.ask(`/decodeSnowflakeId?snowflakeId=${id}&tag=leaf`)).toEqual(own);
  // Of another layout only the tag knows.
  const short = SnowflakeLayout.fromPartial({ timeBits: 41, workerBits: 5, sequenceBits: 8 });
  await makeTag(it, { name: "short", kind: { $case: "snowflake", value: { layout: short } } });
  const other = (await it.ask(`${SNOWFLAKE}short`)).body;
  const told = await it.ask(`/decodeSnowflakeId?snowflakeId=${other}&tag=short`);
  const { timestamp = "" } = JSON.parse(told.body) as Record<string, string>;
  expect(Math.abs(Number(/^\d+/.exec(timestamp)?.[0]) - before)).toBeLessThan(60_000);
  await createTag(it, "plain");
  for (const query of [
    "1&tag=plain",
    "1&tag=ghost",
    "x",
    "-1",
    "9223372036854775808",
    "1&tag=a&tag=b",
  ]) {
    const { body } = await it.ask(`/decodeSnowflakeId?snowflakeId=${query}`);
    expect(body, query).toBe('{"errorMsg":"snowflake Id反解析发生异常!"}');
  }
});

/** One tag of each kind, and what a bare number tells of its ids. */
async function makeKinds(it: DropIn): Promise<void> {
  await createTag(it, "segment");
  await createTag(it, "ordered", { order: Order.PER_CLIENT });
  await makeTag(it, { name: "sequence", kind: { $case: "sequence", value: {} } });
  const periods = { period: PeriodUnit.DAY, timeZone: "UTC" };
  await makeTag(it, { name: "daily", kind: { $case: "sequence", value: periods } });
  const layout = SnowflakeLayout.fromPartial({ timeBits: 41, workerBits: 10, sequenceBits: 12 });
  await makeTag(it, { name: "snowflake", kind: { $case: "snowflake", value: { layout } } });
  await makeTag(it, { name: "uuid", kind: { $case: "uuid", value: { version: 7 } } });
  await makeTag(it, { name: "object", kind: { $case: "objectId", value: {} } });
  const format = { template: "A-{id}" };
  await makeTag(it, {
    name: "text",
    format,
    kind: { $case: "segment", value: { tinyidStep: 10 } },
  });
}

test("numbers are answered of tags whose ids they are, and of others none is taken", async () => {
  const it = await startDropIn();
  await makeKinds(it);
  const issued = (): number => it.server.counters.issuedIds;
  for (const tag of ["segment", "ordered", "sequence", "snowflake"]) {
    for (const path of [SEGMENT + tag, `${TINYID}nextIdSimple?bizType=${tag}`]) {
      expect((await it.ask(path)).body, path).toMatch(/^\d+$/);
    }
    const many = await it.ask(`${TINYID}nextId?bizType=${tag}&batchSize=3`);
    expect(JSON.parse(many.body), tag).toMatchObject({ code: 200, data: { length: 3 } });
  }
  const before = issued();
  for (const tag of ["daily", "uuid", "object", "text"]) {
    const leaf = await it.ask(SEGMENT + tag);
    expect([leaf.status, leaf.reason, codeOf(leaf.body)], tag).toEqual([500, "WRONG_KIND", "-1"]);
    for (const size of [1, 3]) {
      const tinyid = await it.ask(`${TINYID}nextId?bizType=${tag}&batchSize=${size}`);
      expect(JSON.parse(tinyid.body), tag).toMatchObject({ data: null, code: 6 });
    }
  }
  for (const tag of ["segment", "sequence", "daily", "uuid"]) {
    const answer = await it.ask(SNOWFLAKE + tag);
    expect([answer.status, answer.reason, codeOf(answer.body)], tag).toEqual([
      500,
      "WRONG_KIND",
      "-2",
    ]);
  }
  for (const tag of ["segment", "ordered", "sequence", "daily", "snowflake", "uuid", "text"]) {
    const answer = await it.ask(`${TINYID}nextSegmentIdSimple?bizType=${tag}`);
    expect([answer.status, answer.reason, answer.body], tag).toEqual([200, "WRONG_KIND", ""]);
  }
  expect(issued()).toBe(before);
});

test("what gRPC refuses is refused, in the form that callers know", async () => {
  const it = await startDropIn({ flags: { "quota-tag-calls": "none,limited=1" } });
  for (const tag of ["limited", "paused", "full"]) {
    await makeStepTag(it, tag, 10);
  }
  const pause = PauseTagRequest.fromPartial({ name: "paused" });
  await call(it.tags, TagServiceService.pauseTag, pause);
  const advance = { name: "full", floor: 9_223_372_036_854_775_807n, allowLargeRaise: true };
  await call(it.tags, TagServiceService.advanceTag, AdvanceTagRequest.fromPartial(advance));
  await generateId(it, "limited");
  await until(async () => (await it.ask(`${SEGMENT}limited`)).reason === "QUOTA_EXCEEDED");
  for (const [tag, reason, code] of [
    ["ghost", "TAG_NOT_FOUND", "-2"],
    ["-bad-", "INVALID_NAME", "-2"],
    ["paused", "TAG_PAUSED", "-1"],
    ["full", "TAG_EXHAUSTED", "-1"],
    ["limited", "QUOTA_EXCEEDED", "-3"],
  ] as const) {
    const leaf = await it.ask(SEGMENT + tag);
    expect([leaf.status, leaf.type, leaf.reason, codeOf(leaf.body)]).toEqual([
      500,
      JSON_TYPE,
      reason,
      code,
    ]);
    const { timestamp, ...rest } = JSON.parse(leaf.body) as Record<string, unknown>;
    expect(typeof timestamp).toBe("number");
    expect(rest).toMatchObject({ status: 500, path: SEGMENT + tag });
    const isTag = reason === "TAG_NOT_FOUND" || reason === "INVALID_NAME";
    for (const ask of ["nextId", "nextSegmentId"]) {
      const tinyid = await it.ask(`${TINYID}${ask}?bizType=${tag}`);
      expect(tinyid).toMatchObject({ status: 200, type: JSON_TYPE, reason });
      expect(JSON.parse(tinyid.body), `${ask} ${tag}`).toMatchObject({
        data: null,
        ...(isTag ? { code: 5, message: "token is error" } : { code: 6, message: tinyid.message }),
      });
      expect(await it.ask(`${TINYID}${ask}Simple?bizType=${tag}`)).toMatchObject({
        status: 200,
        body: "",
        reason,
      });
    }
  }
});

test("a store that is down, and a server that is drained, are told as what may pass", async () => {
  const store = new MemoryStore();
  const it = await startDropIn({ store, flags: { instance: "one" } });
  await makeStepTag(it, "order", 10);
  store.faults = { before: () => storeIsDown() };
  const down = await it.ask(`${SEGMENT}order`);
  expect([down.status, codeOf(down.body)]).toEqual([500, "-3"]);
  expect((await it.ask(`${TINYID}nextSegmentIdSimple?bizType=order`)).body).toBe("");
  store.faults = {};
  await until(async () => (await it.ask(`${SEGMENT}order`)).status === 200);
  await call(it.nodes, NodeServiceService.drainNode, { node: "one", validateOnly: false });
  await until(async () => (await it.ask(`${SEGMENT}order`)).reason === "DRAINING");
  expect(JSON.parse((await it.ask(`${TINYID}nextId?bizType=order`)).body)).toMatchObject({
    code: 6,
    data: null,
  });
});

test("counts are as many as gRPC gives, and never fewer than asked for", async () => {
  const it = await startDropIn({ flags: { "limits-count-as-list": "100" } });
  await createTag(it, "order");
  const sized = async (size: string): Promise<string> =>
    (await it.ask(`${TINYID}nextId?bizType=order&batchSize=${size}`)).body;
  expect(await sized("100")).toBe(
    `{"data":[${Array.from({ length: 100 }, (_, at) => at + 1).join(",")}],"code":200,"message":""}`,
  );
  expect((await it.ask(`${TINYID}nextIdSimple?bizType=order&batchSize=3`)).body).toBe(
    "101,102,103",
  );
  for (const size of ["101", "2147483647", "0", "-1"]) {
    expect(JSON.parse(await sized(size)), size).toEqual({
      data: null,
      code: 6,
      message: expect.stringContaining("COUNT_OUT_OF_RANGE: batchSize must be at ") as string,
    });
  }
  expect((await it.ask(`${TINYID}nextId?bizType=order&batchSize=many`)).status).toBe(400);
});

test("Tinyid's clients count through segments of tags that allow it, and a change of those is never in effect", async () => {
  const it = await startDropIn();
  await createTag(it, "order");
  const path = `${TINYID}nextSegmentIdSimple?token=any&bizType=order`;
  const none = await it.ask(path, "POST", { "content-length": "0" });
  expect([none.status, none.body]).toEqual([200, ""]);
  expect(none.message).toContain("idmint tag update order --tinyid-step");
  const kind = { $case: "segment", value: { tinyidStep: 100 } } as const;
  const update = { tag: { name: "order", kind }, updateMask: ["segment.tinyid_step"] };
  const answer = await call(
    it.tags,
    TagServiceService.updateTag,
    UpdateTagRequest.fromPartial(update),
  );
  expect(answer.tag?.kind).toMatchObject({ value: { tinyidStep: 100 } });
  await until(async () => (await it.ask(path, "POST", { "content-length": "0" })).body !== "");
  const ids: bigint[] = [];
  for (let load = 0; load < 30; load++) {
    const segment = await it.ask(path, "POST", { "content-length": "0" });
    ids.push(...clientOf(segment.body).ids);
    ids.push((await generateId(it, "order")).id);
  }
  expect(ids.length).toBeGreaterThan(300);
  expect(new Set(ids).size).toBe(ids.length);
  const json = await it.ask(`${TINYID}nextSegmentId?bizType=order`);
  expect(JSON.parse(json.body)).toMatchObject({ code: 200, data: { delta: 1, remainder: 0 } });
  const paused = await call(
    it.tags,
    TagServiceService.pauseTag,
    PauseTagRequest.fromPartial({ name: "order" }),
  );
  expect(paused.effectiveTime).toBeUndefined();
  const effect = await call(it.tags, TagServiceService.getTagEffect, { name: "order" });
  expect(effect).toMatchObject({ inEffect: false, heldForEver: true });
});

/** A token and its text, which nobody else may see. */
function tokenOf(principal: string, tags: string): { token: Token; text: string; secret: string } {
  const id = "00000000000000aa".slice(0, 15) + String(principal.length % 10);
  const secret = `canary-${principal}-`.padEnd(43, "s");
  const hash = createHash("sha256").update(secret).digest("hex");
  const times = { createdAtMs: Date.now(), expiresAtMs: Date.now() + DAY_MS };
  const rights = [{ role: "issue" as const, tags }];
  return {
    token: { id, principal, rights, hash, ...times },
    text: tokenText({ id, secret }),
    secret,
  };
}

test("a token of a URL is the principal's, and nobody but the server sees it", async () => {
  const store = new MemoryStore();
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line) };
  const it = await startDropIn({
    store,
    flags: { "log-level": "trace" },
    parts: { logSink: sink },
  });
  for (const tag of ["shop.order", "bank.order"]) {
    await makeStepTag(it, tag, 10);
  }
  const shop = tokenOf("shop", "shop.*");
  const observer = tokenOf("everybody", "*");
  await store.addToken(shop.token);
  await store.addToken({ ...observer.token, rights: [{ role: "admin", tags: "*" }] });
  await until(async () => (await it.ask(`${SEGMENT}shop.order`)).reason === "UNAUTHENTICATED");
  const asked = async (query: string, headers?: Record<string, string>): Promise<unknown[]> => {
    const answer = await it.ask(`${TINYID}nextId?${query}`, "GET", headers);
    expect(JSON.stringify(answer)).not.toContain("canary");
    const { code } = JSON.parse(answer.body) as { code: number };
    return [answer.status, code, answer.reason];
  };
  const header = { authorization: `Bearer ${shop.text}` };
  expect(await asked(`bizType=shop.order&token=${shop.text}`)).toEqual([200, 200, undefined]);
  expect(await asked("bizType=shop.order", header)).toEqual([200, 200, undefined]);
  // Whether a tag is there is not told to those who have no right to it.
  expect(await asked(`bizType=bank.order&token=${shop.text}`)).toEqual([
    200,
    5,
    "PERMISSION_DENIED",
  ]);
  expect(await asked(`bizType=bank.ghost&token=${shop.text}`)).toEqual([
    200,
    5,
    "PERMISSION_DENIED",
  ]);
  for (const query of [
    "bizType=shop.order",
    "bizType=shop.order&token=",
    `bizType=shop.order&token=${shop.text.slice(0, -1)}x`,
    "bizType=shop.order&token=0f673adf80504e2eaa552f5d791b644c",
  ]) {
    expect(await asked(query), query).toEqual([200, 5, "UNAUTHENTICATED"]);
  }
  expect(await asked(`bizType=shop.order&token=${shop.text}`, header)).toEqual([
    200,
    5,
    "UNAUTHENTICATED",
  ]);
  expect(await asked(`bizType=shop.order&token=${shop.text}&token=${shop.text}`)).toEqual([
    200,
    6,
    "FIELD_CONFLICT",
  ]);
  expect((await it.ask(`${SEGMENT}shop.order`, "GET", header)).status).toBe(200);
  const segment = await it.ask(
    `${TINYID}nextSegmentIdSimple?token=${shop.text}&bizType=shop.order`,
    "POST",
  );
  expect(clientOf(segment.body).ids).toHaveLength(10);
  // Also a path that is none of Tinyid's.
  expect((await it.ask(`/tinyid/id/nextIds?token=${shop.text}`)).status).toBe(404);
  const audit = new AuditServiceClient(it.server.grpcAddress, credentials.createInsecure());
  onTestFinished(() => audit.close());
  const list = async (): Promise<unknown> =>
    call(
      audit,
      AuditServiceService.listAuditEvents,
      ListAuditEventsRequest.fromPartial({}),
      5_000,
      observer.text,
    );
  await until(async () => JSON.stringify(await list(), plain).includes("PERMISSION_DENIED"));
  const rows = JSON.stringify(await list(), plain);
  expect(rows).toContain("/idmint.v1.IdService/GenerateId");
  expect(rows).toContain('"shop"');
  expect(rows).not.toContain("canary");
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.join("\n")).not.toContain("canary");
  expect(JSON.stringify(it.events, plain)).not.toContain("canary");
});

function plain(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

test("segments count against quotas of ids, the first one of a tag too", async () => {
  const quotas = { "quota-tag-ids": "none,order=10", "quota-burst": "60s" };
  const it = await startDropIn({ flags: quotas });
  await makeStepTag(it, "order", 1_000);
  const path = `${TINYID}nextSegmentIdSimple?bizType=order`;
  // The bucket has 600 and goes into debt, which is paid by 10 a second.
  expect(clientOf((await it.ask(path)).body).ids).toHaveLength(1_000);
  expect(await it.ask(path)).toMatchObject({ body: "", reason: "QUOTA_EXCEEDED" });
});

test("who asked for segments can be looked up", async () => {
  const it = await startDropIn();
  await makeStepTag(it, "order", 100);
  const { body } = await it.ask(`${TINYID}nextSegmentIdSimple?bizType=order`);
  const [id = 0n] = clientOf(body).ids;
  const request = LookupIdRequest.fromPartial({ tag: "order", value: { $case: "id", value: id } });
  await until(async () => {
    const { client } = await call(it.tags, TagServiceService.lookupId, request);
    return client?.instance === "tinyid/127.0.0.1";
  });
});

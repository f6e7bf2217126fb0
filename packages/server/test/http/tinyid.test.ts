// Tinyid's paths, byte for byte as Tinyid's server was seen to answer, and what its client makes of a segment.
import { IdmintError, invalidField, MAX_ID, type Reason, segmentOf } from "@idmint/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { formOf } from "../../src/http/form.ts";
import {
  authorizationOf,
  inTinyidWords,
  tinyidAsked,
  tinyidBadNumber,
  tinyidFailure,
  tinyidIds,
  tinyidPathOf,
  tinyidSegment,
  type TinyidSegment,
  tinyidSegmentAnswer,
} from "../../src/http/tinyid.ts";
import { clientOf } from "./tinyid-client.ts";

const JSON_TYPE = { "content-type": "application/json;charset=UTF-8" };
const TEXT_TYPE = { "content-type": "text/plain;charset=UTF-8" };

test.each([
  ["nextId", { asks: "ids", isSimple: false }],
  ["nextIdSimple", { asks: "ids", isSimple: true }],
  ["nextSegmentId", { asks: "segment", isSimple: false }],
  ["nextSegmentIdSimple", { asks: "segment", isSimple: true }],
])("/tinyid/id/%s", (name, path) => {
  expect(tinyidPathOf(`/tinyid/id/${name}`)).toEqual(path);
});

test.each([
  "/tinyid/id/",
  "/tinyid/id/nextid",
  "/tinyid/id/nextId/",
  "/tinyid/id/constructor",
  "/id/nextId",
])("%s is none of them", (path) => expect(tinyidPathOf(path)).toBeUndefined());

test.each([
  ["bizType=order&token=t", { tag: "order", token: "t", count: 1 }],
  ["token=t&bizType=order.v1:a-b", { tag: "order.v1:a-b", token: "t", count: 1 }],
  ["bizType=o&batchSize=3&token=t", { tag: "o", token: "t", count: 3 }],
  ["bizType=o&batchSize=", { tag: "o", token: "", count: 1 }],
  ["bizType=o&batchSize=+7", { tag: "o", token: "", count: 7 }],
  ["bizType=o&batchSize=-7", { tag: "o", token: "", count: -7 }],
  ["bizType=o&batchSize=2147483647", { tag: "o", token: "", count: 2_147_483_647 }],
  ["bizType=%6F&token=%74", { tag: "o", token: "t", count: 1 }],
  ["", { tag: "", token: "", count: 1 }],
])("%s asks for %j", (query, asked) => {
  expect(tinyidAsked(formOf(query))).toEqual(asked);
});

test.each(["x", "1x", "1.5", "1e3", "0x10", "2147483648", "-2147483649", "99999999999999999999"])(
  "batchSize %s is no number",
  (size) => {
    expect(tinyidAsked(formOf(`bizType=o&batchSize=${size}`))).toBeUndefined();
    const { status, body } = tinyidBadNumber("/tinyid/id/nextId", 7);
    expect([status, JSON.parse(String(body))]).toMatchObject([400, { status: 400 }]);
  },
);

test.each(["token=secret&token=other", "token=%zz", "%zz=secret", "a&a"])(
  "a query that means nothing for certain is refused, and the token is not told: %s",
  (query) => {
    expect(() => formOf(query)).toThrow(IdmintError);
    expect(() => formOf(query)).not.toThrow(/secret|zz/);
  },
);

function fields(count: number): string {
  return Array.from({ length: count }, (_, at) => `f${at}=1`).join("&");
}

test("a query has few fields", () => {
  expect(formOf(fields(32)).size).toBe(32);
  expect(() => formOf(fields(33))).toThrow("must have at most 32 fields");
});

test("the token of a URL is the one of the header, and two are none", () => {
  expect(authorizationOf(undefined, "t")).toBe("Bearer t");
  expect(authorizationOf("Bearer h", "")).toBe("Bearer h");
  expect(authorizationOf(undefined, "")).toBeUndefined();
  expect(authorizationOf("Bearer t", "t")).toBe("");
});

test("ids as JSON and as text", () => {
  expect(tinyidIds(false, [2n])).toEqual({
    status: 200,
    headers: JSON_TYPE,
    body: '{"data":[2],"code":200,"message":""}',
  });
  expect(tinyidIds(true, [4n, 5n, 6n])).toEqual({ status: 200, headers: TEXT_TYPE, body: "4,5,6" });
  expect(tinyidIds(true, [MAX_ID]).body).toBe("9223372036854775807");
});

test("a segment as JSON and as text", () => {
  const segment = tinyidSegment(segmentOf(100_002n - 1n, 100_000));
  expect(tinyidSegmentAnswer(false, segment)).toEqual({
    status: 200,
    headers: JSON_TYPE,
    body: '{"data":{"maxId":200000,"loadingId":120000,"currentId":100000,"delta":1,"remainder":0},"code":200,"message":""}',
  });
  expect(tinyidSegmentAnswer(true, segment)).toEqual({
    status: 200,
    headers: TEXT_TYPE,
    body: "100000,120000,200000,1,0",
  });
});

test.each<[Reason, code: number, message: string]>([
  ["UNAUTHENTICATED", 5, "token is error"],
  ["PERMISSION_DENIED", 5, "token is error"],
  ["TAG_NOT_FOUND", 5, "token is error"],
  ["INVALID_NAME", 5, "token is error"],
  ["TAG_PAUSED", 6, "TAG_PAUSED: why"],
  ["QUOTA_EXCEEDED", 6, "QUOTA_EXCEEDED: why"],
  ["DRAINING", 6, "DRAINING: why"],
  ["INTERNAL", 6, "INTERNAL: why"],
])("a failure is 200 all the same: %s", (reason, code, message) => {
  const error = new IdmintError(reason, "why");
  const why = { "idmint-reason": reason, "idmint-message": `${reason}: why` };
  expect(tinyidFailure(false, error)).toEqual({
    status: 200,
    headers: { ...JSON_TYPE, ...why },
    body: `{"data":null,"code":${code},"message":"${message}"}`,
  });
  expect(tinyidFailure(true, error)).toEqual({
    status: 200,
    headers: { ...TEXT_TYPE, ...why },
    body: "",
  });
});

test("a count that is refused is called as its caller called it", () => {
  const error = invalidField(
    "count",
    "must be at most 9; ask without as_list for more",
    "COUNT_OUT_OF_RANGE",
  );
  expect(inTinyidWords(error).message).toBe(
    "COUNT_OUT_OF_RANGE: batchSize must be at most 9; ask several times for more",
  );
  const other = invalidField("tag", "is required");
  expect(inTinyidWords(other)).toBe(other);
});

const lastId = MAX_ID - (1n << 53n);

test("a client that counts on past its last segment never comes to 2^63", () => {
  const last = segmentOf(lastId - 9n, 10);
  expect(tinyidSegment(last).maxId).toBe(lastId);
  expect(() => tinyidSegment(segmentOf(lastId - 8n, 10))).toThrow("TAG_EXHAUSTED");
});

test("what its client makes of a segment is the segment, whatever it is", () => {
  const segments = fc
    .tuple(
      fc.oneof(fc.bigInt(0n, 50n), fc.bigInt(0n, lastId - 10_000_000n)),
      fc.integer({ min: 1, max: 300 }),
      fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 1_000 })),
    )
    .map(([base, count, increment]) => segmentOf(base, count, increment));
  fc.assert(
    fc.property(segments, ({ base, count, increment }) => {
      const its: TinyidSegment = tinyidSegment({ base, count, increment });
      const expected = Array.from({ length: count }, (_, at) => base + BigInt(at * increment));
      const { ids, loadedAt } = clientOf(String(tinyidSegmentAnswer(true, its).body));
      expect(ids).toEqual(expected);
      // It asks for the next one in time, and not at once.
      expect(loadedAt).toBeLessThanOrEqual(count);
      const parsed = JSON.parse(String(tinyidSegmentAnswer(false, its).body)) as { code: number };
      expect(parsed.code).toBe(200);
    }),
  );
});

// Leaf's paths, byte for byte as Leaf's server was seen to answer.
import { IdmintError, invalidField, type Reason } from "@idmint/core";
import { expect, test } from "vitest";
import { formOf } from "../../src/http/form.ts";
import {
  isLeafPath,
  leafDecoded,
  leafFailure,
  leafId,
  leafIdOf,
  leafNotDecoded,
  leafParts,
  leafPathOf,
  leafRefusal,
} from "../../src/http/leaf.ts";

test.each([
  ["/api/segment/get/order", { asks: "segment", tag: "order" }],
  ["/api/snowflake/get/order", { asks: "snowflake", tag: "order" }],
  ["/api/segment/get/order.v1:a-b_c", { asks: "segment", tag: "order.v1:a-b_c" }],
  ["/api/segment/get/%6frder", { asks: "segment", tag: "order" }],
  ["/api/segment/get/%E8%AE%A2%E5%8D%95", { asks: "segment", tag: "订单" }],
  ["/api/segment/get/", { asks: "nothing", status: 404 }],
  ["/api/snowflake/get/", { asks: "nothing", status: 404 }],
  ["/api/segment/get/a/b", { asks: "nothing", status: 404 }],
  ["/api/segment/get/a%2Fb", { asks: "nothing", status: 400 }],
  ["/api/segment/get/a%2fb", { asks: "nothing", status: 400 }],
  ["/api/segment/get/%zz", { asks: "nothing", status: 400 }],
  ["/api/segment/get/%ff", { asks: "nothing", status: 400 }],
  ["/decodeSnowflakeId", { asks: "decode" }],
])("%s asks for %j", (path, asked) => {
  expect(isLeafPath(path)).toBe(true);
  expect(leafPathOf(path)).toEqual(asked);
});

test.each([
  "/",
  "/api/segment/get",
  "/api/segment",
  "/decodeSnowflakeId/",
  "/cache",
  "/db",
  "/API/segment/get/a",
])("%s is none of them", (path) => expect(isLeafPath(path)).toBe(false));

test.each([
  [1n, "1"],
  [0n, "0"],
  [9_223_372_036_854_775_807n, "9223372036854775807"],
])("an id is the bare decimal, without a newline: %s", (id, body) => {
  const headers = { "content-type": "text/plain;charset=UTF-8" };
  expect(leafId(id)).toEqual({ status: 200, headers, body });
});

const at = { path: "/api/segment/get/order", nowMs: 1_764_000_000_123 };

test("a failure is Leaf's JSON, and says why in headers", () => {
  const error = new IdmintError("TAG_NOT_FOUND", 'tag "order" is not there');
  expect(leafFailure("segment", error, at)).toEqual({
    status: 500,
    headers: {
      "content-type": "application/json;charset=UTF-8",
      "idmint-reason": "TAG_NOT_FOUND",
      "idmint-message": 'TAG_NOT_FOUND: tag "order" is not there',
    },
    body: '{"timestamp":1764000000123,"status":500,"error":"Internal Server Error","exception":"com.sankuai.inf.leaf.server.exception.LeafServerException","message":"Result{id=-2, status=EXCEPTION}","path":"/api/segment/get/order"}',
  });
});

test.each<[Reason, segment: number, snowflake: number]>([
  ["TAG_NOT_FOUND", -2, -2],
  ["INVALID_NAME", -2, -2],
  ["SEGMENT_NOT_READY", -3, -2],
  ["STORE_UNAVAILABLE", -3, -2],
  ["DRAINING", -3, -2],
  ["OVERLOADED", -3, -2],
  ["QUOTA_EXCEEDED", -3, -2],
  ["DEADLINE_EXCEEDED", -3, -2],
  ["CLOCK_MOVED_BACKWARDS", -3, -3],
  ["CLOCK_NOT_CONFIRMED", -3, -3],
  ["TAG_PAUSED", -1, -2],
  ["TAG_EXHAUSTED", -1, -2],
  ["WRONG_KIND", -1, -2],
  ["STORE_EPOCH_CHANGED", -1, -2],
  ["UNAUTHENTICATED", -1, -2],
  ["PERMISSION_DENIED", -1, -2],
  ["INTERNAL", -1, -2],
])("%s is %i of a segment and %i of a snowflake", (reason, segment, snowflake) => {
  const codeOf = (asks: "segment" | "snowflake"): unknown =>
    /id=(-\d)/.exec(String(leafFailure(asks, new IdmintError(reason, ""), at).body))?.[1];
  expect([codeOf("segment"), codeOf("snowflake")]).toEqual([String(segment), String(snowflake)]);
});

test("headers hold one line of plain text, and how long to wait", () => {
  const error = new IdmintError("SEGMENT_NOT_READY", `tag "订单\r\nx: y" ${"z".repeat(9_999)}`, {
    retryAfterMs: 1_200,
  });
  const { headers } = leafFailure("segment", error, at);
  expect(headers["retry-after"]).toBe("2");
  expect(headers["idmint-message"]).toMatch(/^SEGMENT_NOT_READY: tag "\?\?\?\?x: y" z+$/);
  expect(headers["idmint-message"]?.length).toBe(400);
});

test.each([
  [404, "Not Found"],
  [400, "Bad Request"],
] as const)("what Leaf does not serve is its server's JSON: %i", (status, error) => {
  const { body, ...rest } = leafRefusal(status, { path: "/api/segment/get/", nowMs: 7 });
  expect(rest).toEqual({ status, headers: { "content-type": "application/json;charset=UTF-8" } });
  expect(body).toBe(
    `{"timestamp":7,"status":${status},"error":"${error}","message":"No message available","path":"/api/segment/get/"}`,
  );
});

test("an id of Leaf's layout is taken apart; all parts are text", () => {
  const id = ((1_542_087_123_456n - 1_288_834_974_657n) << 22n) | (37n << 12n) | 99n;
  expect(leafIdOf(formOf(`snowflakeId=${id}`))).toBe(id);
  expect(leafDecoded(leafParts(id))).toEqual({
    status: 200,
    headers: { "content-type": "application/json;charset=UTF-8" },
    body: '{"workerId":"37","sequenceId":"99","timestamp":"1542087123456(2018-11-13 05:32:03.456)"}',
  });
});

test("the largest id is taken apart", () => {
  expect(leafParts(9_223_372_036_854_775_807n)).toEqual({
    worker: 1_023n,
    sequence: 4_095n,
    timeMs: 1_288_834_974_657 + 2 ** 41 - 1,
  });
});

test.each([
  "",
  "snowflakeId=",
  "snowflakeId=abc",
  "snowflakeId=-1",
  "snowflakeId=1.5",
  "snowflakeId=9223372036854775808",
  "snowflakeId=99999999999999999999",
  "snowflakeId=0x10",
])("%j has no id that can be taken apart", (query) =>
  expect(leafIdOf(formOf(query))).toBeUndefined(),
);

test("what is no id is told as Leaf tells it", () => {
  const { status, body } = leafNotDecoded(invalidField("snowflakeId", "must be an id"));
  expect([status, body]).toEqual([200, '{"errorMsg":"snowflake Id反解析发生异常!"}']);
});

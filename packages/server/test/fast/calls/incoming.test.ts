import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { NEEDS, ruleOf } from "../../../src/api/need.ts";
import { type CallsOfConnection, rowOf } from "../../../src/fast/calls/call.ts";
import { Incoming, MAX_KEPT_BYTES } from "../../../src/fast/calls/incoming.ts";
import { framed } from "../wire.ts";

const row = rowOf(
  {
    kind: "watch",
    rule: ruleOf(NEEDS.nothing, undefined),
    path: "/a.B/C",
    open: () => () => undefined,
  },
  undefined,
);

/** Nothing but the count is asked of it. */
function connection(): CallsOfConnection {
  return { partialBytes: 0 } as CallsOfConnection;
}

test("what calls keep is counted for their connection, and forgotten with them", () => {
  const its = connection();
  const [one, other] = [new Incoming(its, ""), new Incoming(its, "")];
  const bytes = Buffer.concat([framed(Buffer.from("a")), framed(Buffer.from("b"))]);
  one.take(row, bytes, 0, 3, () => true);
  other.keep(bytes, 0, bytes.length);
  expect([its.partialBytes, one.isEmpty]).toEqual([3 + bytes.length, false]);
  const taken: string[] = [];
  other.takeKept(row, (part, from, to) => {
    taken.push(part.toString("utf8", from, to));
    return false;
  });
  expect([its.partialBytes, taken]).toEqual([3 + 6, ["a"]]);
  other.takeKept(row, (part, from, to) => taken.push(part.toString("utf8", from, to)) > 0);
  expect([its.partialBytes, taken, other.isEmpty]).toEqual([3, ["a", "b"], true]);
  one.forget();
  one.forget();
  expect(its.partialBytes).toBe(0);
});

test("no call goes on that would keep more than the bound of its connection", () => {
  const its = connection();
  const part = Buffer.alloc(64 * 1_024);
  const calls = Array.from({ length: MAX_KEPT_BYTES / part.length }, () => new Incoming(its, ""));
  for (const call of calls) expect(call.keep(part, 0, part.length)).toBeUndefined();
  const last = new Incoming(its, "");
  expect(last.keep(part, 0, 1)).toMatchObject({ reason: "OVERLOADED" });
  last.forget();
  calls[0]?.forget();
  expect(new Incoming(its, "").keep(part, 0, part.length)).toBeUndefined();
});

test("a compressed message that cannot be read ends its call, and those behind it are not handed on", () => {
  const taken: string[] = [];
  const take = (message: Buffer): boolean => taken.push(message.toString()) > 0;
  const bytes = Buffer.concat([
    framed(gzipSync("one"), 1),
    framed(Buffer.from("two"), 1),
    framed(gzipSync("three"), 1),
  ]);
  const wrong = new Incoming(connection(), "gzip").take(row, bytes, 0, bytes.length, take);
  expect([wrong, taken]).toEqual([
    expect.objectContaining({ reason: "MALFORMED_REQUEST" }),
    ["one"],
  ]);
});

import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { CallsOfConnection } from "../../../src/fast/calls/call.ts";
import { FRAMING } from "../../../src/fast/calls/framing.ts";
import { Incoming } from "../../../src/fast/calls/incoming.ts";
import { Held } from "../../../src/fast/http2/limits.ts";
import { framed } from "../wire.ts";

const MOST = 1_024 * 1_024;

/** Nothing but the count is asked of it. */
function connection(): CallsOfConnection {
  return {
    held: new Held({ bytes: 0, kept: 0, begun: 0, makeRoom: () => undefined }, { heldBytes: MOST }),
  } as CallsOfConnection;
}

test("what calls keep is counted for their connection, and forgotten with them", () => {
  const its = connection();
  const [one, other] = [new Incoming(its, ""), new Incoming(its, "")];
  const bytes = Buffer.concat([framed(Buffer.from("a")), framed(Buffer.from("b"))]);
  one.take(bytes, 0, 3, () => true);
  other.keep(bytes, 0, bytes.length);
  const [little, all] = [256, 256];
  expect([its.held.bytes, one.isEmpty]).toEqual([little + all, false]);
  const taken: string[] = [];
  other.takeKept((part, from, to) => {
    taken.push(part.toString("utf8", from, to));
    return false;
  });
  expect([its.held.bytes, taken]).toEqual([little + all, ["a"]]);
  other.takeKept((part, from, to) => taken.push(part.toString("utf8", from, to)) > 0);
  expect([its.held.bytes, taken, other.isEmpty]).toEqual([little, ["a", "b"], true]);
  one.forget();
  one.forget();
  expect(its.held.bytes).toBe(0);
});

test("no call goes on that would keep more than the bound of its connection", () => {
  const its = connection();
  // Memory is made for twice as much as comes.
  const part = Buffer.alloc(32 * 1_024);
  const calls = Array.from({ length: MOST / part.length / 2 }, () => new Incoming(its, ""));
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
  const wrong = new Incoming(connection(), "gzip").take(bytes, 0, bytes.length, take);
  expect(wrong).toBe(FRAMING.notCompressed);
  expect(taken).toEqual(["one"]);
});

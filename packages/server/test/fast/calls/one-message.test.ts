// A message whose request does not end: it is counted for its connection as long as it is kept.
import { expect, test } from "vitest";
import type { CallsOfConnection } from "../../../src/fast/calls/call.ts";
import { FRAMING } from "../../../src/fast/calls/framing.ts";
import { OneMessage } from "../../../src/fast/calls/one-message.ts";
import { Held } from "../../../src/fast/http2/limits.ts";
import { framed } from "../wire.ts";

const MOST = 64 * 1_024;
const LENGTH = 8 * 1_024;
const WHOLE = framed(Buffer.alloc(LENGTH, "m"));

/** Nothing but the count is asked of it. */
function connection(): CallsOfConnection {
  const all = { bytes: 0, kept: 0, begun: 0, makeRoom: () => undefined };
  return { held: new Held(all, { heldBytes: MOST }) } as CallsOfConnection;
}

test("a message that is whole counts until it is forgotten", () => {
  const its = connection();
  const one = new OneMessage(its, "");
  expect(one.take(WHOLE, 0, WHOLE.length, false)).toBeUndefined();
  expect(its.held.bytes).toBe(LENGTH);
  expect(one.take(WHOLE, 0, 0, true)).toBeUndefined();
  expect(one.message).toHaveLength(LENGTH);
  expect(its.held.bytes).toBe(LENGTH);
  one.forget();
  one.forget();
  expect(its.held.bytes).toBe(0);
});

test("so does one that came in parts, and a second one ends the call and counts with it", () => {
  const its = connection();
  const one = new OneMessage(its, "");
  one.take(WHOLE, 0, 100, false);
  one.take(WHOLE, 100, WHOLE.length, false);
  expect(its.held.bytes).toBe(LENGTH);
  expect(one.take(WHOLE, 0, WHOLE.length, true)).toBe(FRAMING.several);
  one.forget();
  expect(its.held.bytes).toBe(0);
});

test("no request waits for its end that keeps more than its connection may", () => {
  const its = connection();
  const calls = Array.from({ length: MOST / LENGTH }, () => new OneMessage(its, ""));
  for (const call of calls) expect(call.take(WHOLE, 0, WHOLE.length, false)).toBeUndefined();
  const last = new OneMessage(its, "");
  expect(last.take(WHOLE, 0, WHOLE.length, false)).toMatchObject({ reason: "OVERLOADED" });
  // With its end it need not wait.
  expect(new OneMessage(its, "").take(WHOLE, 0, WHOLE.length, true)).toBeUndefined();
});

import { expect, test } from "vitest";
import {
  Held,
  HELD_OF_ALL,
  type HeldOfAll,
  NOT_ASKED,
  USUALLY_HELD,
} from "../../../src/http/requests/held.ts";

function heldOf(bytes = 0): { all: HeldOfAll; held: Held; rooms: () => number } {
  let rooms = 0;
  const all = { bytes, makeRoom: () => void (rooms += 1) };
  return { all, held: new Held(all), rooms: () => rooms };
}

test("headers count as they come, above what is usual", () => {
  const { all, held } = heldOf();
  held.came(USUALLY_HELD);
  expect(held.bytes).toBe(0);
  held.came(3_000);
  held.came(500);
  expect([held.bytes, all.bytes]).toEqual([3_500, 3_500]);
  held.end();
  expect([held.bytes, all.bytes]).toEqual([0, 0]);
  held.came(9_000);
  expect(all.bytes).toBe(0);
});

test("an answered request counts no more, but for the chunk in which the next one may have begun", () => {
  const { held } = heldOf();
  held.came(4_000);
  held.came(2_000);
  const beganIn = held.chunk;
  held.came(60_000);
  held.forgetBefore(beganIn);
  expect(held.bytes).toBe(62_000 - USUALLY_HELD);
  held.came(1_500);
  const next = held.chunk;
  held.forgetBefore(next);
  expect(held.bytes).toBe(1_500 - USUALLY_HELD);
  // Answers of requests that came in one chunk.
  held.forgetBefore(beganIn);
  expect(held.bytes).toBe(1_500 - USUALLY_HELD);
  held.rested();
  expect(held.bytes).toBe(0);
});

test("bodies count on connections whose chunks are not looked at, and once on those where they are", () => {
  const { held } = heldOf();
  held.keep(40_000);
  held.keep(20_000);
  expect(held.bytes).toBe(60_000 - USUALLY_HELD);
  held.came(60_500);
  expect(held.bytes).toBe(60_500 - USUALLY_HELD);
  held.keep(-60_000);
  held.rested();
  expect(held.bytes).toBe(0);
});

test("room is made when all together keep too much, and not before", () => {
  const { held, rooms } = heldOf(HELD_OF_ALL - 1_000);
  held.came(USUALLY_HELD + 1_000);
  expect(rooms()).toBe(0);
  held.came(1);
  expect(rooms()).toBe(1);
  held.rested();
  expect(rooms()).toBe(1);
});

test("what is not counted is little", () => {
  expect(NOT_ASKED * 16 * 1_024).toBeLessThanOrEqual(HELD_OF_ALL / 2);
});

import {
  createMadeTimes,
  decode,
  type MadeSnowflakes,
  SNOWFLAKE_PRESETS,
  tickAt,
} from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { SnowflakeGenerator } from "../../src/snowflake/generator.ts";

const layout = SNOWFLAKE_PRESETS["41-10-12"];
const START_MS = 1_800_000_000_000;

function setUp(time = new FakeTime(), made: MadeSnowflakes = createMadeTimes()) {
  let reads = 0;
  const wallClock = () => {
    reads++;
    return START_MS + time.now();
  };
  const ports = { clock: time, wallClock, timers: time };
  const generator = new SnowflakeGenerator({ tag: "t", layout, clockWaitMs: 5 }, made, ports);
  const takeUp = (workerId: number, notBeforeMs = 0): void => {
    const reservedUntilMs = START_MS + time.now() + 3_000;
    const reservation = { dataCenter: 0, workerId, extension: 0, notBeforeMs, reservedUntilMs };
    generator.takeUp(reservation, 13_000);
  };
  const next = () => {
    const id = generator.tryNext();
    return id === undefined ? undefined : decode(layout, id);
  };
  return { time, generator, takeUp, next, reads: () => reads };
}

test("without a reservation nothing is made", () => {
  const { generator, next } = setUp();
  expect(next()).toBeUndefined();
  expect(generator.verdict.type).toBe("unreserved");
});

test("the clock is read once for a block of ids, when they are asked for in a row", () => {
  const { takeUp, next, reads } = setUp();
  takeUp(0);
  const before = reads();
  for (let made = 0; made < 4_000; made++) expect(next()).toBeDefined();
  expect(reads() - before).toBeLessThan(4_000 / 50);
});

test("who asks now and then has every id of its own time, and leaves no timer behind", () => {
  const { time, takeUp, next } = setUp();
  takeUp(0);
  for (let turn = 0; turn < 100; turn++) {
    time.advance(0.7);
    expect(next()?.tick).toBe(tickAt(layout, START_MS + time.now()));
    expect(time.pending).toBe(0);
  }
});

test("a block ends with its lease: the next id is of the new one, also in the same tick", () => {
  const { generator, takeUp, next } = setUp();
  takeUp(1);
  for (let made = 0; made < 100; made++) next();
  takeUp(2);
  expect(next()).toMatchObject({ worker: 2, sequence: 0 });
  for (let made = 0; made < 100; made++) next();
  generator.giveUp();
  expect(next()).toBeUndefined();
  generator.extend(START_MS - 1);
  expect(next()).toBeUndefined();
});

test("a lease that reserves a time again, as after a registry went back, begins above what was made of it", () => {
  const { time, takeUp, next } = setUp();
  takeUp(1, START_MS + 10);
  for (let made = 0; made < 3; made++) next();
  takeUp(2);
  expect(next()?.tick).toBe(tickAt(layout, START_MS));
  time.advance(2);
  takeUp(1);
  expect(next()).toMatchObject({ tick: tickAt(layout, START_MS + 11), sequence: 0 });
});

test("a lease of which nothing was made is no reason to begin later", () => {
  const { takeUp, next } = setUp();
  takeUp(1, START_MS + 10);
  takeUp(1);
  expect(next()?.tick).toBe(tickAt(layout, START_MS));
});

test("of two generators with one worker id only the later one makes ids, and none of times of the earlier one", () => {
  const time = new FakeTime();
  const made: MadeSnowflakes = createMadeTimes();
  const [one, other] = [setUp(time, made), setUp(time, made)];
  one.takeUp(1);
  const last = one.next();
  other.takeUp(1);
  // The answer to a renewal may have been on its way.
  expect(one.generator.extend(START_MS + 5_000)).toBe(false);
  expect(other.generator.extend(START_MS + 5_000)).toBe(true);
  time.advance(1);
  expect(one.next()).toBeUndefined();
  expect(other.next()?.tick).toBe((last?.tick ?? 0) + 1);
  one.takeUp(1);
  expect(one.next()?.tick).toBe((last?.tick ?? 0) + 2);
});

test("ids of blocks and of segments are one row", () => {
  const { time, generator, takeUp } = setUp();
  takeUp(0);
  let last = -1n;
  for (let turn = 0; turn < 300; turn++) {
    if (turn % 5 === 0) {
      const [segment] = generator.make(3);
      if (segment === undefined) throw new Error("no ids");
      expect(segment.base > last).toBe(true);
      last = segment.base + 2n;
    }
    const id = generator.tryNext();
    if (id === undefined) throw new Error("no id");
    expect(id > last).toBe(true);
    last = id;
    if (turn % 50 === 0) time.advance(0.5);
  }
});

import { expect, test } from "vitest";
import { elapsedClock } from "../src/elapsed.ts";

/** A machine whose times a test moves; uptime is told in steps of 10 ms, as Linux does. */
function machine(onLeap?: () => void) {
  const time = { monotonic: 5_000, wall: 1_700_000_000_000, up: 90_000, looks: 0 };
  const clock = elapsedClock({
    monotonicMs: () => time.monotonic,
    wallMs: () => time.wall,
    ...(onLeap && { onLeap }),
    uptimeMs: () => {
      time.looks++;
      return Math.floor(time.up / 10) * 10;
    },
  });
  const run = (ms: number): void => {
    time.monotonic += ms;
    time.wall += ms;
    time.up += ms;
  };
  const suspend = (ms: number): void => {
    time.wall += ms;
    time.up += ms;
  };
  return { time, clock, run, suspend };
}

test("time passes as on the monotonic clock", () => {
  const { clock, run } = machine();
  const start = clock.now();
  for (let i = 0; i < 10_000; i++) {
    run(7);
    clock.now();
  }
  expect(clock.now() - start).toBe(70_000);
});

test("time in which the machine was suspended counts from the first look after it", () => {
  const { clock, run, suspend } = machine();
  const start = clock.now();
  run(1);
  suspend(60_000);
  expect(clock.now() - start).toBeGreaterThanOrEqual(60_000);
  run(1_000);
  suspend(45);
  run(3);
  // Uptime is exact to 10 ms.
  expect(clock.now() - start).toBeGreaterThanOrEqual(61_039);
  expect(clock.now() - start).toBeLessThan(61_070);
});

test("a suspend that a step of the wall clock hides shows within a second", () => {
  const { time, clock, run, suspend } = machine();
  const start = clock.now();
  suspend(60_000);
  time.wall -= 60_000;
  run(1_000);
  expect(clock.now() - start).toBeGreaterThanOrEqual(61_000);
});

test("a wall clock that is set moves nothing, and never takes time back", () => {
  const { time, clock, run } = machine();
  let last = clock.now();
  for (const step of [3_600_000, -7_200_000, 50, -50]) {
    time.wall += step;
    run(10);
    expect(clock.now() - last).toBe(10);
    last = clock.now();
  }
});

test("uptime is looked at once a second, not at every call", () => {
  const { time, clock, run } = machine();
  clock.now();
  const { looks } = time;
  for (let i = 0; i < 1_000; i++) {
    run(5);
    clock.now();
  }
  expect(time.looks - looks).toBeLessThanOrEqual(5);
});

test("a leap of the wall clock is told once, and only beyond what the other clocks counted", () => {
  let leaps = 0;
  const { time, clock, run, suspend } = machine(() => leaps++);
  const start = clock.now();
  run(10);
  suspend(3_600_000);
  run(1_000);
  clock.now();
  expect(leaps).toBe(0);
  // Somebody sets the clock by less than a minute, or back.
  time.wall += 59_000;
  run(2);
  clock.now();
  time.wall -= 600_000;
  run(2);
  clock.now();
  expect(leaps).toBe(0);
  const before = clock.now();
  time.wall += 61_000;
  run(2);
  // Deadlines do not move.
  expect(clock.now() - before).toBe(2);
  run(2_000);
  clock.now();
  expect(leaps).toBe(1);
  // A slow drift is no leap, however far it goes.
  for (let at = 0; at < 200; at++) {
    run(1_000);
    time.wall += 500;
    clock.now();
  }
  expect(leaps).toBe(1);
  expect(clock.now() - start).toBeGreaterThan(3_600_000);
});

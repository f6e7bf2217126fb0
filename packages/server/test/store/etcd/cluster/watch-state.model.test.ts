// When a watch of etcd is begun again, whatever becomes of its streams.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  close,
  createWatchState,
  ended,
  MAX_PAUSE_MS,
  told,
  type WatchEffect,
  woke,
} from "../../../../src/store/etcd/cluster/watch-state.ts";

const KEYS = 3;

/** Runs a state against streams that do what a schedule says, and keeps what has to hold. */
class World {
  readonly state = createWatchState();
  now = 0;
  /** Streams that were begun and not ended, by their tokens. */
  readonly open = new Map<number, { begun: number }>();
  /** When the state is to be woken, and with which token. */
  timer: { readonly at: number; readonly token: number } | undefined = { at: 0, token: 0 };
  heard = 0;
  /** When each stream was begun. */
  readonly begins: number[] = [];
  isClosed = false;

  run(effects: readonly WatchEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case "begin":
          this.open.set(effect.token, { begun: 0 });
          this.begins.push(this.now);
          break;
        case "end":
          this.open.delete(effect.token);
          break;
        case "wake":
          this.timer = { at: this.now + effect.afterMs, token: effect.token };
          break;
        case "heard":
          this.heard++;
          break;
      }
    }
    // Invariant 2.
    expect(this.open.size).toBeLessThanOrEqual(1);
    if (this.isClosed) expect(this.open.size).toBe(0);
  }

  /** Lets time go by, and wakes the state when it wanted to be. */
  pass(ms: number): void {
    const until = this.now + ms;
    while (this.timer !== undefined && this.timer.at <= until && !this.isClosed) {
      const { at, token } = this.timer;
      this.timer = undefined;
      this.now = Math.max(this.now, at);
      this.run(woke(this.state, token, KEYS, 0));
    }
    this.now = until;
  }

  /** The stream of now, if there is one. */
  stream(): number | undefined {
    return [...this.open.keys()][0];
  }
}

test("a watch that began asks for a poll once, then for each change, and says nothing after its end", () => {
  const world = new World();
  world.pass(0);
  const token = world.stream() ?? -1;
  const created = { created: true, changed: false };
  for (let key = 1; key <= KEYS; key++) {
    expect(world.heard).toBe(0);
    world.run(told(world.state, token, created, world.now));
  }
  expect(world.heard).toBe(1);
  world.run(told(world.state, token, { created: false, changed: true }, world.now));
  world.run(told(world.state, token, { created: false, changed: false }, world.now));
  expect(world.heard).toBe(2);
  world.run(ended(world.state, token, world.now, 0));
  world.run(told(world.state, token, { created: false, changed: true }, world.now));
  expect([world.heard, world.open.size]).toEqual([2, 0]);
});

test("pauses double up to their limit, and begin anew after a watch that lasted", () => {
  const world = new World();
  const pauses: number[] = [];
  for (let failure = 0; failure < 9; failure++) {
    world.pass(world.timer === undefined ? 0 : Math.max(0, world.timer.at - world.now));
    world.run(ended(world.state, world.stream() ?? -1, world.now, 1));
    pauses.push((world.timer?.at ?? 0) - world.now);
  }
  expect(pauses).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000]);
  world.pass(MAX_PAUSE_MS);
  const token = world.stream() ?? -1;
  for (let key = 1; key <= KEYS; key++) {
    world.run(told(world.state, token, { created: true, changed: false }, world.now));
  }
  world.pass(60_000);
  expect(world.stream()).toBe(token);
  world.run(ended(world.state, token, world.now, 1));
  expect((world.timer?.at ?? 0) - world.now).toBe(200);
});

test("a stream that says nothing is given up, and one that is closed stays so", () => {
  const world = new World();
  world.pass(9_999);
  expect(world.begins).toEqual([0]);
  world.pass(1_000);
  expect(world.begins.length).toBe(2);
  world.isClosed = true;
  world.run(close(world.state));
  world.run(woke(world.state, world.state.token, KEYS, 0));
  expect(world.open.size).toBe(0);
});

test("whatever streams do, one is open at a time, none is begun too often, and one that lasts has asked for a poll", () => {
  const step = fc.oneof(
    fc.record({ type: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: 30_000 }) }),
    fc.record({ type: fc.constant("created" as const), late: fc.boolean() }),
    fc.record({ type: fc.constant("changed" as const), late: fc.boolean() }),
    fc.record({ type: fc.constant("ended" as const), late: fc.boolean() }),
    fc.constant({ type: "close" as const }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const world = new World();
      let last = 0;
      for (const one of steps) {
        const token = world.stream() ?? last;
        last = token;
        const at = "late" in one && one.late ? token - 1 : token;
        if (one.type === "pass") world.pass(one.ms);
        else if (one.type === "close") {
          world.isClosed = true;
          world.run(close(world.state));
        } else if (one.type === "ended") world.run(ended(world.state, at, world.now, 0));
        else {
          const what = { created: one.type === "created", changed: one.type === "changed" };
          const before = world.heard;
          world.run(told(world.state, at, what, world.now));
          // What an earlier stream says is not heard.
          if (at !== world.stream()) expect(world.heard).toBe(before);
        }
        if (world.state.phase === "begun") expect(world.heard).toBeGreaterThan(0);
        // Something goes on: a stream is open, or the next one is due.
        if (!world.isClosed) expect(world.open.size > 0 || world.timer !== undefined).toBe(true);
      }
      for (const [at, begun] of world.begins.entries()) {
        if (at > 0) expect(begun - (world.begins[at - 1] ?? 0)).toBeGreaterThanOrEqual(100);
      }
    }),
    { numRuns: 500 },
  );
});

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  causeOf,
  type DrainEffect,
  type DrainEvent,
  leavingOf,
  onDrainEvent,
  SERVING,
} from "../../src/service/drain-state.ts";

/** A server whose delay, calls and give-back take their time. */
class World {
  state = SERVING;
  /** Calls that were taken and run. */
  calls = 0;
  holdsIds = true;
  /** Drains that wait for the calls before them, by their numbers. */
  readonly waiting: { readonly round: number; calls: number }[] = [];
  /** Drains that are announced, and whose delay runs, by their numbers. */
  readonly delays: number[] = [];

  on(event: DrainEvent): readonly DrainEffect[] {
    const [state, effects] = onDrainEvent(this.state, event);
    this.state = state;
    for (const effect of effects) {
      if (effect.type === "announce") {
        // Invariant 1.
        expect(causeOf(state)).toBeUndefined();
        expect(leavingOf(state)).toBeDefined();
        this.delays.push(effect.round);
      }
      if (effect.type === "leave") this.waiting.push({ round: effect.round, calls: this.calls });
      if (effect.type === "rest") {
        // Invariant 2.
        expect(this.calls).toBe(0);
        expect(causeOf(state)).toBe("drained");
        this.holdsIds = false;
      }
      if (effect.type === "return") {
        expect(causeOf(state)).toBeUndefined();
        expect(effect.hasRested).toBe(!this.holdsIds);
        this.holdsIds = true;
      }
    }
    return effects;
  }

  call(): void {
    if (causeOf(this.state) === undefined) this.calls++;
  }

  end(): void {
    this.calls = Math.max(0, this.calls - 1);
    for (const wait of this.waiting) wait.calls = Math.max(0, wait.calls - 1);
  }

  /** A delay is over; any of them, since those that were given up are told too. */
  delayed(which: number): void {
    const [round] = this.delays.splice(which % Math.max(1, this.delays.length), 1);
    if (round !== undefined) this.on({ type: "delayed", round });
  }

  /** Of the waits one that may end does; any of them, since they are told in any order. */
  idle(which: number): void {
    const ended = this.waiting.filter(({ calls }) => calls === 0);
    const wait = ended[which % Math.max(1, ended.length)];
    if (wait === undefined) return;
    this.waiting.splice(this.waiting.indexOf(wait), 1);
    this.on({ type: "idle", round: wait.round });
  }
}

type Step =
  | "call"
  | "end"
  | "drain"
  | "undrain"
  | "stop"
  | { readonly idle: number }
  | { readonly delayed: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom<Step>("call", "end", "drain", "undrain") },
  { weight: 3, arbitrary: fc.record({ idle: fc.nat(5) }) },
  { weight: 4, arbitrary: fc.record({ delayed: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.constant<Step>("stop") },
);

test("a drain is announced before calls are refused, rests when they have ended, and a return takes calls again, in any order", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const world = new World();
      let isTold = false;
      let isStopped = false;
      for (const each of steps) {
        if (each === "call") world.call();
        else if (each === "end") world.end();
        else if (each === "stop") {
          world.on({ type: "stop" });
          isStopped = true;
        } else if (typeof each === "object") {
          if ("idle" in each) world.idle(each.idle);
          else world.delayed(each.delayed);
        } else {
          isTold = each === "drain";
          world.on({ type: "told", isDraining: isTold });
          // What every poll says again changes nothing.
          expect(world.on({ type: "told", isDraining: isTold })).toEqual([]);
        }
        const expected = isStopped ? "stopping" : isTold ? "drained" : undefined;
        expect(leavingOf(world.state)).toBe(expected);
        expect([expected, undefined]).toContain(causeOf(world.state));
      }
      for (let left = world.delays.length; left > 0; left--) world.delayed(0);
      expect(causeOf(world.state)).toBe(leavingOf(world.state));
      while (world.calls > 0) world.end();
      for (let left = world.waiting.length; left > 0; left--) world.idle(0);
      if (!isStopped) expect(world.holdsIds).toBe(!isTold);
    }),
    { numRuns: 500 },
  );
});

test("the end of calls before an earlier drain ends no later one", () => {
  const world = new World();
  world.on({ type: "told", isDraining: true });
  world.delayed(0);
  world.on({ type: "told", isDraining: false });
  world.call();
  world.on({ type: "told", isDraining: true });
  world.delayed(0);
  expect(world.on({ type: "idle", round: 1 })).toEqual([]);
  expect(world.state).toEqual({ phase: "leaving", round: 2, isStopping: false });
});

test("the delay of an earlier drain ends no later one, and a stop waits for no second delay", () => {
  const world = new World();
  world.on({ type: "told", isDraining: true });
  world.on({ type: "told", isDraining: false });
  world.on({ type: "told", isDraining: true });
  expect(world.on({ type: "delayed", round: 1 })).toEqual([]);
  expect(world.on({ type: "stop" })).toEqual([]);
  expect(world.on({ type: "told", isDraining: false })).toEqual([]);
  expect(world.on({ type: "delayed", round: 2 })).toEqual([{ type: "end" }]);
  expect(causeOf(world.state)).toBe("stopping");
});

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  BACKOFF_MAX_MS,
  BACKOFF_MIN_MS,
  onProcessesEvent,
  SETTLED_MS,
  startProcesses,
  type ProcessesEffect,
  type ProcessesEvent,
  type ProcessesState,
} from "../../src/processes/processes-state.ts";

/** What a shell would have: processes and back-offs. Fails when an invariant does not hold. */
class World {
  readonly state: ProcessesState;
  readonly running = new Set<number>();
  readonly killed = new Set<number>();
  readonly drained = new Set<number>();
  readonly waiting = new Map<number, number>();
  readonly told: string[] = [];
  isStopping = false;

  constructor(count: number) {
    const [state, effects] = startProcesses(count);
    this.state = state;
    this.#run(effects);
  }

  on(event: ProcessesEvent): void {
    if (event.type === "stop" || event.type === "force") this.isStopping = true;
    if (event.type === "ended") this.running.delete(event.process);
    if (event.type === "due") this.waiting.delete(event.process);
    this.#run(onProcessesEvent(this.state, event));
  }

  #run(effects: readonly ProcessesEffect[]): void {
    for (const effect of effects) this.#do(effect);
    if (this.state.phase === "serving") {
      // Invariant 3.
      for (const [at] of this.state.processes.entries())
        expect(this.running.has(at) !== this.waiting.has(at)).toBe(true);
    }
  }

  #do(effect: ProcessesEffect): void {
    switch (effect.type) {
      case "spawn":
        // Invariants 1 and 2.
        expect(this.running.has(effect.process)).toBe(false);
        expect(this.isStopping).toBe(false);
        this.running.add(effect.process);
        this.killed.delete(effect.process);
        break;
      case "wait":
        expect(this.isStopping).toBe(false);
        expect(effect.delayMs).toBeGreaterThanOrEqual(BACKOFF_MIN_MS / 2);
        expect(effect.delayMs).toBeLessThanOrEqual(BACKOFF_MAX_MS);
        this.waiting.set(effect.process, effect.delayMs);
        break;
      case "drain":
        expect(this.running.has(effect.process)).toBe(true);
        // Told once.
        expect(this.drained.has(effect.process)).toBe(false);
        this.drained.add(effect.process);
        break;
      case "kill":
        expect(this.running.has(effect.process)).toBe(true);
        this.killed.add(effect.process);
        break;
      case "start-failed":
        expect(this.told).toEqual([]);
        this.isStopping = true;
        this.told.push(effect.type);
        break;
      case "started":
        expect(this.told).toEqual([]);
        this.told.push(effect.type);
        break;
      case "over":
        // Invariant 4.
        expect(this.running.size).toBe(0);
        expect(this.told).not.toContain("over");
        this.told.push(effect.type);
        break;
    }
  }
}

const process = fc.nat({ max: 3 });
const jitter = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
/** Steps of processes and of their parent; of processes that are not there nothing is heard, see `apply`. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant("serving" as const), process }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant("ended" as const), process, jitter }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant("due" as const), process }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("late" as const), process }) },
  { weight: 1, arbitrary: fc.constant({ type: "stop" as const }) },
  { weight: 1, arbitrary: fc.constant({ type: "force" as const }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

function apply(world: World, each: Step, now: number): void {
  if (each.type === "serving" || each.type === "ended") {
    if (world.running.has(each.process)) world.on({ ...each, now });
  } else {
    // Timers may come late, also when they were cancelled.
    world.on(each);
  }
}

test("whatever happens, no number has two processes, and none is started while they stop", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.record({ each: step, afterMs: fc.nat({ max: 15_000 }) }), { maxLength: 60 }),
      (count, steps) => {
        const world = new World(count);
        let now = 0;
        for (const { each, afterMs } of steps) apply(world, each, (now += afterMs));
        // From wherever it got to: told to stop, it drains whoever is left, and it is over when they have ended.
        world.on({ type: "stop" });
        expect(world.drained).toEqual(new Set([...world.drained, ...world.running]));
        world.on({ type: "force" });
        expect([...world.running].every((at) => world.killed.has(at))).toBe(true);
        for (const at of world.running) world.on({ type: "ended", process: at, now, jitter: 0 });
        expect(world.told.at(-1)).toBe("over");
        expect(world.state.phase).toBe("over");
      },
    ),
    { numRuns: 2_000 },
  );
});

test("a process that keeps falling is started again, later and later, up to a limit", () => {
  const world = new World(1);
  world.on({ type: "serving", process: 0, now: 0 });
  const delays: number[] = [];
  for (let fall = 0; fall < 12; fall++) {
    world.on({ type: "ended", process: 0, now: fall, jitter: 0.999_999 });
    delays.push(Math.round(world.waiting.get(0) ?? 0));
    world.on({ type: "due", process: 0 });
  }
  expect(delays.slice(0, 4)).toEqual([100, 200, 400, 800]);
  expect(delays.at(-1)).toBe(BACKOFF_MAX_MS);
  // One that came to serve for long begins anew.
  world.on({ type: "serving", process: 0, now: 1_000 });
  world.on({ type: "ended", process: 0, now: 1_000 + SETTLED_MS, jitter: 0 });
  expect(world.waiting.get(0)).toBe(BACKOFF_MIN_MS / 2);
});

test("they have started when all serve, and a process that ends before ends the start", () => {
  const good = new World(2);
  good.on({ type: "serving", process: 1, now: 0 });
  expect(good.told).toEqual([]);
  good.on({ type: "serving", process: 0, now: 0 });
  expect(good.told).toEqual(["started"]);

  const bad = new World(3);
  bad.on({ type: "serving", process: 1, now: 0 });
  bad.on({ type: "ended", process: 0, now: 0, jitter: 0 });
  expect(bad.told).toEqual(["start-failed"]);
  expect(bad.drained).toEqual(new Set([1, 2]));
  bad.on({ type: "ended", process: 2, now: 0, jitter: 0 });
  bad.on({ type: "ended", process: 1, now: 0, jitter: 0 });
  expect(bad.told).toEqual(["start-failed", "over"]);
});

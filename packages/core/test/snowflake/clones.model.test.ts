import {
  createMadeTimes,
  decode,
  IdmintError,
  idsOf,
  SNOWFLAKE_PRESETS,
  tickAt,
} from "@idmint/core";
import { leasedWorker, renewedWorker, type Worker } from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  createGeneratorState,
  extend,
  type GeneratorState,
  giveUp,
  look,
  make,
  takeUp,
  timeNow,
} from "../../src/snowflake/generator-state.ts";
import {
  callDue,
  callFailed,
  createLeaseState,
  leased,
  type LeaseEffect,
  type LeaseState,
  renewed,
} from "../../src/worker/lease-state.ts";

const layout = { ...SNOWFLAKE_PRESETS["41-10-12"], workerBits: 2, sequenceBits: 2 };
const rules = { layout, dataCenter: 0, closedUntilMs: 0 };
const START_MS = 1_800_000_000_000;
const AHEAD = 3_000;

/** Everything a process is, so that it can be copied while it runs. */
interface Process {
  lease: LeaseState;
  generator: GeneratorState;
  offsetMs: number;
}

class Fleet {
  now = 0;
  readonly rows: Worker[] = [];
  readonly processes: Process[] = [];
  /** Who made an id. */
  readonly ids = new Map<bigint, number>();
  readonly repeats: bigint[] = [];

  constructor() {
    const options = { tag: "t", instance: "pod", dataCenter: 0 };
    const lease = createLeaseState({ ...options, reserveAheadMs: AHEAD, renewEveryMs: 1_000 });
    this.processes.push({
      lease,
      generator: createGeneratorState({ tag: "t", layout, clockWaitMs: 5 }, createMadeTimes()),
      offsetMs: 0,
    });
    this.run(0);
  }

  reading(process: Process) {
    return { wallMs: START_MS + this.now + process.offsetMs, monotonicMs: this.now };
  }

  /** Sends what is due. */
  run(index: number): void {
    const process = this.processes[index];
    if (process === undefined) return;
    const { lease, generator } = process;
    const timeMs = timeNow(generator, this.reading(process));
    for (const effect of callDue(lease, this.now, { timeMs, wantsExtension: false })) {
      this.#apply(process, this.#call(process, effect));
    }
  }

  #call(process: Process, effect: LeaseEffect): LeaseEffect[] {
    const nowMs = START_MS + this.now;
    const { lease } = process;
    try {
      if (effect.type === "lease") {
        const { tag, instance, reserveAheadMs } = lease.options;
        const request = { tag, instance, dataCenter: 0, reserveAheadMs };
        const own = this.rows.find((row) => row.instance === instance);
        const candidates = { own, used: this.rows.length, free: undefined };
        const { row, answer } = leasedWorker(candidates, request, rules, nowMs);
        this.rows[row.workerId] = row;
        return leased(lease, effect.call, { ...answer, epoch: 1n }, this.now);
      }
      if (effect.type !== "renew") return [];
      const before = this.rows[effect.renewal.workerId];
      const { row, answer } = renewedWorker(before, effect.renewal, rules, nowMs);
      this.rows[row.workerId] = row;
      return renewed(lease, effect.call, { ...answer, epoch: 1n }, this.now);
    } catch (error) {
      if (!(error instanceof IdmintError) || !("call" in effect)) throw error;
      return callFailed(lease, effect.call, error, this.now, () => 0.5);
    }
  }

  #apply(process: Process, effects: readonly LeaseEffect[]): void {
    for (const effect of effects) {
      if (effect.type === "take-up") {
        const { notBeforeMs } = effect;
        takeUp(process.generator, { ...effect.lease, notBeforeMs }, this.reading(process), 13_000);
      }
      if (effect.type === "extend") extend(process.generator, effect.reservedUntilMs);
      if (effect.type === "give-up") giveUp(process.generator);
    }
  }

  make(index: number, count: number): number {
    const process = this.processes[index];
    if (process === undefined) return 0;
    if (look(process.generator, this.reading(process)).type !== "ready") return 0;
    let made = 0;
    for (const id of idsOf(make(process.generator, count))) {
      if (this.ids.has(id)) this.repeats.push(id);
      this.ids.set(id, index);
      made++;
    }
    return made;
  }
}

type Step = { who: number; do: "make" | "run" | "advance"; by: number };
const step: fc.Arbitrary<Step> = fc.record({
  who: fc.nat(2),
  do: fc.constantFrom("make", "make", "run", "advance"),
  by: fc.oneof(fc.nat(20), fc.nat(1_500)),
});

function play(fleet: Fleet, steps: readonly Step[]): void {
  for (const { who, do: what, by } of steps) {
    if (what === "advance") fleet.now += by;
    if (what === "run") fleet.run(who);
    if (what === "make") fleet.make(who, by);
  }
}

/** Copies of process 0; how late they wake up, and how far their clocks are off then. */
const clones = fc.array(fc.record({ offsetMs: fc.constantFrom(0, 50, -50, -2_000) }), {
  minLength: 1,
  maxLength: 2,
});

test("copies of a running process repeat nothing beyond what was reserved when they were made", () => {
  let repeats = 0;
  fc.assert(
    fc.property(
      fc.array(step),
      clones,
      fc.array(step, { minLength: 20, maxLength: 200 }),
      (before, copies, after) => {
        const fleet = new Fleet();
        play(fleet, before);
        const [original] = fleet.processes;
        if (original === undefined) throw new Error("no process");
        const { lastTick } = original.generator;
        for (const { offsetMs } of copies) {
          fleet.processes.push({ ...structuredClone(original), offsetMs });
        }
        play(fleet, after);
        for (const id of fleet.repeats) {
          expect(decode(layout, id).tick).toBeLessThanOrEqual(lastTick);
        }
        repeats += fleet.repeats.length;
      },
    ),
    { numRuns: 1_000 },
  );
  // Otherwise nothing was tried.
  expect(repeats).toBeGreaterThan(0);
});

test("copies that wake up after what was reserved, by their clocks, repeat nothing at all", () => {
  let made = 0;
  fc.assert(
    fc.property(
      fc.array(step),
      clones,
      fc.array(step, { minLength: 20, maxLength: 200 }),
      (before, copies, after) => {
        const fleet = new Fleet();
        play(fleet, before);
        const [original] = fleet.processes;
        if (original === undefined) throw new Error("no process");
        const saved = structuredClone(original);
        fleet.now += AHEAD + 2_050;
        for (const { offsetMs } of copies) {
          fleet.processes.push({ ...structuredClone(saved), offsetMs });
          const { tick, lastTick } = saved.generator;
          const wakesAt = tickAt(layout, START_MS + fleet.now + offsetMs);
          fc.pre(wakesAt > Math.max(tick, lastTick));
        }
        play(fleet, after);
        expect(fleet.repeats).toEqual([]);
        made += fleet.ids.size;
      },
    ),
    { numRuns: 1_000 },
  );
  expect(made).toBeGreaterThan(10_000);
});

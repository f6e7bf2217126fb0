// The ring of figures against a plain list of all samples that were ever taken.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type CountedTag,
  createFiguresState,
  type FigureRun,
  figureRuns,
  KEPT_SECONDS,
  latencyOf,
  MAX_WATCHED,
  type Sample,
  sampled,
  tagFigureRuns,
  watchTag,
} from "../../../src/service/figures/figures-state.ts";

const BOUNDS = [0.001, 0.01];
const START = 1_700_000_000_000;

/** One second of a process, or several of which all but the last were missed. */
interface Step {
  readonly seconds: number;
  readonly issued: number;
  readonly refused: number;
  readonly reason: string;
  readonly fast: number;
  readonly slow: number;
  /** By how much the wall clock was set, and by how much it is read late. */
  readonly setMs: number;
  readonly lateMs: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  seconds: fc.oneof({ weight: 8, arbitrary: fc.constant(1) }, fc.nat(2_000)),
  issued: fc.nat(1_000_000),
  refused: fc.nat(50),
  reason: fc.constantFrom("OVERLOADED", "TAG_NOT_FOUND"),
  fast: fc.nat(5),
  slow: fc.nat(5),
  setMs: fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, fc.integer({ min: -9e6, max: 9e6 })),
  lateMs: fc.nat(400),
});

const sampleAt = (second: number): Sample => ({
  second,
  wallMs: START + second * 1_000 + 500,
  issued: 0,
  calls: 0,
  refused: 0,
  refusals: new Map(),
  times: [0, 0, 0],
  loopDelayMicros: 0,
  loopBusyPermille: 0,
  waiting: 0,
});

const NO_TAG = (): { readonly counted: undefined; readonly ready: undefined } => ({
  counted: undefined,
  ready: undefined,
});

/** The sample after a step. The server counts refusals in one map, from its start to its end. */
function after(last: Sample, step: Step, aheadMs: number, refusals: Map<string, number>): Sample {
  const { seconds, issued, refused, reason, fast, slow, lateMs } = step;
  refusals.set(reason, (refusals.get(reason) ?? 0) + refused);
  const second = last.second + seconds;
  const [f = 0, s = 0] = last.times ?? [];
  return {
    second,
    wallMs: START + second * 1_000 + aheadMs + lateMs,
    issued: last.issued + issued,
    calls: last.calls + fast + slow + refused,
    refused: last.refused + refused,
    refusals,
    times: [f + fast, s + slow, 0],
    loopDelayMicros: lateMs,
    loopBusyPermille: 0,
    waiting: second % 7,
  };
}

const flat = (runs: readonly FigureRun[], of: (run: FigureRun) => readonly number[]): number[] =>
  runs.flatMap((run) => [...of(run)]);

test("every second that was sampled is told once, with all that was counted; others are missing", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), fc.nat(1_000), (steps, wanted) => {
      const refusals = new Map<string, number>();
      let last: Sample = { ...sampleAt(0), refusals };
      const state = createFiguresState(last, BOUNDS);
      const kept: { readonly second: number; readonly step: Step }[] = [];
      let aheadMs = 0;
      for (const one of steps) {
        aheadMs += one.setMs;
        if (one.seconds === 0) {
          sampled(state, { ...last, issued: last.issued + 1, waiting: 9 }, NO_TAG);
          continue;
        }
        last = after(last, one, aheadMs, refusals);
        sampled(state, last, NO_TAG);
        kept.push({ second: last.second, step: one });
      }
      const now = last.second + 1;
      const count = Math.min(Math.max(1, wanted), KEPT_SECONDS);
      const told = kept.filter(({ second }) => second >= now - count);
      const runs = figureRuns(state, now, count);
      expect(flat(runs, (run) => run.issued)).toEqual(told.map((each) => each.step.issued));
      expect(flat(runs, (run) => run.refused)).toEqual(told.map((each) => each.step.refused));
      expect(flat(runs, (run) => run.waiting)).toEqual(told.map(({ second }) => second % 7));
      for (const { issued, refused, refusals, latencies } of runs) {
        expect(latencies).toHaveLength(issued.length);
        const sums = issued.map((_, at) =>
          refusals.reduce((sum, { calls }) => sum + calls[at]!, 0),
        );
        expect(sums).toEqual(refused);
      }
      const timed = told.some((each) => each.step.fast + each.step.slow > 0);
      expect(latencyOf(state, now, count) !== undefined).toBe(timed);
      const lengths = runs.map(({ issued }) => issued.length);
      expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(told.length);
    }),
  );
});

test("a run has no missing second in it, and its times go on by one", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const refusals = new Map<string, number>();
      let last: Sample = { ...sampleAt(0), refusals };
      const state = createFiguresState(last, BOUNDS);
      const kept: { readonly second: number; readonly wallS: number }[] = [];
      let aheadMs = 0;
      for (const one of steps.filter(({ seconds }) => seconds > 0)) {
        aheadMs += one.setMs;
        last = after(last, one, aheadMs, refusals);
        sampled(state, last, NO_TAG);
        kept.push({ second: last.second, wallS: last.wallMs / 1_000 });
      }
      const now = last.second + 1;
      const told = kept.filter(({ second }) => second >= now - KEPT_SECONDS);
      const labelled = figureRuns(state, now, KEPT_SECONDS).flatMap((run) =>
        run.issued.map((_, at) => ({ label: run.startSecond + at, isFirst: at === 0 })),
      );
      labelled.forEach(({ label, isFirst }, at) => {
        const { second, wallS } = told[at]!;
        expect(Math.abs(wallS - label - 0.5)).toBeLessThanOrEqual(1.01);
        if (!isFirst) expect(second).toBe(told[at - 1]!.second + 1);
      });
    }),
  );
});

test("a clock that is read a little early or late, or is slewed, tears no run", () => {
  const jitters = fc.array(fc.integer({ min: -40, max: 40 }), { minLength: 2, maxLength: 200 });
  fc.assert(
    fc.property(jitters, fc.nat(999), (all, phaseMs) => {
      const state = createFiguresState(sampleAt(0), BOUNDS);
      all.forEach((jitterMs, at) => {
        const wallMs = START + (at + 1) * 1_000 + phaseMs + jitterMs;
        sampled(state, { ...sampleAt(at + 1), wallMs }, NO_TAG);
      });
      expect(figureRuns(state, all.length + 1, KEPT_SECONDS)).toHaveLength(1);
    }),
  );
});

/** A tag that is used, left and found again. */
const use = fc.record({
  issued: fc.nat(1_000),
  /** What the present record of the tag issues before another takes its place, if one does. */
  replaced: fc.option(fc.nat(100), { nil: undefined }),
  ready: fc.nat(10_000),
});

test("what a tag issued is told whole, whichever record of it counted", () => {
  fc.assert(
    fc.property(fc.array(use, { minLength: 1, maxLength: 80 }), fc.nat(1e6), (uses, before) => {
      let entry = { issued: before };
      const state = createFiguresState(sampleAt(0), BOUNDS);
      watchTag(state, "orders", () => ({ counted: entry, ready: 0 }));
      const wanted: number[] = [];
      uses.forEach(({ issued, replaced, ready }, at) => {
        if (replaced !== undefined) {
          entry.issued += replaced;
          entry = { issued: 0 };
        }
        entry.issued += issued;
        wanted.push(issued + (replaced ?? 0));
        const look = { counted: entry as CountedTag, ready };
        sampled(state, sampleAt(at + 1), () => look);
      });
      const runs = tagFigureRuns(state, "orders", uses.length + 1, KEPT_SECONDS);
      expect(runs.flatMap(({ issued }) => [...issued])).toEqual(wanted);
      expect(runs.flatMap(({ ready }) => [...ready])).toEqual(uses.map(({ ready }) => ready));
      const remaining = runs.flatMap((run) => [...run.remaining]);
      uses.forEach(({ ready }, at) => {
        const minute = wanted.slice(Math.max(0, at - 59), at + 1);
        const ids = minute.reduce((sum, each) => sum + each, 0);
        if (ids === 0) expect(remaining[at]).toBeUndefined();
        else expect(remaining[at]).toBeCloseTo((ready * minute.length) / ids, 6);
      });
    }),
  );
});

test("a tag is told from when it was first asked for, and not after so many others were", () => {
  const state = createFiguresState(sampleAt(0), BOUNDS);
  const entry = { issued: 7 };
  const look = () => ({ counted: entry, ready: 1 });
  sampled(state, sampleAt(1), look);
  watchTag(state, "first", look);
  expect(tagFigureRuns(state, "first", 2, KEPT_SECONDS)).toEqual([]);
  entry.issued += 5;
  sampled(state, sampleAt(2), look);
  expect(tagFigureRuns(state, "first", 3, KEPT_SECONDS)).toMatchObject([{ issued: [5] }]);
  for (let at = 1; at < MAX_WATCHED; at++) watchTag(state, `tag${at}`, look);
  watchTag(state, "first", look);
  watchTag(state, "one more", look);
  expect(state.tags.size).toBe(MAX_WATCHED);
  expect(tagFigureRuns(state, "first", 3, KEPT_SECONDS)).toMatchObject([{ issued: [5] }]);
  expect(state.tags.has("tag1")).toBe(false);
});

test("a kind without ids in memory has none that last for any time", () => {
  const state = createFiguresState(sampleAt(0), BOUNDS);
  const entry = { issued: 0 };
  watchTag(state, "serial", () => ({ counted: entry, ready: undefined }));
  entry.issued = 3;
  sampled(state, sampleAt(1), () => ({ counted: entry, ready: undefined }));
  expect(tagFigureRuns(state, "serial", 2, 10)).toMatchObject([
    { issued: [3], ready: [0], remaining: [undefined] },
  ]);
});

test("percentiles lie within the buckets of the calls that they are of", () => {
  const state = createFiguresState(sampleAt(0), BOUNDS);
  sampled(state, { ...sampleAt(1), times: [98, 2, 0] }, NO_TAG);
  const { p50Micros, p99Micros } = latencyOf(state, 2, 10)!;
  expect(p50Micros).toBeGreaterThan(0);
  expect(p50Micros).toBeLessThanOrEqual(1_000);
  expect(p99Micros).toBeGreaterThan(1_000);
  expect(p99Micros).toBeLessThanOrEqual(10_000);
  // The second after has no calls.
  sampled(state, { ...sampleAt(2), times: [98, 2, 0] }, NO_TAG);
  expect(figureRuns(state, 3, 1)).toMatchObject([{ latencies: [undefined] }]);
});

test("all that is kept takes less than 1 MB", () => {
  const state = createFiguresState(
    { ...sampleAt(0), times: Array.from({ length: 20 }, () => 0) },
    Array.from({ length: 19 }, (_, at) => at + 1),
  );
  for (let at = 0; at < 2 * MAX_WATCHED; at++) watchTag(state, `tag${at}`, NO_TAG);
  const refusals = new Map(Array.from({ length: 100 }, (_, at) => [`REASON_${at}`, 1]));
  sampled(state, { ...sampleAt(1), refusals }, NO_TAG);
  const sizes = new Set<ArrayBufferLike>();
  const weigh = (value: unknown): void => {
    if (ArrayBuffer.isView(value)) sizes.add(value.buffer);
    else if (value instanceof Map) for (const each of value.values()) weigh(each);
    else if (typeof value === "object" && value !== null) Object.values(value).forEach(weigh);
  };
  weigh(state);
  const bytes = [...sizes].reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(sizes.size).toBeGreaterThan(MAX_WATCHED);
  expect(bytes).toBeLessThan(1_000_000);
});

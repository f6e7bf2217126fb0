import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Answer, faultsOf, HistoryRecorder, readHistory } from "../../src/fleet/history.ts";

/** An answer of ids from `first` on, asked and answered at these times. */
function answer(
  [asked, answered]: readonly [number, number],
  first: number,
  { count = 1, period = "", stream = 0 } = {},
): Answer {
  const last = BigInt(first + count - 1);
  const times = { asked: BigInt(asked), answered: BigInt(answered) };
  return { period, first: BigInt(first), last, ...times, file: "a", stream };
}

const NONE = { repeats: [], inversions: [] };

test("calls that overlap in time may be answered in any order", () => {
  expect(faultsOf([answer([0, 10], 2), answer([5, 20], 1), answer([10, 30], 3)])).toEqual(NONE);
});

test("a smaller id asked for after a larger one was answered is found, with both", () => {
  const [before, after] = [answer([0, 10], 5), answer([11, 20], 4)];
  expect(faultsOf([after, before])).toEqual({ repeats: [], inversions: [[before, after]] });
});

test("an inversion is found across many calls between", () => {
  const between = Array.from({ length: 50 }, (_, at) => answer([20 + at, 60 + at], 100 + at));
  const [before, after] = [answer([0, 10], 200), answer([120, 130], 199)];
  const { inversions } = faultsOf([before, ...between, after]);
  // All between were asked for after 200 was answered, too.
  expect(inversions.length).toBe(20);
  expect(faultsOf([before, after]).inversions).toEqual([[before, after]]);
});

test("a range that holds an answered id is an inversion and a repeat", () => {
  const [before, after] = [answer([0, 10], 5), answer([11, 20], 4, { count: 3 })];
  const { repeats, inversions } = faultsOf([before, after]);
  expect(repeats).toHaveLength(1);
  expect(inversions).toHaveLength(1);
});

test("an id that two were answered at the same time is a repeat, also within ranges", () => {
  const wide = answer([0, 10], 1, { count: 10 });
  expect(faultsOf([answer([0, 10], 7), answer([0, 10], 7)]).repeats).toHaveLength(1);
  expect(faultsOf([wide, answer([0, 10], 2), answer([0, 10], 9)]).repeats).toHaveLength(2);
  expect(faultsOf([wide, answer([0, 10], 11)]).repeats).toEqual([]);
});

test("ids of different periods are different, and the later period is the larger", () => {
  const old = { period: "2026-11-20" };
  const young = { period: "2026-11-21" };
  const [before, after] = [answer([0, 10], 9, old), answer([11, 20], 1, young)];
  expect(faultsOf([before, after])).toEqual(NONE);
  const back = answer([30, 40], 10, old);
  expect(faultsOf([before, after, back]).inversions).toEqual([[after, back]]);
  expect(faultsOf([answer([0, 10], 9, old), answer([0, 10], 9, young)])).toEqual(NONE);
});

test("what was recorded is read again, and the torn end of a killed process is left out", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-history-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "a");
  const recorder = new HistoryRecorder(file);
  const asked = process.hrtime.bigint();
  recorder.answer(3, asked, "2026-11-21", 2n ** 60n, 7);
  recorder.answer(4, asked, "", 1n, 1);
  recorder.close();
  appendFileSync(file, Buffer.alloc(31));
  const [one, two, ...others] = readHistory([file]);
  expect(one).toMatchObject({ period: "2026-11-21", first: 2n ** 60n, last: 2n ** 60n + 6n });
  expect(one).toMatchObject({ asked, file, stream: 3 });
  expect(two).toMatchObject({ period: "", first: 1n, last: 1n, stream: 4 });
  expect(two?.answered).toBeGreaterThan(asked);
  expect(others).toEqual([]);
});

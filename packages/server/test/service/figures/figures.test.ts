import { FakeTime } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { CallTimes } from "../../../src/service/call-times.ts";
import { createCounters } from "../../../src/service/counters.ts";
import { Figures, secondsOf } from "../../../src/service/figures/figures.ts";

const START = 1_700_000_000_000;

function made({ startMs = 250, isTimed = true } = {}) {
  const time = new FakeTime(startMs);
  const counters = createCounters();
  const callTimes = isTimed ? new CallTimes() : undefined;
  const figures = new Figures({
    clock: time,
    timers: time,
    wallClock: () => START + time.now(),
    counters,
    callTimes,
    readLoop: () => ({ max: 0.002, utilization: 0.25 }),
    admission: { waitingCalls: 3 },
    directory: { peek: () => undefined },
  });
  figures.start();
  onTestFinished(() => figures.stop());
  return { time, counters, callTimes, figures };
}

test("each second of the clock has one sample, taken after its end, whenever counting began", () => {
  for (const startMs of [0, 1, 250, 999, 12_345]) {
    const { time, counters, figures } = made({ startMs });
    for (let step = 0; step < 40; step++) {
      counters.calls++;
      time.advance(100);
    }
    const [run, ...others] = figures.runs(60);
    expect(others).toEqual([]);
    const counted = run!.calls.length;
    expect(counted === 3 || counted === 4).toBe(true);
    expect((START + startMs) / 1_000 - run!.startSecond).toBeLessThan(1);
    expect(run!.calls.slice(1)).toEqual(Array.from({ length: counted - 1 }, () => 10));
    expect(run!.loopDelayMicros[0]).toBeCloseTo(2_000, 0);
    expect(run!.loopBusyPermille[0]).toBe(250);
    expect(run!.waiting[0]).toBe(3);
  }
});

test("ids that callers returned were issued all the same", () => {
  const { time, counters, figures } = made();
  counters.issuedIds = 100;
  time.advance(1_000);
  counters.issuedIds -= 40;
  counters.returnedIds += 40;
  time.advance(1_000);
  expect(figures.runs(60)).toMatchObject([{ issued: [100, 0] }]);
});

test("calls for ids that were answered with ids are timed, and no others", () => {
  const { time, callTimes, figures } = made();
  const answered = (method: string, code: number): void =>
    callTimes!.of(`/idmint.v1.${method}`).answered(code, performance.now());
  answered("IdService/StreamIds", 0);
  answered("NodeService/ListFigures", 0);
  answered("IdService/GenerateId", 14);
  time.advance(1_000);
  expect(figures.latency(60)).toBeUndefined();
  answered("IdService/GenerateId", 0);
  time.advance(1_000);
  expect(figures.latency(60)?.p99Micros).toBeGreaterThan(0);
  expect(figures.runs(60)).toMatchObject([{ latencies: [undefined, { p50Micros: 50 }] }]);
});

test("a server that does not time calls has no latencies", () => {
  const { time, figures } = made({ isTimed: false });
  time.advance(2_000);
  expect(figures.runs(60)).toMatchObject([{ latencies: [] }]);
  expect(figures.latency(60)).toBeUndefined();
});

test("a tag that nobody uses has issued nothing, and is not known", () => {
  const { time, figures } = made();
  expect(figures.tag("orders", 60)).toEqual({ present: undefined, runs: [] });
  time.advance(1_000);
  expect(figures.tag("orders", 60)).toMatchObject({ present: undefined, runs: [{ issued: [0] }] });
});

test("nothing is counted after the end, and seconds are as many as there are", () => {
  const { time, figures } = made();
  time.advance(1_000);
  figures.stop();
  time.advance(5_000);
  expect(figures.runs(60)).toMatchObject([{ calls: [0] }]);
  expect(time.pending).toBe(0);
  expect([secondsOf(0), secondsOf(900)]).toEqual([60, 900]);
  for (const wrong of [-1, 901]) {
    expect(() => secondsOf(wrong)).toThrow("seconds must be 1 to 900");
  }
});

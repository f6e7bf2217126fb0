import { type Load, type LoadRequest, SegmentBuffer, segmentOf } from "@idmint/core";
import { FakeTime } from "../../src/fake-time.ts";
import type { Benchmark } from "../lib/benchmark.ts";
import { atMost, type Figure } from "../lib/figure.ts";

const HOUR_S = 3_600;
const STEPS_PER_SECOND = 10;
const WINDOW_S = 10;

/** Ids wanted a second, by the second of the hour: ramps, steps, bursts, idle spells, and a day's wave in small. */
function demandAt(second: number): number {
  if (second < 300) return (second / 300) * 20_000; // a ramp from nothing
  if (second < 900) return 20_000; // steady
  if (second < 1_200) return second % 60 < 5 ? 60_000 : 5_000; // bursts of five seconds each minute
  if (second < 1_500) return 0; // idle
  if (second < 1_800) return 1_000; // a trickle
  if (second < 1_810) return 100_000; // one burst
  if (second < 2_400) return 1_000;
  if (second < 2_700) return 0;
  if (second < 3_300) return 10_000 * (1 + Math.sin((second - 2_700) / 60)); // waves
  return 30_000 * (1 - (second - 3_300) / 300); // a ramp to nothing
}

/** One load of the simulated hour: its size, and peak rate × hold_for at that moment, within the tag's bounds. */
export interface SimulatedLoad {
  readonly second: number;
  readonly size: number;
  readonly wanted: number;
}

/** Runs one hour through core's buffer, on a clock of its own. */
export async function simulateHour(options: {
  readonly min: number;
  readonly max: number;
  readonly holdForMs: number;
}): Promise<readonly SimulatedLoad[]> {
  const { min, max, holdForMs } = options;
  const time = new FakeTime();
  const loads: SimulatedLoad[] = [];
  /** Ids issued by the end of each second: what the peak is computed of here, apart from core's own meter. */
  const totals: number[] = [0];
  let issued = 0;
  let floor = 0n;
  const load = ({ count }: LoadRequest): Promise<Load<undefined>> => {
    const wanted = Math.min(max, Math.max(min, peakOf(totals, issued, holdForMs) * holdForMs));
    loads.push({ second: time.now() / 1_000, size: count, wanted });
    const base = floor + 1n;
    floor += BigInt(count);
    const segments = [segmentOf(base, count)];
    return Promise.resolve({ segments, epoch: 1n, receipt: undefined });
  };
  const buffer = new SegmentBuffer<undefined>(
    "simulated",
    { min, max, holdForMs, prefetchShare: 0.1, maxWaiters: 10_000, ordered: false },
    { load, clock: time, timers: time, random: () => 0.5 },
  );
  let owed = 0;
  for (let second = 0; second < HOUR_S; second++) {
    for (let step = 0; step < STEPS_PER_SECOND; step++) {
      owed += demandAt(second) / STEPS_PER_SECOND;
      const count = Math.floor(owed);
      owed -= count;
      if (count > 0) await buffer.take(count);
      issued += count;
      time.advance(1_000 / STEPS_PER_SECOND);
    }
    totals.push(issued);
    buffer.sample();
    // What a load brings arrives in a turn of its own.
    await Promise.resolve();
  }
  return loads;
}

/** The highest average over ten seconds of the last hold_for, in ids a millisecond. */
function peakOf(totals: readonly number[], issued: number, holdForMs: number): number {
  const now = totals.length - 1;
  const from = Math.max(0, now - Math.round(holdForMs / 1_000));
  let peak = issued - (totals[Math.max(0, now - WINDOW_S)] ?? 0);
  for (let second = from; second <= now; second++) {
    const before = totals[Math.max(0, second - WINDOW_S)] ?? 0;
    peak = Math.max(peak, (totals[second] ?? 0) - before);
  }
  return peak / (WINDOW_S * 1_000);
}

/** The largest factor between a load's size and what was wanted. */
export function worstFactor(loads: readonly SimulatedLoad[]): number {
  const factors = loads.map(({ size, wanted }) => Math.max(size / wanted, wanted / size));
  return Math.max(1, ...factors);
}

/** Times that sizes went up and at once down again, or down and up, while what was wanted stayed within a factor of two. */
export function oscillations(loads: readonly SimulatedLoad[]): number {
  let count = 0;
  for (let at = 2; at < loads.length; at++) {
    const three = loads.slice(at - 2, at + 1);
    const [a = 0, b = 0, c = 0] = three.map(({ size }) => size);
    const wanted = three.map((each) => each.wanted);
    const isSteady = Math.max(...wanted) < 2 * Math.min(...wanted);
    if (isSteady && (b - a) * (c - b) < 0) count++;
  }
  return count;
}

const CASES = [
  {
    name: "server",
    text: "a server's (15 min, 1,000 … 100 M)",
    min: 1_000,
    max: 100_000_000,
    holdForMs: 900_000,
  },
  { name: "sdk", text: "an SDK's (1 min, 100 … 1 M)", min: 100, max: 1_000_000, holdForMs: 60_000 },
  {
    name: "short",
    text: "short ones (10 s, 100 … 1 M)",
    min: 100,
    max: 1_000_000,
    holdForMs: 10_000,
  },
] as const;

/** How well the size of segments follows the rate, over one simulated hour. */
export const sizing: Benchmark = {
  name: "sizing",
  title: "Segment sizing",
  run: async () => {
    const figures: Figure[] = [];
    for (const { name, text, ...options } of CASES) {
      const loads = await simulateHour(options);
      figures.push(
        {
          id: `sizing.${name}.factor`,
          text: `a simulated hour, ${text}: largest factor off peak rate × hold_for`,
          unit: "×",
          samples: [{ ours: worstFactor(loads) }],
          bar: atMost(2),
        },
        {
          id: `sizing.${name}.oscillations`,
          text: `a simulated hour, ${text}: oscillations in ${loads.length} loads`,
          unit: "times",
          samples: [{ ours: oscillations(loads) }],
          bar: atMost(0),
        },
      );
    }
    return figures;
  },
};

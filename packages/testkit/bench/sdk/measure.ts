// Measures one subject in this process. Usage: measure.ts subject seconds [address tag]. Writes one line of JSON.
import { setImmediate as turn } from "node:timers/promises";
import { percentile } from "../lib/statistics.ts";
import { type Made, SEGMENT, subjectOf } from "./subjects.ts";

export interface Cost {
  /** Nanoseconds an id: the lower quartile of the slices, since whatever else runs on the machine only adds. */
  readonly ns: number;
  readonly slices: number;
}

/** Ids are kept, as whoever asks for an id keeps it; in a ring, so that memory is not what is measured. */
const KEPT = 1_024;
/** Longest slice, so that a slice of ours stays within one segment. */
const MAX_SLICE = SEGMENT / 10;
const SLICE_MS = 20;

// One loop each, so that a loop sees one kind of id only.

function takeNumbers(next: () => number, count: number): number {
  const kept = new Float64Array(KEPT);
  for (let i = 0; i < count; i++) kept[i & (KEPT - 1)] = next();
  return kept[0] ?? 0;
}

function takeValues(next: () => unknown, count: number): unknown {
  const kept: unknown[] = Array.from({ length: KEPT }, () => undefined);
  for (let i = 0; i < count; i++) kept[i & (KEPT - 1)] = next();
  return kept[0];
}

function takeStrings(next: () => string, count: number): number {
  let sum = 0;
  for (let i = 0; i < count; i++) {
    const id = next();
    // A string put together of parts is flattened when a character of it is read.
    sum += id.charCodeAt(id.length - 1);
  }
  return sum;
}

async function takeAwaited(next: () => Promise<unknown>, count: number): Promise<unknown> {
  const kept: unknown[] = Array.from({ length: KEPT }, () => undefined);
  for (let i = 0; i < count; i++) kept[i & (KEPT - 1)] = await next();
  return kept[0];
}

async function slice(kind: string, { next }: Made, count: number): Promise<number> {
  const start = performance.now();
  if (kind === "number") takeNumbers(next as () => number, count);
  else if (kind === "string") takeStrings(next as () => string, count);
  else if (kind === "awaited") await takeAwaited(next as () => Promise<unknown>, count);
  else takeValues(next, count);
  return performance.now() - start;
}

async function measure(name: string, seconds: number, address: string, tag: string): Promise<Cost> {
  const { kind, make } = subjectOf(name);
  const made = await make(address, tag);
  let count = 1;
  const costs: number[] = [];
  const start = performance.now();
  // A third of the time to warm up, and to find how many ids a slice takes.
  while (costs.length < 3 || performance.now() - start < seconds * 1_000) {
    await made.warm?.();
    const ms = await slice(kind, made, count);
    const isWarm = performance.now() - start > (seconds * 1_000) / 3;
    if (isWarm) costs.push((ms * 1e6) / count);
    if (ms < SLICE_MS / 2) count = Math.min(MAX_SLICE, count * 2);
    // Loads arrive between slices.
    await turn();
  }
  await made.close?.();
  const sorted = Float64Array.from(costs).toSorted();
  return { ns: percentile(sorted, 0.25), slices: costs.length };
}

if (import.meta.main) {
  const [, , name = "", seconds = "1", address = "", tag = ""] = process.argv;
  console.log(JSON.stringify(await measure(name, Number(seconds), address, tag)));
}

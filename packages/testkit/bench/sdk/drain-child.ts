// Takes ids from a live server as fast as it goes, and looks at every one of them.
// Usage: drain-child.ts number|bigint|awaited address tag seconds segment|default. Writes one line of JSON.
import { setImmediate as turn } from "node:timers/promises";
import { createIdClient, IdmintError, type IdTag } from "@idmint/client";

export interface Drained {
  readonly ids: number;
  /** How long it took them. */
  readonly seconds: number;
  readonly idsPerSecond: number;
  /** From the first wish for an id until a tenth of a second went by in which the rate was reached; −1: never. */
  readonly secondsToRate: number;
  /** Pairs of stretches of ids that overlap: ids that were issued twice. */
  readonly repeats: number;
  /** Times that no id was ready. */
  readonly waits: number;
  readonly stretches: number;
}

const RATE = 100_000_000;
const WINDOW_MS = 100;
/** Ids a turn of the event loop: enough that the turns cost nothing, few enough that loads get through. */
const TURN = 20_000;

/**
 * Ids in stretches: each id continues the last stretch or begins another one. So no id needs to be kept, and whether any
 * came twice is seen by the stretches alone.
 */
class Stretches {
  readonly starts: number[] = [];
  readonly ends: number[] = [];

  begin(start: number, endOfLast: number): void {
    if (this.starts.length > 0) this.ends.push(endOfLast);
    this.starts.push(start);
  }

  overlaps(endOfLast: number): number {
    const ends = [...this.ends, endOfLast];
    const all = this.starts.map((start, at) => ({ start, end: ends[at] ?? start }));
    const sorted = all.toSorted((a, b) => a.start - b.start);
    return sorted.filter(({ start }, at) => start < (sorted[at - 1]?.end ?? 0)).length;
  }
}

type Turn = (tag: IdTag, expected: number, stretches: Stretches) => number | Promise<number>;

// `expected`: the id after the last one. Each answers what it is now.

function takeNumbers(tag: IdTag, expected: number, stretches: Stretches): number {
  let next = expected;
  try {
    for (let i = 0; i < TURN; i++) {
      const id = tag.nextNumberSync();
      if (id !== next) stretches.begin(id, next);
      next = id + 1;
    }
  } catch (thrown) {
    assertNotReady(thrown);
  }
  return next;
}

function takeBigints(tag: IdTag, expected: number, stretches: Stretches): number {
  let next = BigInt(expected);
  try {
    for (let i = 0; i < TURN; i++) {
      const id = tag.nextSync();
      if (id !== next) stretches.begin(Number(id), Number(next));
      next = id + 1n;
    }
  } catch (thrown) {
    assertNotReady(thrown);
  }
  return Number(next);
}

async function takeAwaited(tag: IdTag, expected: number, stretches: Stretches): Promise<number> {
  let next = BigInt(expected);
  for (let i = 0; i < TURN; i++) {
    const id = await tag.next();
    if (id !== next) stretches.begin(Number(id), Number(next));
    next = id + 1n;
  }
  return Number(next);
}

function assertNotReady(thrown: unknown): void {
  if (!(thrown instanceof IdmintError) || thrown.reason !== "SEGMENT_NOT_READY") throw thrown;
}

const TURNS: Readonly<Record<string, Turn>> = {
  number: takeNumbers,
  bigint: takeBigints,
  awaited: takeAwaited,
};

async function drain(
  takeTurn: Turn,
  address: string,
  name: string,
  seconds: number,
  segment: number | undefined,
): Promise<Drained> {
  const sizes = segment === undefined ? {} : { min: segment, max: segment };
  await using client = createIdClient({ address, ...sizes });
  const tag = client.tag(name);
  const stretches = new Stretches();
  let waits = 0;
  let ids = 0;
  let secondsToRate = -1;
  let expected = -1;
  const start = performance.now();
  let windowStart = start;
  let idsBefore = 0;
  for (let now = start; now - start < seconds * 1_000; now = performance.now()) {
    const known = stretches.starts.length;
    const before = expected;
    expected = await takeTurn(tag, expected, stretches);
    const taken = takenIn(stretches, known, before, expected);
    ids += taken;
    if (taken < TURN) {
      waits++;
      await tag.warm();
    } else {
      await turn();
    }
    const elapsed = performance.now() - windowStart;
    if (elapsed < WINDOW_MS) continue;
    if (secondsToRate < 0 && ((ids - idsBefore) / elapsed) * 1_000 >= RATE) {
      secondsToRate = (performance.now() - start) / 1_000;
    }
    windowStart = performance.now();
    idsBefore = ids;
  }
  const elapsed = (performance.now() - start) / 1_000;
  return {
    ids,
    seconds: elapsed,
    idsPerSecond: ids / elapsed,
    secondsToRate,
    repeats: stretches.overlaps(expected),
    waits,
    stretches: stretches.starts.length,
  };
}

/** How many ids a turn took, by the stretches it began and where it ended. */
function takenIn({ starts, ends }: Stretches, known: number, from: number, to: number): number {
  if (starts.length === known) return to - from;
  let taken = known === 0 ? 0 : (ends[known - 1] ?? from) - from;
  for (let at = known; at < starts.length; at++) taken += (ends[at] ?? to) - (starts[at] ?? to);
  return taken;
}

if (import.meta.main) {
  const [, , kind = "", address = "", tag = "", seconds = "1", segment = "default"] = process.argv;
  const takeTurn = TURNS[kind];
  if (takeTurn === undefined) throw new Error(`no kind ${kind}`);
  const size = segment === "default" ? undefined : Number(segment);
  console.log(JSON.stringify(await drain(takeTurn, address, tag, Number(seconds), size)));
}

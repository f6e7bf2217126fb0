import type { Figure, Sample } from "./figure.ts";

/** How thoroughly to measure. */
export interface Effort {
  /** Times that everything is measured, in turn. */
  readonly rounds: number;
  /** Seconds of one measurement. */
  readonly seconds: number;
  /** Only see that everything runs: sizes shrink too. */
  readonly quick: boolean;
  /** Says what is going on. */
  readonly say: (text: string) => void;
}

/**
 * How much to ask of a server for one measurement: a time, or, to see only that it runs, so many calls, which a machine
 * that has other things to do answers too.
 */
export function amountOf({
  seconds,
  quick,
}: Pick<Effort, "seconds" | "quick">): { seconds: number } | { calls: number } {
  return quick ? { calls: QUICK_CALLS } : { seconds };
}

const QUICK_CALLS = 500;

/** One run of measurements that share their processes. */
export interface Benchmark {
  /** What it is called on the command line. */
  readonly name: string;
  readonly title: string;
  readonly run: (effort: Effort) => Promise<readonly Figure[]>;
}

/**
 * Measures several things in turn, round by round, each round in another order, so that what the machine does meanwhile
 * falls on all of them alike. Answers what was measured of each, by round.
 */
export async function interleaved<Key extends string, Value>(
  effort: Pick<Effort, "rounds">,
  measures: Readonly<Record<Key, () => Promise<Value>>>,
): Promise<Readonly<Record<Key, readonly Value[]>>> {
  const keys = Object.keys(measures) as Key[];
  const results = Object.fromEntries(keys.map((key) => [key, []])) as unknown as Record<
    Key,
    Value[]
  >;
  for (let round = 0; round < effort.rounds; round++) {
    const at = round % keys.length;
    for (const key of [...keys.slice(at), ...keys.slice(0, at)]) {
      results[key].push(await measures[key]());
    }
  }
  return results;
}

/** Pairs what was measured of idmint with what was measured of the peer in the same round. */
export function samplesOf<Value>(
  ours: readonly Value[],
  peers: readonly Value[],
  pick: (value: Value) => number,
): readonly Sample[] {
  return ours.map((value, round) => {
    const peer = peers[round];
    if (peer === undefined) throw new RangeError("a round without its peer");
    return { ours: pick(value), peer: pick(peer) };
  });
}

/** What was measured of idmint alone. */
export function ownSamples<Value>(
  ours: readonly Value[],
  pick: (value: Value) => number,
): readonly Sample[] {
  return ours.map((value) => ({ ours: pick(value) }));
}

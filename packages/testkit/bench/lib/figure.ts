import { median, spread } from "./statistics.ts";

/** One round: what was measured of idmint, and of what it is compared with in the same round. */
export interface Sample {
  readonly ours: number;
  readonly peer?: number;
}

/** What is wanted of a figure: of its median, or of the median of its rounds' ratios to the peer. */
export interface Bar {
  readonly wants: "at least" | "at most";
  readonly value: number;
  readonly of: "ratio" | "value";
}

/** One number of the benchmarks, as measured. */
export interface Figure {
  /** Stable name: `generate-id.8x16.calls`. */
  readonly id: string;
  readonly text: string;
  readonly unit: string;
  /** What the ratio is to; absent when nothing is compared. */
  readonly peer?: string;
  readonly samples: readonly Sample[];
  /** Absent: shown, not judged. */
  readonly bar?: Bar;
}

type Verdict = "met" | "missed" | "shown" | "not judged";

/** A figure, condensed: what is printed and written. */
export interface Summary {
  readonly figure: string;
  readonly text: string;
  readonly unit: string;
  readonly ours: number;
  readonly oursSpread: readonly [number, number];
  readonly peer?: string;
  readonly peerValue?: number;
  readonly ratio?: number;
  readonly ratioSpread?: readonly [number, number];
  readonly bar?: Bar;
  readonly verdict: Verdict;
  readonly rounds: number;
}

/**
 * Medians over the rounds. The ratio is the median of each round's own ratio, since the two halves of one round share
 * the machine's mood and those of different rounds do not. `judged: false` is for runs too short to mean anything.
 */
export function summaryOf(figure: Figure, judged: boolean): Summary {
  const { id, text, unit, peer, samples, bar } = figure;
  const ours = samples.map((sample) => sample.ours);
  const peers = samples.flatMap((sample) => (sample.peer === undefined ? [] : [sample.peer]));
  const ratios = samples.flatMap((sample) =>
    sample.peer === undefined ? [] : [sample.ours / sample.peer],
  );
  const summary = {
    figure: id,
    text,
    unit,
    ours: median(ours),
    oursSpread: spread(ours),
    ...(peer === undefined ? {} : { peer }),
    ...(ratios.length === 0
      ? {}
      : { peerValue: median(peers), ratio: median(ratios), ratioSpread: spread(ratios) }),
    ...(bar === undefined ? {} : { bar }),
    rounds: samples.length,
  };
  return { ...summary, verdict: verdictOf(summary, bar, judged) };
}

function verdictOf(
  { ours, ratio }: { ours: number; ratio?: number },
  bar: Bar | undefined,
  judged: boolean,
): Verdict {
  if (bar === undefined) return "shown";
  const value = bar.of === "ratio" ? ratio : ours;
  if (value === undefined) throw new RangeError("a bar on a ratio that was not measured");
  if (!judged) return "not judged";
  const isMet = bar.wants === "at least" ? value >= bar.value : value <= bar.value;
  return isMet ? "met" : "missed";
}

/** Bars, in the words of the table. */
export const ratioAtLeast = (value: number): Bar => ({ wants: "at least", value, of: "ratio" });
export const ratioAtMost = (value: number): Bar => ({ wants: "at most", value, of: "ratio" });
export const atLeast = (value: number): Bar => ({ wants: "at least", value, of: "value" });
export const atMost = (value: number): Bar => ({ wants: "at most", value, of: "value" });

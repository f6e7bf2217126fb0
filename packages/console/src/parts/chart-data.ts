/** One line of a chart. `null`: nothing is known of that second, so the line has a gap. */
export interface ChartLine {
  readonly label: string;
  readonly values: readonly (number | null)[];
}

/** What a chart shows: seconds since 1970, and lines as long as they are. */
export interface ChartData {
  readonly seconds: readonly number[];
  readonly lines: readonly ChartLine[];
}

/** Rows of the table beside a chart: few enough to be heard, always with the newest. */
export function sampled(
  { seconds, lines }: ChartData,
  most: number,
): readonly {
  readonly second: number;
  readonly values: readonly (number | null)[];
}[] {
  const step = Math.max(1, Math.ceil(seconds.length / most));
  return seconds
    .map((second, at) => ({ second, values: lines.map(({ values }) => values[at] ?? null), at }))
    .filter(({ at }) => (seconds.length - 1 - at) % step === 0)
    .map(({ second, values }) => ({ second, values }))
    .toReversed();
}

import type { ResponseOf } from "../../../api/json.ts";
import type { ChartData } from "../../../parts/chart-data.ts";

export type Figures = Pick<
  ResponseOf<"NodeService", "listFigures">,
  "nodes" | "seconds" | "silentNodes"
>;
type Node = Figures["nodes"][number];
type Run = NonNullable<Node["tagFigures"]>["runs"][number];

/** A chart tells no more lines apart. */
const MOST_LINES = 6;

/** What the servers told of a tag, second by second. */
export interface TagFigures {
  /** Ids issued in each second. */
  readonly rate: ChartData;
  /** How many seconds the ids in memory last. */
  readonly remaining: ChartData;
  /** Ids in memory of all servers together. */
  readonly readyIds: bigint;
  /** Those that servers work with, ascending. More than one: not all have followed an operator's change yet. */
  readonly epochs: readonly string[];
  /** Servers that have more than a line can be for. */
  readonly hidden: number;
}

/**
 * Puts what the servers told on one line of seconds, by the clock of the server that was asked. A server has a line where it
 * works with the tag; those that issue most come first. Undefined: none does.
 */
export function tagFiguresOf({ nodes, seconds }: Figures): TagFigures | undefined {
  const working = nodes
    .filter(({ tagFigures }) => tagFigures?.known === true)
    .toSorted((a, b) => issuedBy(b) - issuedBy(a) || (a.instance < b.instance ? -1 : 1));
  if (working.length === 0) return undefined;
  const line = secondsOf(working, seconds);
  const shown = working.slice(0, MOST_LINES);
  const chart = (figures: (run: Run) => readonly (number | string)[]): ChartData => ({
    seconds: line,
    lines: shown.map((node) => ({
      label: node.instance,
      values: valuesOf(node, line, figures),
    })),
  });
  const epochs = new Set(working.map(({ tagFigures }) => tagFigures?.epoch ?? "0"));
  return {
    rate: chart((run) => run.issuedIds),
    remaining: chart((run) => run.remainingSeconds),
    readyIds: working.reduce((sum, node) => sum + BigInt(node.tagFigures?.readyIds ?? "0"), 0n),
    epochs: [...epochs].toSorted((a, b) => Number(BigInt(a) - BigInt(b))),
    hidden: working.length - shown.length,
  };
}

function issuedBy({ tagFigures }: Node): number {
  const all = tagFigures?.runs.flatMap(({ issuedIds }) => issuedIds.map(Number)) ?? [];
  return all.reduce((sum, count) => sum + count, 0);
}

/** Up to the newest second that was told. */
function secondsOf(nodes: readonly Node[], seconds: number): readonly number[] {
  const ends = nodes.flatMap((node) =>
    (node.tagFigures?.runs ?? []).map((run) => firstOf(run, node) + run.issuedIds.length - 1),
  );
  if (ends.length === 0) return [];
  const end = Math.max(...ends);
  return Array.from({ length: seconds }, (_, at) => end - seconds + 1 + at);
}

/** A run's first second, by the clock of the server that was asked. */
function firstOf(run: Run, { aheadMillis }: Node): number {
  return Math.round((Date.parse(run.startTime ?? "") - aheadMillis) / 1_000);
}

/** A server's figures, and null for the seconds that it did not tell, and where there was nothing to measure. */
function valuesOf(
  node: Node,
  line: readonly number[],
  figures: (run: Run) => readonly (number | string)[],
): readonly (number | null)[] {
  const values = Array<number | null>(line.length).fill(null);
  const [start = 0] = line;
  for (const run of node.tagFigures?.runs ?? []) {
    const first = firstOf(run, node) - start;
    for (const [at, figure] of figures(run).entries()) {
      const [value, place] = [Number(figure), first + at];
      if (value >= 0 && place >= 0 && place < values.length) values[place] = value;
    }
  }
  return values;
}

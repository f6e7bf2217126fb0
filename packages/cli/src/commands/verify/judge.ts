// Whether any id was given twice, over all histories and against the floors of a store.
import { Budget, has, IdRanges, type Overlap, type Summary } from "./ranges.ts";
import { eachLine, parseRow, type Row } from "./history.ts";

/** A row that has an id in question. */
interface Holder extends Pick<Row, "who" | "time"> {
  readonly file: string;
  readonly line: number;
  readonly first: bigint;
  readonly last: bigint;
}

/** The ids of one tag, and period if it has some: within it no id may be there twice, whatever the epoch. */
interface Space {
  readonly tag: string;
  readonly period: string;
  readonly summary: Summary;
}

export interface Fault {
  readonly tag: string;
  readonly period: string;
  readonly kind: "overlap" | "above the floor";
  readonly first: bigint;
  readonly last: bigint;
  /** Of an id above the floor. */
  readonly floor?: bigint;
  /** Who has the first of these ids. */
  readonly holders: readonly Holder[];
}

export interface Verdict {
  readonly rows: number;
  readonly ids: bigint;
  readonly spaces: readonly Space[];
  readonly faults: readonly Fault[];
  /** With those that are not shown. */
  readonly faultCount: number;
}

/** The floor of a space; undefined: the store says nothing of it. */
export type FloorOf = (tag: string, period: string) => Promise<bigint | undefined>;

export interface Sources {
  readonly files: readonly string[];
  /** Undefined: all. */
  readonly tag: string | undefined;
  readonly signal: AbortSignal;
  readonly floorOf: FloorOf | undefined;
}

const MAX_FAULTS = 20;
const MAX_HOLDERS = 10;
const SEPARATOR = "\0";

/**
 * Reads all files once into ranges, and those with a fault again to say who has the ids. An id above its floor is a
 * fault although nobody has it twice: the store would grant it again.
 */
export async function judge(sources: Sources): Promise<Verdict> {
  const { files, tag, signal } = sources;
  const budget = new Budget();
  const found = new Map<string, IdRanges>();
  let rows = 0;
  for (const file of files) {
    await eachLine(file, signal, (text, line) => {
      const row = parseRow(text, file, line);
      if (tag !== undefined && row.tag !== tag) return;
      rows++;
      const key = keyOf(row);
      let ranges = found.get(key);
      if (ranges === undefined) found.set(key, (ranges = new IdRanges(budget)));
      for (const range of row.ranges) ranges.add(range);
    });
  }
  const spaces = [...found].map(([key, ranges]) => {
    const [name = "", period = ""] = key.split(SEPARATOR);
    return { tag: name, period, summary: ranges.summary() };
  });
  const faults = [...overlapsOf(spaces), ...(await aboveFloors(spaces, sources.floorOf))];
  const shown = await withHolders(faults.slice(0, MAX_FAULTS), files, signal);
  const overlaps = spaces.reduce((sum, { summary }) => sum + summary.overlapCount, 0);
  const above = faults.filter(({ kind }) => kind === "above the floor").length;
  return {
    rows,
    ids: spaces.reduce((sum, { summary }) => sum + summary.ids, 0n),
    spaces,
    faults: shown,
    faultCount: overlaps + above,
  };
}

function keyOf({ tag, period }: Pick<Row, "tag" | "period">): string {
  return `${tag}${SEPARATOR}${period}`;
}

type Found = Omit<Fault, "holders">;

function overlapsOf(spaces: readonly Space[]): readonly Found[] {
  return spaces.flatMap(({ tag, period, summary }) =>
    summary.overlaps.map(({ first, last }: Overlap) => ({
      tag,
      period,
      kind: "overlap" as const,
      first,
      last,
    })),
  );
}

async function aboveFloors(
  spaces: readonly Space[],
  floorOf: FloorOf | undefined,
): Promise<readonly Found[]> {
  if (floorOf === undefined) return [];
  const found: Found[] = [];
  for (const { tag, period, summary } of spaces) {
    const floor = await floorOf(tag, period);
    if (floor === undefined || summary.highest <= floor) continue;
    const { highest } = summary;
    found.push({ tag, period, kind: "above the floor", first: highest, last: highest, floor });
  }
  return found;
}

async function withHolders(
  faults: readonly Found[],
  files: readonly string[],
  signal: AbortSignal,
): Promise<readonly Fault[]> {
  const all = faults.map((fault) => ({ ...fault, holders: [] as Holder[] }));
  if (all.length === 0) return all;
  for (const file of files) {
    await eachLine(file, signal, (text, line) => {
      const row = parseRow(text, file, line);
      for (const { tag, period, first: id, holders } of all) {
        if (row.tag !== tag || row.period !== period || holders.length >= MAX_HOLDERS) continue;
        const { who, time } = row;
        for (const range of row.ranges.filter((each) => has(each, id))) {
          const last = range.base + (range.count - 1n) * range.increment;
          holders.push({ file, line, who, time, first: range.base, last });
        }
      }
    });
  }
  return all;
}

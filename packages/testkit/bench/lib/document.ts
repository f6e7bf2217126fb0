// docs/benchmarks.md, made of what was measured.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Benchmark, Effort } from "./benchmark.ts";
import { chartsOf, svgOf } from "./charts.ts";
import type { Summary } from "./figure.ts";
import { barText, columns, number } from "./format.ts";
import { machineText } from "./machine.ts";

const docs = path.resolve(import.meta.dirname, "../../../../docs");
const FILE = path.join(docs, "benchmarks.md");
const FOLDER = path.join(docs, "benchmarks");
const DATA = path.join(FOLDER, "figures.json");

/** What one benchmark gave, and when: runs of single benchmarks replace only their own part. */
export interface Run {
  readonly benchmark: string;
  readonly date: string;
  readonly machine: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly summaries: readonly Summary[];
}

/** Remembers a run and writes document and charts anew. */
export async function writeRuns(
  runs: readonly Run[],
  benchmarks: readonly Benchmark[],
): Promise<void> {
  const fresh = new Map(runs.map((run) => [run.benchmark, run]));
  const known = new Map([...readRuns().map((run) => [run.benchmark, run] as const), ...fresh]);
  const all = benchmarks.flatMap(({ name }) => known.get(name) ?? []);
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(DATA, `${JSON.stringify(all, undefined, 2)}\n`);
  const charts = chartsOf(all.flatMap(({ summaries }) => summaries));
  for (const chart of charts) {
    writeFileSync(path.join(FOLDER, `${chart.name}.svg`), `${await svgOf(chart)}\n`);
  }
  const images = new Map(
    charts.map(({ name, title }) => [name, `![${title}](benchmarks/${name}.svg)`]),
  );
  writeFileSync(FILE, documentOf(all, benchmarks, images));
}

export function runOf(
  benchmark: Benchmark,
  { rounds, seconds }: Effort,
  summaries: readonly Summary[],
): Run {
  const date = new Date().toISOString().slice(0, 10);
  return { benchmark: benchmark.name, date, machine: machineText(), rounds, seconds, summaries };
}

function readRuns(): readonly Run[] {
  try {
    return JSON.parse(readFileSync(DATA, "utf8")) as readonly Run[];
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

const HEAD = `# Benchmarks

<!-- Made by \`pnpm bench --write\` from docs/benchmarks/figures.json. Do not edit. -->

Run them with \`npx pnpm@10 bench\`; \`npx pnpm@10 bench --help\` lists their names. They need Linux, and h2load (Debian: nghttp2-client).

## Method

- Whatever idmint is compared with is measured in the same run, in turn with it, over several rounds; a ratio is the median of the rounds' own ratios, and stands with the smallest and the largest one. So a ratio means something on another machine, and an absolute number only on the same one.
- The floor is a bare grpc-js server in a process of its own that answers the same messages from a counter: as it comes, and with both cures of its garbage collections (packages/server/src/grpc/gc-cures.ts says what they are). No server on grpc-js can be faster than the cured one.
- idmint runs as users run it: \`idmint serve\` with its defaults, everything on (health, reflection, limits, log) and both cures in place, which each of its processes is asked first, on a SQLite file that is synced at every commit, or on a PostgreSQL of its own where the figure says so.
- The generator is h2load, on another core than the server; its processor time a call is shown beside the server's. h2load does not see gRPC's status: that no call failed is known from the server's count of issued ids, and from the size of the answers.
- What h2load cannot send comes from generators of the benchmarks' own, on plain sockets: calls that ask different tags, and many requests on one stream. These, too, take a small part of the server's time, which is shown.
- Several processes behind one address are measured with nobody pinned. Where there are two cores, the generator takes a part of them, so the calls a second say less than the processor time of a call does.
- A figure of the SDK is taken in a process of its own, with one loop, so that the compiler sees one kind of id only. Its time is cut into slices of some 20 ms, of which the lower quartile counts. Ids are kept in a ring of 1,024, strings are flattened before the clock stops, those of idmint too.
- Nothing is left out: the verdict is that of the median, and what misses its bar stands here as missed.
`;

function documentOf(
  runs: readonly Run[],
  benchmarks: readonly Benchmark[],
  images: ReadonlyMap<string, string>,
): string {
  const summaries = runs.flatMap((run) => run.summaries);
  const judged = summaries.filter(({ bar }) => bar !== undefined);
  const missed = judged.filter(({ verdict }) => verdict === "missed");
  const machines = [...new Set(runs.map(({ machine, date }) => `- ${date}: ${machine}`))];
  return [
    HEAD,
    "## Machine\n",
    ...machines,
    "\n## Verdict\n",
    `${judged.length - missed.length} of ${judged.length} bars are met.${missed.length === 0 ? "" : " Missed are:\n"}`,
    ...missed.map(missedText),
    ...runs.map((run) => sectionOf(run, benchmarks, images)),
    "",
  ].join("\n");
}

function missedText({ text, unit, ours, ratio, bar }: Summary): string {
  const value =
    bar?.of === "ratio" && ratio !== undefined ? `${number(ratio)} ×` : `${number(ours)} ${unit}`;
  return `- ${text}: ${value}, wanted ${bar === undefined ? "" : barText(bar)}`;
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function sectionOf(
  { benchmark, date, rounds, seconds, summaries }: Run,
  benchmarks: readonly Benchmark[],
  images: ReadonlyMap<string, string>,
): string {
  const title = benchmarks.find(({ name }) => name === benchmark)?.title ?? benchmark;
  const image = images.get(benchmark);
  return [
    `\n## ${title}\n`,
    `\`pnpm bench ${benchmark}\`, ${date}, up to ${rounds} rounds of ${seconds} s; medians (smallest … largest).\n`,
    ...(image === undefined ? [] : [`${image}\n`]),
    row(["figure", "idmint or generator", "compared with", "ratio", "bar", "verdict"]),
    row(["---", "---", "---", "---", "---", "---"]),
    ...summaries.map((summary) => row(columns(summary))),
  ].join("\n");
}

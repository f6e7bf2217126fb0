// pnpm bench [names…] [--json] [--quick] [--write] [--rounds N] [--seconds N]
import { parseArgs } from "node:util";
import { benchmarks } from "./catalog.ts";
import type { Effort } from "./lib/benchmark.ts";
import { buildPackages } from "./lib/build.ts";
import { type Run, runOf, writeRuns } from "./lib/document.ts";
import { type Summary, summaryOf } from "./lib/figure.ts";
import { columns, HEADS } from "./lib/format.ts";
import { assureGenerator } from "./lib/h2load.ts";

const USAGE = `Usage: pnpm bench [names…] [--json] [--quick] [--write] [--rounds N] [--seconds N]

  --json       one JSON object a figure instead of a table
  --quick      see only that every benchmark runs, within a minute; nothing is judged
  --write      write what was measured to docs/benchmarks.md, with charts
  --rounds N   how often everything is measured (5)
  --seconds N  how long each measurement takes (3)

Names: ${benchmarks.map(({ name }) => name).join(" ")}`;

function usage(text: string): never {
  console.error(`${text}\n\n${USAGE}`);
  process.exit(2);
}

function readArgs() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        json: { type: "boolean", default: false },
        quick: { type: "boolean", default: false },
        write: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
        rounds: { type: "string", default: "5" },
        seconds: { type: "string", default: "3" },
      },
    });
  } catch (error) {
    return usage(error instanceof Error ? error.message : String(error));
  }
}

const { values, positionals } = readArgs();
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
if (!Number.isInteger(rounds) || rounds < 1) usage("--rounds must be a whole number from 1");
if (!Number.isInteger(seconds) || seconds < 1) usage("--seconds must be a whole number from 1");
for (const name of positionals) {
  if (!benchmarks.some((benchmark) => benchmark.name === name)) usage(`no benchmark ${name}`);
}
if (values.quick && values.write) usage("--quick measures nothing that could be written");

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};
const effort: Effort = values.quick
  ? { rounds: 1, seconds: 0.2, quick: true, say }
  : { rounds, seconds, quick: false, say };
const chosen = benchmarks.filter(
  ({ name }) => positionals.length === 0 || positionals.includes(name),
);

// An orderly end, also when told to stop: child processes are ended when this one exits.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
assureGenerator();
say("builds the packages");
await buildPackages();
const summaries: Summary[] = [];
const runs: Run[] = [];
for (const benchmark of chosen) {
  const start = performance.now();
  say(`— ${benchmark.title} (${benchmark.name})`);
  const figures = await benchmark.run(effort);
  const own = figures.map((figure) => summaryOf(figure, !effort.quick));
  summaries.push(...own);
  runs.push(runOf(benchmark, effort, own));
  if (values.json) for (const summary of own) console.log(JSON.stringify(summary));
  say(`  ${((performance.now() - start) / 1_000).toFixed(1)} s`);
}
if (!values.json) printTable(summaries);
if (values.write) await writeRuns(runs, benchmarks);

function printTable(rows: readonly Summary[]): void {
  const cells = [HEADS, ...rows.map(columns)];
  const widths = HEADS.map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)));
  for (const row of cells) {
    console.log(
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    );
  }
}

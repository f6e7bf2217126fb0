// pnpm bench [names…] [--json] [--quick] [--write] [--rounds N] [--seconds N]
import { parseArgs } from "node:util";
import { benchmarks } from "./catalog.ts";
import type { Benchmark, Effort } from "./lib/benchmark.ts";
import { buildPackages } from "./lib/build.ts";
import { type Run, runOf, writeRuns } from "./lib/document.ts";
import { type Summary, summaryOf } from "./lib/figure.ts";
import { columns, HEADS } from "./lib/format.ts";
import { pinNobody } from "./lib/cpus.ts";
import { assureGenerator } from "./lib/h2load.ts";
import { commonEnv } from "./lib/process.ts";

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

/** Most of the time of a quick run goes by in starts and waits, so several benchmarks share the cores. */
const QUICK_AT_ONCE = 4;
/** Those that take longest begin first. */
const LONGEST = ["accept", "overload", "etcd"];
const startsAt = ({ name }: Benchmark): number => (LONGEST.includes(name) ? 0 : 1);

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
if (values.quick) {
  pinNobody();
  // A machine with much to do may let a store wait.
  commonEnv["IDMINT_STORE_TIMEOUT"] = "10s";
}
const runs = new Map<Benchmark, Run>();
const waiting = values.quick ? chosen.toSorted((a, b) => startsAt(a) - startsAt(b)) : [...chosen];
await Promise.all(Array.from({ length: values.quick ? QUICK_AT_ONCE : 1 }, runNext));
const measured = chosen.flatMap((benchmark) => runs.get(benchmark) ?? []);
if (!values.json) printTable(measured.flatMap(({ summaries }) => summaries));
if (values.write) await writeRuns(measured, benchmarks);

/** Runs one benchmark after the other until none is left. */
async function runNext(): Promise<void> {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const start = performance.now();
    say(`— ${next.title} (${next.name})`);
    const figures = await next.run(effort);
    const summaries = figures.map((figure) => summaryOf(figure, !effort.quick));
    runs.set(next, runOf(next, effort, summaries));
    if (values.json) for (const summary of summaries) console.log(JSON.stringify(summary));
    say(`  ${next.name}: ${((performance.now() - start) / 1_000).toFixed(1)} s`);
  }
}

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

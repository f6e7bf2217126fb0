// Plants a seeded sample of faults that are made from the trees of the critical files, and tells for each file how many of
// them its tests notice. `pnpm mutants --generated [--seed N] [--sample N] [--files PATTERN] [--json FILE]`.
import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { root } from "../lib.ts";
import { criticalFiles, equivalents } from "./critical.ts";
import { type Fault, faultsOf } from "./mutator.ts";
import type { Outcome, Planned, Task } from "./worker.ts";

const WORKERS = 2;
const COVERAGE_TIMEOUT_MS = 120_000;

type Verdict = "killed" | "survived" | "not reached" | "timed out";

interface Judged {
  readonly file: string;
  readonly line: number;
  readonly was: string;
  readonly becomes: string;
  readonly verdict: Verdict;
  /** The test that noticed it. */
  readonly by: string | undefined;
}

/** The faults of a file without those that change nothing; throws if one of these is not there any more. */
function plannable(file: string): readonly Fault[] {
  const text = readFileSync(path.join(root, file), "utf8");
  const lines = text.split("\n").map((line) => line.trim());
  const its = equivalents.filter((one) => one.file === file);
  const found = new Set<(typeof its)[number]>();
  const faults = faultsOf(file, text).filter(({ line, was, becomes }) => {
    const same = its.find(
      (one) =>
        lines[line - 1] === one.line &&
        (one.was ?? was) === was &&
        (one.becomes ?? becomes) === becomes,
    );
    if (same !== undefined) found.add(same);
    return same === undefined;
  });
  const lost = its.find((one) => !found.has(one));
  if (lost !== undefined) throw new Error(`${file}: no fault is like ${JSON.stringify(lost)}`);
  return faults;
}

export function assertGenerated(): void {
  for (const { file, tests } of criticalFiles) {
    plannable(file);
    for (const test of tests)
      if (testsLike(test).length === 0) throw new Error(`${file}: there is no test ${test}`);
  }
}

/** Files of the in-process suites whose path begins so. */
function testsLike(start: string): readonly string[] {
  return globSync(`packages/${start}*`, { cwd: root })
    .flatMap((found) =>
      found.endsWith(".ts") ? [found] : globSync(`${found}/**/*.test.ts`, { cwd: root }),
    )
    .filter((name) => /^[^.]*(?:\.model)?\.test\.ts$/.test(path.basename(name)));
}

/** The sample: those faults whose hash with the seed is lowest, so that a change of one file leaves those of others. */
function sample(word: string, seed: string, size: number): readonly Planned[] {
  const all = criticalFiles
    .filter(({ file }) => new RegExp(word).test(file))
    .flatMap(({ file }) =>
      plannable(file).map((fault) => ({ file, fault, rank: rank(file, fault) })),
    );
  function rank(file: string, { index, was, becomes }: Fault): string {
    return createHash("sha256")
      .update(JSON.stringify([seed, file, index, was, becomes]))
      .digest("hex");
  }
  const chosen = all.toSorted((a, b) => (a.rank < b.rank ? -1 : 1)).slice(0, size);
  let first = 1;
  return [...Map.groupBy(chosen, ({ file }) => file)].map(([file, its]) => {
    const planned = { file, first, faults: its.map(({ fault }) => fault) };
    first += Math.max(...planned.faults.map(({ index }) => index)) + 1;
    return planned;
  });
}

/** A process with a warm Vitest, and what it started. */
class Worker {
  readonly #planned: readonly Planned[];
  #child: ChildProcess | undefined;

  constructor(planned: readonly Planned[]) {
    this.#planned = planned;
  }

  /** What the tests say; undefined if they take longer than `ms`. */
  async run(task: Task, ms: number): Promise<Outcome | undefined> {
    const child = (this.#child ??= await this.#start());
    child.send(task);
    const ended = new AbortController();
    const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(ms)]);
    child.once("exit", () => ended.abort());
    try {
      const [outcome] = (await once(child, "message", { signal })) as [Outcome];
      return outcome;
    } catch {
      this.stop();
      return undefined;
    }
  }

  async #start(): Promise<ChildProcess> {
    const child = fork(path.join(import.meta.dirname, "worker.ts"), {
      detached: true,
      execArgv: ["-C", "idmint-source"],
      env: { ...process.env, TEST_DOOR: "fast" },
    });
    child.setMaxListeners(0);
    child.send(this.#planned);
    await once(child, "message");
    return child;
  }

  stop(): void {
    const pid = this.#child?.pid;
    this.#child = undefined;
    // Its whole group, since a test in an endless loop hears nothing.
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  }
}

type Reaches = ReadonlyMap<number, readonly Outcome["ran"][number][]>;

/** Which test files reach which fault, the quickest one first. */
async function coverage(planned: readonly Planned[]): Promise<Reaches> {
  const tests = planned.flatMap(({ file }) =>
    (criticalFiles.find((one) => one.file === file)?.tests ?? []).flatMap(testsLike),
  );
  const queue = [...new Set(tests)];
  const ran: Outcome["ran"][number][] = [];
  await inParallel(planned, async (worker) => {
    for (let test = queue.pop(); test !== undefined; test = queue.pop()) {
      const task = { fault: 0, tests: [test], timeoutMs: COVERAGE_TIMEOUT_MS };
      const outcome = await worker.run(task, 2 * COVERAGE_TIMEOUT_MS);
      const failed = outcome === undefined ? `${test} takes too long` : outcome.failed;
      if (failed !== undefined) throw new Error(`a test fails without a fault: ${failed}`);
      ran.push(...(outcome?.ran ?? []));
    }
  });
  const pairs = ran
    .toSorted((a, b) => a.ms - b.ms)
    .flatMap((one) => one.reached.map((fault) => [fault, one] as const));
  return new Map(
    [...Map.groupBy(pairs, ([fault]) => fault)].map(([fault, its]) => [
      fault,
      its.map(([, one]) => one),
    ]),
  );
}

async function inParallel(
  planned: readonly Planned[],
  work: (worker: Worker) => Promise<void>,
): Promise<void> {
  const workers = Array.from({ length: WORKERS }, () => new Worker(planned));
  try {
    await Promise.all(workers.map(work));
  } finally {
    for (const worker of workers) worker.stop();
  }
}

async function judge(
  worker: Worker,
  fault: number,
  reaches: Reaches,
): Promise<readonly [Verdict, string?]> {
  const its = reaches.get(fault) ?? [];
  if (its.length === 0) return ["not reached"];
  const slowest = Math.max(...its.map(({ ms }) => ms));
  const task = { fault, tests: its.map(({ test }) => test), timeoutMs: 4 * slowest + 5_000 };
  const all = its.reduce((sum, { ms }) => sum + ms, 0);
  const outcome = await worker.run(task, 4 * all + 20_000);
  if (outcome === undefined) return ["timed out"];
  if (outcome.failed === undefined) return ["survived"];
  return [/timed out in/.test(outcome.failed) ? "timed out" : "killed", outcome.failed];
}

export async function runGenerated(args: readonly string[]): Promise<void> {
  const options = {
    seed: { type: "string" },
    sample: { type: "string" },
    files: { type: "string" },
    json: { type: "string" },
  } as const;
  const {
    seed = "1",
    sample: size = "1500",
    files = "",
    json,
  } = parseArgs({ args: [...args], options }).values;
  const started = performance.now();
  const planned = sample(files, seed, Number(size));
  const reaches = await coverage(planned);
  const judged: Judged[] = [];
  const queue = planned.flatMap(({ file, first, faults }) =>
    faults.map((fault) => ({ file, first, fault })),
  );
  const count = queue.length;
  await inParallel(planned, async (worker) => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const { file, first, fault } = next;
      const { index, line, was, becomes } = fault;
      const [verdict, by] = await judge(worker, first + index, reaches);
      judged.push({ file, line, was, becomes, verdict, by });
      if (verdict !== "killed") console.log(lineOf(judged.at(-1) as Judged));
    }
  });
  const seconds = Math.round((performance.now() - started) / 1000);
  if (json !== undefined)
    writeFileSync(json, JSON.stringify({ seed, sample: count, seconds, judged }, null, 2));
  console.log(`\nseed ${seed}, ${count} faults in ${seconds} s`);
  for (const [file, its] of Map.groupBy(judged, (one) => one.file)) console.log(scoreOf(file, its));
  console.log(scoreOf("all", judged));
}

function short(text: string): string {
  return text.replaceAll(/\s+/g, " ").slice(0, 100);
}

function lineOf({ file, line, was, becomes, verdict }: Judged): string {
  return `${verdict.padEnd(12)} ${file}:${line}  ${short(was)}  →  ${short(becomes) || "(nothing)"}`;
}

/** Whoever notices a fault by waiting for it in vain has noticed it. */
function scoreOf(name: string, judged: readonly Judged[]): string {
  const count = (verdict: Verdict): number =>
    judged.filter((one) => one.verdict === verdict).length;
  const [killed, late] = [count("killed"), count("timed out")];
  const score = ((100 * (killed + late)) / Math.max(judged.length, 1)).toFixed(1);
  const rest = `${count("survived")} survived, ${count("not reached")} not reached, ${late} timed out`;
  return `${score.padStart(5)} %  ${name}: ${killed} killed, ${rest}`;
}

// Plants a seeded sample of faults that are made from the trees of the critical files, and tells for each file how many of
// them its tests notice. `pnpm mutants --generated [--invariants] [--seed N] [--sample N] [--files PATTERN] [--json FILE]
// [--write]`; with --write docs/proof/runs.json has the run.
import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { writeProofRun } from "../../packages/testkit/src/proof/runs.ts";
import { root } from "../lib.ts";
import { type CriticalFile, criticalFiles } from "./critical.ts";
import { explained } from "./explained.ts";
import { type Fault, faultsOf } from "./mutator.ts";
import type { Outcome, Planned, Task } from "./worker.ts";

const WORKERS = 2;
const COVERAGE_TIMEOUT_MS = 120_000;

/** Of the faults of a file above which an invariant stands, at least this share is noticed. */
const LEAST_NOTICED = 0.95;

/** Explained: nobody noticed it, and nobody could. */
type Verdict = "killed" | "survived" | "not reached" | "timed out" | "explained";

interface Expected extends Fault {
  /** Why nobody can notice it. */
  readonly why: string | undefined;
}

interface Sampled extends Planned {
  readonly faults: readonly Expected[];
}

interface Judged {
  readonly file: string;
  readonly line: number;
  readonly was: string;
  readonly becomes: string;
  readonly verdict: Verdict;
  /** The test that noticed it. */
  readonly by: string | undefined;
  /** Why nobody can notice it. */
  readonly why: string | undefined;
}

/** The faults of a file, with what is explained of them; throws if an explained one is not there any more. */
function faultsIn(file: string): readonly Expected[] {
  const text = readFileSync(path.join(root, file), "utf8");
  const lines = text.split("\n").map((line) => line.trim());
  const its = explained[file] ?? [];
  const found = new Set<(typeof its)[number]>();
  const faults = faultsOf(file, text).map((fault) => {
    const like = its.find(
      ({ line, was = fault.was, becomes = fault.becomes }) =>
        lines[fault.line - 1] === line && was === fault.was && becomes === fault.becomes,
    );
    if (like !== undefined) found.add(like);
    return { ...fault, why: like?.why };
  });
  const lost = its.find((one) => !found.has(one));
  if (lost !== undefined) throw new Error(`${file}: no fault is like ${JSON.stringify(lost)}`);
  return faults;
}

/** Throws if a test or an explained fault is not there, or if too much is explained where an invariant stands. */
export function assertGenerated(): void {
  for (const { file, tests, invariant } of criticalFiles) {
    const faults = faultsIn(file);
    const count = faults.filter(({ why }) => why !== undefined).length;
    if (invariant !== undefined && count > (1 - LEAST_NOTICED) * faults.length)
      throw new Error(
        `${file}: ${count} of ${faults.length} faults are explained, none notices them`,
      );
    for (const test of tests)
      if (testsLike(test).length === 0) throw new Error(`${file}: there is no test ${test}`);
  }
  const unknown = Object.keys(explained).find(
    (file) => !criticalFiles.some((one) => one.file === file),
  );
  if (unknown !== undefined) throw new Error(`explained.ts: ${unknown} is no critical file`);
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
function sample(files: readonly CriticalFile[], seed: string, size: number): readonly Sampled[] {
  const all = files.flatMap(({ file }) =>
    faultsIn(file).map((fault) => ({ file, fault, rank: rank(file, fault) })),
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

/** What becomes of a fault, and the test that noticed it. */
async function judge(
  worker: Worker,
  fault: number,
  reaches: Reaches,
): Promise<readonly [Verdict, string?]> {
  const its = reaches.get(fault) ?? [];
  if (its.length === 0) return ["not reached"];
  const slowest = Math.max(...its.map(({ ms }) => ms));
  const task = { fault, tests: its.map(({ test }) => test), timeoutMs: 2 * slowest + 5_000 };
  const all = its.reduce((sum, { ms }) => sum + ms, 0);
  const outcome = await worker.run(task, 2 * all + 20_000);
  if (outcome === undefined) return ["timed out"];
  if (outcome.failed === undefined) return ["survived"];
  return [/timed out in/.test(outcome.failed) ? "timed out" : "killed", outcome.failed];
}

/** Those that the arguments choose, and how many faults of them. */
function chosenBy(args: readonly string[]) {
  const options = {
    seed: { type: "string", default: "1" },
    sample: { type: "string" },
    files: { type: "string", default: "" },
    invariants: { type: "boolean", default: false },
    json: { type: "string" },
    write: { type: "boolean", default: false },
  } as const;
  const { values } = parseArgs({ args: [...args], options });
  const files = criticalFiles.filter(
    ({ file, invariant }) =>
      new RegExp(values.files).test(file) && (invariant !== undefined || !values.invariants),
  );
  const size = Number(values.sample ?? (values.invariants ? Infinity : 1_500));
  return { ...values, files, size };
}

export async function runGenerated(args: readonly string[]): Promise<void> {
  const { seed, size, files, json, write } = chosenBy(args);
  const started = performance.now();
  const planned = sample(files, seed, size);
  const reaches = await coverage(planned);
  const judged: Judged[] = [];
  const queue = planned.flatMap(({ file, first, faults }) =>
    faults.map((fault) => ({ file, number: first + fault.index, fault })),
  );
  const count = queue.length;
  await inParallel(planned, async (worker) => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const { file, number, fault } = next;
      const { line, was, becomes, why } = fault;
      const [found, by] = await judge(worker, number, reaches);
      const isNoticed = found === "killed" || found === "timed out";
      const verdict = why === undefined || isNoticed ? found : "explained";
      const one = { file, line, was, becomes, verdict, by, why };
      judged.push(one);
      if (verdict !== "killed" || why !== undefined) console.log(lineOf(one));
    }
  });
  const seconds = Math.round((performance.now() - started) / 1000);
  if (json !== undefined)
    writeFileSync(json, JSON.stringify({ seed, sample: count, seconds, judged }, null, 2));
  console.log(`\nseed ${seed}, ${count} faults in ${seconds} s`);
  for (const [file, its] of Map.groupBy(judged, (one) => one.file)) console.log(scoreOf(file, its));
  console.log(scoreOf("all", judged));
  if (write)
    writeProofRun(
      "mutants",
      `pnpm mutants --generated ${args.join(" ")}`,
      seconds,
      countedOf(judged),
    );
  const unexplained = files
    .filter(({ invariant }) => invariant !== undefined)
    .flatMap(({ file }) => judged.filter((one) => one.file === file && isOpen(one)));
  if (unexplained.length === 0) return;
  console.log(`\n${unexplained.length} faults below invariants are neither noticed nor explained:`);
  for (const one of unexplained) console.log(lineOf(one));
  process.exitCode = 1;
}

function countedOf(judged: readonly Judged[]): Readonly<Record<string, number>> {
  const count = (...verdicts: readonly Verdict[]): number =>
    judged.filter(({ verdict }) => verdicts.includes(verdict)).length;
  return {
    "planted faults": judged.length,
    noticed: count("killed", "timed out"),
    explained: count("explained"),
    unnoticed: count("survived", "not reached"),
  };
}

function isOpen({ verdict }: Judged): boolean {
  return verdict === "survived" || verdict === "not reached";
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
  const rest = `${late} timed out, ${count("explained")} explained, ${count("survived")} survived, ${count("not reached")} not reached`;
  return `${score.padStart(5)} %  ${name}: ${killed} killed, ${rest}`;
}

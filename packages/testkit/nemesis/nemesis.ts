// A run, its judgement and what is printed of it.
import { statSync, truncateSync } from "node:fs";
import path from "node:path";
import { writeProofRun } from "../src/proof/runs.ts";
import { judge, type SiteVerdict } from "./judge/judge.ts";
import { setUp } from "../src/polyglot/project.ts";
import { filesOf } from "./judge/rows.ts";
import { PLANTS } from "./judge/plant.ts";
import {
  BARS,
  countedOf,
  isClean,
  missed,
  print as report,
  violationsOf,
  WIDE_BARS,
} from "./report.ts";
import { type Ran, run } from "./run.ts";
import type { Stage } from "./sites/site.ts";
import { etcdStage } from "./sites/etcd.ts";
import { postgresStage } from "./sites/postgres.ts";
import { sqliteStage } from "./sites/sqlite.ts";

export interface NemesisOptions {
  readonly seed: string;
  readonly minutes: number;
  readonly out: string;
  readonly sites: readonly string[];
  readonly plant?: string | undefined;
  /** Whether misses of the bars of availability count. */
  readonly isStrict: boolean;
  readonly hasPython: boolean;
  readonly print: (line: string) => void;
  /** Whether docs/proof/runs.json gets the run. */
  readonly isWritten?: boolean;
}

const STAGES: Readonly<Record<string, () => Promise<Stage>>> = {
  sqlite: async () => sqliteStage(),
  postgres: postgresStage,
  etcd: etcdStage,
};

/** Whether all was as promised; with `plant`, whether the judges noticed it. */
export async function nemesis(options: NemesisOptions): Promise<boolean> {
  const { seed, minutes, out, sites, plant, isStrict, hasPython, print } = options;
  const stages = sites.map((name) => {
    const stage = STAGES[name];
    if (stage === undefined) throw new Error(`no site ${name}: ${Object.keys(STAGES).join(", ")}`);
    return stage;
  });
  const python = hasPython ? pythonCaller() : undefined;
  await using ran = await run({ seed, minutes, out, stages, python, print });
  ran.journal.writeTo(path.join(out, "journal.ndjson"));
  const verdicts = await judgeAll(ran);
  report({ seed, minutes, windows: ran.journal.windows, verdicts });
  if (options.isWritten === true) {
    const line = `pnpm nemesis --minutes ${minutes} --seed ${seed} --write`;
    writeProofRun("nemesis", line, minutes * 60, countedOf(ran.journal.windows, verdicts));
  }
  const misses = missed(verdicts, isStrict ? BARS : WIDE_BARS);
  for (const line of misses) console.log(`missed: ${line}`);
  if (!isClean(verdicts) || misses.length > 0) return false;
  return plant === undefined || (await notices(ran, plant));
}

/** Words that begin it. */
function pythonCaller(): readonly string[] {
  const { folder, load } = setUp("python", "nemesis");
  return [load[0] ?? "", path.join(folder, "history.py")];
}

async function judgeAll({ cases }: Ran): Promise<readonly SiteVerdict[]> {
  const verdicts: SiteVerdict[] = [];
  for (const its of cases) verdicts.push(await judge(its));
  return verdicts;
}

/** Plants a fault into histories that were clean, judges them, and takes it out again. */
export async function notices({ cases: [first] }: Ran, name: string): Promise<boolean> {
  const plant = PLANTS[name];
  if (plant === undefined || first === undefined) {
    throw new Error(`no class ${name}: ${Object.keys(PLANTS).join(", ")}`);
  }
  const sizes = new Map(
    first.histories.flatMap(filesOf).map((file) => [file, statSync(file).size] as const),
  );
  const undo = plant.run(first);
  const verdict = await judge(first);
  undo?.();
  for (const [file, size] of sizes) truncateSync(file, size);
  const { shows } = plant;
  const found =
    shows === "outage"
      ? missed([verdict], WIDE_BARS).filter((line) => line.startsWith("an outage"))
      : violationsOf([verdict], shows);
  console.log(found.length === 0 ? `not noticed: ${name}` : `noticed: ${name}: ${found[0] ?? ""}`);
  return found.length > 0;
}

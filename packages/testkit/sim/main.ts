// pnpm sim [--histories N] [--from SEED] [--jobs N] [--first] [--write] | --seed SEED [--trace]
import { availableParallelism } from "node:os";
import { readFlags, wholeOf } from "../src/proof/command-line.ts";
import { writeProofRun } from "../src/proof/runs.ts";
import { runHistory } from "./history.ts";
import { planOf } from "./plan.ts";
import { explain } from "./run/explain.ts";
import { runAll } from "./run/pool.ts";
import { Tally } from "./run/tally.ts";

// Refusals are many, and nobody reads where each was made.
Error.stackTraceLimit = 0;

const USAGE = `Usage: pnpm sim [--histories N] [--from SEED] [--jobs N] [--first] [--write]
       pnpm sim --seed SEED [--trace]

  --histories N  how many histories are run, of seeds that follow each other (200)
  --from SEED    the first of these seeds, a whole number (1)
  --jobs N       how many threads run them (one a core); what they find does not depend on it
  --first        ends when something goes wrong, and does not shrink it
  --write        adds the run to docs/proof/runs.json; \`pnpm generate\` shows it in docs/proof.md
  --seed SEED    runs one history; what goes wrong is shrunk to the faults that it takes
  --trace        prints all that happens in it`;

const args = readFlags(USAGE, {
  histories: { type: "string", default: "200" },
  from: { type: "string", default: "1" },
  jobs: { type: "string", default: String(availableParallelism()) },
  first: { type: "boolean", default: false },
  seed: { type: "string" },
  trace: { type: "boolean", default: false },
  write: { type: "boolean", default: false },
});

function print(line: string): void {
  console.log(line);
}

async function runOne(seed: string, isTraced: boolean): Promise<boolean> {
  const outcome = await runHistory(planOf(seed), isTraced ? { sink: print } : {});
  if (outcome.violations.length > 0) (await explain(seed, outcome)).forEach(print);
  const { violations, calls, ids, faults, events, hash } = outcome;
  print(
    `seed ${seed}, violations ${violations.length}, calls ${calls}, ids ${ids}, faults ${faults}, events ${events}, hash ${hash}`,
  );
  return violations.length === 0;
}

async function runMany(): Promise<boolean> {
  const histories = wholeOf("histories", args.histories, USAGE);
  const from = wholeOf("from", args.from, USAGE);
  const jobs = wholeOf("jobs", args.jobs, USAGE);
  const startedAt = performance.now();
  const tally = new Tally();
  await runAll({ from, histories, jobs, shrinks: !args.first }, ({ counted, lines }) => {
    tally.add(counted);
    lines.forEach(print);
    return !(args.first && tally.bad > 0);
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  tally.lines(seconds).forEach(print);
  if (args.write) {
    const line = `pnpm sim --histories ${histories} --from ${from} --write`;
    const { bad: violations, calls, ids, faults } = tally;
    writeProofRun("sim", line, seconds, { histories, violations, calls, ids, faults });
  }
  return tally.bad === 0 && tally.wanting.length === 0;
}

const isWell = args.seed === undefined ? await runMany() : await runOne(args.seed, args.trace);
process.exitCode = isWell ? 0 : 1;

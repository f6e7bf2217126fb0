// pnpm sim [--histories N] [--from SEED] [--write] | --seed SEED [--trace]
import { parseArgs } from "node:util";
import { writeProofRun } from "../src/proof/runs.ts";
import { type Outcome, runHistory } from "./history.ts";
import { planOf } from "./plan.ts";
import { shrink } from "./shrink.ts";

// Refusals are many, and nobody reads where each was made.
Error.stackTraceLimit = 0;

const USAGE = `Usage: pnpm sim [--histories N] [--from SEED] [--write]
       pnpm sim --seed SEED [--trace]

  --histories N  how many histories are run, of seeds that follow each other (200)
  --from SEED    the first of these seeds, a whole number (1)
  --write        adds the run to docs/proof/runs.json; \`pnpm generate\` shows it in docs/proof.md
  --seed SEED    runs one history; what goes wrong is shrunk to the faults that it takes
  --trace        prints all that happens in it`;

function readArgs() {
  try {
    return parseArgs({
      options: {
        histories: { type: "string", default: "200" },
        from: { type: "string", default: "1" },
        seed: { type: "string" },
        trace: { type: "boolean", default: false },
        write: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    return usage(error instanceof Error ? error.message : String(error));
  }
}

function usage(text: string): never {
  console.error(`${text}\n\n${USAGE}`);
  process.exit(2);
}

function whole(name: string, text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 1) return number;
  return usage(`--${name} must be a whole number from 1 on, got ${text}`);
}

async function explain(seed: string, found: Outcome): Promise<void> {
  console.log(`\nseed ${seed}: ${found.violations.length} violations`);
  const { plan, outcome } = await shrink(planOf(seed), () => ({}));
  for (const { atMs, what } of outcome.violations.slice(0, 5)) {
    console.log(`  at ${atMs.toFixed(0)} ms: ${what}`);
  }
  console.log(`  with ${plan.faults.length} faults and ${plan.actions.length} actions:`);
  for (const { atMs, kind, target, ms } of plan.faults) {
    console.log(`    ${atMs} ms: ${kind} (${target}), for ${ms} ms`);
  }
  for (const { atMs, act, target, ms } of plan.actions) {
    console.log(`    ${atMs} ms: operator: ${act} (${target}), for ${ms} ms`);
  }
  console.log(`  the last of what happened (all of it: pnpm sim --seed ${seed} --trace):`);
  for (const line of outcome.last) console.log(`    ${line}`);
}

function print(line: string): void {
  console.log(line);
}

async function runOne(seed: string, isTraced: boolean): Promise<number> {
  const outcome = await runHistory(planOf(seed), isTraced ? { sink: print } : {});
  if (outcome.violations.length > 0) await explain(seed, outcome);
  const { violations, calls, ids, faults, events, hash } = outcome;
  console.log(
    `seed ${seed}, violations ${violations.length}, calls ${calls}, ids ${ids}, faults ${faults}, events ${events}, hash ${hash}`,
  );
  return violations.length;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

function unansweredIn(outcomes: readonly Pick<Outcome, "methods">[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { methods } of outcomes) {
    for (const [path, count] of methods) counts.set(path, (counts.get(path) ?? 0) + count);
  }
  return [...counts].filter(([, count]) => count === 0).map(([path]) => path);
}

async function runMany(histories: number, from: number, isWritten: boolean): Promise<number> {
  const startedAt = performance.now();
  const outcomes: Omit<Outcome, "last">[] = [];
  let bad = 0;
  for (let at = 0; at < histories; at++) {
    const seed = String(from + at);
    const outcome = await runHistory(planOf(seed));
    outcomes.push({ ...outcome, violations: [] });
    if (outcome.violations.length === 0) continue;
    bad++;
    await explain(seed, outcome);
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  const sum = (of: (outcome: (typeof outcomes)[number]) => number): number =>
    outcomes.reduce((total, outcome) => total + of(outcome), 0);
  const middle = (of: (outcome: (typeof outcomes)[number]) => number): number =>
    median(outcomes.map(of));
  const simulated = sum(({ simulatedMs }) => simulatedMs) / 1_000;
  console.log(
    `medians: calls ${middle(({ calls }) => calls)}, faults ${middle(({ faults }) => faults)}, servers ${middle(({ servers }) => servers)}, simulated seconds ${Math.round(middle(({ simulatedMs }) => simulatedMs) / 1_000)}`,
  );
  const unasked = unansweredIn(outcomes);
  if (unasked.length > 0)
    console.log(`methods that no history had an answer of: ${unasked.join(" ")}`);
  console.log(
    `histories ${histories}, violations ${bad}, calls ${sum(({ calls }) => calls)}, ids ${sum(({ ids }) => ids)}, faults ${sum(({ faults }) => faults)}, simulated seconds ${Math.round(simulated)}, excluded histories ${outcomes.filter(({ excluded }) => excluded > 0).length}, answers held against changes ${sum(({ judged }) => judged)}, ${(histories / seconds).toFixed(1)} histories/s`,
  );
  if (isWritten) {
    const line = `pnpm sim --histories ${histories} --from ${from} --write`;
    const [calls, ids, faults] = [
      sum((one) => one.calls),
      sum((one) => one.ids),
      sum((one) => one.faults),
    ];
    writeProofRun("sim", line, seconds, { histories, violations: bad, calls, ids, faults });
  }
  return bad;
}

const { histories, from, seed, trace, write, help } = readArgs();
if (help) {
  console.log(USAGE);
} else {
  const bad =
    seed === undefined
      ? await runMany(whole("histories", histories), whole("from", from), write)
      : await runOne(seed, trace);
  process.exitCode = bad > 0 ? 1 : 0;
}

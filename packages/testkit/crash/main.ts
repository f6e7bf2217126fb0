// pnpm crash-points [--store STORE] [--only WHAT] [--from N] [--to N] [--torn] [--parallel N] [--write] [--trace]
import { type ChainOptions, type ChainResult, runChain, runCommands, together } from "./chain.ts";
import { readFlags, refuse, wholeOf } from "../src/proof/command-line.ts";
import { writeProofRun } from "../src/proof/runs.ts";
import { CALLS } from "./library.ts";
import { namedPoints, pointsOf, rangeOf } from "./points.ts";
import { crashProgram } from "./program.ts";
import { type Database, startDatabase, STORES, type StoreName } from "./stores.ts";

/** What is tried on a store: a server at each call of a class or at the moments with names, and the commands that change a store. */
const WORKS = [...CALLS, "named", "migrate", "accept"] as const;
type Work = (typeof WORKS)[number];

const USAGE = `Usage: pnpm crash-points [--store STORE] [--only WHAT] [--from N] [--to N] [--torn] [--parallel N] [--write] [--trace]

  --store STORE  ${STORES.join(", ")} (all of them; several with commas)
  --only WHAT    ${WORKS.join(", ")} (all of them; several with commas)
  --from N       the first call at which a server dies (1)
  --to N         the last one (150)
  --torn         half of what is written or sent there goes out before
  --parallel N   how many servers of a store run at once, each with a store of its own (3)
  --write        adds the run to docs/proof/runs.json; \`pnpm generate\` shows it in docs/proof.md
  --trace        prints each life`;

function chosen<Name extends string>(flag: string, all: readonly Name[], text?: string): Name[] {
  const wanted = text?.split(",") ?? all;
  const names = all.filter((name) => wanted.includes(name));
  if (names.length === wanted.length) return names;
  return refuse(`--${flag} must be of ${all.join(", ")}, with commas between them`, USAGE);
}

/** What a chain showed, for people. */
function tell(title: string, result: ChainResult): void {
  const { tried, reached, answering, repeats, largestGap, ids, faults, places } = result;
  print(
    `${title}: points ${tried}, reached ${reached} (${answering} of them by servers that answered calls), ids ${ids}, repeats ${repeats}, largest gap ${largestGap} segments`,
  );
  const shown = [...places].toSorted(([, a], [, b]) => b - a);
  print(`  ${shown.map(([place, times]) => `${place} ${times}`).join(", ")}`);
  for (const fault of faults.slice(0, 20)) print(`  wrong: ${fault}`);
}

const values = readFlags(USAGE, {
  store: { type: "string" },
  only: { type: "string" },
  from: { type: "string", default: "1" },
  to: { type: "string", default: "150" },
  torn: { type: "boolean", default: false },
  parallel: { type: "string", default: "3" },
  write: { type: "boolean", default: false },
  trace: { type: "boolean", default: false },
});

function print(line: string): void {
  console.log(line);
}

async function runWork(
  work: Work,
  store: StoreName,
  options: Omit<ChainOptions, "points">,
  [from, to]: readonly [number, number],
): Promise<ChainResult> {
  const named = namedPoints(work === "accept" || work === "migrate" ? work : "serve", store);
  if (work === "named") return runChain({ ...options, points: named });
  // Each that is killed keeps the next one away for a minute.
  if (work === "accept") return runCommands(work, { ...options, points: named });
  if (work === "migrate") {
    const calls = CALLS.flatMap((call) => rangeOf(call, from, to, values.torn));
    return runCommands(work, { ...options, points: [...named, ...calls] });
  }
  return runChain({ ...options, points: pointsOf(work, from, to, values.torn) });
}

async function runStore(
  program: string,
  store: StoreName,
  database: Database,
): Promise<ChainResult[]> {
  const [from, to] = [wholeOf("from", values.from, USAGE), wholeOf("to", values.to, USAGE)];
  const results: ChainResult[] = [];
  const left: Work[] = chosen("only", WORKS, values.only);
  const run = async (): Promise<void> => {
    for (let work = left.shift(); work !== undefined; work = left.shift()) {
      const onLife = (line: string): void => print(`  ${store} ${line}`);
      const options = { program, database, ...(values.trace ? { onLife } : {}) };
      const result = await runWork(work, store, options, [from, to]);
      tell(`${store} ${values.torn ? "torn " : ""}${work}`, result);
      results.push(result);
    }
  };
  await Promise.all(Array.from({ length: wholeOf("parallel", values.parallel, USAGE) }, run));
  return results;
}

const startedAt = performance.now();
const results: ChainResult[] = [];
const stores = chosen("store", STORES, values.store);
const program = crashProgram();
for (const store of stores) {
  await using database = await startDatabase(store);
  results.push(...(await runStore(program, store, database)));
}
const { tried, reached, ids, repeats, largestGap, faults } = together(results);
if (faults.length > 0) process.exitCode = 1;
print(`reached ${reached} of ${tried}, ids ${ids}, wrong ${faults.length}`);
print(`crash points ${tried}, repeats ${repeats}, largest gap ${largestGap} segments`);
if (values.write) {
  const line = ["pnpm crash-points", ...process.argv.slice(2)].join(" ");
  const gap = { "segments in the largest gap": largestGap };
  const counted = { points: tried, "points reached": reached, repeats, ...gap, ids };
  writeProofRun("crash-points", line, (performance.now() - startedAt) / 1_000, counted);
}

// pnpm nemesis [--minutes M] [--seed S] [--out DIR] [--sites NAMES] [--plant CLASS] [--python] [--strict]
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { readFlags, refuse } from "../src/proof/command-line.ts";
import { Dice } from "../sim/world/random.ts";
import { provideProgram } from "../../../scripts/test-program.ts";

const USAGE = `Usage: pnpm nemesis [--minutes M] [--seed S] [--out DIR] [--sites NAMES] [--plant CLASS] [--python] [--strict]

  --minutes M    how long faults are injected (1)
  --seed S       any text: it chooses the faults and when they come (1)
  --out DIR      keeps the histories there
  --sites NAMES  sqlite, postgres, etcd, with commas between them (all; in a short run two, by the seed)
  --plant CLASS  writes a fault of this class into the histories, which the judges have to find
  --python       has callers in Python too; so it does from 5 minutes on
  --strict       misses of the bars of availability fail the run too; so they do from 5 minutes on
  --verbose      prints each fault
  --write        adds the run to docs/proof/runs.json; \`pnpm generate\` shows it in docs/proof.md`;

/** A short run has time and processors for two of them. */
function sitesOf(seed: string, isLong: boolean): readonly string[] {
  if (isLong) return ["sqlite", "postgres", "etcd"];
  return ["sqlite", new Dice(seed).pick(["etcd", "postgres"])];
}

const args = readFlags(USAGE, {
  minutes: { type: "string", default: "1" },
  seed: { type: "string", default: "1" },
  out: { type: "string" },
  sites: { type: "string" },
  plant: { type: "string" },
  python: { type: "boolean", default: false },
  strict: { type: "boolean", default: false },
  verbose: { type: "boolean", default: false },
  write: { type: "boolean", default: false },
});
const minutes = Number(args.minutes);
if (!(minutes > 0 && minutes <= 1_440)) refuse("--minutes must be a number up to 1440", USAGE);
// Histories of a long run are larger than memory may be.
const out = path.resolve(args.out ?? mkdtempSync(path.join(tmpdir(), "idmint-nemesis-")));
mkdirSync(out, { recursive: true });
// Before anything is loaded that looks for them: the program, and ports that no worker of a test run takes (fleet/ports.ts).
await provideProgram();
process.env["VITEST_POOL_ID"] ??= "7";
const { nemesis } = await import("./nemesis.ts");
try {
  const { plant, python, seed, sites, strict, verbose } = args;
  const isLong = minutes >= 5;
  process.exitCode = (await nemesis({
    seed,
    minutes,
    out,
    sites: sites?.split(",") ?? sitesOf(seed, isLong),
    plant,
    isStrict: strict || isLong,
    hasPython: python || isLong,
    print: verbose ? (line) => console.log(line) : () => undefined,
    isWritten: args.write,
  }))
    ? 0
    : 1;
} finally {
  if (args.out === undefined && process.exitCode === 0) rmSync(out, { recursive: true });
  else console.log(`histories: ${out}`);
}
process.exit();

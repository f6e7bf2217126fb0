// pnpm fuzz [--seconds N] [--inputs N] [--seed S] [--target T] [--write] | --target T --input TEXT
import { readFlags, refuse } from "../src/proof/command-line.ts";
import { writeProofRun } from "../src/proof/runs.ts";
import { corpusOf } from "./corpus.ts";
import { type FuzzResult, fuzz } from "./fuzz.ts";
import { Heartbeat } from "./judge/watchdog.ts";
import { PLANTED, type PlantedName } from "./planted.ts";
import { TARGETS, type TargetName } from "./targets/index.ts";

const USAGE = `Usage: pnpm fuzz [--seconds N] [--inputs N] [--seed S] [--target T] [--write]
       pnpm fuzz --target T --input TEXT

  --seconds N  how long each target is fuzzed (10)
  --inputs N   at most so many inputs each; 0: those that are kept only (no limit)
  --seed S     a text; what is drawn follows from it, whatever the time (by chance)
  --target T   one of ${Object.keys(TARGETS).join(", ")} (all)
  --write      adds the run to docs/proof/runs.json; \`pnpm generate\` shows it in docs/proof.md
  --input TEXT sends one input, as a finding shows it
  --planted    plants a fault of each class into --target, and wants each to be found
  --hang-ms N  how long the event loop may stand still (20000)
  --within N   most milliseconds that an input may take, if the target allows more`;

function number(name: string, text: string | undefined, byDefault: number): number {
  const value = text === undefined ? byDefault : Number(text);
  return value >= 0 ? value : refuse(`--${name} must be a number, got ${text}`, USAGE);
}

function named<Name extends string>(what: string, text: string, of: Record<Name, unknown>): Name {
  if (Object.hasOwn(of, text)) return text as Name;
  return refuse(`--${what} must be one of ${Object.keys(of).join(", ")}, got ${text}`, USAGE);
}

const ALL = Object.keys(TARGETS) as TargetName[];
const args = readFlags(USAGE, {
  seconds: { type: "string", default: "10" },
  inputs: { type: "string" },
  seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
  target: { type: "string" },
  write: { type: "boolean", default: false },
  input: { type: "string" },
  planted: { type: "boolean", default: false },
  "hang-ms": { type: "string", default: "20000" },
  within: { type: "string" },
});
const heartbeat = new Heartbeat(number("hang-ms", args["hang-ms"], 0));

async function run(name: TargetName, planted?: PlantedName): Promise<FuzzResult> {
  const target = await TARGETS[name](planted && PLANTED[planted].plant());
  // A planted fault has to be found by what is drawn.
  const kept = args.input === undefined ? corpusOf(name) : [args.input];
  const drawn = args.input === undefined ? number("inputs", args.inputs, Infinity) : 0;
  try {
    const withinMs = Math.min(target.withinMs, number("within", args.within, Infinity));
    return await fuzz(
      { ...target, withinMs },
      {
        seed: `${args.seed} ${name}`,
        corpus: planted === undefined ? kept : [],
        inputs: drawn,
        seconds: number("seconds", args.seconds, 10),
        heartbeat,
        ...(planted === undefined ? {} : { mostFindings: 1 }),
      },
    );
  } finally {
    await target.close?.();
  }
}

async function runAll(names: readonly TargetName[]): Promise<number> {
  let found = 0;
  let sent = 0;
  const startedAt = performance.now();
  for (const name of names) {
    const { inputs, perSecond, grownMb, rssMb, findings } = await run(name);
    for (const { at, input, fault } of findings) {
      console.log(`finding: ${name}, seed ${args.seed}, input ${at}: ${fault}\n  ${input}`);
    }
    found += findings.length;
    sent += inputs;
    console.log(
      `${name}: inputs ${inputs}, ${Math.round(perSecond)}/s, grown ${grownMb.toFixed(1)} MB, rss ${Math.round(rssMb)} MB, findings ${findings.length}`,
    );
  }
  if (args.write) {
    const of = args.target === undefined ? "" : ` --target ${args.target}`;
    const line = `pnpm fuzz --seconds ${args.seconds} --seed ${args.seed}${of} --write`;
    const seconds = (performance.now() - startedAt) / 1_000;
    writeProofRun("fuzz", line, seconds, { inputs: sent, findings: found });
  }
  return found;
}

/** Fulfils with how many planted faults were not noticed. */
async function runPlanted(target: TargetName): Promise<number> {
  let missed = 0;
  for (const [planted, { noticed }] of Object.entries(PLANTED)) {
    const { inputs, findings } = await run(target, planted as PlantedName);
    const isNoticed = findings.some(({ fault }) => noticed.test(fault));
    if (!isNoticed) missed++;
    console.log(`${planted}: ${isNoticed ? "noticed" : "missed"} in ${inputs} inputs`);
    if (!isNoticed) for (const { fault } of findings) console.log(`  instead: ${fault}`);
  }
  return missed;
}

const names = args.target === undefined ? ALL : [named("target", args.target, TARGETS)];
const found = await (args.planted ? runPlanted(names[0] ?? "grpc-fast") : runAll(names));
console.log(`seed ${args.seed}, ${args.planted ? "missed" : "findings"} ${found}`);
process.exitCode = found > 0 ? 1 : 0;
await heartbeat.stop();

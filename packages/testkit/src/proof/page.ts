// The parts of docs/proof.md and of the README that are made from docs/proof/. `pnpm generate` writes them; a test compares.
import { readFileSync } from "node:fs";
import path from "node:path";
import { excludedList, promises, promiseTable } from "./promises.ts";
import { recordCounts, recordTable, trackRecord, waysOfFinding } from "./record.ts";
import {
  countOf,
  grouped,
  PROOF_COMMANDS,
  type ProofCommand,
  type ProofRun,
  proofRuns,
  root,
} from "./runs.ts";

/** docs/proof.md with its parts as the files have them. */
export function proofPage(): string {
  const list = promises();
  const record = trackRecord();
  const runs = proofRuns();
  return filled(textOf("docs/proof.md"), {
    promises: promiseTable(list, runs),
    runs: runTable(runs),
    counts: recordCounts(record),
    ways: waysOfFinding(),
    record: recordTable(record, true),
    others: recordTable(record, false),
    excluded: excludedList(list),
  });
}

/** README.md with its sentence about the proof. */
export function readmeWithProof(): string {
  return filled(textOf("README.md"), { proof: sentence(proofRuns()) });
}

function textOf(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}

/** The text with what stands between `<!-- name -->` and `<!-- /name -->` replaced, for every name. */
export function filled(text: string, parts: Readonly<Record<string, string>>): string {
  let result = text;
  for (const [name, part] of Object.entries(parts)) {
    const [before, rest] = cut(result, `<!-- ${name} -->`);
    const [, after] = cut(rest, `<!-- /${name} -->`);
    result = `${before}<!-- ${name} -->\n${part}\n<!-- /${name} -->${after}`;
  }
  return result;
}

function cut(text: string, mark: string): readonly [string, string] {
  const at = text.indexOf(mark);
  if (at === -1 || text.includes(mark, at + 1)) throw new Error(`${mark} has to stand once`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}

export function runTable(runs: readonly ProofRun[]): string {
  const rows = runs.map(
    ({ line, date, commit, seconds, counted }) =>
      `| \`${line.replaceAll("|", "\\|")}\` | ${date} | ${commit} | ${grouped(seconds)} | ${Object.entries(
        counted,
      )
        .map(([name, count]) => `${grouped(count)} ${name}`)
        .join(", ")} |`,
  );
  return ["| command | day | commit | seconds | counted |", "|---|---|---|---|---|", ...rows].join(
    "\n",
  );
}

/** What the runs in the file counted together, of the commands that have any. */
function sentence(runs: readonly ProofRun[]): string {
  const parts = PROOF_COMMANDS.filter((command) => command !== "mutants").flatMap((command) =>
    summary(command, runs),
  );
  const often = parts.length === 0 ? "" : ` (${parts.join("; ")})`;
  return `[docs/proof.md](docs/proof.md) says how each promise is tested, how often${often}, and which faults were found since the beginning.`;
}

function summary(command: ProofCommand, runs: readonly ProofRun[]): readonly string[] {
  const its = runs.filter((run) => run.command === command);
  const [first] = its;
  if (first === undefined) return [];
  const ids = its.reduce((total, { counted }) => total + (counted["ids"] ?? 0), 0);
  const count = `${grouped(countOf(command, runs))} ${Object.keys(first.counted)[0]}`;
  return [`${command}: ${count}${ids === 0 ? "" : ` with ${grouped(ids)} ids`}`];
}

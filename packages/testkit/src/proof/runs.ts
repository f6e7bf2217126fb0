// How often ran what holds the promises: docs/proof/runs.json, which the commands below write with `--write`, and nobody by hand.
// docs/proof.md and the README show it (page.ts).
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/** The clone that this file lies in. */
export const root: string = path.resolve(import.meta.dirname, "../../../..");

const FILE = path.join(root, "docs/proof/runs.json");
/** Of each command the file keeps so many runs, the newest ones. */
export const RUNS_KEPT = 3;

export const PROOF_COMMANDS = ["sim", "nemesis", "crash-points", "fuzz", "mutants"] as const;
export type ProofCommand = (typeof PROOF_COMMANDS)[number];

export interface ProofRun {
  readonly command: ProofCommand;
  /** As it was typed, so that it can be typed again. */
  readonly line: string;
  /** The day, as in 2026-11-28. */
  readonly date: string;
  /** Eight digits of the commit, with a `+` when files differed from it. */
  readonly commit: string;
  readonly seconds: number;
  /** What was counted, by its name in the plural. The first is what the command counts its runs by: histories, points. */
  readonly counted: Readonly<Record<string, number>>;
}

export function proofRuns(): readonly ProofRun[] {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, "utf8")) as ProofRun[]) : [];
}

/** Adds a run to the file. `pnpm generate` brings it into the pages. */
export function writeProofRun(
  command: ProofCommand,
  line: string,
  seconds: number,
  counted: Readonly<Record<string, number>>,
): void {
  const date = new Date().toISOString().slice(0, 10);
  const run = { command, line, date, commit: commit(), seconds: Math.round(seconds), counted };
  writeFileSync(FILE, `${JSON.stringify(withRun(proofRuns(), run), undefined, 2)}\n`);
}

/** The runs by command, of each the newest ones. */
export function withRun(runs: readonly ProofRun[], run: ProofRun): readonly ProofRun[] {
  return PROOF_COMMANDS.flatMap((command) =>
    [...runs, run].filter((one) => one.command === command).slice(-RUNS_KEPT),
  );
}

/** What all runs of a command in the list counted together, by the first name that they count. */
export function countOf(command: ProofCommand, runs: readonly ProofRun[]): number {
  return runs
    .filter((run) => run.command === command)
    .reduce((total, { counted }) => total + (Object.values(counted)[0] ?? 0), 0);
}

/** As in 1,234,567. */
export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}

function commit(): string {
  const head = git("rev-parse", "--short=8", "HEAD");
  // What runs wrote before this one changes nothing of what it shows.
  const changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs");
  return changed === "" ? head : `${head}+`;
}

/** What git says; an empty text where it fails. */
export function git(...args: readonly string[]): string {
  const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : "";
}

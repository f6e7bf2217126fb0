// Shows a fault of docs/proof/track-record.yaml where it was: `node scripts/track-record.ts ID…` clones this repository, takes
// the commit before the mend and the tests of the mend, and runs the fault's test, which has to fail. Without an ID it takes
// all that are marked `shown`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import { type Fault, trackRecord } from "../packages/testkit/src/proof/record.ts";
import { root, searchPath } from "./lib.ts";

const TIMEOUT_MS = 300_000;

interface Ran {
  readonly isGreen: boolean;
  readonly output: string;
}

/** Runs a command in the clone. */
function run(clone: string, command: string, ...args: readonly string[]): Ran {
  const env = { ...process.env, PATH: searchPath(), IDMINT_SEED: "1" };
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: clone,
    env,
    encoding: "utf8",
    timeout: TIMEOUT_MS,
  });
  return { isGreen: status === 0, output: stripVTControlCharacters(stdout + stderr) };
}

function need(clone: string, command: string, ...args: readonly string[]): string {
  const { isGreen, output } = run(clone, command, ...args);
  if (!isGreen) throw new Error(`failed: ${command} ${args.join(" ")}\n${output}`);
  return output.trim();
}

/** The test file that had the title. */
function fileOf(clone: string, commit: string, title: string): string {
  const found = need(clone, "git", "grep", "-lF", title, commit, "--", "packages/*.test.ts");
  return found.split("\n", 1)[0]?.slice(`${commit}:`.length) ?? "";
}

/** The test of a fault on the commit before its mend. */
function runBefore(clone: string, { mended, title, titleThen = title, fileThen }: Fault): Ran {
  need(clone, "git", "checkout", "--quiet", "--force", `${mended}~1`);
  need(clone, "git", "clean", "-fdq", "-e", "node_modules");
  const changed = need(
    clone,
    "git",
    "diff",
    "--name-only",
    "--diff-filter=AM",
    `${mended}~1`,
    mended,
  );
  const tests = changed
    .split("\n")
    .filter((file) => /^packages\/(?:\w+\/test|testkit)\//.test(file) && !file.endsWith(".json"));
  need(clone, "git", "checkout", "--quiet", mended, "--", ...tests);
  need(clone, "npx", "--yes", "pnpm@10", "install", "--frozen-lockfile", "--prefer-offline");
  const file = fileThen ?? fileOf(clone, mended, titleThen);
  // Vitest takes a pattern, and a title of a table has %s or ${…} for its values.
  const pattern = titleThen
    .split(/%s|\$\{\w+\}/)
    .map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, "\\$&"))
    .join(".*");
  return run(clone, "node_modules/.bin/vitest", "run", file, "-t", pattern);
}

const ids = process.argv.slice(2);
const chosen = trackRecord().filter(({ id, shown }) =>
  ids.length > 0 ? ids.includes(id) : shown !== undefined,
);
const clone = mkdtempSync(path.join(tmpdir(), "idmint-record-"));
try {
  need(root, "git", "clone", "--quiet", "--no-checkout", root, clone);
  for (const fault of chosen) {
    const { isGreen, output } = runBefore(clone, fault);
    const isShown = !isGreen && (fault.shown === undefined || output.includes(fault.shown));
    const said = /^(?:AssertionError|Error|\w*Error): (.*)$/m.exec(output)?.[1] ?? "";
    console.log(`${isShown ? "fails as it should" : "NOT SHOWN"}  ${fault.id}  ${said}`);
    if (!isShown) process.exitCode = 1;
  }
} finally {
  rmSync(clone, { recursive: true, force: true });
}
if (chosen.length === 0) process.exitCode = 1;

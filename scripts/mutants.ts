// Shows that the tests can fail: plants one known fault at a time in a copy of the workspace, and wants the tests that
// guard it to notice. `pnpm mutants` runs all of them, `pnpm mutants WORD` those whose name holds the word.
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Mutant } from "./mutant.ts";
import { mutants } from "./mutants.list.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const TEST_TIMEOUT_MS = 300_000;

/** The workspace's files in a folder of their own, whose packages see each other and not the originals. */
function copyWorkspace(): string {
  const copy = mkdtempSync(join(tmpdir(), "idmint-mutants-"));
  const listed = spawnSync("git", ["ls-files", "-co", "--exclude-standard"], { cwd: root });
  for (const file of listed.stdout.toString().split("\n")) {
    if (file === "" || lstatSync(join(root, file), { throwIfNoEntry: false }) === undefined)
      continue;
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file));
  }
  linkDependencies(copy, "");
  for (const name of readdirSync(join(root, "packages")))
    linkDependencies(copy, join("packages", name));
  return copy;
}

function linkDependencies(copy: string, folder: string): void {
  const from = join(root, folder, "node_modules");
  const to = join(copy, folder, "node_modules");
  mkdirSync(to, { recursive: true });
  if (!existsSync(from)) return;
  for (const name of readdirSync(from)) {
    if (!name.startsWith("@")) link(copy, join(from, name), join(to, name));
    else {
      mkdirSync(join(to, name));
      for (const scoped of readdirSync(join(from, name))) {
        link(copy, join(from, name, scoped), join(to, name, scoped));
      }
    }
  }
}

/** To the copy where the original lies in the workspace's packages, else to the original. */
function link(copy: string, from: string, to: string): void {
  const target = realpathSync(from);
  const packages = join(realpathSync(root), "packages");
  symlinkSync(
    target.startsWith(packages) ? join(copy, "packages", target.slice(packages.length)) : target,
    to,
  );
}

function runTests(copy: string, tests: readonly string[]): { passed: boolean; output: string } {
  const vitest = join(copy, "node_modules", "vitest", "vitest.mjs");
  const run = spawnSync(process.execPath, [vitest, "run", "--bail", "1", "--no-color", ...tests], {
    cwd: copy,
    timeout: TEST_TIMEOUT_MS,
  });
  const output = run.stdout.toString() + run.stderr.toString();
  if (/No test files found|Cannot find (module|package)|SyntaxError/.test(output))
    throw new Error(output);
  return { passed: run.status === 0, output };
}

function plant(copy: string, mutant: Mutant): () => void {
  const path = join(copy, mutant.file);
  const original = readFileSync(path, "utf8");
  const parts = original.split(mutant.find);
  if (parts.length !== 2) {
    throw new Error(
      `${mutant.name}: the text to replace stands ${parts.length - 1} times in ${mutant.file}`,
    );
  }
  writeFileSync(path, parts.join(mutant.replace));
  return () => writeFileSync(path, original);
}

const word = process.argv[2] ?? "";
const chosen = mutants.filter((mutant) => mutant.name.includes(word));
const copy = copyWorkspace();
const survivors: string[] = [];
try {
  const tests = [...new Set(chosen.flatMap((mutant) => mutant.tests))];
  const sound = runTests(copy, tests);
  if (!sound.passed) throw new Error(`the tests fail without any mutant:\n${sound.output}`);
  for (const mutant of chosen) {
    const restore = plant(copy, mutant);
    const { passed } = runTests(copy, mutant.tests);
    restore();
    if (passed) survivors.push(mutant.name);
    process.stdout.write(`${passed ? "SURVIVED" : "killed  "}  ${mutant.name}\n`);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
process.stdout.write(`${chosen.length - survivors.length} of ${chosen.length} mutants killed\n`);
process.exitCode = survivors.length === 0 && chosen.length > 0 ? 0 : 1;

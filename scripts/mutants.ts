// Shows that the tests can fail: plants one known fault at a time in a copy of the workspace, and wants the tests that
// guard it to notice. `pnpm mutants` runs all of them, `pnpm mutants WORD` those whose name holds the word, `--shard k/n` a part,
// and `--check` only looks whether all of them can still be planted. They are of what only real stores show, and of what simulated fleets do; `--generated`
// makes those of pure code (mutation/generated.ts).
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Mutant } from "./mutant.ts";
import { redisMutants } from "./mutants.redis.ts";
import { assertNoticedInside, SIMULATION, simMutants } from "./mutants.sim.ts";
import { storeMutants } from "./mutants.stores.ts";
import { assertGenerated, runGenerated } from "./mutation/generated.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const mutants: readonly Mutant[] = [...storeMutants, ...redisMutants, ...simMutants];
const TEST_TIMEOUT_MS = 300_000;

/** The workspace's files in a folder of their own. The packages' links are relative, so they lead to the copies. */
function copyWorkspace(): string {
  const copy = mkdtempSync(join(tmpdir(), "idmint-mutants-"));
  const listed = spawnSync("git", ["ls-files", "-co", "--exclude-standard"], { cwd: root });
  const folders = ["@idmint", ...readdirSync(join(root, "packages"))].map((name) =>
    name.startsWith("@") ? `node_modules/${name}` : `packages/${name}/node_modules`,
  );
  for (const file of [...listed.stdout.toString().split("\n"), ...folders]) {
    if (file === "" || !existsSync(join(root, file))) continue;
    cpSync(join(root, file), join(copy, file), { recursive: true, verbatimSymlinks: true });
  }
  for (const name of readdirSync(join(root, "node_modules"))) {
    // What Vite works in is no dependency.
    if (name.startsWith(".vite") || name === "@idmint") continue;
    symlinkSync(join(root, "node_modules", name), join(copy, "node_modules", name));
  }
  return copy;
}

function runTests(
  copy: string,
  { tests, only }: Mutant,
): { readonly passed: boolean; readonly output: string } {
  const vitest = join(copy, "node_modules", "vitest", "vitest.mjs");
  const names = only === undefined ? [] : ["-t", only];
  const args = tests.includes(SIMULATION)
    ? ["-C", "idmint-source", SIMULATION, "--first", "--histories", only ?? "1000"]
    : [vitest, "run", "--bail", "1", "--no-color", ...tests, ...names];
  const run = spawnSync(process.execPath, args, { cwd: copy, timeout: TEST_TIMEOUT_MS });
  const output = run.stdout.toString() + run.stderr.toString();
  if (/No test files found|Cannot find (module|package)|SyntaxError/.test(output))
    throw new Error(output);
  return { passed: run.status === 0, output };
}

/** The file around the text to replace, which stands in it exactly once. */
function around(folder: string, { name, file, find }: Mutant): readonly [string, string] {
  const [before, after, ...others] = readFileSync(join(folder, file), "utf8").split(find);
  if (before !== undefined && after !== undefined && others.length === 0) return [before, after];
  const count = after === undefined ? 0 : others.length + 1;
  throw new Error(`${name}: the text to replace stands ${count} times in ${file}`);
}

function plant(copy: string, mutant: Mutant): () => void {
  const path = join(copy, mutant.file);
  const [before, after] = around(copy, mutant);
  writeFileSync(path, before + mutant.replace + after);
  return () => writeFileSync(path, before + mutant.find + after);
}

/** Throws unless every fault can be planted, under a name of its own, and its tests are there. */
function assertPlantable(): void {
  const names = new Set<string>();
  for (const mutant of mutants) {
    around(root, mutant);
    const missing = mutant.tests.find((test) => !existsSync(join(root, test)));
    if (missing !== undefined) throw new Error(`${mutant.name}: there is no ${missing}`);
    if (names.has(mutant.name)) throw new Error(`${mutant.name}: two mutants have this name`);
    names.add(mutant.name);
  }
  assertNoticedInside(mutants);
}

/** Tests that pass without any mutant, as they must before a failure says something. */
const sound = new Set<string>();

function assertSound(copy: string, mutant: Mutant): void {
  const key = [...mutant.tests, mutant.only].join(" ");
  if (sound.has(key)) return;
  const { passed, output } = runTests(copy, mutant);
  if (!passed) throw new Error(`the tests fail without any mutant:\n${output}`);
  sound.add(key);
}

function run(chosen: readonly Mutant[]): void {
  const copy = copyWorkspace();
  const survivors: string[] = [];
  try {
    for (const mutant of chosen) {
      assertSound(copy, mutant);
      const restore = plant(copy, mutant);
      const { passed } = runTests(copy, mutant);
      restore();
      if (passed) survivors.push(mutant.name);
      process.stdout.write(`${passed ? "SURVIVED" : "killed  "}  ${mutant.name}\n`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  const killed = chosen.length - survivors.length;
  process.stdout.write(`${killed} of ${chosen.length} mutants killed\n`);
  process.exitCode = survivors.length === 0 && chosen.length > 0 ? 0 : 1;
}

/** The k-th of n parts, in which those with the same tests stand together. */
function shard(text: string): readonly Mutant[] {
  const [k = 0, n = 0] = text.split("/").map(Number);
  if (!(Number.isInteger(k) && k >= 0 && k < n))
    throw new Error(`--shard ${text}: must be k/n, with k from 0 to n − 1`);
  const from = (part: number): number => Math.floor((part * mutants.length) / n);
  return mutants.slice(from(k), from(k + 1));
}

const [word = "", value = ""] = process.argv.slice(2);
if (word === "--generated") await runGenerated(process.argv.slice(3));
else {
  assertPlantable();
  if (word === "--check") assertGenerated();
  else if (word === "--shard") run(shard(value));
  else run(mutants.filter((mutant) => mutant.name.includes(word)));
}

// Everything that is checked without running the tests. All steps run, so that one look shows all faults.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { root, searchPath } from "./lib.ts";

/** What came of a step. Its output is shown when it is over, since two run at once. */
interface Outcome {
  readonly isGood: boolean;
  readonly output: string;
}

type Step = readonly [name: string, run: () => Promise<Outcome>];

// The licences and versions of dependencies are looked at by scripts/sbom.ts, which ends the build.
const build: Step = ["build and dependencies", () => command("node", "scripts/build.ts")];
const tarballs: Step = [
  "tarballs",
  () => command("vitest", "run", "--project", "pack", "--reporter", "dot"),
];
const unpacked: Step = [
  "tarballs",
  () => Promise.resolve({ isGood: false, output: "there is no build to pack\n" }),
];
const others: readonly Step[] = [
  ["unused code", () => command("knip")],
  ["structure", () => command("node", "scripts/structure.ts")],
  ["generated code", () => command("node", "scripts/generate.ts", "--check")],
  ["format", () => command("oxfmt", "--check", ".")],
  ["proto lint", () => command("buf", "lint")],
  [
    "proto format",
    () => command("buf", "format", "--diff", "--exit-code", "--path", "proto/idmint"),
  ],
  ["proto breaking", breaking],
  ["mutants", () => command("node", "scripts/mutants.ts", "--check")],
];

function command(program: string, ...args: readonly string[]): Promise<Outcome> {
  // The build is over when the tarballs are packed: packages/testkit/test/pack/build.setup.ts need not make it again.
  const env = { ...process.env, PATH: searchPath(), TEST_BUILT: "1" };
  const child = spawn(program, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ isGood: code === 0, output }));
  });
}

/** Compares the API with main's. Before 1.0 a break is shown and allowed. */
async function breaking(): Promise<Outcome> {
  const main = ["origin/main", "main"].find((name) =>
    git("cat-file", "-e", `${name}:proto/idmint`),
  );
  if (main === undefined) {
    return { isGood: true, output: "no main branch with an API to compare with\n" };
  }
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-breaking-"));
  try {
    const image = path.join(folder, "main.tar");
    if (!git("archive", "--format=tar", `--output=${image}`, main, "proto", "buf.yaml")) {
      return { isGood: false, output: `git archive ${main} failed\n` };
    }
    const { isGood, output } = await command("buf", "breaking", "--against", image);
    if (isGood) return { isGood, output };
    const manifest = readFileSync(path.join(root, "packages/proto/package.json"), "utf8");
    const { version } = JSON.parse(manifest) as { version: string };
    if (!version.startsWith("0.")) return { isGood, output };
    return { isGood: true, output: `${output}allowed: @idmint/proto is ${version}, before 1.0\n` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function git(...args: readonly string[]): boolean {
  return spawnSync("git", args, { cwd: root, stdio: "ignore" }).status === 0;
}

const failed: string[] = [];

async function run([name, step]: Step): Promise<boolean> {
  const start = performance.now();
  const { isGood, output } = await step();
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`\n— ${name}\n${output}${isGood ? "ok" : "FAILED"} ${name} (${seconds} s)`);
  if (!isGood) failed.push(name);
  return isGood;
}

// Two lanes, for two cores. Both builds of tsc write what is published, so the second waits for the first.
const built = run(build);
const packed = built.then((isBuilt) => run(isBuilt ? tarballs : unpacked));
await run(["lint", () => command("oxlint", "--type-aware", "--deny-warnings")]);
await built;
await run(["types", () => command("tsc", "-b", "--checkers", "1")]);
for (const step of others) await run(step);
await packed;

if (failed.length > 0) {
  console.error(`\ncheck failed: ${failed.join(", ")}`);
  process.exitCode = 1;
} else {
  console.log("\ncheck passed");
}

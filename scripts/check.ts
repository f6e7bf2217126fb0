// Everything that is checked without running the tests. All steps run, so that one look shows all faults.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { root, succeeds } from "./lib.ts";

const steps: readonly (readonly [name: string, step: () => boolean])[] = [
  ["lint", () => succeeds("oxlint", "--type-aware", "--deny-warnings")],
  ["format", () => succeeds("oxfmt", "--check", ".")],
  ["types", () => succeeds("tsc", "-b")],
  ["structure", () => succeeds("node", "scripts/structure.ts")],
  ["unused code", () => succeeds("knip")],
  ["dependencies", () => succeeds("node", "scripts/sbom.ts", "--check")],
  ["proto lint", () => succeeds("buf", "lint")],
  [
    "proto format",
    () => succeeds("buf", "format", "--diff", "--exit-code", "--path", "proto/idmint"),
  ],
  ["proto breaking", breaking],
  ["generated code", () => succeeds("node", "scripts/generate.ts", "--check")],
  ["mutants", () => succeeds("node", "scripts/mutants.ts", "--check")],
  ["tarballs", () => succeeds("vitest", "run", "--project", "pack", "--reporter", "dot")],
];

/** Compares the API with main's. Before 1.0 a break is shown and allowed. */
function breaking(): boolean {
  const main = ["origin/main", "main"].find((name) =>
    git("cat-file", "-e", `${name}:proto/idmint`),
  );
  if (main === undefined) {
    console.log("no main branch with an API to compare with");
    return true;
  }
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-breaking-"));
  try {
    const image = path.join(folder, "main.tar");
    if (!git("archive", "--format=tar", `--output=${image}`, main, "proto", "buf.yaml"))
      return false;
    if (succeeds("buf", "breaking", "--against", image)) return true;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const manifest = readFileSync(path.join(root, "packages/proto/package.json"), "utf8");
  const { version } = JSON.parse(manifest) as { version: string };
  const isAllowed = version.startsWith("0.");
  if (isAllowed) console.log(`allowed: @idmint/proto is ${version}, before 1.0`);
  return isAllowed;
}

function git(...args: readonly string[]): boolean {
  return spawnSync("git", args, { cwd: root, stdio: "ignore" }).status === 0;
}

const failed = steps.filter(([name, step]) => {
  const start = performance.now();
  console.log(`\n— ${name}`);
  const isGood = step();
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`${isGood ? "ok" : "FAILED"} ${name} (${seconds} s)`);
  return !isGood;
});

if (failed.length > 0) {
  console.error(`\ncheck failed: ${failed.map(([name]) => name).join(", ")}`);
  process.exitCode = 1;
} else {
  console.log("\ncheck passed");
}

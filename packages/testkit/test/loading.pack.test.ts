// The packed packages side by side in a node_modules folder, as a user has them.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, inject, test } from "vitest";

interface Manifest {
  readonly name: string;
  readonly exports?: Record<string, unknown>;
  readonly dependencies?: Record<string, string>;
}

const packages = path.resolve(import.meta.dirname, "../..");
const home = mkdtempSync(path.join(tmpdir(), "idmint-loading-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const manifests = inject("tarballs").map(({ folder, file }) => {
  const source = path.join(packages, folder);
  const { name } = JSON.parse(readFileSync(path.join(source, "package.json"), "utf8")) as Manifest;
  const target = path.join(home, "node_modules", name);
  mkdirSync(target, { recursive: true });
  run("tar", "-xzf", file, "--strip-components=1", "-C", target);
  const text = readFileSync(path.join(target, "package.json"), "utf8");
  const manifest = JSON.parse(text) as Manifest;
  for (const dependency of Object.keys(manifest.dependencies ?? {})) link(dependency, source);
  return manifest;
});

/** Third-party packages come from the workspace. */
function link(dependency: string, source: string): void {
  const target = path.join(home, "node_modules", dependency);
  if (dependency.startsWith("@idmint/") || existsSync(target)) return;
  mkdirSync(path.dirname(target), { recursive: true });
  symlinkSync(path.join(source, "node_modules", dependency), target);
}

function run(command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: home, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed\n${stdout}${stderr}`);
  return stdout;
}

const entries = manifests.flatMap(({ name, exports }) =>
  Object.keys(exports ?? {})
    .filter((entry) => entry !== "./package.json")
    .map((entry) => path.posix.join(name, entry)),
);

test.each(entries)("%s loads with import and with require(), as the same module", (entry) => {
  const script = `import(${JSON.stringify(entry)}).then((imported) => {
    if (imported !== require(${JSON.stringify(entry)})) throw new Error("two copies");
    console.log(Object.keys(imported).length);
  });`;
  expect(run(process.execPath, "--input-type=commonjs", "--eval", script)).toMatch(/^\d+\n$/);
});

// Builds the program of the package `idmint`: the command line, the server and all of ours that they need, in a few files.
// Node takes about half of a start to find, read and link several hundred modules; and what it knows of each stays in memory.
import { cpSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { publishedPackages, root } from "./lib.ts";

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
}

/**
 * Where the files are, flat: as deep below the package's folder as a module in src/ or dist/, since code finds package.json,
 * the docs and the console by its own place.
 */
const FOLDER = "dist/bundle";

/** What is run by its file name: the command, a thread and a child process. They share their code. */
const ENTRIES = [
  "cli/src/main.ts",
  "server/src/processes/process-main.ts",
  "server/src/store/sqlite/thread.ts",
];

/** Third-party code stays where npm installs it: only then can its users see and update it. */
export async function buildProgram(): Promise<void> {
  const packages = path.join(root, "packages");
  const outdir = path.join(packages, "cli", FOLDER);
  rmSync(outdir, { recursive: true, force: true });
  await build({
    entryPoints: ENTRIES.map((entry) => path.join(packages, entry)),
    entryNames: "[name]",
    outdir,
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node22",
    conditions: ["idmint-source"],
    external: Object.keys(thirdParty()),
    sourcemap: true,
    legalComments: "none",
    logLevel: "warning",
    // The SDK asks for a Node that is new enough, as a side effect. The command does so itself, before anything else.
    logOverride: { "ignored-bare-import": "silent" },
  });
  // The server serves it from its package, which is this one here.
  const console = path.join(packages, "cli", "console");
  rmSync(console, { recursive: true, force: true });
  cpSync(path.join(packages, "server", "console"), console, { recursive: true });
}

/** The dependencies of all packages in the bundle. The manifest of `idmint` must have the same, or the build fails. */
function thirdParty(): Readonly<Record<string, string>> {
  const needed: Record<string, string> = {};
  for (const name of publishedPackages) {
    for (const [dependency, version] of Object.entries(dependenciesOf(name))) {
      if (!dependency.startsWith("@idmint/")) needed[dependency] ??= version;
    }
  }
  const declared = dependenciesOf("cli");
  const names = new Set([...Object.keys(needed), ...Object.keys(declared)]);
  const faults = [...names]
    .filter((name) => needed[name] !== declared[name])
    .map((name) => `${name}: ${declared[name] ?? "missing"}, needed ${needed[name] ?? "by none"}`);
  if (faults.length > 0) {
    throw new Error(`dependencies in packages/cli/package.json:\n${faults.join("\n")}`);
  }
  return needed;
}

function dependenciesOf(name: string): Readonly<Record<string, string>> {
  const file = path.join(root, "packages", name, "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as Manifest).dependencies ?? {};
}

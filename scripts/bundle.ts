// Builds the program of the package `idmint`: the command line, the server and all of ours that they need, in a few files.
// As 481 modules, a server takes half as long again to start: Node finds, reads and links each. What it knows of each module
// stays in memory.
import { rmSync } from "node:fs";
import path from "node:path";
import { build, type BuildOptions } from "esbuild";
import { readManifest } from "./dependencies.ts";
import { productPackages, root } from "./lib.ts";

/**
 * Where the files are, flat: as deep below the package's folder as a module in src/ or dist/, since code finds package.json,
 * the docs and the console by its own place.
 */
export const FOLDER = "dist/bundle";

/** The files that Node is started with: the command and a child process. They share their code. */
export const ENTRIES: readonly string[] = [
  "packages/cli/src/main.ts",
  "packages/server/src/processes/process-main.ts",
];
/** What starts as a thread. It shares nothing, and a start with a store waits for it: one file loads in half the time of many. */
export const THREAD = "packages/server/src/store/sqlite/thread.ts";

/** Third-party code stays where npm installs it: only then can its users see and update it. */
export async function buildProgram(): Promise<void> {
  const outdir = path.join(root, "packages/cli", FOLDER);
  rmSync(outdir, { recursive: true, force: true });
  for (const entries of [ENTRIES, [THREAD]]) {
    await build({ ...bundled(entries), outdir, sourcemap: true });
  }
}

/** How files of ours that Node is started with become a few that share their code. */
export function bundled(entries: readonly string[]): BuildOptions {
  return {
    entryPoints: entries.map((entry) => path.join(root, entry)),
    entryNames: "[name]",
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node22",
    conditions: ["idmint-source"],
    external: [...thirdParty()],
    legalComments: "none",
    logLevel: "warning",
    // The SDK asks for a Node that is new enough, as a side effect. The command does so itself, before anything else.
    logOverride: { "ignored-bare-import": "silent" },
  };
}

/** The dependencies that `idmint` declares. Throws unless they include those of all packages in the bundle, in the same versions. */
function thirdParty(): readonly string[] {
  const declared = dependenciesOf("cli");
  const faults = productPackages.flatMap((name) =>
    Object.entries(dependenciesOf(name))
      .filter(([need, version]) => !need.startsWith("@idmint/") && declared[need] !== version)
      .map(
        ([need, version]) => `${name} needs ${need} ${version}, not ${declared[need] ?? "none"}`,
      ),
  );
  if (faults.length > 0) {
    throw new Error(`dependencies in packages/cli/package.json:\n${faults.join("\n")}`);
  }
  return Object.keys(declared);
}

function dependenciesOf(name: string): Readonly<Record<string, string>> {
  return readManifest(path.join(root, "packages", name)).dependencies ?? {};
}

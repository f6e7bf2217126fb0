// Vitest's global set-up: bundles what tests start as processes and threads, hundreds of times in a run. From source a server
// takes twice the CPU to start. A run makes its bundle of the sources that it finds, so none is ever of other ones.
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { build, type BuildOptions, type OutputFile } from "esbuild";
import type { TestProject } from "vitest/node";
import { bundled, ENTRIES, FOLDER, THREAD } from "./bundle.ts";
import { root } from "./lib.ts";

/** Callers of a fleet, of which storms have several. */
const CALLERS = [
  ...["sdk", "grpc", "history"].map((kind) => `packages/testkit/src/fleet/load-${kind}.ts`),
  ...["http", "raw", "sdk"].map((kind) => `packages/testkit/nemesis/callers/${kind}-caller.ts`),
];
/** What tests of the server kill, by tens. */
const CHILDREN = [
  "alarms/alarm-child.ts",
  "store/audit-child.ts",
  "store/grant-child.ts",
  "store/spread/move-tag-child.ts",
  "store/ticket/move-slots-child.ts",
].map((name) => `packages/server/test/${name}`);
const CACHE = path.join(root, "node_modules/.cache/idmint-program");
/** What other runs may still use is younger. */
const KEPT_MS = 24 * 60 * 60_000;

export default async function setup(project: TestProject): Promise<void> {
  await provideProgram();
  project.onTestsRerun(provideProgram);
}

/** Tells the tests where the bundle is (packages/testkit/src/program.ts), and SQLite stores where their thread is (vitest.config.ts). */
export async function provideProgram(): Promise<void> {
  const folder = await makeProgram([[...ENTRIES, ...CALLERS], [THREAD], CHILDREN]);
  process.env["TEST_PROGRAM"] = folder;
  process.env["TEST_THREAD"] = pathToFileURL(path.join(folder, "thread.js")).href;
}

/** Bundles groups of entries, of which each shares its code. Answers the folder of the files. */
export async function makeProgram(
  groups: readonly (readonly string[])[],
  more: BuildOptions = {},
): Promise<string> {
  const outputFiles: OutputFile[] = [];
  const outdir = path.join(root, FOLDER);
  for (const entries of groups) {
    const built = await build({ ...bundled(entries), ...more, outdir, write: false });
    outputFiles.push(...(built.outputFiles ?? []));
  }
  forget();
  return path.join(kept(outputFiles), FOLDER);
}

/**
 * The files in a folder named after what is in them and where their docs and dependencies lie: nobody changes them, and Node's
 * compile cache of an earlier run fits.
 */
function kept(files: readonly OutputFile[]): string {
  const hash = createHash("sha256").update(root);
  for (const file of files) hash.update(`${path.basename(file.path)} ${file.hash} `);
  const folder = path.join(CACHE, hash.digest("hex").slice(0, 16));
  const now = new Date();
  if (existsSync(folder)) {
    utimesSync(folder, now, now);
    return folder;
  }
  mkdirSync(CACHE, { recursive: true });
  const making = mkdtempSync(`${folder}-`);
  mkdirSync(path.join(making, FOLDER), { recursive: true });
  for (const { path: name, contents } of files) {
    writeFileSync(path.join(making, FOLDER, path.basename(name)), contents);
  }
  // What the program finds by its own place.
  for (const [name, place] of [
    ["package.json", "packages/cli/package.json"],
    ["node_modules", "packages/cli/node_modules"],
    ["console", "packages/server/console"],
    ["docs", "docs"],
  ] as const) {
    symlinkSync(path.join(root, place), path.join(making, name));
  }
  try {
    renameSync(making, folder);
  } catch (error) {
    // Another run was quicker.
    rmSync(making, { recursive: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** Removes what no run has used for a day. */
function forget(): void {
  if (!existsSync(CACHE)) return;
  for (const name of readdirSync(CACHE)) {
    const folder = path.join(CACHE, name);
    if (Date.now() - statSync(folder).mtimeMs > KEPT_MS)
      rmSync(folder, { recursive: true, force: true });
  }
}

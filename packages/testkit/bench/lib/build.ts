// What is published is JavaScript: everything that is measured runs built, so that neither start nor memory holds a
// compiler.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { buildSync } from "esbuild";
import { Subject } from "./process.ts";

const bench = path.resolve(import.meta.dirname, "..");
const root = path.resolve(bench, "../../..");
const BUILD_TIMEOUT_MS = 180_000;
const RUST_TIMEOUT_MS = 600_000;

/** Entry of the command line tool as it is published. */
export const BUILT_CLI: string = path.join(root, "packages/cli/dist/bundle/main.js");
/** The same without a bundle: a file for each module. */
export const UNBUNDLED_CLI: string = path.join(root, "packages/cli/dist/main.js");

/** Builds the packages, once, before anything is measured. */
export async function buildPackages(): Promise<void> {
  const build = [process.execPath, path.join(root, "scripts/build.ts")];
  await using building = new Subject("the build", build);
  await building.toEnd(BUILD_TIMEOUT_MS);
  if (!existsSync(BUILT_CLI)) throw new Error(`the build made no ${BUILT_CLI}`);
}

/** The floor on grpc-go, built; undefined on a machine without Go. Fails when Go is there and cannot build it. */
export function builtGoFloor(): string | undefined {
  if (spawnSync("go", ["version"]).status !== 0) return undefined;
  const outfile = path.join(bench, "../node_modules/.cache/bench/grpc-go");
  const args = ["build", "-C", path.join(bench, "floors/go"), "-o", outfile, "."];
  const { status, stderr } = spawnSync("go", args, { timeout: BUILD_TIMEOUT_MS, encoding: "utf8" });
  if (status !== 0) throw new Error(`Go could not build its floor:\n${stderr}`);
  return outfile;
}

/** The floor on tonic, built; undefined on a machine without Rust. Fails when Rust is there and cannot build it. */
export function builtRustFloor(): string | undefined {
  if (spawnSync("cargo", ["--version"]).status !== 0) return undefined;
  const target = path.join(bench, "../node_modules/.cache/bench/tonic");
  const manifest = path.join(bench, "floors/rust/Cargo.toml");
  const args = [
    "build",
    "--release",
    "--locked",
    "--manifest-path",
    manifest,
    "--target-dir",
    target,
  ];
  const { status, stderr } = spawnSync("cargo", args, {
    timeout: RUST_TIMEOUT_MS,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`Rust could not build its floor:\n${stderr}`);
  return path.join(target, "release/floor");
}

const built = new Map<string, string>();

/** A file of the benchmarks as JavaScript that runs with the built packages; answers where it is. */
export function builtScript(file: string): string {
  const known = built.get(file);
  if (known !== undefined) return known;
  // Below a node_modules of this package, so that the packages it imports are found.
  const outfile = path.join(bench, "../node_modules/.cache/bench", file.replace(/\.ts$/, ".js"));
  buildSync({
    entryPoints: [path.join(bench, file)],
    outfile,
    bundle: true,
    packages: "external",
    format: "esm",
    platform: "node",
    target: "node22",
  });
  built.set(file, outfile);
  return outfile;
}

// Builds the console into the server's package, unless it is there already, built of the same sources: `pnpm start` runs
// this too, so it must cost nothing when there is nothing to do.
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const here = import.meta.dirname;
const packages = path.dirname(here);
/** Where the server looks for it. */
const target = path.join(packages, "server/console");
/** Says what the folder was built of. */
const STAMP = "sources.txt";
/** All that the bundle is made of. Of our other packages it takes core alone. */
const SOURCES = [
  "console/src",
  "console/public",
  "console/index.html",
  "console/vite.config.ts",
  "console/build.ts",
  "core/src",
  "../pnpm-lock.yaml",
];
const COMPRESSED = /\.(?:html|js|css|svg|md)$/;

const sources = hashOfSources();
if (stampOf(target) !== sources) await build();

function stampOf(folder: string): string | undefined {
  const file = path.join(folder, STAMP);
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

/** By their text, since a clone gives all files the time at which it was made. */
function hashOfSources(): string {
  const hash = createHash("sha256");
  for (const source of SOURCES) {
    const place = path.join(packages, source);
    for (const file of filesOf(place)) {
      hash.update(`${path.relative(packages, file)}\n`).update(readFileSync(file));
    }
  }
  return hash.digest("hex");
}

function filesOf(place: string): readonly string[] {
  if (path.extname(place) !== "") return [place];
  return readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .toSorted();
}

/** Beside its place first: whoever looks meanwhile, such as a second start, finds a whole folder or none. */
async function build(): Promise<void> {
  const { build: bundle } = await import("vite");
  const made = mkdtempSync(path.join(here, "node_modules/.built-"));
  try {
    await bundle({
      root: here,
      logLevel: "warn",
      build: { outDir: made, emptyOutDir: true, reportCompressedSize: false },
    });
    for (const file of filesOf(made)) if (COMPRESSED.test(file)) compress(file);
    writeFileSync(path.join(made, STAMP), sources);
    // A temporary folder is its maker's alone; a server may run as somebody else.
    chmodSync(made, 0o755);
    replace(made);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/** Once and for all, so that a server need not: the best that both forms can do. */
function compress(file: string): void {
  const bytes = readFileSync(file);
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  };
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
}

function replace(made: string): void {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(path.dirname(target), { recursive: true });
  try {
    renameSync(made, target);
  } catch (thrown) {
    // Somebody else built it at the same time, of the same sources.
    if (stampOf(target) !== sources) throw thrown;
  }
}

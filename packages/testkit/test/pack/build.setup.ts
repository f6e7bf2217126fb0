// Builds and packs every published package once, before the first .pack.test.ts.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestProject } from "vitest/node";

const root = path.resolve(import.meta.dirname, "../../../..");
const folders = ["proto", "core", "coordination", "client", "cli"] as const;

export interface Tarball {
  /** Folder of the package under packages/. */
  readonly folder: (typeof folders)[number];
  /** Absolute path of the .tgz. */
  readonly file: string;
}

declare module "vitest" {
  interface ProvidedContext {
    tarballs: readonly Tarball[];
  }
}

export default function setup(project: TestProject): () => void {
  // scripts/check.ts has just done so, and deploy/assemble.sh need not either.
  if (process.env["TEST_BUILT"] !== "1") run(root, process.execPath, "scripts/build.ts");
  process.env["TEST_BUILT"] = "1";
  const target = mkdtempSync(path.join(tmpdir(), "idmint-pack-"));
  const remove = (): void => rmSync(target, { recursive: true, force: true });
  try {
    project.provide("tarballs", pack(target));
  } catch (error) {
    remove();
    throw error;
  }
  return remove;
}

function pack(target: string): readonly Tarball[] {
  const chosen = folders.flatMap((folder) => ["--filter", `./packages/${folder}`]);
  run(root, ...pnpm(), "-r", ...chosen, "pack", "--pack-destination", target);
  return folders.map((folder) => {
    const manifest = readFileSync(path.join(root, "packages", folder, "package.json"), "utf8");
    const { name, version } = JSON.parse(manifest) as { name: string; version: string };
    const file = `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
    return { folder, file: path.join(target, file) };
  });
}

/** The pnpm that runs this script, or one fetched by npx when the runner was started without pnpm. */
function pnpm(): [string, ...string[]] {
  const running = process.env["npm_execpath"];
  if (running !== undefined && path.basename(running).startsWith("pnpm")) {
    return [process.execPath, running];
  }
  return ["npx", "--yes", "pnpm@10"];
}

function run(cwd: string, command: string, ...args: readonly string[]): void {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${[command, ...args].join(" ")} failed\n${stdout}${stderr}`);
}

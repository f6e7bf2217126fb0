// The packed packages side by side in a node_modules folder, as a user has them.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import path from "node:path";
import type { Tarball } from "./build.setup.ts";

export interface Manifest {
  readonly name: string;
  readonly exports?: Record<string, unknown>;
  readonly dependencies?: Record<string, string>;
}

const packages = path.resolve(import.meta.dirname, "../../..");

/** Unpacks all of them below `home`. Third-party packages come from the workspace. */
export function installPacked(tarballs: readonly Tarball[], home: string): readonly Manifest[] {
  return tarballs.map(({ folder, file }) => {
    const source = path.join(packages, folder);
    const { name } = JSON.parse(
      readFileSync(path.join(source, "package.json"), "utf8"),
    ) as Manifest;
    const target = path.join(home, "node_modules", name);
    mkdirSync(target, { recursive: true });
    runIn(home, "tar", "-xzf", file, "--strip-components=1", "-C", target);
    const text = readFileSync(path.join(target, "package.json"), "utf8");
    const manifest = JSON.parse(text) as Manifest;
    for (const dependency of Object.keys(manifest.dependencies ?? {})) {
      link(dependency, source, home);
    }
    return manifest;
  });
}

/** Puts a third-party package of a package of the workspace there. */
export function link(dependency: string, source: string, home: string): void {
  const target = path.join(home, "node_modules", dependency);
  if (dependency.startsWith("@idmint/") || existsSync(target)) return;
  mkdirSync(path.dirname(target), { recursive: true });
  symlinkSync(path.join(source, "node_modules", dependency), target);
}

/** Runs a command to its end; throws unless it ends with 0. */
export function runIn(cwd: string, command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed\n${stdout}${stderr}`);
  return stdout;
}

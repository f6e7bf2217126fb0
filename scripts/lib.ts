import { spawnSync } from "node:child_process";
import path from "node:path";

export const root: string = path.resolve(import.meta.dirname, "..");

/** Packages that npm has, in the order of their dependencies. */
export const publishedPackages = ["proto", "core", "coordination", "client", "cli"] as const;

/** Packages whose code runs at users: the published ones, and the server, which the bundle of `cli` carries. */
export const productPackages = [...publishedPackages, "server"] as const;

/** PATH, with node_modules/.bin before it. */
export function searchPath(): string {
  const bin = path.join(root, "node_modules", ".bin");
  return `${bin}${path.delimiter}${process.env["PATH"] ?? ""}`;
}

/** Runs a command of node_modules/.bin or of the machine in the root folder; throws when it fails. */
export function run(command: string, ...args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, PATH: searchPath() },
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`failed: ${[command, ...args].join(" ")}`);
}

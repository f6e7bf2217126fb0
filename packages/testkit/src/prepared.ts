// What tests prepare once on a machine, and keep.
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import path from "node:path";

const caches = path.resolve(import.meta.dirname, "../../../node_modules/.cache");
const LOCK_S = 300;
const TIMEOUT_MS = 600_000;

export function cacheOf(name: string): string {
  return path.join(caches, `idmint-${name}`);
}

/** What a script of `sh` prepares once, in a folder of its own that is kept. Answers the folder. */
export function prepared({
  name,
  isThere,
  script,
  hint,
}: {
  /** For the folder. */
  readonly name: string;
  readonly isThere: (folder: string) => boolean;
  /** Ends with `touch whole` when all is there. */
  readonly script: string;
  /** What somebody has to install, in a sentence without its end. */
  readonly hint: string;
}): string {
  const folder = cacheOf(name);
  if (isThere(folder)) return folder;
  const why = runLocked(folder, `[ -e whole ] && exit\n${script}`);
  if (why !== undefined || !isThere(folder)) throw new Error(`${hint} (${why ?? ""})`);
  return folder;
}

/** Runs a script in a folder while nobody else does. Answers why it failed. */
export function runLocked(folder: string, script: string): string | undefined {
  mkdirSync(folder, { recursive: true });
  // The kernel lets go of the lock when its holder dies. Whoever waited finds the work done.
  const words = ["-w", String(LOCK_S), "lock", "sh", "-c", script];
  const { status, stderr, error } = spawnSync("flock", words, {
    cwd: folder,
    encoding: "utf8",
    timeout: TIMEOUT_MS,
  });
  if (status === 0) return undefined;
  return error?.message ?? stderr.trim().split("\n").at(-1) ?? "";
}

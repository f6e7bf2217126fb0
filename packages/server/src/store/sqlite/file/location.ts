import {
  accessSync,
  constants,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from "node:fs";
import path from "node:path";
import { IdmintError, invalidField } from "@idmint/core";
import { storeUnavailable } from "@idmint/core/server";
import type { SqliteConfig } from "../../shared/config.ts";
import { schemaMismatch } from "../../shared/failures.ts";
import { witnessOf } from "./witness.ts";

const FIELD = "store.url";
const MOUNTS = "/proc/self/mountinfo";
const WAY_OUT = "Let this user write there, or choose another path with --store-url";

/**
 * The same store by the real path of its file, which is the one to open, to look at, and to keep everything beside.
 * Rejects what is no file that can be served; a file that is not there is SCHEMA_MISMATCH.
 *
 * INVARIANT: a store is served under one name. SQLite's -wal and -shm, which hold its locks and its newest commits, lie
 * beside the name that the file was opened by, and so does the witness. Under another name a process would see none of
 * them, and grant the same ids again. So symbolic links are followed once, here; a file that is mounted by itself is
 * refused here; and one with several links is refused whenever it is looked at (`assertOneName`), since links come and go.
 */
export function locate(config: SqliteConfig): SqliteConfig {
  const file = realPath(config.path);
  if (file === undefined) throw missingStore(config.path);
  if (statSync(file).isDirectory()) {
    throw invalidField(FIELD, `names a folder, ${file}; name a file in it`);
  }
  if (isMountPoint(file)) {
    throw new IdmintError(
      "STORE_UNSAFE",
      `${file} is a file that is mounted by itself, so its -wal, -shm and .witness are not those of the original: ids could be granted twice. Mount its folder instead`,
    );
  }
  assertAccess(file, file);
  assertAccess(path.dirname(file), file);
  assertWitness(file);
  return { ...config, path: file };
}

/** The witness stays behind with another owner when somebody else, root say, worked with the store. */
function assertWitness(file: string): void {
  const witness = witnessOf(file);
  try {
    accessSync(witness, constants.R_OK | constants.W_OK);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return;
    throw inaccessible("this process cannot write the witness beside the file", witness, error);
  }
}

/** Whether there is a file, or a link to one. */
export function isThere(name: string): boolean {
  return realPath(name) !== undefined;
}

/** Where a store that is not there yet is to be made; makes the folder. */
export function locateNew(config: SqliteConfig): SqliteConfig {
  const name = path.resolve(config.path);
  if (lstatSync(name, { throwIfNoEntry: false }) !== undefined) {
    throw invalidField(FIELD, `names a symbolic link to a file that is not there: ${name}`);
  }
  try {
    mkdirSync(path.dirname(name), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw inaccessible("its folder cannot be made", path.dirname(name), error);
  }
  const folder = realpathSync(path.dirname(name));
  assertAccess(folder, name);
  return { ...config, path: path.join(folder, path.basename(name)) };
}

export function missingStore(databasePath: string): IdmintError {
  // With the path, or the command would make a store elsewhere for who typed it as a flag of another one.
  return schemaMismatch(
    `there is no store at ${databasePath}; make one with: idmint migrate --store-url 'sqlite:${databasePath}'`,
  );
}

export function notADatabase(databasePath: string): IdmintError {
  return new IdmintError(
    "STORE_REFUSED",
    `${databasePath} is no SQLite database; choose another path with --store-url`,
  );
}

/** Refuses a file with several links, for as long as it has them; see `locate`. */
export function assertOneName(links: bigint): void {
  if (links <= 1n) return;
  throw storeUnavailable(
    `the file of the store has ${links} names (hard links), and ids could be granted twice under them; nothing is granted until it has one. Find the others with find -samefile, and remove them`,
  );
}

/** Undefined when there is no file. */
function realPath(name: string): string | undefined {
  try {
    return realpathSync(name);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw inaccessible("the file cannot be reached", name, error);
  }
}

/** `target` is the file itself, or its folder, in which SQLite makes others. */
function assertAccess(target: string, file: string): void {
  try {
    accessSync(target, constants.R_OK | constants.W_OK);
  } catch (error) {
    const why =
      target === file
        ? "this process cannot write the file"
        : "this process cannot write in the file's folder, where SQLite keeps -wal and -shm";
    throw inaccessible(why, target, error);
  }
}

function inaccessible(why: string, target: string, error: unknown): IdmintError {
  return invalidField(FIELD, `cannot be used: ${why}: ${target} (${codeOf(error)}). ${WAY_OUT}`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

/** Whether something is mounted on this very path. Known on Linux only. */
function isMountPoint(file: string): boolean {
  if (process.platform !== "linux") return false;
  return mountPointsOf(readFileSync(MOUNTS, "utf8")).has(file);
}

/** The mount points in the text of /proc/PID/mountinfo, which writes blanks and the like as three octal digits. */
export function mountPointsOf(mountinfo: string): ReadonlySet<string> {
  const points = mountinfo.split("\n").map((line) => line.split(" ")[4] ?? "");
  return new Set(
    points.map((point) =>
      point.replaceAll(/\\([0-7]{3})/g, (_, digits: string) =>
        String.fromCharCode(Number.parseInt(digits, 8)),
      ),
    ),
  );
}

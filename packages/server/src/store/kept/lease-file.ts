import { constants, existsSync, lstatSync, mkdirSync, readFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { uptime } from "node:os";
import path from "node:path";
import { type Clock, IdmintError, invalidField } from "@idmint/core";
import type { GrantFile, KeptContents, LeaseFile } from "@idmint/core/server";
import { networkFileSystem } from "../sqlite/file/files.ts";
import { folderFault } from "../sqlite/file/folders.ts";
import { contentsFrom, type Origin, textOf } from "./contents.ts";
import { openGrantFile } from "./grant-file.ts";
import { type Lock, takeLock } from "./lock.ts";
import { replaceFile } from "./next-file.ts";

const FIELD = "snowflake.cache_file";
const { O_NOFOLLOW, O_RDWR } = constants;
/** The kernel's name for this run of the machine; another one after every boot. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/** The file with the leases of one server, for as long as it is open. */
export interface OpenLeaseFile extends LeaseFile {
  /** Beside it, what the server was granted. */
  readonly grants: GrantFile;
  /** Why there is nothing that may be used though there is a file, in words; undefined when all is well. */
  readonly ignored: string | undefined;
  /** Lets the next one open it, after what is being written. */
  close(): Promise<void>;
}

/**
 * Opens the file that a server keeps its leases in; neither it nor its folder need be there. INVALID_ARGUMENT when it cannot be kept safely
 * here, or another process has it open.
 *
 * INVARIANTS
 * 1. Whoever has it open is the only one on this machine: a lock of the kernel, on the file `….lock` beside it, is held
 *    until the process ends, whatever ends it.
 * 2. What is found was written under that same lock in this run of this machine, as the very file that is found. A file that
 *    was copied to another place or machine, an older one that was put back in its place, or one from before the machine was
 *    started anew, says nothing: its time may have been used, by others or by a later life.
 * 3. The file is replaced by a whole one; `write` fulfils when that and its name are on the disk.
 * 4. There is at most one file that may be believed: the one that is replaced is emptied before another takes its place, so
 *    that a hard link to it holds nothing either. Whoever is killed in between leaves none, which only costs the time in it.
 * 5. Nothing is followed, and nothing written to, that somebody else put where the files are to be; nobody else may write in
 *    their folder.
 * 6. Nothing is written once the lock is given up: it would be in the place of what the next one wrote.
 */
export async function openLeaseFile(
  file: string,
  clock: Clock,
  onGrantsFailed: (error: IdmintError) => void = () => undefined,
): Promise<OpenLeaseFile> {
  const name = path.resolve(file);
  const boot = bootId();
  const lock = locked(name);
  const origin = { boot, lock: lock.identity };
  let isOpen = true;
  let writing = Promise.resolve();
  // Both clocks go on together, also while the machine is suspended, and one of them counts from the same origin in all
  // processes of one boot.
  const offsetMs = uptime() * 1_000 - clock.now();
  const { file: found, ...read } = await readContents(name, origin, offsetMs);
  const held: Held = { file: found };
  const options = { origin, offsetMs, onFailed: onGrantsFailed };
  const grants = openGrantFile(`${name}.grants`, options);
  return {
    grants,
    found: "found" in read ? read.found : undefined,
    ignored: "ignored" in read ? read.ignored : undefined,
    write: async (contents) => {
      if (!isOpen) throw new Error("the file is closed");
      const textFor = (at: string): string => textOf(contents, { ...origin, file: at }, offsetMs);
      const written = replace(name, held, textFor);
      writing = written.catch(() => undefined);
      await written;
      // failpoint: lease-kept
    },
    empty: async () => {
      if (isOpen) await held.file?.truncate();
    },
    close: async () => {
      if (!isOpen) return;
      isOpen = false;
      await writing;
      await held.file?.close();
      grants.close();
      lock.close();
    },
  };
}

function bootId(): string {
  try {
    return readFileSync(BOOT_ID, "utf8").trim();
  } catch {
    throw invalidField(
      FIELD,
      "can be used on Linux only: elsewhere a copied file is not known as one",
    );
  }
}

function locked(name: string): Lock {
  let lock: Lock | undefined;
  try {
    const folder = path.dirname(name);
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
    const fault = folderFault(folder);
    if (fault !== undefined) throw invalidField(FIELD, `cannot be used: ${fault}`);
    for (const each of [name, `${name}.lock`, `${name}.grants`]) refuseLink(each);
    const remote = networkFileSystem(folder);
    if (remote !== undefined) {
      throw invalidField(
        FIELD,
        `must be on a disk of this machine, not on ${remote}: locks may not hold there`,
      );
    }
    lock = takeLock(`${name}.lock`);
  } catch (error) {
    if (error instanceof IdmintError) throw error;
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    throw invalidField(FIELD, `names a file whose lock cannot be made beside it (${code})`);
  }
  if (lock !== undefined) return lock;
  throw invalidField(
    FIELD,
    "names a file that another process uses; each server has one of its own",
  );
}

/** Through a link somebody else would choose what is read, locked and emptied. */
function refuseLink(name: string): void {
  if (lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  throw invalidField(FIELD, `cannot be used: ${name} is a symbolic link; remove it`);
}

type Read = ({ readonly found: KeptContents | undefined } | { readonly ignored: string }) & {
  /** The file itself, where it may be believed. */
  readonly file: FileHandle | undefined;
};

async function readContents(
  name: string,
  origin: Omit<Origin, "file">,
  offsetMs: number,
): Promise<Read> {
  let file: FileHandle | undefined;
  try {
    file = await open(name, O_RDWR | O_NOFOLLOW);
    // Of the opened file, so that what is read is what is named.
    const its = { ...origin, file: await identityOf(file) };
    const read = contentsFrom(await file.readFile("utf8"), its, offsetMs);
    if ("found" in read) return { ...read, file };
    await file.close();
    return { ...read, file: undefined };
  } catch (error) {
    await file?.close();
    const isAbsent = error instanceof Error && "code" in error && error.code === "ENOENT";
    const nothing = isAbsent ? { found: undefined } : { ignored: "it cannot be read" };
    return { ...nothing, file: undefined };
  }
}

/** Names a file wherever it is moved; a copy has another name. */
async function identityOf(file: FileHandle): Promise<string> {
  const { dev, ino, birthtimeNs } = await file.stat({ bigint: true });
  return `${dev}/${ino}/${birthtimeNs}`;
}

/** The one file that may be believed, open; undefined when there is none. */
interface Held {
  file: FileHandle | undefined;
}

/** Invariants 3 and 4. */
function replace(name: string, held: Held, textFor: (file: string) => string): Promise<void> {
  return replaceFile(name, {
    textFor: async (file) => textFor(await identityOf(file)),
    // Not synced: whoever could believe it reads what the kernel has, since no file outlives the run of the machine.
    written: async () => held.file?.truncate(),
    named: async (file) => {
      const old = held.file;
      held.file = file;
      await old?.close();
    },
  });
}

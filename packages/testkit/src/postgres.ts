// A real PostgreSQL for tests: shared by a whole run, or of a test's own, to be stopped, killed and frozen.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  chownSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { freeDatabasePort } from "./fleet/ports.ts";
import {
  copyCluster,
  copyRunningCluster,
  madePostgresFiles,
  makeCluster,
  postgresFiles,
  runAs,
} from "./postgres-files.ts";
import { queryAt, TestDatabase, TestSession } from "./postgres-database.ts";

export { TestPooler } from "./pgbouncer.ts";
export { TestDatabase, TestSession };

const SHARED_URL = "IDMINT_TEST_POSTGRES_URL";
const START_TIMEOUT_MS = 30_000;

/** How a test's own server shall be. */
export interface PostgresOptions {
  /** Commits reach the disk. Default: false, which is faster; then stores must allow `fsync` and `full_page_writes`. */
  readonly durable?: boolean;
  /** Start as a standby that follows nobody, which is what a promotion needs. Default: false. */
  readonly standby?: boolean;
  /** A cluster with a system identifier of its own. Default: false; making one takes a second. */
  readonly isForeign?: boolean;
  /** Default: any that is free. */
  readonly port?: number;
  /** Further settings of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** `fast` ends sessions and checkpoints; `immediate` is a crash of the server, `kill` one of the postmaster too. */
export type StopMode = "fast" | "immediate" | "kill";

const SIGNAL_OF_MODE = { fast: "SIGINT", immediate: "SIGQUIT", kill: "SIGKILL" } as const;

// Runs PostgreSQL as its child and ends it when this process is gone: then its standard input ends. The word "keep" says
// that the end is meant, and that the cluster stays.
const GUARD = `
"$@" & server=$!
read -r word
if [ "$word" != keep ]; then kill -QUIT $server 2>/dev/null; wait $server; rm -rf "$IDMINT_LEFT"; exit; fi
wait $server`;

/** A PostgreSQL server of a test's own. Close it. */
export class TestPostgres implements AsyncDisposable {
  readonly port: number;
  readonly #options: PostgresOptions;
  readonly #folder: string;
  #guard: ChildProcess | undefined;
  #frozen: readonly number[] = [];

  private constructor(options: PostgresOptions, port: number, folder: string) {
    this.#options = options;
    this.port = port;
    this.#folder = folder;
  }

  /** A fresh cluster, started. */
  static async start(options: PostgresOptions = {}): Promise<TestPostgres> {
    const { bin, cluster, folder } = postgresFiles();
    const own = mkdtempSync(path.join(folder, "server-"));
    rmSync(own, { recursive: true });
    if (options.isForeign === true) makeCluster(bin, own);
    else copyCluster(cluster, own);
    const server = new TestPostgres(options, options.port ?? (await freeDatabasePort()), own);
    server.#configure();
    await server.start({ standby: options.standby === true });
    return server;
  }

  /** A standby that streams from a server that runs. */
  static async startStandby(
    primary: TestPostgres,
    options: PostgresOptions = {},
  ): Promise<TestPostgres> {
    const own = mkdtempSync(path.join(postgresFiles().folder, "server-"));
    const server = new TestPostgres(options, await freeDatabasePort(), own);
    await server.becomeStandbyOf(primary);
    return server;
  }

  /** Starts this server, which does not run, as a standby of another one, with a fresh copy of its data. */
  async becomeStandbyOf(primary: TestPostgres): Promise<void> {
    if (this.#guard !== undefined) throw new Error("the server runs already");
    rmSync(this.#folder, { recursive: true, force: true });
    await primary.#copyTo(this.#folder);
    const name = this.#options.settings?.["cluster_name"] ?? "standby";
    this.#configure({
      primary_conninfo: `host=127.0.0.1 port=${primary.port} user=postgres application_name=${name}`,
    });
    await this.start({ standby: true });
  }

  /** What pg_basebackup does, which is not among the binaries of npm: files copied between the marks of a backup. */
  async #copyTo(folder: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.url() });
    client.on("error", () => undefined);
    await client.connect();
    try {
      await client.query("SELECT pg_backup_start('standby', true)");
      copyRunningCluster(this.#folder, folder);
      const { rows } = await client.query<{ labelfile: string }>(
        // Nothing is archived; the standby gets the log of the time of the copy by streaming.
        "SELECT labelfile FROM pg_backup_stop(false)",
      );
      const label = path.join(folder, "backup_label");
      writeFileSync(label, rows[0]?.labelfile ?? "");
      if (runAs.uid !== undefined) chownSync(label, runAs.uid, runAs.gid ?? runAs.uid);
    } finally {
      await client.end();
    }
  }

  /** postgres://… of a database of this server. */
  url(database = "postgres"): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /** Starts the server again, on the same port, with the same data. */
  async start(
    options: {
      readonly standby?: boolean;
      /** Further variables of its environment. */
      readonly env?: Readonly<Record<string, string>>;
    } = {},
  ): Promise<void> {
    if (this.#guard !== undefined) throw new Error("the server runs already");
    if (options.standby === true) {
      const signal = path.join(this.#folder, "standby.signal");
      writeFileSync(signal, "");
      // The server removes it when it is promoted.
      if (runAs.uid !== undefined) chownSync(signal, runAs.uid, runAs.gid ?? runAs.uid);
    }
    const log = openSync(`${this.#folder}.log`, "a");
    const { bin, folder } = postgresFiles();
    const command = [path.join(bin, "postgres"), "-D", this.#folder];
    this.#guard = spawn("/bin/sh", ["-c", GUARD, "sh", ...command], {
      ...runAs,
      env: {
        PATH: process.env["PATH"],
        LC_ALL: "C",
        IDMINT_LEFT: madePostgresFiles() ? folder : this.#folder,
        ...options.env,
      },
      stdio: ["pipe", log, log],
    });
    closeSync(log);
    this.#guard.stdin?.on("error", () => undefined);
    await this.#answering();
  }

  /** Ends the server; its data stay. */
  async stop(mode: StopMode): Promise<void> {
    const guard = this.#guard;
    if (guard === undefined) throw new Error("the server does not run");
    this.#guard = undefined;
    const ended = new Promise((resolve) => guard.once("exit", resolve));
    const family = mode === "kill" ? this.#family() : [];
    guard.stdin?.end("keep\n");
    process.kill(this.#postmaster(), SIGNAL_OF_MODE[mode]);
    if (this.#frozen.length > 0) this.thaw();
    // Children see that a killed postmaster is gone only when they next wait; a crash of the machine takes them too.
    for (const pid of family) tryKill(pid, "SIGKILL");
    await ended;
    // The next start looks for shared memory in use, which the kernel frees a moment after the last child.
    for (const pid of family) await gone(pid);
    if (mode === "kill") rmSync(path.join(this.#folder, "postmaster.pid"), { force: true });
  }

  /** Copies the data of the server, which does not run. The answer puts the copy in their place, as a restore does. */
  backUp(): () => void {
    const backup = `${this.#folder}.backup`;
    // An earlier one stays below it else, and would be put back.
    rmSync(backup, { recursive: true, force: true });
    copyCluster(this.#folder, backup);
    return () => {
      rmSync(this.#folder, { recursive: true });
      copyCluster(backup, this.#folder);
    };
  }

  /** Stops every process of the server where it is; connections stay, and nothing answers. */
  freeze(): void {
    const postmaster = this.#postmaster();
    // The postmaster first, so that it starts no child while they are counted.
    process.kill(postmaster, "SIGSTOP");
    const family = this.#family();
    for (const pid of family) tryKill(pid, "SIGSTOP");
    this.#frozen = family;
  }

  /** Lets a frozen server run on. */
  thaw(): void {
    for (const pid of this.#frozen) tryKill(pid, "SIGCONT");
    this.#frozen = [];
  }

  /** Makes an empty database. */
  async createDatabase(name: string = freshName(), template?: string): Promise<TestDatabase> {
    return TestDatabase.create(this.url(), name, template);
  }

  /** Runs statements as superuser, in the database `postgres` unless told. */
  async query(sql: string, database?: string): Promise<readonly Record<string, unknown>[]> {
    return queryAt(this.url(database), sql);
  }

  /** Ends the server and removes its data. */
  async close(): Promise<void> {
    if (this.#guard !== undefined) await this.stop("immediate");
    rmSync(this.#folder, { recursive: true, force: true });
    rmSync(`${this.#folder}.backup`, { recursive: true, force: true });
    rmSync(`${this.#folder}.log`, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** What the server wrote to its log so far. */
  get log(): string {
    return readFileSync(`${this.#folder}.log`, "utf8");
  }

  /** In the file and not on the command line, where they would outrank ALTER SYSTEM, which tests use. */
  #configure(more: Readonly<Record<string, string>> = {}): void {
    const durable = this.#options.durable === true ? "on" : "off";
    const settings = {
      listen_addresses: "127.0.0.1",
      port: String(this.port),
      unix_socket_directories: "",
      shared_buffers: "32MB",
      fsync: durable,
      full_page_writes: durable,
      ...this.#options.settings,
      ...more,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
    appendFileSync(path.join(this.#folder, "postgresql.conf"), lines.join(""));
  }

  async #answering(): Promise<void> {
    const end = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      try {
        await queryAt(this.url(), "SELECT 1");
        return;
      } catch (error) {
        const isOver = this.#guard?.exitCode !== null;
        if (isOver || performance.now() > end) {
          throw new Error(`PostgreSQL did not start\n${this.log.slice(-4_000)}`, { cause: error });
        }
      }
      await pause(20);
    }
  }

  #postmaster(): number {
    const lines = readFileSync(path.join(this.#folder, "postmaster.pid"), "utf8").split("\n");
    return Number(lines[0]);
  }

  /** The postmaster and its children. */
  #family(): readonly number[] {
    const postmaster = this.#postmaster();
    return [postmaster, ...childrenOf(postmaster)];
  }
}

let own: Promise<TestPostgres> | undefined;

/**
 * An empty database, or a copy of one (`template`), on the server that the whole run shares: that of IDMINT_TEST_POSTGRES_URL
 * (its user must be allowed to make databases), which the run's set-up sets when nobody else did; without either, one started for
 * this process.
 */
export async function createTestDatabase(template?: string): Promise<TestDatabase> {
  const shared = process.env[SHARED_URL];
  if (shared !== undefined) return TestDatabase.create(shared, freshName(), template);
  own ??= TestPostgres.start();
  return (await own).createDatabase(freshName(), template);
}

/** Makes this process's children share one server; the answer ends it. */
export async function sharePostgres(): Promise<() => Promise<void>> {
  if (process.env[SHARED_URL] !== undefined) return async () => undefined;
  const server = await TestPostgres.start({ settings: { max_connections: "200" } });
  process.env[SHARED_URL] = server.url();
  return async () => {
    delete process.env[SHARED_URL];
    await server.close();
  };
}

function freshName(): string {
  return `t_${randomBytes(6).toString("hex")}`;
}

/** Linux only, like the tests that freeze. */
function childrenOf(parent: number): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => stateOf(pid)?.parent === parent);
}

function stateOf(pid: number): { state: string; parent: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name of the program, in brackets, may hold anything; state and parent are the fields after it.
    const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended by itself.
  }
}

/** Waits until a killed process holds nothing any more; it may stay as a zombie until somebody asks for its end. */
async function gone(pid: number): Promise<void> {
  for (;;) {
    const process = stateOf(pid);
    if (process === undefined || process.state === "Z") return;
    await pause(5);
  }
}

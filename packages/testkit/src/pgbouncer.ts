// A real pgbouncer between a test and its PostgreSQL.
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { debianFiles, type Program, programOf } from "./debian.ts";
import { freeDatabasePort } from "./fleet/ports.ts";
import { runAs } from "./postgres-files.ts";

const START_TIMEOUT_MS = 10_000;

/** A pgbouncer in front of the server of a database. Close it. */
export class TestPooler implements AsyncDisposable {
  /** postgres://… of the same database, through the pooler. */
  readonly url: string;
  readonly #folder: string;
  readonly #process: ChildProcess;

  private constructor(url: string, folder: string, child: ChildProcess) {
    this.url = url;
    this.#folder = folder;
    this.#process = child;
  }

  /** `settings`: further lines of pgbouncer.ini. */
  static async start(
    databaseUrl: string,
    mode: "session" | "transaction",
    settings = "",
  ): Promise<TestPooler> {
    const { command, env } = program();
    const url = new URL(databaseUrl);
    const folder = mkdtempSync(path.join(tmpdir(), "idmint-pgbouncer-"));
    chmodSync(folder, 0o755);
    const port = await freeDatabasePort();
    const file = path.join(folder, "pgbouncer.ini");
    writeFileSync(
      file,
      `[databases]
* = host=${url.hostname} port=${url.port === "" ? "5432" : url.port} user=${url.username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
${settings}
`,
    );
    url.host = `127.0.0.1:${port}`;
    const child = spawn(command, [file], { ...runAs, env, stdio: "ignore" });
    const pooler = new TestPooler(url.href, folder, child);
    await pooler.#listening(port);
    return pooler;
  }

  async #listening(port: number): Promise<void> {
    for (const until = Date.now() + START_TIMEOUT_MS; !(await isOpen(port)); await pause(20)) {
      if (this.#process.exitCode === null && Date.now() < until) continue;
      await this[Symbol.asyncDispose]();
      throw new Error("pgbouncer did not start");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const ended = new Promise((resolve) => this.#process.once("exit", resolve));
      this.#process.kill("SIGKILL");
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function program(): Program {
  return debianFiles({
    name: "pgbouncer",
    packages: ["pgbouncer"],
    libraries: ["libevent-2.1-7", "libc-ares2"],
    find: (unpacked) => programOf(unpacked, ["pgbouncer"], ["/usr/sbin"]),
    hint: "no pgbouncer for the tests: install Debian's package pgbouncer",
  });
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const answer = await new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  });
  socket.destroy();
  return answer;
}

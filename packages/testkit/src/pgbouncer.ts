// A real pgbouncer between a test and its PostgreSQL: Debian's, installed by root or unpacked by anybody.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import { runAs } from "./postgres-files.ts";

const cache = path.resolve(import.meta.dirname, "../../../node_modules/.cache/idmint-pgbouncer");
const START_TIMEOUT_MS = 10_000;

// RUNLEVEL=1 keeps Debian from starting the service: the tests start their own.
const INSTALL = `
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
install() { apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 pgbouncer; }
[ -x /usr/sbin/pgbouncer ] || install || { apt-get update && install; }`;

const UNPACK = `
[ -e usr/sbin/pgbouncer ] && exit
apt-get download pgbouncer libevent-2.1-7 libc-ares2 || exit
rm -rf unpacked && mkdir unpacked || exit
for file in *.deb; do dpkg -x "$file" unpacked || exit; done
rm -rf usr && mv unpacked/usr usr && rm -rf unpacked *.deb`;

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
    const port = await freePort();
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

interface Program {
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
}

function program(): Program {
  const found = existing() ?? installed();
  if (found === undefined) throw new Error("no pgbouncer for the tests: install Debian's package");
  return found;
}

function existing(): Program | undefined {
  if (existsSync("/usr/sbin/pgbouncer")) return { command: "/usr/sbin/pgbouncer", env: {} };
  const command = path.join(cache, "usr/sbin/pgbouncer");
  if (!existsSync(command)) return undefined;
  const libraries = path.join(cache, "usr/lib");
  const folders = readdirSync(libraries).map((folder) => path.join(libraries, folder));
  return { command, env: { LD_LIBRARY_PATH: folders.join(path.delimiter) } };
}

function installed(): Program | undefined {
  mkdirSync(cache, { recursive: true });
  const script = process.getuid?.() === 0 ? INSTALL : UNPACK;
  // The kernel lets go of the lock when its holder dies. Whoever waited finds the work done.
  spawnSync("flock", ["-w", "300", "lock", "sh", "-c", script], { cwd: cache, timeout: 600_000 });
  return existing();
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

// A real Redis for tests: of a test's own, to be stopped, killed, paused, promoted and set back to older data.
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { freePort } from "../fleet/ports.ts";
import { GuardedServer } from "../guard.ts";
import { redisProgram } from "./files.ts";

const START_TIMEOUT_MS = 30_000;
/** Below the ports the kernel gives to clients, and apart from those of the other tests. */
const FIRST_PORT = 30_000;
const LAST_PORT = 32_767;

/** Directives of redis.conf. */
export type RedisSettings = Readonly<Record<string, string>>;

/** How a test's own server shall be. */
export interface RedisServerOptions {
  /** Beyond, or instead of, the defaults: 127.0.0.1 only, no snapshots, no append-only file. */
  readonly settings?: RedisSettings;
  /** Default: any that is free. */
  readonly port?: number | undefined;
  /** Whether it is a Sentinel, whose directives are settings such as `sentinel monitor`. */
  readonly isSentinel?: boolean;
  /** Of its process, e.g. for a wall clock of its own. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A Redis server of a test's own. Close it. */
export class RedisServer implements AsyncDisposable {
  readonly port: number;
  /** Where its snapshot (`dump.rdb`) and its append-only files (`appendonlydir`) are. */
  readonly folder: string;
  readonly #isSentinel: boolean;
  readonly #env: Readonly<Record<string, string>>;
  #settings: RedisSettings;
  readonly #process: GuardedServer;
  #client: Redis | undefined;

  private constructor(
    port: number,
    { settings = {}, isSentinel = false, env = {} }: RedisServerOptions,
  ) {
    this.port = port;
    this.folder = mkdtempSync(path.join(tmpdir(), "idmint-redis-"));
    this.#process = new GuardedServer(this.folder);
    this.#settings = settings;
    this.#isSentinel = isSentinel;
    this.#env = env;
  }

  /** A new, empty server that answers. */
  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    for (let attempt = 1; ; attempt++) {
      const server = new RedisServer(
        options.port ?? (await freePort(FIRST_PORT, LAST_PORT)),
        options,
      );
      try {
        await server.start();
        return server;
      } catch (error) {
        const isPortTaken = server.log.includes("Address already in use");
        await server.close();
        if (!isPortTaken || attempt === 5) throw error;
      }
    }
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  get runs(): boolean {
    return this.#process.runs;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** What the server wrote to its log so far. */
  get log(): string {
    return this.#process.log;
  }

  /** Starts it again: same port, same folder, and whatever data lie there. New settings are added to the old. */
  async start(settings: RedisSettings = {}): Promise<void> {
    if (this.runs) throw new Error("the server runs already");
    this.#settings = { ...this.#settings, ...settings };
    if (this.#settings["cluster-enabled"] === "yes") {
      // By default its port and 10,000, which connections of anybody may have.
      const port = await freePort(FIRST_PORT, LAST_PORT);
      this.#settings = { "cluster-port": String(port), ...this.#settings };
    }
    const { command, env } = redisProgram();
    this.#configure();
    const words = [command, `${this.folder}.conf`, ...(this.#isSentinel ? ["--sentinel"] : [])];
    await this.#process.start(words, { ...env, ...this.#env });
    await this.#answering();
  }

  /** Ends it in order: with `save` points it writes its snapshot. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Stops it where it is; connections stay, and nothing answers. */
  pause(): void {
    this.#process.pause();
  }

  /** Lets a paused server run on. */
  resume(): void {
    this.#process.resume();
  }

  /** Makes it a replica, and waits until it has the other's data. */
  async follow(master: RedisServer): Promise<void> {
    await this.command("REPLICAOF", "127.0.0.1", master.port);
    const end = performance.now() + START_TIMEOUT_MS;
    while (!String(await this.command("INFO", "replication")).includes("link_status:up")) {
      if (performance.now() > end) throw new Error(`no link to the master\n${this.log}`);
      await pause(10);
    }
  }

  /** Makes a replica a master. */
  async promote(): Promise<void> {
    await this.command("REPLICAOF", "NO", "ONE");
  }

  /** Sends one command and answers the reply. */
  async command(name: string, ...args: readonly (string | number)[]): Promise<unknown> {
    // A Sentinel ends all connections of a Redis that it promotes.
    if (this.#client?.status === "end") this.#forgetClient();
    this.#client ??= quietClient(this.port, this.#settings["requirepass"]);
    return this.#client.call(name, ...args);
  }

  /** Copies its data (snapshot and append-only files) as they lie on the disk now; the answer is for `restore`. */
  copyData(): RedisData {
    const folder = mkdtempSync(`${this.folder}-data-`);
    copyFiles(this.folder, folder);
    return { folder };
  }

  /** Puts older data, or another server's, in the place of its own. It must not run. */
  restore(data: RedisData): void {
    this.wipe();
    copyFiles(data.folder, this.folder);
  }

  /** Removes its data, as an empty machine would have none. It must not run. */
  wipe(): void {
    if (this.runs) throw new Error("stop the server before touching its data");
    for (const name of readdirSync(this.folder)) {
      rmSync(path.join(this.folder, name), { recursive: true, force: true });
    }
  }

  /** Ends the server and removes all of its files, copies too. */
  async close(): Promise<void> {
    if (this.runs) await this.kill();
    const parent = path.dirname(this.folder);
    for (const name of readdirSync(parent)) {
      if (!name.startsWith(path.basename(this.folder))) continue;
      rmSync(path.join(parent, name), { recursive: true, force: true });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #configure(): void {
    const settings = {
      bind: "127.0.0.1",
      port: String(this.port),
      dir: this.folder,
      save: '""',
      appendonly: "no",
      "repl-diskless-sync-delay": "0",
      ...this.#settings,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`);
    writeFileSync(`${this.folder}.conf`, lines.join(""));
  }

  async #answering(): Promise<void> {
    const end = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      try {
        await this.command("PING");
        return;
      } catch (error) {
        this.#forgetClient();
        if (this.#process.hasEnded || performance.now() > end) {
          throw new Error(`Redis did not start\n${this.log.slice(-4_000)}`, { cause: error });
        }
      }
      await pause(10);
    }
  }

  async #end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    this.#forgetClient();
    await this.#process.end(signal);
  }

  #forgetClient(): void {
    this.#client?.disconnect();
    this.#client = undefined;
  }
}

/** Data of a server, copied. */
export interface RedisData {
  readonly folder: string;
}

function quietClient(port: number, password: string | undefined): Redis {
  const client = new Redis({
    port,
    host: "127.0.0.1",
    password,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    commandTimeout: 10_000,
    stringNumbers: true,
  });
  client.on("error", () => undefined);
  return client;
}

function copyFiles(from: string, to: string): void {
  for (const name of readdirSync(from)) {
    cpSync(path.join(from, name), path.join(to, name), { recursive: true });
  }
}

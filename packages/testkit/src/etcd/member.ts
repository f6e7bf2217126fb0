// One process of an etcd, to be killed, frozen and started again.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { GUARD } from "../guard.ts";
import { EtcdGateway } from "./gateway.ts";
import { etcdPrograms } from "./files.ts";

const START_TIMEOUT_MS = 60_000;

/** Where a member listens. Others reach its peer port through the proxy at `peerUrlPort`. */
export interface MemberPlace {
  readonly name: string;
  readonly clientPort: number;
  readonly peerPort: number;
  readonly peerUrlPort: number;
}

/** What the members of a cluster have in common. */
export interface ClusterSettings {
  /** `--initial-cluster`. */
  readonly initialCluster: string;
  readonly token: string;
  /** Further arguments, or other values. */
  readonly args: readonly string[];
  /** Clients speak TLS: arguments for it are in `args`. */
  readonly tls: boolean;
}

export class EtcdMember {
  readonly place: MemberPlace;
  /** Holds `data`, and lies beside its log. */
  readonly folder: string;
  readonly gateway: EtcdGateway;
  #settings: ClusterSettings;
  #guard: ChildProcess | undefined;
  #pid = 0;
  #hasEnded = false;
  #isPaused = false;

  constructor(place: MemberPlace, settings: ClusterSettings) {
    this.place = place;
    this.#settings = settings;
    this.folder = mkdtempSync(path.join(tmpdir(), "idmint-etcd-"));
    this.gateway = new EtcdGateway(this.address);
  }

  get address(): string {
    return `127.0.0.1:${this.place.clientPort}`;
  }

  get dataFolder(): string {
    return path.join(this.folder, "data");
  }

  get isRunning(): boolean {
    return this.#guard !== undefined && !this.#isPaused;
  }

  /** What the member wrote to its log so far. */
  get log(): string {
    return readFileSync(`${this.folder}.log`, "utf8");
  }

  /** Starts it with whatever data lie there. Does not wait until it answers, which may need the others. */
  async spawn(more: Partial<ClusterSettings> = {}): Promise<void> {
    if (this.#guard !== undefined) throw new Error("the member runs already");
    this.#settings = { ...this.#settings, ...more };
    const guard = spawn("/bin/sh", ["-c", GUARD, "sh", etcdPrograms().etcd, ...this.#words()], {
      env: { PATH: process.env["PATH"], LC_ALL: "C", IDMINT_FOLDER: this.folder },
      stdio: ["pipe", "pipe", "ignore"],
      // An interrupt of the terminal must not end the guard before it has cleaned up.
      detached: true,
    });
    guard.stdin.on("error", () => undefined);
    this.#guard = guard;
    this.#hasEnded = false;
    guard.stdout.once("end", () => {
      this.#hasEnded = true;
    });
    const [first] = (await once(guard.stdout, "data")) as [Buffer];
    this.#pid = Number(first.toString());
    guard.stdout.resume();
  }

  /** Waits until it answers a linearizable read, for which it needs a quorum; with TLS until it says that it serves. */
  async answering(): Promise<void> {
    const end = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      try {
        // oxlint-disable-next-line no-await-in-loop
        await this.#ask();
        return;
      } catch (error) {
        if (this.#hasEnded || performance.now() > end) {
          throw new Error(`etcd did not start\n${this.log.slice(-4_000)}`, { cause: error });
        }
      }
      // oxlint-disable-next-line no-await-in-loop
      await pause(20);
    }
  }

  async #ask(): Promise<void> {
    if (!this.#settings.tls) await this.gateway.revision();
    else if (!this.log.includes("serving client traffic securely")) throw new Error("not yet");
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    const guard = this.#guard;
    if (guard === undefined) throw new Error("the member does not run");
    this.#guard = undefined;
    this.#isPaused = false;
    const ended = new Promise((resolve) => guard.once("exit", resolve));
    if (guard.exitCode !== null) return;
    guard.stdin?.end("keep\n");
    try {
      process.kill(this.#pid, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await ended;
  }

  /** Stops it where it is; connections stay, and nothing answers. */
  pause(): void {
    process.kill(this.#pid, "SIGSTOP");
    this.#isPaused = true;
  }

  resume(): void {
    process.kill(this.#pid, "SIGCONT");
    this.#isPaused = false;
  }

  /** Removes its data. It must not run. */
  wipe(): void {
    if (this.#guard !== undefined) throw new Error("stop the member before touching its data");
    rmSync(this.dataFolder, { recursive: true, force: true });
  }

  /** Ends the member and removes its files. */
  async close(): Promise<void> {
    if (this.#guard !== undefined) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
    rmSync(`${this.folder}.log`, { force: true });
  }

  #words(): readonly string[] {
    const { name, clientPort, peerPort, peerUrlPort } = this.place;
    const { initialCluster, token, args, tls } = this.#settings;
    const clients = `${tls ? "https" : "http"}://127.0.0.1:${clientPort}`;
    const options: Readonly<Record<string, string>> = {
      name,
      "data-dir": this.dataFolder,
      "listen-client-urls": clients,
      "advertise-client-urls": clients,
      "listen-peer-urls": `http://127.0.0.1:${peerPort}`,
      "initial-advertise-peer-urls": `http://127.0.0.1:${peerUrlPort}`,
      "initial-cluster": initialCluster,
      "initial-cluster-token": token,
      "initial-cluster-state": "new",
      "auto-compaction-retention": "1h",
      logger: "zap",
    };
    return [...Object.entries(options).map(([key, value]) => `--${key}=${value}`), ...args];
  }
}

// One process of an etcd, to be killed, frozen and started again.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { GuardedServer } from "../guard.ts";
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
  readonly #process: GuardedServer;
  #isPaused = false;

  constructor(place: MemberPlace, settings: ClusterSettings) {
    this.place = place;
    this.#settings = settings;
    this.folder = mkdtempSync(path.join(tmpdir(), "idmint-etcd-"));
    this.#process = new GuardedServer(this.folder);
    this.gateway = new EtcdGateway(this.address);
  }

  get address(): string {
    return `127.0.0.1:${this.place.clientPort}`;
  }

  get dataFolder(): string {
    return path.join(this.folder, "data");
  }

  get isRunning(): boolean {
    return this.#process.runs && !this.#isPaused;
  }

  /** What the member wrote to its log so far. */
  get log(): string {
    return this.#process.log;
  }

  /** Starts it with whatever data lie there. Does not wait until it answers, which may need the others. */
  async spawn(more: Partial<ClusterSettings> = {}): Promise<void> {
    this.#settings = { ...this.#settings, ...more };
    await this.#process.start([etcdPrograms().etcd, ...this.#words()]);
  }

  /** Waits until it answers a linearizable read, for which it needs a quorum; with TLS until it says that it serves. */
  async answering(): Promise<void> {
    const end = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      try {
        await this.#ask();
        return;
      } catch (error) {
        if (this.#process.hasEnded || performance.now() > end) {
          throw new Error(`etcd did not start\n${this.log.slice(-4_000)}`, { cause: error });
        }
      }
      await pause(20);
    }
  }

  async #ask(): Promise<void> {
    if (!this.#settings.tls) await this.gateway.revision();
    else if (!this.log.includes("serving client traffic securely")) throw new Error("not yet");
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    this.#isPaused = false;
    await this.#process.end("SIGKILL");
  }

  /** Stops it where it is; connections stay, and nothing answers. */
  pause(): void {
    this.#process.pause();
    this.#isPaused = true;
  }

  resume(): void {
    this.#process.resume();
    this.#isPaused = false;
  }

  /** Removes its data. It must not run. */
  wipe(): void {
    if (this.#process.runs) throw new Error("stop the member before touching its data");
    rmSync(this.dataFolder, { recursive: true, force: true });
  }

  /** Ends the member and removes its files. */
  async close(): Promise<void> {
    if (this.#process.runs) await this.kill();
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

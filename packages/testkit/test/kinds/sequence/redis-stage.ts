// A Redis behind one address, whichever server has it, and what can happen to it.
import { readdirSync, statSync, truncateSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { RedisServer } from "../../../src/redis/index.ts";
import { TcpProxy } from "../../../src/tcp-proxy.ts";

/** A reload sets a server back as a virtual machine's snapshot would. */
const RELOADABLE = { "enable-debug-command": "yes" };

function targetOf({ port }: RedisServer): { readonly host: string; readonly port: number } {
  return { host: "127.0.0.1", port };
}

/** The Redis that servers reach at `url`. */
export class RedisStage {
  #current: RedisServer;
  readonly #way: TcpProxy;

  private constructor(current: RedisServer, way: TcpProxy) {
    this.#current = current;
    this.#way = way;
  }

  static async start(): Promise<RedisStage> {
    const redis = await RedisServer.start({ settings: RELOADABLE });
    const stage = new RedisStage(redis, await TcpProxy.start(targetOf(redis)));
    onTestFinished(async () => {
      await stage.#way.close();
      await stage.#current.close();
    });
    return stage;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#way.port}`;
  }

  get current(): RedisServer {
    return this.#current;
  }

  /** A crash, and a start from a snapshot that is `ageMs` old. */
  async goBackToSnapshot(ageMs: number): Promise<void> {
    await this.#current.command("SAVE");
    await pause(ageMs);
    await this.#current.kill();
    await this.#current.start({ appendonly: "no" });
  }

  /** It goes back within one process, which keeps its connections and its run id. */
  async reload(ageMs: number): Promise<void> {
    await this.#current.command("SAVE");
    await pause(ageMs);
    await this.#current.command("DEBUG", "RELOAD", "NOSAVE");
  }

  /** A crash that the last part of an append-only file does not survive. */
  async loseEndOfLog(ageMs: number): Promise<void> {
    await this.#current.command("CONFIG", "SET", "appendonly", "yes");
    await pause(ageMs);
    await this.#current.kill();
    const folder = path.join(this.#current.folder, "appendonlydir");
    for (const name of readdirSync(folder).filter((each) => each.endsWith(".incr.aof"))) {
      const file = path.join(folder, name);
      const { size } = statSync(file);
      truncateSync(file, Math.floor(size / 2));
    }
    await this.#current.start({ appendonly: "yes" });
    await this.#current.command("CONFIG", "SET", "appendonly", "no");
  }

  async empty(): Promise<void> {
    await this.#current.command("FLUSHALL");
  }

  /** The master dies, and a replica that has not heard of the last `lagMs` takes its place. */
  async failOver(lagMs: number): Promise<void> {
    const old = this.#current;
    const replica = await RedisServer.start({ settings: RELOADABLE });
    await replica.follow(old);
    await pause(lagMs);
    await replica.promote();
    await pause(lagMs);
    await old.kill();
    this.#current = replica;
    this.#way.pointAt(targetOf(replica));
    await old.close();
  }

  /** It stops where it is, and goes on. */
  async freeze(frozenMs: number): Promise<void> {
    this.#current.pause();
    await pause(frozenMs);
    this.#current.resume();
  }

  /** It refuses what needs memory. */
  async runOutOfMemory(forMs: number): Promise<void> {
    await this.#current.command("CONFIG", "SET", "maxmemory", "1");
    await pause(forMs);
    await this.#current.command("CONFIG", "SET", "maxmemory", "0");
  }
}

// A real etcd of a test's own, of one member or three: to be killed, frozen, cut off from each other and set back.
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { freePort } from "../fleet/ports.ts";
import { until } from "../fleet/until.ts";
import { etcdPrograms } from "./files.ts";
import type { EtcdGateway } from "./gateway.ts";
import { type ClusterSettings, EtcdMember, type MemberPlace } from "./member.ts";
import { PeerProxy } from "./peer-proxy.ts";

/** Below the ports the kernel gives to clients, and apart from those of the other tests. */
const FIRST_PORT = 9_000;
const LAST_PORT = 11_999;

/**
 * A member that is alone waits out an election's time at every start, half a second on average, though nobody else could be
 * elected. With others around, a busy machine needs etcd's own times.
 */
const ALONE = ["--heartbeat-interval=20", "--election-timeout=100"];

/** Limits of a call of etcdctl. A restore writes all anew and waits for the disk, which on a busy machine takes long. */
const SAVE_MS = 60_000;
const RESTORE_MS = 180_000;

/** How a test's own etcd shall be. */
export interface EtcdOptions {
  /** Members; 1 or 3. Default: 1. */
  readonly size?: number;
  /** Where the first one listens. Default: any port that is free. */
  readonly clientPort?: number;
  /** Further arguments of etcd. */
  readonly args?: readonly string[];
  /** Whether clients speak TLS; `args` say by which files. */
  readonly tls?: boolean;
}

/** A snapshot as `etcdctl snapshot save` writes it. */
export interface EtcdSnapshot {
  readonly file: string;
}

export class EtcdCluster implements AsyncDisposable {
  readonly members: readonly EtcdMember[];
  readonly #folder: string;
  readonly #settings: ClusterSettings;
  readonly #proxies: PeerProxy[] = [];
  /** Members that no other one reaches, and that reach no other one. */
  readonly #cut = new Set<EtcdMember>();
  /** Hexadecimal ids of members, as their peers say them. */
  readonly #ids = new Map<string, EtcdMember>();

  private constructor(members: readonly EtcdMember[], settings: ClusterSettings) {
    this.members = members;
    this.#settings = settings;
    this.#folder = mkdtempSync(path.join(tmpdir(), "idmint-etcd-"));
  }

  /** A new, empty etcd that answers. */
  static async start(options: EtcdOptions = {}): Promise<EtcdCluster> {
    const { size = 1, tls = false } = options;
    const args = [...(size === 1 ? ALONE : []), ...(options.args ?? [])];
    const places: MemberPlace[] = [];
    for (let at = 1; at <= size; at++) {
      const [free, peerPort, peerUrlPort] = [await port(), await port(), await port()];
      const clientPort = (at === 1 ? options.clientPort : undefined) ?? free;
      places.push({ name: `m${at}`, clientPort, peerPort, peerUrlPort });
    }
    const initialCluster = places
      .map(({ name, peerUrlPort }) => `${name}=http://127.0.0.1:${peerUrlPort}`)
      .join(",");
    const settings = { initialCluster, token: randomUUID(), args, tls };
    const members = places.map((place) => new EtcdMember(place, settings));
    const cluster = new EtcdCluster(members, settings);
    try {
      await cluster.#listen();
      await cluster.startAll();
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  /** host:port of all members, with commas between them, as a URL of a store has them. */
  get hosts(): string {
    return this.members.map(({ address }) => address).join(",");
  }

  /** Looks at the cluster by the first member that runs. */
  get gateway(): EtcdGateway {
    const member = this.members.find(({ isRunning }) => isRunning);
    if (member === undefined) throw new Error("no member runs");
    return member.gateway;
  }

  async startAll(more: Partial<ClusterSettings> = {}): Promise<void> {
    for (const member of this.members) await member.spawn(more);
    for (const member of this.members) await member.answering();
  }

  /** Starts a member that was killed, and waits until it answers. */
  async restart(member: EtcdMember): Promise<void> {
    await member.spawn();
    await member.answering();
  }

  /** Takes a member out of the cluster, and one with nothing on its disk in at the same address. */
  async replace(member: EtcdMember): Promise<void> {
    const { memberId } = await member.gateway.status();
    await member.kill();
    member.wipe();
    const { peerUrlPort } = member.place;
    await this.#reconfigure("remove", { ID: memberId });
    await this.#reconfigure("add", { peerURLs: [`http://127.0.0.1:${peerUrlPort}`] });
    await member.spawn({ args: [...this.#settings.args, "--initial-cluster-state=existing"] });
    await member.answering();
  }

  /** A cluster refuses changes of members for a while after a member has come or gone. */
  async #reconfigure(change: "add" | "remove", body: object): Promise<void> {
    const work = async () => (await this.gateway.post(`cluster/member/${change}`, body), true);
    await until(`a member is changed: ${change}`, work, { withinMs: 60_000, everyMs: 500 });
  }

  async leader(): Promise<EtcdMember> {
    for (const member of this.members.filter(({ isRunning }) => isRunning)) {
      const { leader, memberId } = await member.gateway.status(2_000);
      if (leader === memberId) return member;
    }
    throw new Error("no member leads");
  }

  /** Cuts a member off from the others; clients reach it as before. */
  async cutOff(member: EtcdMember): Promise<void> {
    for (const each of this.members) {
      const { memberId } = await each.gateway.status();
      this.#ids.set(BigInt(memberId).toString(16), each);
    }
    this.#cut.add(member);
    for (const proxy of this.#proxies) proxy.recheck();
  }

  heal(): void {
    this.#cut.clear();
  }

  /** Writes the present state into a file. */
  async snapshot(): Promise<EtcdSnapshot> {
    const file = path.join(this.#folder, `${randomUUID()}.db`);
    await etcdctl(SAVE_MS, "snapshot", "save", file, `--endpoints=${this.gatewayAddress()}`);
    return { file };
  }

  /**
   * Replaces the cluster by one made of a snapshot, of the same members at the same addresses. With the same token it has
   * the same cluster id.
   */
  async restore({ file }: EtcdSnapshot, options: { sameToken: boolean }): Promise<void> {
    for (const member of this.members) if (member.isRunning) await member.kill();
    const token = options.sameToken ? this.#settings.token : randomUUID();
    for (const member of this.members) {
      member.wipe();
      const { name, peerUrlPort } = member.place;
      await etcdctl(
        RESTORE_MS,
        "snapshot",
        "restore",
        file,
        `--name=${name}`,
        `--data-dir=${member.dataFolder}`,
        `--initial-cluster=${this.#settings.initialCluster}`,
        `--initial-cluster-token=${token}`,
        `--initial-advertise-peer-urls=http://127.0.0.1:${peerUrlPort}`,
      );
    }
    await this.startAll({ token });
  }

  async close(): Promise<void> {
    for (const member of this.members) await member.close();
    for (const proxy of this.#proxies) await proxy.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private gatewayAddress(): string {
    return this.members.find(({ isRunning }) => isRunning)?.address ?? "";
  }

  async #listen(): Promise<void> {
    for (const member of this.members) {
      const { peerUrlPort, peerPort } = member.place;
      const proxy = await PeerProxy.listen(peerUrlPort, peerPort, (from) => {
        if (this.#cut.size === 0) return true;
        const source = this.#ids.get(from);
        return !this.#cut.has(member) && source !== undefined && !this.#cut.has(source);
      });
      this.#proxies.push(proxy);
    }
  }
}

async function port(): Promise<number> {
  return freePort(FIRST_PORT, LAST_PORT);
}

/** Others go on meanwhile: the ways of a nemesis to its servers lead through this process. */
async function etcdctl(timeout: number, ...words: readonly string[]): Promise<void> {
  const env = { ...process.env, ETCDCTL_API: "3" };
  await promisify(execFile)(etcdPrograms().etcdctl, words, { env, timeout });
}

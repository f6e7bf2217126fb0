// A master with replicas, behind Sentinels that promote one of them when it dies.
import { freePort } from "../fleet/ports.ts";
import { until } from "../fleet/until.ts";
import { ReplicationDoor } from "./replication-door.ts";
import { RedisServer, type RedisSettings } from "./server.ts";

/** The name of the master. */
export const MASTER = "orders";
const DOWN_AFTER_MS = 1_000;
const FAIL_OVER_TIMEOUT_MS = 3_000;
/** Sentinels rest for 30 s when their clock seems to stand still, as it does on a machine with too much to do. */
const PATIENCE_MS = 90_000;

export interface SentinelGroupOptions {
  /** Default: 2. */
  readonly replicas?: number;
  /** Settings of each Redis. */
  readonly settings?: RedisSettings;
  /** Settings of each Sentinel. */
  readonly sentinelSettings?: RedisSettings;
}

/** A Redis and its port, which is also that by which Sentinels, replicas and clients know it. */
export interface Member {
  readonly redis: RedisServer;
  readonly door: ReplicationDoor;
}

export class SentinelGroup implements AsyncDisposable {
  readonly members: readonly Member[];
  readonly sentinels: readonly RedisServer[];

  private constructor(members: readonly Member[], sentinels: readonly RedisServer[]) {
    this.members = members;
    this.sentinels = sentinels;
  }

  static async start(options: SentinelGroupOptions = {}): Promise<SentinelGroup> {
    const { replicas = 2, settings = {}, sentinelSettings = {} } = options;
    const members: Member[] = [];
    for (let at = 0; at <= replicas; at++) members.push(await startMember(settings));
    const [first] = members;
    if (first === undefined) throw new Error("a group needs a master");
    const password = settings["requirepass"];
    const sentinels: RedisServer[] = [];
    const group = new SentinelGroup(members, sentinels);
    try {
      for (const { redis } of members.slice(1)) {
        await redis.command("REPLICAOF", "127.0.0.1", first.door.port);
      }
      for (let at = 0; at < 3; at++) {
        sentinels.push(
          await startSentinel(first.door.port, { password, settings: sentinelSettings }),
        );
      }
      await group.settled();
    } catch (error) {
      await group.close();
      throw error;
    }
    return group;
  }

  /** The URL of the master, by all Sentinels. */
  get url(): string {
    const addresses = this.sentinels.map(({ port }) => `127.0.0.1:${port}`);
    return `redis+sentinel://${addresses.join(",")}/${MASTER}`;
  }

  /** Replicas hear this much later than clients are answered. */
  set lagMs(lagMs: number) {
    for (const { door } of this.members) door.lagMs = lagMs;
  }

  /** The member that a Sentinel names. */
  async named(by: RedisServer): Promise<Member | undefined> {
    const answer = await by.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER);
    const port = Array.isArray(answer) ? Number(answer[1]) : 0;
    return this.members.find(({ door }) => door.port === port);
  }

  /** The member that all Sentinels name, once they do. */
  async master(): Promise<Member> {
    return until(
      "all Sentinels name one master",
      async () => {
        const named = await Promise.all(this.sentinels.map((sentinel) => this.named(sentinel)));
        return named.every((each) => each === named[0]) ? named[0] : undefined;
      },
      { withinMs: PATIENCE_MS },
    );
  }

  /** Kills the master, and answers the replica that was promoted, as soon as it is a master. */
  async killMaster(): Promise<Member> {
    const old = await this.master();
    await old.redis.kill();
    const others = this.members.filter((member) => member !== old);
    return until(
      "a replica is promoted",
      async () => {
        for (const member of others) if (await isMaster(member)) return member;
        return undefined;
      },
      { withinMs: PATIENCE_MS },
    );
  }

  /** Starts what was killed again, as the master that it was. The Sentinels make it a replica. */
  async restartKilled(): Promise<void> {
    for (const { redis } of this.members) if (!redis.runs) await redis.start();
  }

  /** Waits until the Sentinels know each other and one master, and all others are its replicas and well. */
  async settled(): Promise<Member> {
    const all = this.members.length - 1;
    return until(
      "the Sentinels know of everybody, and everybody is well",
      async () => {
        const master = await this.master();
        for (const sentinel of this.sentinels) {
          const state = flat(await sentinel.command("SENTINEL", "MASTER", MASTER));
          if (state["num-other-sentinels"] !== "2" || state["flags"] !== "master") return undefined;
          const answer = await sentinel.command("SENTINEL", "REPLICAS", MASTER);
          const replicas = Array.isArray(answer) ? answer.map(flat) : [];
          const well = replicas.filter(
            (each) => each["flags"] === "slave" && each["master-link-status"] === "ok",
          );
          if (well.length !== all) return undefined;
        }
        const info = String(await master.redis.command("INFO", "replication"));
        return (info.match(/state=online/g) ?? []).length === all ? master : undefined;
      },
      { withinMs: PATIENCE_MS, everyMs: 100 },
    );
  }

  async close(): Promise<void> {
    for (const sentinel of this.sentinels) await sentinel.close();
    for (const { redis, door } of this.members) {
      await redis.close();
      await door.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

async function isMaster({ redis }: Member): Promise<boolean> {
  return String(await redis.command("INFO", "replication")).includes("role:master");
}

async function startMember(settings: RedisSettings): Promise<Member> {
  const port = await freePort();
  const announced = {
    "replica-announce-ip": "127.0.0.1",
    "replica-announce-port": String(port),
    ...(settings["requirepass"] === undefined ? {} : { masterauth: settings["requirepass"] }),
  };
  const redis = await RedisServer.start({ settings: { ...announced, ...settings } });
  return { redis, door: await ReplicationDoor.open(port, redis.port) };
}

export interface SentinelOptions {
  /** The port of the Sentinel. */
  readonly port?: number;
  /** Password of the master. */
  readonly password?: string | undefined;
  readonly settings?: RedisSettings;
}

/** A Sentinel that watches a Redis by its port, under the name `MASTER`. Close it. */
export async function startSentinel(
  masterPort: number,
  { port, password, settings = {} }: SentinelOptions = {},
): Promise<RedisServer> {
  return RedisServer.start({
    port,
    isSentinel: true,
    settings: {
      "sentinel monitor": `${MASTER} 127.0.0.1 ${masterPort} 2`,
      "sentinel down-after-milliseconds": `${MASTER} ${DOWN_AFTER_MS}`,
      "sentinel failover-timeout": `${MASTER} ${FAIL_OVER_TIMEOUT_MS}`,
      ...(password === undefined ? {} : { "sentinel auth-pass": `${MASTER} ${password}` }),
      ...settings,
    },
  });
}

function flat(answer: unknown): Record<string, string> {
  const values = Array.isArray(answer) ? answer.map(String) : [];
  const fields: Record<string, string> = {};
  for (let at = 0; at + 1 < values.length; at += 2) fields[values[at]!] = values[at + 1]!;
  return fields;
}

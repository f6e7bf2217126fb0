// Two stores behind one address, by turns and at random, under load.
import { mkdirSync, renameSync } from "node:fs";
import path from "node:path";
import { RedisSnowflakeKind, SequenceBackend, Tag, TicketKind } from "@idmint/proto";
import { onTestFinished } from "vitest";
import { EtcdCluster } from "../../src/etcd/index.ts";
import type { Api } from "../../src/fleet/api.ts";
import { runCli } from "../../src/fleet/child.ts";
import { until } from "../../src/fleet/until.ts";
import { TestPostgres } from "../../src/postgres.ts";
import { RedisServer } from "../../src/redis/index.ts";
import { TcpProxy } from "../../src/tcp-proxy.ts";
import { isLong, ownPostgres, seededRandom, someTests, sqliteFile } from "../fleet-support.ts";
import { fillStores, turnToAndFro, type TwoStores, type Which } from "./two-stores.ts";

const ROUNDS = isLong ? 30 : 1;
const TIMEOUT_MS = 120_000 * ROUNDS;

/** Two of them, chosen anew by each run. */
const storm = someTests(2, 6);

/** Behind, at about the same ids, and further on. */
function firstOfOther(): bigint {
  const { below } = seededRandom();
  return BigInt([1, 50 + below(400), 100_000][below(3)] ?? 1);
}

async function rounds(make: (round: number) => Promise<TwoStores>): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const stores = await make(round);
    await fillStores(stores, firstOfOther());
    await turnToAndFro(stores);
  }
}

async function proxyTo(port: number): Promise<TcpProxy> {
  const proxy = await TcpProxy.start({ host: "127.0.0.1", port });
  onTestFinished(() => proxy.close());
  return proxy;
}

const UNSAFE = { IDMINT_ALLOW_UNSAFE_STORE: "fsync,full_page_writes" };

/** Two clusters of PostgreSQL, and ways to them that turn: `one` leads to the first, `two` to the second. */
async function twoClusters(): Promise<{
  readonly clusters: readonly [TestPostgres, TestPostgres];
  readonly ways: readonly [TcpProxy, TcpProxy];
  readonly urlOf: (at: 0 | 1, database: string) => string;
  readonly swap: (isSwapped: boolean) => void;
}> {
  const clusters = [await ownPostgres(), await TestPostgres.start({ isForeign: true })] as const;
  onTestFinished(() => clusters[1].close());
  const ways = [await proxyTo(clusters[0].port), await proxyTo(clusters[1].port)] as const;
  const pointTo = (way: TcpProxy, at: 0 | 1): void =>
    way.pointAt({ host: "127.0.0.1", port: clusters[at].port });
  return {
    clusters,
    ways,
    urlOf: (at, database) => `postgres://postgres@127.0.0.1:${ways[at].port}/${database}`,
    swap: (isSwapped) => {
      pointTo(ways[0], isSwapped ? 1 : 0);
      pointTo(ways[1], isSwapped ? 0 : 1);
    },
  };
}

storm("PostgreSQL", { timeout: TIMEOUT_MS }, async () => {
  const { clusters, urlOf, swap } = await twoClusters();
  await rounds(async (round) => {
    const name = `round${round}`;
    const [ours, other] = await Promise.all(clusters.map((its) => its.createDatabase(name)));
    const direct = {
      ours: { ...UNSAFE, IDMINT_STORE_URL: ours?.url ?? "" },
      other: { ...UNSAFE, IDMINT_STORE_URL: other?.url ?? "" },
    };
    // Several processes of one server belong to one store.
    const through = { ...UNSAFE, IDMINT_STORE_URL: urlOf(0, name), IDMINT_PROCESSES: "2" };
    const told = [{ ...through, IDMINT_PROCESSES: "1" }, through, direct.ours] as const;
    return { direct, told, pointAt: (which) => swap(which === "other") };
  });
});

storm("a store in several databases", { timeout: TIMEOUT_MS }, async () => {
  const { clusters, urlOf, swap } = await twoClusters();
  const tags = ["a", "b", "c", "d"];
  await rounds(async (round) => {
    const envOf = (at: 0 | 1): Readonly<Record<string, string>> => {
      const [first, second] = [`one${round}`, `two${round}`].map((name) => clusters[at].url(name));
      return { ...UNSAFE, IDMINT_STORE_URL: first ?? "", IDMINT_STORE_MORE_URLS: `b=${second}` };
    };
    for (const cluster of clusters) {
      for (const name of [`one${round}`, `two${round}`]) await cluster.createDatabase(name);
    }
    const direct = { ours: envOf(0), other: envOf(1) };
    const through = {
      ...UNSAFE,
      IDMINT_STORE_URL: urlOf(0, `one${round}`),
      IDMINT_STORE_MORE_URLS: `b=${urlOf(0, `two${round}`)}`,
    };
    return {
      direct,
      told: [through, through, direct.ours],
      tags,
      make: async (api, start) => {
        for (const name of tags) await api.createTag({ name, start, min: 20, max: 40 });
      },
      prepare: async (env) => {
        for (const words of [["migrate"], ["store", "spread", "add", "--yes"]]) {
          const { code, stderr } = await runCli(words, env);
          if (code !== 0) throw new Error(stderr);
        }
      },
      pointAt: (which) => swap(which === "other"),
    };
  });
});

storm("ticket databases that change places", { timeout: TIMEOUT_MS }, async () => {
  const { clusters, urlOf, swap } = await twoClusters();
  await rounds(async (round) => {
    const name = `ticket${round}`;
    for (const cluster of clusters) await cluster.createDatabase(name);
    const file = await sqliteFile();
    const envOf = (urls: readonly string[]): Readonly<Record<string, string>> => ({
      ...UNSAFE,
      IDMINT_STORE_URL: `sqlite:${file}`,
      IDMINT_TICKET_URLS: `x=${urls[0]},y=${urls[1]}`,
    });
    const ours = envOf(clusters.map((cluster) => cluster.url(name)));
    const through = envOf([urlOf(0, name), urlOf(1, name)]);
    let isMade = false;
    return {
      direct: { ours, other: ours },
      told: [through, through, ours],
      tags: ["tickets"],
      make: async (api) => {
        if (isMade) return;
        isMade = true;
        const kind = { $case: "ticket", value: { ...TicketKind.create(), slots: 8 } } as const;
        const tag = { ...Tag.create(), name: "tickets", kind };
        await api.send(api.tags.createTag.bind(api.tags), { tag, validateOnly: false });
      },
      prepare: async (env) => {
        const { code, stderr } = await runCli(["ticket", "migrate", "--yes"], env);
        if (code !== 0) throw new Error(stderr);
      },
      // Each leads to the other one, so both are in use, and there is none that nobody may touch.
      stateOfOther: async () => undefined,
      pointAt: (which) => swap(which === "other"),
    };
  });
});

storm("etcd", { timeout: TIMEOUT_MS }, async () => {
  const [ours, other] = [await EtcdCluster.start(), await EtcdCluster.start()];
  onTestFinished(async () => {
    await ours.close();
    await other.close();
  });
  const portOf = (which: Which): number =>
    Number((which === "ours" ? ours : other).hosts.split(":").at(-1));
  const way = await proxyTo(portOf("ours"));
  await rounds(async (round) => {
    const envOf = (hosts: string): Readonly<Record<string, string>> => ({
      IDMINT_ALLOW_UNSAFE_STORE: "auto_compaction",
      IDMINT_STORE_URL: `etcd://${hosts}/round${round}/`,
    });
    const direct = { ours: envOf(ours.hosts), other: envOf(other.hosts) };
    const through = envOf(`127.0.0.1:${way.port}`);
    return {
      direct,
      told: [through, through, direct.ours],
      pointAt: (which) => way.pointAt({ host: "127.0.0.1", port: portOf(which) }),
    };
  });
});

/** Two folders of which one at a time lies where all servers look; it is moved as a whole, and for a moment none is there. */
async function foldersByTurns(): Promise<TwoStores> {
  const folder = path.dirname(await sqliteFile());
  const fileIn = (name: string): Readonly<Record<string, string>> => ({
    IDMINT_STORE_URL: `sqlite:${path.join(folder, name, "idmint.db")}`,
  });
  const here = path.join(folder, "here");
  for (const name of ["ours", "other"]) mkdirSync(path.join(folder, name));
  let present: string | undefined;
  return {
    direct: { ours: fileIn("ours"), other: fileIn("other") },
    told: [fileIn("here"), fileIn("here"), fileIn("here")],
    pointAt: (which) => {
      if (which === present) return;
      if (present !== undefined) renameSync(here, path.join(folder, present));
      renameSync(path.join(folder, which), here);
      present = which;
    },
  };
}

storm("SQLite", { timeout: TIMEOUT_MS }, async () => {
  await rounds(foldersByTurns);
});

const COUNTED: readonly string[] = ["bills", "events"];

/** A sequence and snowflakes that Redis counts, of which ids were given out already. */
async function makeCounted(api: Api, start: bigint): Promise<void> {
  const value = { ...RedisSnowflakeKind.create() };
  const tag = {
    ...Tag.create(),
    name: "events",
    kind: { $case: "redisSnowflake", value } as const,
  };
  await api.createSequence("bills", { start, backend: SequenceBackend.REDIS, step: 200 });
  await api.send(api.tags.createTag.bind(api.tags), { tag, validateOnly: false });
  for (const name of COUNTED) {
    await until(`${name} counts`, () => api.id(name), { withinMs: 30_000 });
  }
}

function hashesOf(redis: RedisServer): Promise<unknown> {
  return Promise.all(COUNTED.map((name) => redis.command("HGETALL", `idmint:{${name}}`)));
}

/** Sets a Redis to what another has now: later to an older state of it. */
async function copyOver(from: RedisServer, to: RedisServer): Promise<void> {
  await from.command("SAVE");
  await to.kill();
  to.restore(from.copyData());
  await to.start();
}

/** What a Redis at our address can be, if it is no other store's. */
const otherTimes: readonly ((ours: RedisServer, other: RedisServer) => Promise<unknown>)[] = [
  // As it was left: older than ours, or with a start of its own.
  async () => undefined,
  copyOver,
  (_ours, other) => other.command("FLUSHALL"),
  async (ours, other) => {
    await copyOver(ours, other);
    await other.command("HINCRBY", "idmint:{bills}", "generation", 3);
    for (const field of ["cur", "max"]) {
      await other.command("HINCRBY", "idmint:{bills}", field, 1_000_000);
    }
    for (const field of ["last_ms", "limit_ms"]) {
      await other.command("HINCRBY", "idmint:{events}", field, 60_000);
    }
  },
];

storm("Redis", { timeout: TIMEOUT_MS }, async () => {
  const postgres = await ownPostgres();
  const [ours, other] = [await RedisServer.start(), await RedisServer.start()];
  onTestFinished(async () => {
    await ours.close();
    await other.close();
  });
  const way = await proxyTo(ours.port);
  const { below } = seededRandom();
  await rounds(async (round) => {
    for (const redis of [ours, other]) await redis.command("FLUSHALL");
    const { url } = await postgres.createDatabase(`round${round}`);
    const envOf = (redisPort: number, storeUrl = url): Readonly<Record<string, string>> => ({
      IDMINT_STORE_URL: storeUrl,
      IDMINT_REDIS_URLS: `redis://127.0.0.1:${redisPort}`,
    });
    const direct = envOf(ours.port);
    const told = [envOf(way.port), envOf(way.port), direct] as const;
    const turn = (which: Which): void =>
      way.pointAt({ host: "127.0.0.1", port: (which === "ours" ? ours : other).port });
    if (below(2) === 0) {
      // It counts the same tags for another store.
      const stranger = await postgres.createDatabase(`other${round}`);
      return {
        direct: { ours: direct, other: envOf(other.port, stranger.url) },
        told,
        tags: COUNTED,
        make: makeCounted,
        stateOfOther: () => hashesOf(other),
        pointAt: turn,
      };
    }
    let isMade = false;
    return {
      direct: { ours: direct, other: direct },
      told,
      tags: COUNTED,
      make: async (api, start) => {
        if (!isMade) await makeCounted(api, start);
        isMade = true;
      },
      // It is our store's too, which may count there.
      stateOfOther: async () => undefined,
      pointAt: async (which) => {
        if (which === "other") await otherTimes[below(otherTimes.length)]?.(ours, other);
        turn(which);
      },
    };
  });
});

// A store that is put back while no server runs: servers that are started again know it by the row and the grants in their
// files, mark the store, and say all that they were granted to the accept.
import { copyFileSync, cpSync, rmSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { EtcdCluster } from "../../src/etcd/index.ts";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import { ownPostgres, sqliteFile, startFleet } from "../fleet-support.ts";
import { vacuumInto } from "./set-back.ts";
import { temporaryFolder } from "./two-stores.ts";

interface Scene {
  readonly storeUrl: string;
  readonly backUp: () => Promise<void>;
  readonly restore: () => Promise<void>;
}

const SCENES: Readonly<Record<string, () => Promise<Scene>>> = {
  SQLite: async () => {
    const file = await sqliteFile();
    return {
      storeUrl: `sqlite:${file}`,
      backUp: async () => vacuumInto(file, `${file}.backup`),
      restore: async () => {
        for (const suffix of ["-wal", "-shm"]) rmSync(`${file}${suffix}`, { force: true });
        copyFileSync(`${file}.backup`, file);
      },
    };
  },
  PostgreSQL: async () => {
    const postgres = await ownPostgres();
    const database = await postgres.createDatabase();
    let putBack: () => void;
    const replace = async (work: () => void): Promise<void> => {
      await postgres.stop("immediate");
      work();
      await postgres.start();
    };
    return {
      storeUrl: database.url,
      backUp: () => replace(() => (putBack = postgres.backUp())),
      restore: () => replace(() => putBack()),
    };
  },
  etcd: async () => {
    const cluster = await EtcdCluster.start();
    onTestFinished(() => cluster.close());
    const [member] = cluster.members;
    if (member === undefined) throw new Error("a cluster without members");
    const copy = `${member.dataFolder}-copy`;
    const replace = async (work: () => void): Promise<void> => {
      await member.kill();
      work();
      await cluster.startAll();
    };
    return {
      storeUrl: `etcd://${cluster.hosts}/kept/`,
      backUp: () => replace(() => cpSync(member.dataFolder, copy, { recursive: true })),
      restore: () =>
        replace(() => {
          member.wipe();
          cpSync(copy, member.dataFolder, { recursive: true });
        }),
    };
  },
};

const TAGS = ["segments", "strict"] as const;

/** All ids that anybody was given; throws at the first that is given twice. */
class Given {
  readonly #ids = new Set<string>();

  async draw({ api }: FleetServer, tag: string, count = 5): Promise<void> {
    for (let at = 0; at < count; at++) {
      const key = `${tag} ${await api.id(tag, 5_000)}`;
      if (this.#ids.has(key)) throw new Error(`${key} was given twice`);
      this.#ids.add(key);
    }
  }

  async drawFromAll({ servers }: Fleet, count?: number): Promise<void> {
    for (const server of servers) {
      for (const tag of TAGS) {
        const drawn = () => this.draw(server, tag, count).then(() => true);
        await until(`${server.name} gives ids of ${tag}`, drawn, { withinMs: 30_000 });
      }
    }
  }
}

async function reasonOf({ api }: FleetServer, tag: string): Promise<string> {
  try {
    await api.id(tag, 5_000);
    return "";
  } catch (error) {
    return (error as { reason?: string }).reason ?? String(error);
  }
}

test.for(Object.keys(SCENES))("%s", { timeout: 180_000 }, async (name) => {
  const scene = await SCENES[name]!();
  const folder = await temporaryFolder();
  const envOf = [0, 1].map((at) => ({
    IDMINT_SNOWFLAKE_CACHE_FILE: path.join(folder, `cache-${at}`),
  }));
  const fleet = await startFleet({ servers: 2, storeUrl: scene.storeUrl, envOf });
  const given = new Given();
  await fleet.first.api.createTag({ name: "segments", min: 20, max: 40 });
  await fleet.first.api.createSequence("strict");
  await given.drawFromAll(fleet);
  await pause(2_000);
  await scene.backUp();
  await given.drawFromAll(fleet, 30);
  // A poll and more, so that rows and grants are in the files; then grants of the last moment.
  await pause(2_500);
  await given.drawFromAll(fleet, 25);
  await Promise.all(fleet.servers.map((server) => server.kill()));
  await scene.restore();
  for (const server of fleet.servers) server.spawn();
  for (const server of fleet.servers) {
    for (const tag of TAGS) {
      await until(
        `${server.name} refuses ${tag}`,
        async () => (await reasonOf(server, tag)) === "STORE_EPOCH_CHANGED",
        { withinMs: 60_000 },
      );
    }
  }
  // No gap: what they say is all.
  const accepted = await fleet.cli("store", "accept", "--gap", "0", "--yes", "--json");
  const told = JSON.parse(accepted) as {
    claims: { servers: { told: string; instance: string }[] } | null;
  };
  expect(told.claims?.servers.map((server) => server.told)).toEqual(["all", "all"]);
  await given.drawFromAll(fleet, 60);
});

// The stores whose servers are killed. Each chain of points has a fresh one on a database that stays up.
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { DatabaseSync } from "node:sqlite";
import { EtcdCluster } from "../src/etcd/cluster.ts";
import { until } from "../src/fleet/until.ts";
import { TestPostgres } from "../src/postgres.ts";

export const STORES = ["sqlite", "postgres", "etcd"] as const;
export type StoreName = (typeof STORES)[number];

/** Sessions of a database but one's own. */
const OTHERS = `SELECT count(*)::text AS others FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`;
/** etcd tells nobody which calls it has under way; it does one in a few milliseconds. */
const SETTLED_MS = 100;

/** An empty store. */
export interface FreshStore extends AsyncDisposable {
  readonly url: string;
  /**
   * The floor of a tag as it is durable, when all is done that a dead server had asked for. It is read past the server, and
   * what a restart recovers is not touched.
   */
  floorOf(tag: string): Promise<bigint>;
}

export interface Database extends AsyncDisposable {
  fresh(): Promise<FreshStore>;
}

const START: Readonly<Record<StoreName, () => Promise<Database>>> = {
  sqlite: async () => ({ fresh: freshFile, [Symbol.asyncDispose]: async () => undefined }),
  postgres: startPostgres,
  etcd: startEtcd,
};

export async function startDatabase(name: StoreName): Promise<Database> {
  return START[name]();
}

/** A copy is read: who opens the file itself brings its log to an end, which is the work of the server that starts next. */
async function freshFile(): Promise<FreshStore> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-crash-"));
  const file = path.join(folder, "store/idmint.db");
  const copy = path.join(folder, "copy.db");
  return {
    url: `sqlite:${file}`,
    floorOf: async (tag) => {
      for (const end of ["", "-wal"]) {
        rmSync(copy + end, { force: true });
        if (existsSync(file + end)) copyFileSync(file + end, copy + end);
      }
      using database = new DatabaseSync(copy);
      const row = database.prepare("SELECT floor FROM tag WHERE name = ?").get(tag);
      return BigInt(Number(row?.["floor"] ?? 0));
    },
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function startPostgres(): Promise<Database> {
  const server = await TestPostgres.start({ durable: true });
  return {
    fresh: async () => {
      const database = await server.createDatabase();
      return {
        url: database.url,
        floorOf: async (tag) => {
          // What a dead server had asked for is done by a session that then sees that nobody is there.
          await until("the dead server's sessions are over", async () => {
            const [row] = await database.query(OTHERS);
            return row?.["others"] === "0";
          });
          const text = `SELECT floor::text FROM idmint.tag WHERE name = '${tag}'`;
          const [row] = (await database.query(text)) as readonly { readonly floor: string }[];
          return BigInt(row?.floor ?? 0);
        },
        [Symbol.asyncDispose]: async () => database.close(),
      };
    },
    [Symbol.asyncDispose]: async () => server.close(),
  };
}

async function startEtcd(): Promise<Database> {
  const cluster = await EtcdCluster.start();
  let made = 0;
  return {
    fresh: async () => {
      const prefix = `crash-${++made}`;
      return {
        url: `etcd://${cluster.hosts}/${prefix}`,
        floorOf: async (tag) => {
          const read = async (): Promise<bigint> => {
            const [row] = await cluster.gateway.under(`/${prefix}/tag/${tag}`);
            const { floor = "0" } = JSON.parse(row?.value ?? "{}") as { floor?: string };
            return BigInt(floor);
          };
          // What a dead server had asked for may still be on its way.
          let floor = await read();
          await until("nothing more comes of the dead server", async () => {
            const before = floor;
            await pause(SETTLED_MS);
            floor = await read();
            return floor === before;
          });
          return floor;
        },
        [Symbol.asyncDispose]: async () => cluster.gateway.removeUnder(`/${prefix}/`),
      };
    },
    [Symbol.asyncDispose]: async () => cluster.close(),
  };
}

// Stores that go back under load in whatever way, and are accepted with a gap that may be none: never an id twice, since
// servers that run are asked what they were granted; and afterwards all issue again.
import { copyFileSync, cpSync, existsSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { EtcdCluster, type EtcdSnapshot } from "../../src/etcd/index.ts";
import { TestPostgresPair } from "../../src/postgres-pair.ts";
import type { TestDatabase, TestPostgres } from "../../src/postgres.ts";
import { expectProof, goBackOnce, type RoundResult, type SetBack } from "./claims-round.ts";
import { isLong, ownPostgres, seededRandom, sqliteFile } from "../fleet-support.ts";
import { dump, load, unused, vacuumInto } from "./set-back.ts";
import { temporaryFolder } from "./two-stores.ts";

const ROUNDS = isLong ? 30 : 1;
const TIMEOUT_MS = 120_000 * ROUNDS + 60_000;

type Ways = readonly ((round: number) => Promise<SetBack>)[];
type Floors = ReadonlyMap<string, bigint>;

/** All ways by turns, in the order that a seed says. IDMINT_SEED and the short form repeat one round of the long one. */
async function rounds(ways: Ways): Promise<void> {
  const { seed: first } = seededRandom();
  const results: RoundResult[] = [];
  const failed: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const random = seededRandom(first + round);
    const way = ways[(first + round) % ways.length]!;
    console.log(`round ${round + 1}: IDMINT_SEED=${random.seed}`);
    try {
      results.push(await goBackOnce(await way(round), random, await temporaryFolder()));
    } catch (error) {
      // The other rounds have something to say too.
      console.log(error);
      failed.push(`IDMINT_SEED=${random.seed}: ${String(error)}`);
    }
  }
  expectProof(results);
  expect(failed).toEqual([]);
}

function setFloors(floors: Floors, more = ""): string {
  return [...floors]
    .map(([tag, floor]) => `UPDATE TAG SET floor = ${floor}${more} WHERE name = '${tag}'`)
    .join(";");
}

function postgresWays(postgres: TestPostgres): Ways {
  const made = (
    way: string,
    make: (database: TestDatabase) => Pick<SetBack, "backUp" | "restore">,
  ) => {
    return async (round: number): Promise<SetBack> => {
      const database = await postgres.createDatabase(`round${round}`);
      // A backup has the whole cluster.
      const close = (): Promise<void> => database.close();
      return { way, storeUrl: database.url, close, ...make(database) };
    };
  };
  const replace = async (work: () => void): Promise<void> => {
    await postgres.stop("immediate");
    work();
    await postgres.start();
  };
  return [
    made("its data directory put back", () => {
      let putBack: () => void;
      return {
        backUp: () => replace(() => (putBack = postgres.backUp())),
        restore: () => replace(() => putBack()),
      };
    }),
    ...["", ", version = version + 1000"].map((more) =>
      made(`floors set back by hand${more}`, (database) => {
        let sql: string;
        return {
          backUp: async (floors) => {
            sql = setFloors(floors, more).replaceAll("TAG", "idmint.tag");
          },
          restore: async () => {
            await database.query(`BEGIN; ${sql}; COMMIT`);
          },
        };
      }),
    ),
    made("the table of tags reloaded", (database) => reloaded(database, ["tag"])),
    made("all tables reloaded", (database) => reloaded(database)),
    made("replaced by an older copy", ({ name }) => ({
      backUp: () => unused(postgres, name, `CREATE DATABASE ${name}_backup TEMPLATE ${name}`),
      restore: async () => {
        await unused(postgres, name, `ALTER DATABASE ${name} RENAME TO ${name}_gone`);
        await postgres.query(`ALTER DATABASE ${name}_backup RENAME TO ${name}`);
      },
    })),
    promoted,
  ];
}

/** `only`: of all tables. */
function reloaded(
  database: TestDatabase,
  only?: readonly string[],
): Pick<SetBack, "backUp" | "restore"> {
  let tables: ReadonlyMap<string, string>;
  return {
    backUp: async () => {
      const all = await dump(database);
      tables = new Map([...all].filter(([table]) => only?.includes(table) ?? true));
    },
    restore: async () => {
      const names = [...tables.keys()].map((table) => `idmint.${table}`);
      const emptied =
        only === undefined ? `TRUNCATE ${names.join(", ")}` : `DELETE FROM ${names.join()}`;
      await database.query(`BEGIN; ${emptied}; ${load(tables)}; COMMIT`);
    },
  };
}

/** An asynchronous standby, which lacks what was granted since it stalled. */
async function promoted(): Promise<SetBack> {
  const pair = await TestPostgresPair.start("asynchronous");
  const { name } = await pair.primary.createDatabase();
  return {
    way: "a standby promoted",
    storeUrl: pair.url(name),
    backUp: async () => {
      await pair.caughtUp();
      await pair.stallStandby();
    },
    restore: async () => {
      await pair.primary.stop("kill");
      await pair.promote();
    },
    acceptWords: ["--old-primary-is-stopped"],
    close: () => pair.close(),
  };
}

function etcdWays(cluster: EtcdCluster): Ways {
  const [member] = cluster.members;
  if (member === undefined) throw new Error("a cluster without members");
  const made = (
    way: string,
    make: (prefix: string) => Pick<SetBack, "backUp" | "restore">,
  ): Ways[number] => {
    return async (round) => {
      const prefix = `/round${round}/`;
      return { way, storeUrl: `etcd://${cluster.hosts}${prefix}`, ...make(prefix) };
    };
  };
  const replace = async (work: () => void): Promise<void> => {
    await member.kill();
    work();
    await cluster.startAll();
  };
  const copy = `${member.dataFolder}-copy`;
  return [
    made("its data directory put back", () => ({
      backUp: () =>
        replace(() => {
          rmSync(copy, { recursive: true, force: true });
          cpSync(member.dataFolder, copy, { recursive: true });
        }),
      restore: () =>
        replace(() => {
          member.wipe();
          cpSync(copy, member.dataFolder, { recursive: true });
        }),
    })),
    made("floors set back by hand", (prefix) => {
      let kept: Floors;
      return {
        backUp: async (floors) => {
          kept = floors;
        },
        restore: async () => {
          for (const { key, value } of await cluster.gateway.under(`${prefix}tag/`)) {
            const floor = kept.get(key.slice(`${prefix}tag/`.length));
            const row = { ...(JSON.parse(value) as object), floor: String(floor) };
            await cluster.gateway.put(key, JSON.stringify(row));
          }
        },
      };
    }),
    made("the keys of tags put back", (prefix) => {
      let kept: Awaited<ReturnType<typeof cluster.gateway.under>>;
      return {
        backUp: async () => {
          kept = await cluster.gateway.under(`${prefix}tag/`);
        },
        restore: () => cluster.gateway.change(kept),
      };
    }),
    made("made anew of a snapshot", () => {
      let snapshot: EtcdSnapshot;
      return {
        backUp: async () => {
          snapshot = await cluster.snapshot();
        },
        restore: () => cluster.restore(snapshot, { sameToken: true }),
      };
    }),
  ];
}

function sqlIn(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  try {
    database.exec(`PRAGMA busy_timeout = 10000; ${sql}`);
  } finally {
    database.close();
  }
}

function onFile(
  way: string,
  make: (file: string) => Pick<SetBack, "backUp" | "mayDamage" | "restore">,
): Ways[number] {
  return async () => {
    const file = await sqliteFile();
    return { way, storeUrl: `sqlite:${file}`, ...make(file) };
  };
}

async function copied(file: string): Promise<void> {
  vacuumInto(file, `${file}.backup`);
}

function removeLog(file: string): void {
  for (const suffix of ["-wal", "-shm"]) rmSync(`${file}${suffix}`, { force: true });
}

function sqliteWays(): Ways {
  return [
    onFile("a backup written into the same file", (file) => ({
      backUp: () => copied(file),
      restore: async () => {
        removeLog(file);
        copyFileSync(`${file}.backup`, file);
      },
      // Whoever writes meanwhile mixes pages of both.
      mayDamage: true,
    })),
    onFile("floors set back by hand", (file) => {
      let sql: string;
      return {
        backUp: async (floors) => {
          sql = setFloors(floors).replaceAll("TAG", "tag");
        },
        restore: async () => sqlIn(file, `BEGIN IMMEDIATE; ${sql}; COMMIT`),
      };
    }),
    onFile("the table of tags reloaded", (file) => ({
      backUp: () => copied(file),
      restore: async () =>
        sqlIn(
          file,
          `ATTACH '${file}.backup' AS older; BEGIN IMMEDIATE; DELETE FROM main.tag;
          INSERT INTO main.tag SELECT * FROM older.tag; COMMIT`,
        ),
    })),
    onFile("its folder's files put back", (file) => {
      const suffixes = ["", "-wal", "-shm"];
      const folder = path.dirname(file);
      return {
        backUp: async () => {
          const database = new DatabaseSync(file);
          // Nobody begins the log anew while its end is copied.
          database.exec("PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE");
          for (const suffix of suffixes) {
            if (existsSync(`${file}${suffix}`)) {
              copyFileSync(`${file}${suffix}`, path.join(folder, `copy${suffix}`));
            }
          }
          database.close();
        },
        restore: async () => {
          removeLog(file);
          for (const suffix of suffixes.toReversed()) {
            const kept = path.join(folder, `copy${suffix}`);
            if (existsSync(kept)) renameSync(kept, `${file}${suffix}`);
          }
        },
        mayDamage: true,
      };
    }),
  ];
}

test("PostgreSQL", { timeout: TIMEOUT_MS }, async () => {
  await rounds(postgresWays(await ownPostgres()));
});

test("etcd", { timeout: TIMEOUT_MS }, async () => {
  const cluster = await EtcdCluster.start();
  onTestFinished(() => cluster.close());
  await rounds(etcdWays(cluster));
});

test("SQLite", { timeout: TIMEOUT_MS }, async () => {
  await rounds(sqliteWays());
});

// What keeps PostgreSQL from removing dead rows, which makes grants and polls slow.
import { TestPostgres } from "@idmint/testkit/postgres";
import { settingsOf } from "@idmint/testkit/store-suite";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openStore, storeStatus } from "../../../../src/store/open-store.ts";
import { HorizonWatch, horizonWarning } from "../../../../src/store/postgres/faults/horizon.ts";
import { type PostgresHarness, postgresHarness } from "../../harness.ts";

const POLL = { since: 0n, watched: [], limit: 10 };
const BURN =
  "DO $$ BEGIN FOR i IN 1..10100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$";

async function withServer(
  settings: Record<string, string>,
  work: (harness: PostgresHarness) => Promise<void>,
): Promise<void> {
  await using server = await TestPostgres.start({ settings });
  const harness = await postgresHarness({}, await server.createDatabase());
  const role = "plain";
  const { database, config } = harness;
  await database.query(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA idmint TO ${role};
    GRANT ALL ON ALL TABLES IN SCHEMA idmint TO ${role}`);
  const url = new URL(config.url);
  url.username = role;
  await work({ ...harness, config: { ...config, url: url.href } });
}

async function session(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  // Its server ends first.
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.end().catch(() => undefined));
  return client;
}

test("what holds back the removal of dead rows is named, by a status and by the polls of a server", async () => {
  await withServer({ max_prepared_transactions: "2" }, async ({ config, database }) => {
    const holder = await session(database.url);
    await holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    const { rows } = await holder.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    const pid = String(rows[0]?.pid);
    await database.query("BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'left over'");
    await database.query("SELECT pg_create_physical_replication_slot('a_slot')");
    expect((await storeStatus(config)).findings).toEqual([]);
    await database.query(BURN);
    const { findings } = await storeStatus(config);
    expect(findings?.map(({ name, isFatal }) => [name, isFatal])).toEqual([
      ["horizon", false],
      ["horizon", false],
    ]);
    const told = findings?.map(({ found, fix }) => `${found} ${fix}`).join();
    expect(told).toContain(`pg_terminate_backend(${pid})`);
    expect(told).toContain("ROLLBACK PREPARED 'left over'");
    const store = await openStore(config);
    onTestFinished(() => store.close());
    const warning = async (): Promise<string | undefined> => (await store.changes(POLL)).warning;
    await expect.poll(warning).toContain(`process ${pid}`);
    await store.createTag(settingsOf("t"));
    await holder.query("ROLLBACK");
    await database.query("ROLLBACK PREPARED 'left over'");
    expect((await storeStatus(config)).findings).toEqual([]);
  });
});

test("a session of another database, and one that is young, hold nothing back", async () => {
  await withServer({}, async ({ config, database }) => {
    const other = new URL(database.url);
    other.pathname = "/postgres";
    const elsewhere = await session(other.href);
    await elsewhere.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    await database.query(BURN);
    const young = await session(database.url);
    await young.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    expect((await storeStatus(config)).findings).toEqual([]);
  });
});

test("a slot that a standby left behind is named, and so is a standby with a long query", async () => {
  const warning = horizonWarning([
    { kind: "standby", name: "12", age: 20_000 },
    { kind: "slot", name: "old", age: 30_000 },
  ]);
  expect(warning).toContain("pg_drop_replication_slot('old')");
  expect(warning).toContain("hot_standby_feedback");
  // The same words whoever is the oldest, or the alarm would be told anew.
  const turned = horizonWarning([
    { kind: "slot", name: "old", age: 60_000 },
    { kind: "standby", name: "12", age: 50_000 },
  ]);
  expect(turned).toBe(warning);
});

test("a server looks once a minute, and forgets what is over", async () => {
  let now = 0;
  let looks = 0;
  const holders = [{ kind: "slot", name: "s", age: 20_000 } as const];
  const watch = new HorizonWatch(
    async () => {
      looks++;
      if (looks === 3) throw new Error("the store is away");
      return looks === 1 ? holders : [];
    },
    () => now,
  );
  const seen = async (atMs: number): Promise<boolean> => {
    now = atMs;
    const { warning } = watch;
    // A look ends in the turns that follow.
    await new Promise((resolve) => setImmediate(resolve));
    return warning !== "";
  };
  expect(await seen(0)).toBe(false);
  expect(await seen(59_999)).toBe(true);
  expect(looks).toBe(1);
  await seen(60_000);
  expect(await seen(60_001)).toBe(false);
  await seen(120_000);
  expect([await seen(120_001), looks]).toEqual([false, 3]);
});

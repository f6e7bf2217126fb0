// Sessions that have lost what idmint sets in them, as behind a connection pooler that lends them for one transaction.
import { createTestDatabase, TestPooler } from "@idmint/testkit/postgres";
import {
  assertDisjoint,
  granted,
  redisSequenceOf,
  raiseOf,
  settingsOf,
  wish,
} from "@idmint/testkit/store-suite";
import { expect, onTestFinished, test } from "vitest";
import { Connections } from "../../../../src/store/postgres/connections.ts";
import { grant } from "../../../../src/store/postgres/grant.ts";
import { STORE_SCHEMA } from "../../../../src/store/postgres/migrate.ts";
import { raise } from "../../../../src/store/postgres/raise.ts";
import { setTagState } from "../../../../src/store/postgres/tags.ts";
import {
  migrateStore,
  openStore,
  type PostgresConfig,
  storeStatus,
} from "../../../../src/store/open-store.ts";
import { type PostgresHarness, postgresHarness } from "../../harness.ts";

/** A database whose own defaults are unsafe, and one session of idmint's in it that has lost its settings. */
async function withLostSession(
  setting: string,
  work: (lost: Connections, harness: PostgresHarness) => Promise<void>,
): Promise<void> {
  const harness = await postgresHarness();
  const { config, database } = harness;
  const store = await openStore(config);
  await store.createTag(settingsOf("t"));
  await store.createTag(redisSequenceOf("r"));
  await store.close();
  await database.query(`ALTER DATABASE "${database.name}" SET ${setting}`);
  const lost = new Connections({ ...config, poolSize: 1 });
  try {
    await lost.run(async (session) => {
      await session.query({ text: "RESET ALL" });
    });
    await work(lost, harness);
  } finally {
    await lost.close();
    await harness.remove();
  }
}

for (const [name, value] of [
  ["synchronous_commit", "off"],
  ["synchronous_commit", "local"],
  ["synchronous_commit", "remote_write"],
  ["client_min_messages", "error"],
] as const) {
  test(`a session that has ${name} = ${value} grants and raises nothing, and names it`, async () => {
    await withLostSession(`${name} = ${value}`, async (lost, { database }) => {
      const refusal = {
        reason: "STORE_UNSAFE",
        metadata: { settings: name },
        message: expect.stringContaining("pooler") as string,
      };
      await expect(grant(lost, [wish("t")])).rejects.toMatchObject(refusal);
      await expect(raise(lost, raiseOf("r", { by: 1n }))).rejects.toMatchObject(refusal);
      const rows = await database.query("SELECT DISTINCT floor::int FROM idmint.tag");
      expect(rows).toEqual([{ floor: 0 }]);
    });
  });
}

test("a change by an operator waits for the disk, and hears warnings, whatever its session has lost", async () => {
  await withLostSession("synchronous_commit = off", async (lost, { database }) => {
    await database.query(`ALTER DATABASE "${database.name}" SET client_min_messages = error;
      CREATE TABLE public.seen (value text);
      CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.seen VALUES (concat_ws(' ', current_setting('synchronous_commit'), current_setting('client_min_messages')));
        RETURN NEW; END $$;
      CREATE TRIGGER note AFTER UPDATE ON idmint.tag FOR EACH ROW EXECUTE FUNCTION public.note()`);
    await setTagState(lost, "t", "PAUSED", undefined);
    expect(await database.query("SELECT value FROM public.seen")).toEqual([
      { value: "on warning" },
    ]);
  });
});

test("through a pooler in session mode a store is as without one", async () => {
  const harness = await postgresHarness();
  await using pooler = await TestPooler.start(harness.config.url, "session");
  const store = await openStore({ ...harness.config, url: pooler.url });
  await store.createTag(settingsOf("t"));
  const grants = await Promise.all(Array.from({ length: 40 }, async () => granted(store, "t")));
  assertDisjoint(grants.map(({ base, count }) => ({ from: base, to: base + BigInt(count) - 1n })));
  await store.close();
  await harness.remove();
});

test("through a pooler in transaction mode nothing is granted that is not on disk, and errors name the pooler", async () => {
  const harness = await postgresHarness();
  const { config, database } = harness;
  const direct = await openStore(config);
  await direct.createTag(settingsOf("t"));
  await direct.close();
  await database.query(`ALTER DATABASE "${database.name}" SET synchronous_commit = off;
    CREATE TABLE public.seen (value text);
    CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO public.seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
    CREATE TRIGGER note AFTER UPDATE ON idmint.tag FOR EACH ROW EXECUTE FUNCTION public.note()`);
  await using pooler = await TestPooler.start(config.url, "transaction", "default_pool_size = 1");
  const stores = [1, 2].map(async () => openStore({ ...config, url: pooler.url }));
  const errors: unknown[] = [];
  const ranges: { from: bigint; to: bigint }[] = [];
  const works = stores.map(async (opening) => {
    const store = await opening;
    for (let round = 0; round < 50; round++) {
      try {
        const { base, count } = await granted(store, "t");
        ranges.push({ from: base, to: base + BigInt(count) - 1n });
      } catch (error) {
        errors.push(error);
      }
    }
    await store.close();
  });
  await Promise.all(works);
  assertDisjoint(ranges);
  const seen = await database.query("SELECT DISTINCT value FROM public.seen");
  expect(seen.filter(({ value }) => value !== "on")).toEqual([]);
  for (const error of errors) {
    expect(error).toMatchObject({
      reason: "STORE_UNSAFE",
      message: expect.stringContaining("pooler") as string,
    });
  }
  // Both prepare the same statement in the one session that there is.
  expect(errors.length).toBeGreaterThan(0);
  await harness.remove();
});

const settings = "default_pool_size = 3\nmax_client_conn = 100";

test("migrations that run at once through a pooler in transaction mode all succeed, and leave no lock", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.close());
  const config: PostgresConfig = {
    backend: "postgres",
    url: database.url,
    allowUnsafe: ["fsync", "full_page_writes"],
  };
  await using pooler = await TestPooler.start(config.url, "transaction", settings);
  const through = { ...config, url: pooler.url };
  const reports = await Promise.all(
    Array.from({ length: 6 }, async () => migrateStore(through, { dryRun: false })),
  );
  // Each step was applied by one of them.
  const applied = reports.flatMap(({ steps }) => steps.map(({ number }) => number));
  expect(applied.toSorted((a, b) => a - b)).toEqual(
    STORE_SCHEMA.migrations.map(({ number }) => number),
  );
  expect(reports.filter(({ created }) => created).length).toBeGreaterThan(0);
  for (const { warnings } of reports) expect(warnings?.join()).toContain("pool_mode = session");
  const locks = `SELECT count(*)::int AS count FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND d.datname = current_database()`;
  expect(await database.query(locks)).toEqual([{ count: 0 }]);
  expect(await migrateStore(config, { dryRun: false })).toMatchObject({ steps: [], warnings: [] });
  const { findings, schemaIllness } = await storeStatus(config);
  expect([findings, schemaIllness]).toEqual([[], ""]);
});

test.each([
  ["transaction", "default_pool_size = 1", ["pooler"]],
  ["transaction", settings, ["pooler"]],
  ["session", settings, []],
] as const)(
  "a status through a pooler in %s mode, with %s, finds %j",
  async (mode, more, found) => {
    const harness = await postgresHarness();
    onTestFinished(() => harness.remove());
    await using pooler = await TestPooler.start(harness.config.url, mode, more);
    const { findings } = await storeStatus({ ...harness.config, url: pooler.url, poolSize: 1 });
    expect(findings?.map(({ name }) => name)).toEqual(found);
  },
);

// A schema that changes while servers run: locks are short, and servers of the release before go on.
import { setTimeout as pause } from "node:timers/promises";
import type { Store } from "@idmint/core/server";
import {
  granted,
  nodeRenewalOf,
  reasonOf,
  settingsOf,
  snowflakeOf,
} from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { migrateSchema, STORE_SCHEMA } from "../../../src/store/postgres/migrate.ts";
import { openStore, storeStatus } from "../../../src/store/open-store.ts";
import type { Migration } from "../../../src/store/shared/migration.ts";
import { type PostgresHarness, postgresHarness } from "../harness.ts";

/** The schema of this release, and that of the next one. */
const NOW = STORE_SCHEMA.migrations.length;
const TABLES = [
  "tag",
  "audit",
  "ledger",
  "migration",
  "node",
  "period",
  "redis_mark",
  "store",
  "token",
  "worker",
];
/**
 * What a release may do: it adds a column to every table. Each step changes one table, since a step that holds one and waits
 * for another would wait for servers that wait for it.
 */
const STEPS: readonly Migration[] = TABLES.map((table, at) => ({
  number: NOW + 1 + at,
  name: `of a newer release, for ${table}`,
  worksFrom: 1,
  sql: `ALTER TABLE idmint.${table} ADD COLUMN newer bigint DEFAULT 7`,
}));
const [NEXT] = STEPS as readonly [Migration];
const LATER = NEXT.number;
const LAST = NOW + STEPS.length;

async function migrateTo({ config }: PostgresHarness, ...steps: readonly Migration[]) {
  const migrations = [...STORE_SCHEMA.migrations, ...steps];
  return migrateSchema(config, { ...STORE_SCHEMA, migrations }, { dryRun: false });
}

/** Everything that a server does with its store, again and again; answers what it was told. */
async function useOnce(store: Store, at: number): Promise<unknown> {
  const since = { since: 0n, watched: [{ tag: "t", version: 0n }], limit: 10, nodes: true };
  const [, , changes] = await Promise.all([
    granted(store, "t"),
    store.getTags(["t"]),
    store.changes({ ...since, renewal: nodeRenewalOf(`n${at % 4}`) }),
    store.listTags({ afterName: "", prefix: "", showDeleted: true, limit: 10 }),
    store.listWorkers({ tag: "s", after: undefined, limit: 10 }),
    store.updateTag("t", { description: `change ${at}` }, undefined),
    store.readTokens(undefined),
    store.listAudit({ kind: "change", before: undefined, sinceMs: 0, limit: 1 }),
    store.exchangeMarks([{ tag: "r", generation: 1n, mark: BigInt(at) }], []),
  ]);
  return changes;
}

test("a store goes on in the hands of older servers while it is migrated, and keeps what they do not know of", async () => {
  const harness = await postgresHarness({ timeoutMs: 10_000 });
  const stores = await Promise.all([harness.open(), harness.open()]);
  const [store] = stores;
  await store.createTag(settingsOf("t"));
  await store.createTag(snowflakeOf("s", { place: { registry: "STORE" } }));
  const over = new AbortController();
  const round = { count: 0 };
  const using = stores.map(async (each) => {
    while (!over.signal.aborted) await useOnce(each, round.count++);
  });
  await pause(300);
  expect(await migrateTo(harness, ...STEPS)).toMatchObject({ from: NOW, to: LAST });
  const until = round.count + 20;
  while (round.count < until) await pause(10);
  over.abort();
  await Promise.all(using);
  const kept = "SELECT count(*)::int AS kept FROM idmint.tag WHERE newer = 7";
  expect(await harness.database.query(kept)).toEqual([{ kept: 2 }]);
  // One that starts now works too, and finds nothing to migrate.
  const later = await openStore(harness.config);
  expect(later.schemaVersion).toBe(LAST);
  await granted(later, "t");
  expect(await migrateTo(harness)).toMatchObject({ from: LAST, to: LAST, steps: [] });
  expect((await storeStatus(harness.config)).schemaIllness).toBe("");
  await Promise.all([...stores, later].map((each) => each.close()));
  await harness.remove();
});

test("a migration that does not get its locks holds up servers for moments only, and then says so", async () => {
  const harness = await postgresHarness({ timeoutMs: 10_000 });
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  // Somebody reads for a long time; whoever waits for the table behind it would hold up all grants.
  const reader = harness.database.query(
    "BEGIN; SELECT FROM idmint.tag LIMIT 1; SELECT pg_sleep(60); COMMIT",
  );
  reader.catch(() => undefined);
  await pause(200);
  const over = new AbortController();
  const migrating = errorOf(migrateTo(harness, NEXT)).finally(() => over.abort());
  let slowestMs = 0;
  while (!over.signal.aborted) {
    const start = performance.now();
    await granted(store, "t");
    slowestMs = Math.max(slowestMs, performance.now() - start);
    await pause(5);
  }
  const said = new RegExp(
    `step ${LATER} of the schema \\(of a newer release, for tag\\) was not applied.*pg_stat_activity`,
    "u",
  );
  expect(await migrating).toMatchObject({
    reason: "STORE_UNAVAILABLE",
    message: expect.stringMatching(said) as string,
  });
  // Ten times what one try waits: a machine that is busy takes its time, and one that queues takes all of it.
  expect(slowestMs).toBeLessThan(5_000);
  expect((await storeStatus(harness.config)).schemaVersion).toBe(NOW);
  await harness.database.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()",
  );
  await reader.catch(() => undefined);
  expect(await migrateTo(harness, NEXT)).toMatchObject({ from: NOW, to: LATER });
  await store.close();
  await harness.remove();
});

test("a schema that older servers cannot work with is refused by them", async () => {
  const harness = await postgresHarness();
  await migrateTo(harness, { ...NEXT, worksFrom: LATER });
  await expect(openStore(harness.config)).rejects.toMatchObject({
    reason: "SCHEMA_MISMATCH",
    message: expect.stringContaining(`needs servers of schema ${LATER} or later`) as string,
  });
  expect(await reasonOf(migrateTo(harness))).toBe("SCHEMA_MISMATCH");
  await harness.remove();
});

async function errorOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

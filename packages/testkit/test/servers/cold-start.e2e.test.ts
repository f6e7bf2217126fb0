// Leaf answers the first calls of a new tag with errors, and so do calls that outrun a small segment.
import { expect, test } from "vitest";
import { ownPostgres, sqliteFile, startFleet } from "../fleet-support.ts";

const CALLS = 1_000;
const MAX_STATEMENTS = 110;

async function firstCalls(storeUrl: string): Promise<bigint> {
  const fleet = await startFleet({ servers: 1, storeUrl });
  const { api } = fleet.first;
  await api.createTag({ name: "orders", min: 10 });
  const start = performance.now();
  const ids = await Promise.all(Array.from({ length: CALLS }, () => api.id("orders")));
  console.log(`${CALLS} first calls took ${Math.round(performance.now() - start)} ms`);
  expect(new Set(ids).size).toBe(CALLS);
  const { version, floor } = await api.getTag("orders");
  console.log(`grants: ${version}, floor ${floor}`);
  return version;
}

test("1,000 concurrent first calls on a new tag of min 10 all get ids, in at most 110 grants of SQLite", async () => {
  const grants = await firstCalls(`sqlite:${await sqliteFile()}`);
  expect(grants).toBeGreaterThan(0n);
  expect(grants).toBeLessThanOrEqual(BigInt(MAX_STATEMENTS));
});

test("… and in at most 110 transactions of PostgreSQL, all others included", async () => {
  const postgres = await ownPostgres();
  const database = await postgres.createDatabase();
  const transactions = async (): Promise<number> => {
    const sql = `SELECT xact_commit + xact_rollback AS count FROM pg_stat_database WHERE datname = '${database.name}'`;
    // Asked in another database, so that asking does not count.
    const [row] = await postgres.query(`SELECT pg_stat_force_next_flush(); ${sql}`);
    return Number(row?.["count"]);
  };
  const grants = await firstCalls(database.url);
  expect(grants).toBeLessThanOrEqual(BigInt(MAX_STATEMENTS));
  const count = await transactions();
  console.log(`transactions since the database was made, migration and polls included: ${count}`);
  expect(count).toBeGreaterThan(0);
  expect(count).toBeLessThanOrEqual(MAX_STATEMENTS);
});

// PostgreSQL databases that are used again. To make one, migrate it and drop it takes ten times as long as a case of a suite.
import type { TestDatabase } from "@idmint/testkit/postgres";
import type { StoreHarness } from "@idmint/testkit/store-suite";
import { afterAll } from "vitest";

interface Databases extends StoreHarness {
  readonly databases: readonly TestDatabase[];
}

/**
 * Stores for the cases of a suite, which use the port alone: each case gets the databases of the one before, emptied.
 *
 * INVARIANT: what a case finds is a store of its own without any rows, as `make` left the first one, and nobody of the case
 * before writes to it.
 */
export function emptied(make: () => Promise<Databases>): () => Promise<StoreHarness> {
  const idle: { readonly harness: Databases; readonly emptyAll: () => Promise<unknown> }[] = [];
  afterAll(async () => {
    for (const { harness } of idle) await harness.remove();
  });
  const fresh = async () => {
    const harness = await make();
    const first = new Map<TestDatabase, ReadonlyMap<string, string>>();
    for (const database of harness.databases) first.set(database, await firstRows(database));
    const emptyAll = async () =>
      Promise.all([...first].map(([database, rows]) => empty(database, rows)));
    return { harness, emptyAll };
  };
  return async () => {
    const left = idle.pop();
    await left?.emptyAll();
    const its = left ?? (await fresh());
    const remove = async (): Promise<void> => void idle.push(its);
    return { ...its.harness, remove };
  };
}

/** The rows that a store begins with, by their tables, as JSON. */
async function firstRows(database: TestDatabase): Promise<ReadonlyMap<string, string>> {
  const tables = await database.query(`SELECT tablename AS name FROM pg_tables
    WHERE schemaname = 'idmint' AND tablename <> 'migration'`);
  const rows = new Map<string, string>();
  for (const { name } of tables) {
    const [found] = await database.query(
      `SELECT coalesce(jsonb_agg(to_jsonb(t)), '[]')::text AS rows FROM idmint."${String(name)}" AS t`,
    );
    rows.set(String(name), String(found?.["rows"]));
  }
  return rows;
}

/** `first`: what firstRows said of it. */
async function empty(database: TestDatabase, first: ReadonlyMap<string, string>): Promise<void> {
  const renewed = `jsonb_build_object('store_id', gen_random_uuid(), 'incarnation', gen_random_uuid(),
    'written_by', pg_current_xact_id()::xid::text)`;
  const inserts = [...first].map(([table, rows]) =>
    rows === "[]"
      ? ""
      : `INSERT INTO idmint."${table}" SELECT t.* FROM jsonb_array_elements($rows$${rows}$rows$) AS row,
          jsonb_populate_record(NULL::idmint."${table}", row || ${renewed}) AS t;`,
  );
  const tables = [...first.keys()].map((table) => `idmint."${table}"`);
  // A statement goes on after its connection was given up, so first of all nobody else is left.
  await database.query(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
      WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid();
    TRUNCATE ${tables.join(", ")}; ${inserts.join("")}`);
}

// PostgreSQL databases that are used again. To make one, migrate it and drop it takes ten times as long as a case of a suite.
import { type TestDatabase, TestSession } from "@idmint/testkit/postgres";
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
  const sessions: TestSession[] = [];
  afterAll(async () => {
    for (const session of sessions) await session.close();
    for (const { harness } of idle) await harness.remove();
  });
  const fresh = async () => {
    const harness = await make();
    const first = new Map<TestSession, ReadonlyMap<string, string>>();
    for (const { url } of harness.databases) {
      const session = await TestSession.connect(url);
      sessions.push(session);
      first.set(session, await firstRows(session));
    }
    const emptyAll = async () =>
      Promise.all([...first].map(([session, rows]) => empty(session, rows)));
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
async function firstRows(session: TestSession): Promise<ReadonlyMap<string, string>> {
  const tables = await session.query(`SELECT tablename AS name FROM pg_tables
    WHERE schemaname = 'idmint' AND tablename <> 'migration'`);
  const rows = new Map<string, string>();
  for (const { name } of tables) {
    const [found] = await session.query(
      `SELECT coalesce(jsonb_agg(to_jsonb(t)), '[]')::text AS rows FROM idmint."${String(name)}" AS t`,
    );
    rows.set(String(name), String(found?.["rows"]));
  }
  return rows;
}

/** `first`: what firstRows said of it. */
async function empty(session: TestSession, first: ReadonlyMap<string, string>): Promise<void> {
  const renewed = `jsonb_build_object('store_id', gen_random_uuid(), 'incarnation', gen_random_uuid(),
    'written_by', pg_current_xact_id()::xid::text)`;
  const inserts = [...first].map(([table, rows]) =>
    rows === "[]"
      ? ""
      : `INSERT INTO idmint."${table}" SELECT t.* FROM jsonb_array_elements($rows$${rows}$rows$) AS row,
          jsonb_populate_record(NULL::idmint."${table}", row || ${renewed}) AS t;`,
  );
  // TRUNCATE makes new files for each table and index, which takes five times as long.
  const deletes = [...first.keys()].map((table) => `DELETE FROM idmint."${table}";`);
  // A statement goes on after its connection was given up, so first of all nobody else is left.
  await session.query(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
      WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid();
    ${deletes.join("")} ${inserts.join("")}`);
}

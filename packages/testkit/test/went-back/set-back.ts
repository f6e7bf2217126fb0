// How databases are copied and put back by hand, while servers use them.
import { DatabaseSync } from "node:sqlite";
import type { TestDatabase, TestPostgres } from "../../src/postgres.ts";

/** A whole copy of the database in one file, made while servers use it. */
export function vacuumInto(file: string, backup: string): void {
  const database = new DatabaseSync(file);
  database.prepare("VACUUM INTO ?").run(backup);
  database.close();
}

/** What pg_dump writes: the rows of all tables, as text that any version reads. */
export async function dump(database: TestDatabase): Promise<ReadonlyMap<string, string>> {
  const tables = new Map<string, string>();
  const named = await database.query(
    "SELECT tablename FROM pg_tables WHERE schemaname = 'idmint' ORDER BY tablename",
  );
  for (const { tablename } of named) {
    const table = String(tablename);
    const [row] = await database.query(
      `SELECT coalesce(json_agg(to_json(t)), '[]')::text AS rows FROM idmint.${table} AS t`,
    );
    tables.set(table, String(row?.["rows"]));
  }
  return tables;
}

/** What loading a dump does: other transactions write the same rows, and rows of the ledger are numbered on behind them. */
export function load(tables: ReadonlyMap<string, string>): string {
  const statements = [...tables].map(
    ([table, rows]) =>
      `INSERT INTO idmint.${table} OVERRIDING SYSTEM VALUE
        SELECT * FROM json_populate_recordset(null::idmint.${table}, $dump$${rows}$dump$)`,
  );
  if (tables.has("ledger")) {
    statements.push(`SELECT setval(pg_get_serial_sequence('idmint.ledger', 'position'),
      (SELECT coalesce(max(position), 0) + 1 FROM idmint.ledger), false)`);
  }
  return statements.join(";\n");
}

/** Runs a statement that wants nobody connected to a database. */
export async function unused(postgres: TestPostgres, name: string, sql: string): Promise<void> {
  const allow = (isAllowed: boolean): string =>
    `UPDATE pg_database SET datallowconn = ${isAllowed} WHERE datname LIKE '${name}%'`;
  await postgres.query(allow(false));
  await postgres.query(
    `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${name}'`,
  );
  await postgres.query(sql);
  await postgres.query(allow(true));
}

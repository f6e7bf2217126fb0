// Very many tags by hand, in the store itself: copies of one, as if each had been made by a call of its own, with no server
// beside it; and floors set back, which shows that the store went back.
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import type { EtcdGateway } from "../../src/etcd/gateway.ts";

/** Which tag is copied: `${prefix}0`. Its copies are `${prefix}1` to `${prefix}${count}`. */
export interface Copies {
  readonly prefix: string;
  readonly count: number;
}

export async function copyInPostgres(url: string, { prefix, count }: Copies): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("BEGIN");
    await client.query(
      `INSERT INTO idmint.tag SELECT (jsonb_populate_record(t, jsonb_build_object('name', $1::text || n,
        'revision', t.revision + n, 'written_by', pg_current_xact_id()::xid::text))).*
      FROM idmint.tag AS t, generate_series(1, $2::integer) AS n WHERE t.name = $1 || '0'`,
      [prefix, count],
    );
    await client.query(
      "UPDATE idmint.store SET revision = revision + $1, written_by = pg_current_xact_id()::xid",
      [count],
    );
    await client.query("COMMIT");
    await client.query("VACUUM ANALYZE idmint.tag");
  } finally {
    await client.end();
  }
}

export async function setBackInPostgres(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("UPDATE idmint.tag SET floor = 0");
    // Autovacuum would have done so between two accepts.
    await client.query("VACUUM idmint.tag, idmint.claim");
  } finally {
    await client.end();
  }
}

export function copyInSqlite(file: string, { prefix, count }: Copies): void {
  const database = new DatabaseSync(file);
  try {
    const columns = database.prepare("SELECT name FROM pragma_table_info('tag')").all();
    const names = columns.map(({ name }) => String(name));
    const values: Readonly<Record<string, string>> = { name: "?1 || n", revision: "revision + n" };
    database.exec("BEGIN IMMEDIATE");
    database
      .prepare(
        `WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?2)
        INSERT INTO tag (${names.join(", ")}) SELECT ${names.map((name) => values[name] ?? name).join(", ")}
        FROM tag, number WHERE name = ?1 || '0'`,
      )
      .run(prefix, count);
    // What the rows add up to, by which a store tells that another hand changed them.
    database.exec(
      `UPDATE store SET revision = (SELECT max(revision) FROM tag),
        progress = (SELECT sum(version + revision) FROM tag) + issuing_revision, floors = (SELECT sum(floor) FROM tag)`,
    );
    database.exec("COMMIT");
  } finally {
    database.close();
  }
}

export function setBackInSqlite(file: string): void {
  const database = new DatabaseSync(file, { timeout: 10_000 });
  try {
    database.exec("UPDATE tag SET floor = 0");
  } finally {
    database.close();
  }
}

export async function copyInEtcd(
  gateway: EtcdGateway,
  root: string,
  { prefix, count }: Copies,
): Promise<void> {
  const [made] = await gateway.under(`${root}tag/${prefix}0`);
  if (made === undefined) throw new Error(`there is no tag ${prefix}0`);
  const row = JSON.parse(made.value) as { readonly revision: string };
  const first = Number(row.revision);
  const keys = Array.from({ length: count }, (_, at) => {
    const [name, revision] = [`${prefix}${at + 1}`, String(first + at + 1)];
    const value = JSON.stringify({ ...row, name, revision });
    const change = { key: `${root}change/${revision.padStart(REVISION_DIGITS, "0")}`, value: name };
    return [{ key: `${root}tag/${name}`, value }, change];
  });
  await gateway.change(keys.flat());
  await gateway.put(`${root}revision`, String(first + count));
}

export async function setBackInEtcd(
  gateway: EtcdGateway,
  root: string,
  prefix: string,
): Promise<void> {
  // All of them in one answer would take longer than the gateway is waited for.
  for (let digit = 0; digit < 10; digit++) {
    const tags = await gateway.under(`${root}tag/${prefix}${digit}`);
    await gateway.change(
      tags.map(({ key, value }) => {
        const row = { ...(JSON.parse(value) as Record<string, string>), floor: "0" };
        return { key, value: JSON.stringify(row) };
      }),
    );
  }
}

const REVISION_DIGITS = 19;

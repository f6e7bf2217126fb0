import {
  type LedgerFindings,
  type LedgerLimits,
  type LedgerPage,
  type LedgerPlace,
  type LedgerRow,
  MAX_FORGOTTEN_ROWS,
  MAX_FOUND,
} from "@idmint/core/server";
import {
  LEDGER_COLUMNS,
  ledgerFromRow,
  type LedgerTableRow,
  MAX_WIDTH,
  valuesOfLedger,
} from "../../shared/records/ledger-row.ts";
import type { Connections, Session } from "../connections.ts";

const WRITE = {
  name: "idmint-ledger-1",
  text: `INSERT INTO idmint.ledger (${LEDGER_COLUMNS})
  SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::text[], $9::text[], $10::bigint[], $11::text[], $12::text[], $13::bigint[])`,
};
/**
 * Lets go of the oldest rows, which are too old or too many: $1 of them stay, for $2 ms. Rows that another server lets go of
 * at this moment are left to it.
 */
const FORGET = {
  name: "idmint-ledger-forget-1",
  text: `WITH oldest AS MATERIALIZED (
  SELECT position, stored_at_ms FROM idmint.ledger ORDER BY position LIMIT ${MAX_FORGOTTEN_ROWS}
), bound AS MATERIALIZED (
  SELECT max(o.position) AS position FROM oldest AS o
  WHERE o.position <= (SELECT max(position) FROM idmint.ledger) - $1::bigint
    OR o.stored_at_ms < floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - $2::bigint
), locked AS MATERIALIZED (
  SELECT l.position, l.tag, l.version FROM idmint.ledger AS l JOIN oldest AS o ON o.position = l.position
  WHERE o.position <= (SELECT position FROM bound) ORDER BY l.position FOR UPDATE OF l SKIP LOCKED
), remembered AS (
  INSERT INTO idmint.ledger_forgotten AS f (tag, version)
  SELECT tag, max(version) FROM locked GROUP BY tag ORDER BY tag
  ON CONFLICT (tag) DO UPDATE SET version = greatest(f.version, excluded.version)
)
DELETE FROM idmint.ledger AS l USING locked AS k WHERE l.position = k.position`,
};
const FORGET_ALL = `INSERT INTO idmint.ledger_forgotten AS f (tag, version)
  SELECT name, version FROM idmint.tag ORDER BY name
  ON CONFLICT (tag) DO UPDATE SET version = greatest(f.version, excluded.version)`;
const FIND = {
  name: "idmint-ledger-find-1",
  text: `SELECT l.* FROM generate_series(0, ${MAX_WIDTH}) AS n CROSS JOIN LATERAL (
    SELECT position, ${LEDGER_COLUMNS} FROM idmint.ledger
    WHERE tag = $1 AND width = n AND first_id <= $2::bigint AND last_id >= $2::bigint
      AND first_id > CASE WHEN n = ${MAX_WIDTH} THEN -1 ELSE $2::bigint - (1::bigint << n) END
  ) AS l ORDER BY l.version DESC, l.sequence DESC LIMIT ${MAX_FOUND}`,
};
const FORGOTTEN = {
  name: "idmint-ledger-forgotten-1",
  text: "SELECT version FROM idmint.ledger_forgotten WHERE tag = $1",
};
const LIST = {
  name: "idmint-ledger-list-1",
  text: `SELECT position, ${LEDGER_COLUMNS} FROM idmint.ledger
  WHERE position > $1::bigint AND tag = $2 ORDER BY position LIMIT $3::int`,
};

export async function recordLedger(
  connections: Connections,
  rows: readonly LedgerRow[],
  { keepForMs, maxRows }: LedgerLimits,
): Promise<void> {
  const all = rows.map(valuesOfLedger);
  const columns = LEDGER_COLUMNS.split(", ").map((_, at) =>
    all.map((values) => String(values[at])),
  );
  // In a transaction, which has what a commit rests on whatever became of the session's settings.
  await connections.run((session) =>
    session.transaction(async () => {
      const values = columns.map((column) => column.map((text) => session.storable(text)));
      await session.query({ ...WRITE, values });
      await session.query({ ...FORGET, values: [String(maxRows), String(Math.floor(keepForMs))] });
    }),
  );
}

/** Nothing of what the ledger has of any tag is known to be the newest any more. */
export async function forgetLedger(session: Session): Promise<void> {
  await session.query({ text: FORGET_ALL });
}

/** Rows first: what is let go of between the two is forgotten then. */
export async function findInLedger(
  connections: Connections,
  { tag, id }: { readonly tag: string; readonly id: bigint },
): Promise<LedgerFindings> {
  return connections.run(async (session) => {
    const rows = await session.query<LedgerTableRow>({ ...FIND, values: [tag, String(id)] });
    const [row] = await session.query<{ version: string }>({ ...FORGOTTEN, values: [tag] });
    return { rows: rows.map(ledgerFromRow), forgotten: BigInt(row?.version ?? 0) };
  });
}

export async function listLedger(
  connections: Connections,
  { tag, after, limit }: { tag: string; after: LedgerPlace | undefined; limit: number },
): Promise<LedgerPage> {
  const values = [String(after?.position ?? 0n), tag, limit];
  const found = await connections.run((session) =>
    session.query<LedgerTableRow>({ ...LIST, values }),
  );
  const rows = found.map(ledgerFromRow);
  const last = rows.at(-1);
  const isMore = rows.length === limit && last !== undefined;
  return { rows, next: isMore ? { database: "", position: last.position } : undefined };
}

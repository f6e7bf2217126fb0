import { MARKED, WENT_BACK } from "../pins/own-row-state.ts";

/**
 * Which history of which database this is: the cluster's identifier, its timeline (another one after every promotion and
 * every recovery to a point in time) and the database (a copy within the cluster has another oid).
 *
 * pg_control_checkpoint() would answer the timeline too, but lags behind a promotion.
 */
export const PRESENT_IDENTITY = `(SELECT system_identifier FROM pg_control_system())
  || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
  || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())`;

/**
 * Whether the row `store` (as `s`) is the one that was accepted, in words; an empty text when it is.
 *
 * INVARIANT: every statement of ours that writes a row of `store` or `tag` sets its written_by to its own transaction,
 * which is what PostgreSQL itself records in xmin. A row that was loaded from a dump, by COPY, by a logical replica or by
 * hand has the xmin of that transaction and the written_by of another one. Freezing keeps xmin readable, and so do
 * VACUUM FULL and CLUSTER. It is compared within one row version, so a change under way does no harm. Statements of ours
 * run in no subtransaction, which would have a number of its own; next_max_normal_sequence, which others call, may.
 */
const FENCED = `CASE
  WHEN s.identity LIKE '${WENT_BACK}%' AND s.xmin = s.written_by
    THEN '${MARKED}' || substr(s.identity, ${WENT_BACK.length + 1})
  WHEN s.identity <> ${PRESENT_IDENTITY}
    THEN 'the database is not the one that was accepted: it was failed over, restored or copied'
  WHEN s.xmin <> s.written_by
    THEN 'the store was loaded from a dump, changed by hand, or rewritten by an ALTER TABLE'
  ELSE '' END`;

/** SQL: whether the store grants, by its row alone. */
export const IS_GRANTING: string = `coalesce((SELECT ${FENCED} = '' FROM idmint.store AS s), false)`;

const STORE = "idmint.store";

export type IdentityTable = "idmint.store" | "idmint_ticket.database";

/** The column that names a store, or a ticket database, wherever it is and whatever becomes of it. */
const ID_COLUMNS: Readonly<Record<IdentityTable, string>> = {
  "idmint.store": "store_id",
  "idmint_ticket.database": "database_id",
};

/** Reads the id for a pin (hosts/belonging.ts). */
export function proveId(table: IdentityTable): string {
  return `SELECT ${ID_COLUMNS[table]} AS id FROM ${table}`;
}

/** Among the settings that are allowed by name, in what each statement is told: the id of the one store that may answer. */
export function onlyStore(id: string | undefined): string {
  return `store=${id ?? "*"}`;
}

/** What is wrong with a tag's row (as `t`): the same proof, for dumps of some tables only. */
export const TAG_IS_OURS = "t.xmin = t.written_by";

/**
 * Settings that are unsafe now, out of those that the operator (`allowed`, a text[]) does not take the risk of. Those of
 * the server may be changed while it runs, and those of the session vanish behind a connection pooler that lends sessions
 * for one transaction. So every statement looks for itself.
 *
 * store_id: another store answers than the one that the connection was proved to lead to, as behind a pooler that lends
 * sessions, or the store has another id now.
 *
 * client_min_messages: above `warning` nobody hears that a commit did not reach its standby, which makes its outcome
 * unknown (connections.ts). No operator is asked whether that may be: nobody needs it.
 */
function unsafe(allowed: string, table: IdentityTable): string {
  return `concat_ws(',',
  CASE WHEN current_setting('fsync') = 'off' AND 'fsync' <> ALL (${allowed}) THEN 'fsync' END,
  CASE WHEN current_setting('full_page_writes') = 'off' AND 'full_page_writes' <> ALL (${allowed})
    THEN 'full_page_writes' END,
  CASE WHEN current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
    AND 'synchronous_commit' <> ALL (${allowed}) THEN 'synchronous_commit' END,
  CASE WHEN current_setting('client_min_messages') IN ('error', 'fatal', 'panic')
    THEN 'client_min_messages' END,
  CASE WHEN '${onlyStore(undefined)}' <> ALL (${allowed}) AND 'store=' || s.${ID_COLUMNS[table]} <> ALL (${allowed})
    THEN 'store_id' END${table === STORE ? `, ${unsafeStandbys(allowed)}` : ""})`;
}

/**
 * Where the store names standbys (hosts/record.ts), commits have to wait for them, and whoever asks has to wait until they
 * confirm. A store that is another one than the accepted says why by itself.
 */
function unsafeStandbys(allowed: string): string {
  return `CASE WHEN s.standbys <> '' AND f.fenced = '' AND current_setting('synchronous_standby_names') = ''
    AND 'synchronous_standby_names' <> ALL (${allowed}) THEN 'synchronous_standby_names' END,
  CASE WHEN s.standbys <> '' AND f.fenced = '' AND 'standbys' <> ALL (${allowed})
    AND 'synchronous_standby_names' <> ALL (${allowed}) THEN 'standbys' END`;
}

/** A common table expression `proof (fenced, unsafe)` of one row; `allowed` is the place of a text[] parameter. */
export function proof(allowed: string, table: IdentityTable = STORE): string {
  return `proof AS MATERIALIZED (
  SELECT f.fenced, ${unsafe(allowed, table)} AS unsafe
  FROM ${table} AS s CROSS JOIN LATERAL (SELECT ${FENCED} AS fenced OFFSET 0) AS f
)`;
}

/** SQL: the store's clock, in milliseconds since 1970. */
export const NOW_MS = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/** The row `store`, beside a `proof` that has its fence: to look at the present identity costs more than all columns. */
export const STORE_COLUMNS: string = `s.store_id, s.incarnation, s.identity, s.revision, s.issuing_revision, s.stopped_at_ms,
  ${NOW_MS} AS now_ms`;

/** The row `store` with its fence, for reading and for locking. */
export const STORE_ROW: string = `${STORE_COLUMNS}, ${FENCED} AS fenced`;

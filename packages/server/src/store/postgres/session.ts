import { IdmintError } from "@idmint/core";
import { storeUnavailable } from "@idmint/core/server";
import type { ClientBase } from "pg";
import { type PostgresConfig, refuseUnsafe } from "../shared/config.ts";
import { schemaMismatch } from "../shared/failures.ts";

/**
 * Settings of each new connection, and what must be known of its server before anything is written through it.
 *
 * plan_cache_mode and jit: statements are planned once and run for microseconds. Compiling one to machine code, which
 * PostgreSQL does when it overestimates a table without statistics, takes longer than a time-out.
 *
 * synchronous_commit: stronger than `on` stays as it is. local and remote_write acknowledge commits that the standby has
 * not stored, off ones that not even this server has.
 */
const PREPARE = `SELECT
  current_setting('server_version_num')::int AS version,
  current_setting('server_encoding') AS encoding,
  pg_is_in_recovery() AS in_recovery,
  current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes,
  set_config('synchronous_commit', CASE
    WHEN $1::boolean OR current_setting('synchronous_commit') IN ('on', 'remote_apply')
      THEN current_setting('synchronous_commit')
    ELSE 'on' END, false) AS synchronous_commit,
  set_config('statement_timeout', $2, false),
  set_config('lock_timeout', $3, false),
  set_config('idle_in_transaction_session_timeout', $2, false),
  set_config('default_transaction_isolation', 'read committed', false),
  set_config('client_min_messages', 'warning', false),
  set_config('plan_cache_mode', 'force_generic_plan', false),
  set_config('jit', 'off', false),
  set_config('search_path', 'pg_catalog', false)`;

interface SettingsRow {
  readonly version: number;
  readonly encoding: string;
  readonly in_recovery: boolean;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
}

/**
 * Begins a transaction that has what its commit rests on, whatever became of the session's settings.
 *
 * INVARIANT: the commit reaches the disk, and a synchronous standby, unless an operator takes that risk by name; and this
 * side hears it when it does not.
 */
export function beginTransaction(allowUnsafe: readonly string[]): string {
  const commit = `SELECT set_config('synchronous_commit', CASE
    WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply')
      THEN current_setting('synchronous_commit') ELSE 'on' END, true)`;
  const begin = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL client_min_messages = warning";
  return allowUnsafe.includes("synchronous_commit") ? begin : `${begin}; ${commit}`;
}

/** Somebody else uses this session between our statements. */
export function sessionShared(): IdmintError {
  return new IdmintError(
    "STORE_UNSAFE",
    "PostgreSQL's session is shared with others, as behind a connection pooler in transaction mode; put it into session mode",
    { metadata: { settings: "pooler" } },
  );
}

const OLDEST_VERSION = 140_000;

/** Sets a new connection up, and answers its encoding; rejects when its server is not fit to keep floors. */
export async function prepareSession(
  client: ClientBase,
  config: PostgresConfig,
  timeoutMs: number,
): Promise<string> {
  const keepsCommit = config.allowUnsafe.includes("synchronous_commit");
  const values = [keepsCommit, ...timeLimits(timeoutMs)];
  const result = await client.query<SettingsRow>(PREPARE, values);
  const [row] = result.rows;
  if (row === undefined) throw storeUnavailable("PostgreSQL did not answer its settings");
  if (row.version < OLDEST_VERSION) {
    throw schemaMismatch(
      `PostgreSQL ${Math.floor(row.version / 10_000)} is too old; 14 is the oldest`,
    );
  }
  if (row.in_recovery) throw storeUnavailable("PostgreSQL is a standby, or still recovering");
  refuseUnsafe(unsafeSettings(row), config.allowUnsafe);
  return row.encoding;
}

/**
 * statement_timeout and lock_timeout of work that has so much time. The server gives up before this side destroys the socket, so
 * that locks do not stay with a lost connection; and a wait for a lock before that, which leaves the connection as good as before.
 */
export function timeLimits(timeoutMs: number): readonly [statement: string, lock: string] {
  return [`${Math.floor((timeoutMs * 5) / 6)}ms`, `${Math.floor((timeoutMs * 4) / 6)}ms`];
}

function unsafeSettings(row: SettingsRow): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  if (row.fsync === "off") found.set("fsync", "PostgreSQL runs with fsync=off");
  if (row.full_page_writes === "off") {
    found.set("full_page_writes", "PostgreSQL runs with full_page_writes=off");
  }
  if (!["on", "remote_apply"].includes(row.synchronous_commit)) {
    found.set("synchronous_commit", `synchronous_commit is ${row.synchronous_commit}`);
  }
  return found;
}

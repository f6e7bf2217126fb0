import type { IdmintError } from "@idmint/core";
import { DEFAULT_CONNECT_TIMEOUT_MS, type PostgresConfig } from "../../shared/config.ts";
import { addressOf } from "../../shared/host-urls.ts";
import { Connection, withPlainSslMode } from "./connection.ts";
import type { Look } from "./primary-state.ts";

const LOOK = `SELECT (SELECT system_identifier::text FROM pg_control_system()) AS cluster,
  pg_postmaster_start_time()::text AS started_at,
  NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off' AS is_primary`;

interface LookRow {
  readonly cluster: string;
  readonly started_at: string;
  readonly is_primary: boolean;
}

/** Asks one host what it is, on a connection of its own; both in the time that a connection may take. */
export async function lookAtHost(
  url: string,
  { connectTimeoutMs = DEFAULT_CONNECT_TIMEOUT_MS, applicationName = "idmint" }: PostgresConfig,
  failure: (error: unknown) => IdmintError,
): Promise<Look> {
  const address = addressOf(url);
  let client: Connection | undefined;
  const timer = setTimeout(() => client?.destroy(), connectTimeoutMs);
  try {
    // It reads the files that the URL names.
    client = new Connection({
      connectionString: withPlainSslMode(url),
      application_name: applicationName,
    });
    await client.connect();
    const { rows } = await client.query<LookRow>(LOOK);
    const [row] = rows;
    if (row === undefined) throw new Error("no answer");
    const { cluster, started_at: startedAt, is_primary: isPrimary } = row;
    return { type: "server", address, cluster, startedAt, isPrimary };
  } catch (error) {
    return { type: "silent", address, error: failure(error) };
  } finally {
    clearTimeout(timer);
    client?.destroy();
  }
}

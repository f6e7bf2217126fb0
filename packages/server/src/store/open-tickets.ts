import { invalidField } from "@idmint/core";
import { type AcceptOptions, checkPostgres } from "./shared/config.ts";
import type { StorePins } from "./pins/pin.ts";
import type { MigrationReport } from "./shared/migration.ts";
import type * as Backend from "./ticket/backend.ts";
import type { PostgresTicketDatabase, TicketConfig } from "./ticket/backend.ts";

export type { PostgresTicketDatabase, TicketConfig } from "./ticket/backend.ts";

/** Loaded where ticket databases are configured: the driver takes some of the memory of an idle server. */
const backend = (): Promise<typeof Backend> => import("./ticket/backend.ts");

/** The ticket databases of a configuration. Nothing is connected before it is used, so some may be away. Close them. */
export async function openTicketDatabases(
  configs: readonly TicketConfig[],
  pins?: StorePins,
): Promise<readonly PostgresTicketDatabase[]> {
  if (configs.length === 0) return [];
  for (const config of configs) checkPostgres(config);
  return (await backend()).openTicketDatabases(configs, pins);
}

/** Applies the steps of the schema that a ticket database lacks; with `dryRun` only names them. */
export async function migrateTicketDatabase(
  config: TicketConfig,
  options: { dryRun: boolean },
): Promise<MigrationReport> {
  checkPostgres(config);
  return (await backend()).migrate(config, options);
}

/** Rejects with INVALID_ARGUMENT when two of the names lead to one database. All have to answer. */
export async function assertTicketDatabasesApart(configs: readonly TicketConfig[]): Promise<void> {
  for (const config of configs) checkPostgres(config);
  await (await backend()).assertApart(configs);
}

/**
 * Accepts a ticket database that went back: its own slots go on `gap` ids (0 … 2^63 − 1) above everything that any of the
 * databases knows of. Rejects with STORE_UNAVAILABLE when one of the others does not answer. Answers how many slots of all
 * tags are its own.
 */
export async function acceptTicketDatabase(
  configs: readonly TicketConfig[],
  name: string,
  gap: bigint,
  { oldPrimaryIsStopped = false }: Pick<AcceptOptions, "oldPrimaryIsStopped"> = {},
): Promise<{ readonly slots: number }> {
  for (const config of configs) checkPostgres(config);
  const config = configs.find((each) => each.name === name);
  if (config === undefined) throw invalidField("name", `must be one of ticket.urls, got ${name}`);
  const others = configs.filter((each) => each !== config);
  const { accept, assertOldPrimaryStopped } = await backend();
  await assertOldPrimaryStopped(config, oldPrimaryIsStopped);
  return accept(config, others, gap);
}

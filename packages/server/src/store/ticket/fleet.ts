import type { MigrationReport } from "../shared/migration.ts";
import { checkConfig } from "../shared/config.ts";
import type { TicketConfig } from "./config.ts";
import { PostgresTicketDatabase } from "./database.ts";

export { accept } from "./accept.ts";
export { migrate } from "./migrate.ts";

/** The databases of a configuration. Nothing is connected before it is used: some may be away. */
export function openTicketDatabases(
  configs: readonly TicketConfig[],
): readonly PostgresTicketDatabase[] {
  for (const config of configs) checkConfig(config);
  return configs.map((config) => new PostgresTicketDatabase(config));
}

export type { MigrationReport, PostgresTicketDatabase, TicketConfig };

export { assertOldPrimaryStopped } from "../postgres/hosts/others.ts";
import { passingPins, type StorePins } from "../pins/pin.ts";
import type { TicketConfig } from "./config.ts";
import { PostgresTicketDatabase } from "./database.ts";

export { accept } from "./accept.ts";
export type { TicketConfig } from "./config.ts";
export type { PostgresTicketDatabase } from "./database.ts";
export { assertApart, migrate } from "./migrate.ts";

export function openTicketDatabases(
  configs: readonly TicketConfig[],
  pins: StorePins = passingPins(),
): readonly PostgresTicketDatabase[] {
  return configs.map(
    (config) => new PostgresTicketDatabase(config, pins.of(`ticket/${config.name}`)),
  );
}

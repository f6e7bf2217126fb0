import { randomBytes, randomUUID } from "node:crypto";
import { PRESENT_IDENTITY } from "../postgres/identity.ts";
import { migrateSchema } from "../postgres/migrate.ts";
import type { MigrationReport } from "../shared/migration.ts";
import { checkTicketName, type TicketConfig } from "./config.ts";
import { migrations } from "./migrations/index.ts";

/** The schema that ticket databases have, beside a store's or alone. */
export const SCHEMA = "idmint_ticket";
const SEED = `INSERT INTO ${SCHEMA}.database (database_id, incarnation, identity, written_by)
  VALUES ($1, $2, ${PRESENT_IDENTITY}, pg_current_xact_id()::xid)`;

/** Makes or migrates the schema of a ticket database. */
export async function migrate(
  config: TicketConfig,
  options: { dryRun: boolean },
): Promise<MigrationReport> {
  checkTicketName(config.name);
  const databaseId = `${config.name}.${randomBytes(6).toString("hex")}`;
  return migrateSchema(
    config,
    {
      name: SCHEMA,
      migrations,
      seed: (session) => session.query({ text: SEED, values: [databaseId, randomUUID()] }),
    },
    options,
  );
}

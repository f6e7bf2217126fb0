import { randomBytes, randomUUID } from "node:crypto";
import { PRESENT_IDENTITY } from "../postgres/identity.ts";
import { Connections } from "../postgres/connections.ts";
import { migrateSchema } from "../postgres/migrate.ts";
import type { MigrationReport } from "../shared/migration.ts";
import { checkTicketName, oneDatabaseTwice, type TicketConfig } from "./config.ts";
import { migrations } from "./migrations/index.ts";

/** The schema that ticket databases have, beside a store's or alone. */
export const SCHEMA = "idmint_ticket";
/** A migration waits longer than servers do, and so does what is asked before it. */
const TIMEOUT_MS = 60_000;
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

/**
 * Refuses two names of one database: both would be given slots, and it has one name. Its replicas have its identity too.
 */
export async function assertApart(configs: readonly TicketConfig[]): Promise<void> {
  const nameOf = new Map<string, string>();
  for (const { name, ...config } of configs) {
    const connections = new Connections({ ...config, timeoutMs: TIMEOUT_MS });
    try {
      const text = `SELECT ${PRESENT_IDENTITY} AS identity`;
      const [row] = await connections.run((session) =>
        session.query<{ identity: string }>({ text }),
      );
      const identity = row?.identity ?? "";
      const other = nameOf.get(identity);
      if (other !== undefined) throw oneDatabaseTwice(other, name);
      nameOf.set(identity, name);
    } finally {
      await connections.close();
    }
  }
}

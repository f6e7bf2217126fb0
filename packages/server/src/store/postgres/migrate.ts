import { randomUUID } from "node:crypto";
import type { PostgresConfig } from "../shared/config.ts";
import { checksumOf, type MigrationReport, pendingSteps } from "../shared/migration.ts";
import { Connections, type Session } from "./connections.ts";
import { PRESENT_IDENTITY } from "./identity.ts";
import { migrations } from "./migrations/index.ts";
import { appliedMigrations } from "./schema.ts";

/** Keeps two migrations apart; any number that nobody else uses. */
const ADVISORY_LOCK = "7163501620811354";
const MIGRATION_TIMEOUT_MS = 60_000;
const RECORD = "INSERT INTO idmint.migration (number, name, checksum) VALUES ($1, $2, $3)";
const SEED = `INSERT INTO idmint.store (store_id, incarnation, identity, revision, written_by)
  VALUES ($1, $2, ${PRESENT_IDENTITY}, 0, pg_current_xact_id()::xid)`;

/** Makes or migrates the schema, one step a transaction, under an advisory lock that all of them hold. */
export async function migrate(
  config: PostgresConfig,
  options: { dryRun: boolean },
): Promise<MigrationReport> {
  const connections = new Connections({ ...config, timeoutMs: MIGRATION_TIMEOUT_MS });
  try {
    return await connections.run(async (session) => {
      if (options.dryRun) return report(session);
      await session.query({ text: `SELECT pg_advisory_lock(${ADVISORY_LOCK})` });
      try {
        const planned = await report(session);
        if (planned.created) await makeSchema(session);
        for (const step of planned.steps) {
          await session.transaction(async () => {
            await session.query({ text: step.sql });
            const values = [step.number, step.name, checksumOf(step)];
            await session.query({ text: RECORD, values });
            if (step.number === 1) {
              await session.query({ text: SEED, values: [randomUUID(), randomUUID()] });
            }
          });
        }
        return planned;
      } finally {
        await session.query({ text: `SELECT pg_advisory_unlock(${ADVISORY_LOCK})` });
      }
    });
  } finally {
    await connections.close();
  }
}

async function report(session: Session): Promise<MigrationReport> {
  const applied = await appliedMigrations(session);
  const steps = pendingSteps(migrations, applied);
  return { from: applied.length, to: migrations.length, steps, created: applied.length === 0 };
}

/** An administrator may have made the schema, for a role that must not make schemas. */
async function makeSchema(session: Session): Promise<void> {
  const [schema] = await session.query<{ name: string | null }>({
    text: "SELECT to_regnamespace('idmint')::text AS name",
  });
  if (schema?.name !== "idmint") await session.query({ text: "CREATE SCHEMA idmint" });
}

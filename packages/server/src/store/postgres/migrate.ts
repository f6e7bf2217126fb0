import { randomUUID } from "node:crypto";
import type { PostgresConfig } from "../shared/config.ts";
import {
  checksumOf,
  type Migration,
  type MigrationReport,
  pendingSteps,
} from "../shared/migration.ts";
import { Connections, type Session } from "./connections.ts";
import { PRESENT_IDENTITY } from "./identity.ts";
import { migrations } from "./migrations/index.ts";
import { appliedMigrations } from "./schema.ts";

/** Keeps two migrations apart; any number that nobody else uses. */
const ADVISORY_LOCK = "7163501620811354";
const MIGRATION_TIMEOUT_MS = 60_000;
const SEED = `INSERT INTO idmint.store (store_id, incarnation, identity, revision, written_by)
  VALUES ($1, $2, ${PRESENT_IDENTITY}, 0, pg_current_xact_id()::xid)`;

/** A schema of ours, with its steps and what the first one leaves to be written. */
export interface Schema {
  readonly name: "idmint" | "idmint_ticket";
  readonly migrations: readonly Migration[];
  seed(session: Session): Promise<unknown>;
}

const STORE_SCHEMA: Schema = {
  name: "idmint",
  migrations,
  seed: (session) => session.query({ text: SEED, values: [randomUUID(), randomUUID()] }),
};

/** Makes or migrates the schema, one step a transaction, under an advisory lock that all of them hold. */
export async function migrate(
  config: PostgresConfig,
  options: { dryRun: boolean },
): Promise<MigrationReport> {
  return migrateSchema(config, STORE_SCHEMA, options);
}

/** The same for any schema of ours. */
export async function migrateSchema(
  config: PostgresConfig,
  schema: Schema,
  options: { dryRun: boolean },
): Promise<MigrationReport> {
  const connections = new Connections({ ...config, timeoutMs: MIGRATION_TIMEOUT_MS });
  const record = `INSERT INTO ${schema.name}.migration (number, name, checksum) VALUES ($1, $2, $3)`;
  try {
    return await connections.run(async (session) => {
      if (options.dryRun) return report(session, schema);
      await session.query({ text: `SELECT pg_advisory_lock(${ADVISORY_LOCK})` });
      try {
        const planned = await report(session, schema);
        if (planned.created) await makeSchema(session, schema);
        for (const step of planned.steps) {
          await session.transaction(async () => {
            await session.query({ text: step.sql });
            const values = [step.number, step.name, checksumOf(step)];
            await session.query({ text: record, values });
            if (step.number === 1) await schema.seed(session);
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

async function report(
  session: Session,
  { name, migrations: known }: Schema,
): Promise<MigrationReport> {
  const applied = await appliedMigrations(session, name);
  const steps = pendingSteps(known, applied);
  return { from: applied.length, to: known.length, steps, created: applied.length === 0 };
}

/** An administrator may have made the schema, for a role that must not make schemas. */
async function makeSchema(session: Session, { name }: Schema): Promise<void> {
  const [schema] = await session.query<{ is_there: boolean }>({
    text: "SELECT to_regnamespace($1) IS NOT NULL AS is_there",
    values: [name],
  });
  if (schema?.is_there !== true) await session.query({ text: `CREATE SCHEMA ${name}` });
}

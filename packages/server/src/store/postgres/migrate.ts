import { randomUUID } from "node:crypto";
import type { IdmintError } from "@idmint/core";
import { type AuditEvent, storeUnavailable } from "@idmint/core/server";
import { storeMigrated } from "../shared/records/audit.ts";
import type { PostgresConfig } from "../shared/config.ts";
import {
  checksumOf,
  type MigrateOptions,
  type Migration,
  type MigrationReport,
  reportOf,
} from "../shared/migration.ts";
import { addAudit } from "./records/audit.ts";
import { Connections, type Session } from "./connections.ts";
import { PRESENT_IDENTITY } from "./identity.ts";
import { migrations } from "./migrations/index.ts";
import { isLockTimeout } from "./refusal.ts";
import { appliedMigrations } from "./schema.ts";

/** Keeps two migrations apart; any number that nobody else uses. */
const ADVISORY_LOCK = "7163501620811354";
const MIGRATION_TIMEOUT_MS = 60_000;
/** Longest wait of a step for a lock, in milliseconds. */
const LOCK_MS = 500;
/** How often a step is tried, and about how long it pauses in between, in milliseconds. */
const MAX_TRIES = 10;
const PAUSE_MS = 300;
const SEED = `INSERT INTO idmint.store (store_id, incarnation, identity, revision, written_by)
  VALUES ($1, $2, ${PRESENT_IDENTITY}, 0, pg_current_xact_id()::xid)`;

/** A schema of ours, with its steps and what the first one leaves to be written. */
export interface Schema {
  readonly name: "idmint" | "idmint_ticket";
  readonly migrations: readonly Migration[];
  seed(session: Session): Promise<unknown>;
}

export const STORE_SCHEMA: Schema = {
  name: "idmint",
  migrations,
  seed: (session) => session.query({ text: SEED, values: [randomUUID(), randomUUID()] }),
};

/** Makes or migrates the schema, one step a transaction, under an advisory lock that all of them hold. */
export async function migrate(
  config: PostgresConfig,
  options: MigrateOptions,
): Promise<MigrationReport> {
  return migrateSchema(config, STORE_SCHEMA, options);
}

/** The same for any schema of ours. */
export async function migrateSchema(
  config: PostgresConfig,
  schema: Schema,
  options: MigrateOptions,
): Promise<MigrationReport> {
  const connections = new Connections({ ...config, timeoutMs: MIGRATION_TIMEOUT_MS });
  try {
    return await connections.run(async (session) => {
      if (options.dryRun) return report(session, schema);
      await session.query({ text: `SELECT pg_advisory_lock(${ADVISORY_LOCK})` });
      try {
        const planned = await report(session, schema);
        if (planned.created) await makeSchema(session, schema);
        for (const step of planned.steps) {
          const isLast = step === planned.steps.at(-1);
          await applyPatiently(
            session,
            schema,
            step,
            isLast ? told(schema, planned, options) : undefined,
          );
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

/** Written with the last step, after which there is a table for it. Ticket databases have no audit trail. */
function told(
  { name }: Schema,
  { from, to }: MigrationReport,
  { by }: MigrateOptions,
): AuditEvent | undefined {
  if (by === undefined || name !== "idmint") return undefined;
  return storeMigrated(by, Date.now(), from, to);
}

/**
 * INVARIANT: servers that run are held up for LOCK_MS at most, whatever other sessions do. A step that waits for a table holds
 * up everybody who comes after it, so it gives up soon, and is tried again later.
 */
async function applyPatiently(
  session: Session,
  schema: Schema,
  step: Migration,
  event: AuditEvent | undefined,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await session.transaction(() => apply(session, schema, step, event));
      return;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      if (tries === MAX_TRIES) throw locked(step);
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * (0.5 + Math.random())));
  }
}

async function apply(
  session: Session,
  schema: Schema,
  step: Migration,
  event: AuditEvent | undefined,
): Promise<void> {
  await session.query({ text: `SET LOCAL lock_timeout = '${LOCK_MS}ms'` });
  await session.query({ text: step.sql });
  await session.query({
    text: `INSERT INTO ${schema.name}.migration (number, name, checksum, works_from) VALUES ($1, $2, $3, $4)`,
    values: [step.number, step.name, checksumOf(step), step.worksFrom],
  });
  if (step.number === 1) await schema.seed(session);
  if (event !== undefined) await addAudit(session, event);
}

function locked({ number, name }: Migration): IdmintError {
  return storeUnavailable(
    `step ${number} of the schema (${name}) was not applied, because other sessions hold locks on its tables all the time: end the transactions that pg_stat_activity shows as old, and run the command again`,
  );
}

async function report(session: Session, { name, migrations }: Schema): Promise<MigrationReport> {
  return reportOf(migrations, await appliedMigrations(session, name));
}

/** An administrator may have made the schema, for a role that must not make schemas. */
async function makeSchema(session: Session, { name }: Schema): Promise<void> {
  const [schema] = await session.query<{ is_there: boolean }>({
    text: "SELECT to_regnamespace($1) IS NOT NULL AS is_there",
    values: [name],
  });
  if (schema?.is_there !== true) await session.query({ text: `CREATE SCHEMA ${name}` });
}

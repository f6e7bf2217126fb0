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
import { isPooled, MIN_TO_FIND_POOLER, POOLER } from "./faults/pooler.ts";
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

/** Makes or migrates the schema, one step a transaction, each under an advisory lock that all of them take. */
export async function migrate(
  config: PostgresConfig,
  options: MigrateOptions,
): Promise<MigrationReport> {
  return migrateSchema(config, STORE_SCHEMA, options);
}

/**
 * The same for any schema of ours.
 *
 * INVARIANT: which step is next is read under the lock, which ends with the transaction that applies the step. A lock of the
 * session would outlive a migration behind a pooler that lends sessions, and keep out all later ones.
 */
export async function migrateSchema(
  config: PostgresConfig,
  schema: Schema,
  options: MigrateOptions,
): Promise<MigrationReport> {
  const poolSize = Math.max(MIN_TO_FIND_POOLER, config.poolSize ?? 0);
  const connections = new Connections({ ...config, poolSize, timeoutMs: MIGRATION_TIMEOUT_MS });
  try {
    const warnings = (await isPooled(connections)) ? [`${POOLER.found}; ${POOLER.fix}`] : [];
    const found = await connections.run((session) => report(session, schema));
    if (options.dryRun) return { ...found, warnings };
    const steps: Migration[] = [];
    let first: MigrationReport | undefined;
    for (;;) {
      const done = await connections.run((session) => applyPatiently(session, schema, options));
      first ??= done.planned;
      if (done.step === undefined) break;
      steps.push(done.step);
    }
    return { ...first, steps, warnings };
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

/** What there was to do, and the step that was done; undefined: nothing was left. */
interface Done {
  readonly planned: MigrationReport;
  readonly step: Migration | undefined;
}

/**
 * Applies the next step.
 *
 * INVARIANT: servers that run are held up for LOCK_MS at most, whatever other sessions do. A step that waits for a table holds
 * up everybody who comes after it, so it gives up soon, and is tried again later.
 */
async function applyPatiently(
  session: Session,
  schema: Schema,
  options: MigrateOptions,
): Promise<Done> {
  let planned: MigrationReport | undefined;
  for (let tries = 1; ; tries++) {
    try {
      return await session.transaction(async () => {
        // Before the step's own patience begins: another migration may take longer.
        await session.query({ text: `SELECT pg_advisory_xact_lock(${ADVISORY_LOCK})` });
        planned = await report(session, schema);
        const [step] = planned.steps;
        if (step !== undefined) await apply(session, schema, planned, step, options);
        // failpoint: postgres-step-written
        return { planned, step };
      });
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      if (tries === MAX_TRIES) throw locked(planned?.steps[0]);
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * (0.5 + Math.random())));
  }
}

async function apply(
  session: Session,
  schema: Schema,
  planned: MigrationReport,
  step: Migration,
  options: MigrateOptions,
): Promise<void> {
  if (planned.created) await makeSchema(session, schema);
  await session.query({ text: `SET LOCAL lock_timeout = '${LOCK_MS}ms'` });
  await session.query({ text: step.sql });
  await session.query({
    text: `INSERT INTO ${schema.name}.migration (number, name, checksum, works_from) VALUES ($1, $2, $3, $4)`,
    values: [step.number, step.name, checksumOf(step), step.worksFrom],
  });
  if (step.number === 1) await schema.seed(session);
  const event = planned.steps.length === 1 ? told(schema, planned, options) : undefined;
  if (event !== undefined) await addAudit(session, event);
}

function locked(step: Migration | undefined): IdmintError {
  if (step === undefined)
    return storeUnavailable("another migration of this database takes too long");
  const { number, name } = step;
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
    text: "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) AS is_there",
    values: [name],
  });
  if (schema?.is_there !== true) await session.query({ text: `CREATE SCHEMA ${name}` });
}

import { randomUUID } from "node:crypto";
import { storeWentBack } from "@idmint/core/server";
import { storeMigrated } from "../shared/records/audit.ts";
import type { SqliteConfig } from "../shared/config.ts";
import {
  checksumOf,
  type MigrateOptions,
  type MigrationReport,
  reportOf,
} from "../shared/migration.ts";
import { addAudit } from "./records/audit.ts";
import { monotonicMs, type Transaction } from "./file/connection.ts";
import { Database } from "./file/database.ts";
import { createFile, lookAtFiles } from "./file/files.ts";
import { isThere, locate, locateNew, missingStore } from "./file/location.ts";
import { migrations } from "./migrations/index.ts";
import { deadlineOf, refuseUnsafePlace } from "./open.ts";
import { appliedMigrations } from "./schema.ts";
import { Witness } from "./file/witness.ts";

const RECORD =
  "INSERT INTO migration (number, name, checksum, works_from, applied_at_ms) VALUES (?, ?, ?, ?, ?)";
const SEED = `INSERT INTO store (singleton, store_id, incarnation, identity, witness, next_witness, revision, generation, progress)
  VALUES (1, ?, ?, ?, ?, ?, 0, 0, 0)`;

/** Makes or migrates the file, one step a transaction; the write lock keeps two of these apart. */
export function migrate(given: SqliteConfig, options: MigrateOptions): MigrationReport {
  const created = !isThere(given.path);
  if (created && given.create !== true) throw missingStore(given.path);
  if (created && options.dryRun) {
    return { from: 0, to: migrations.length, steps: migrations, created };
  }
  const config = created ? locateNew(given) : locate(given);
  refuseUnsafePlace(config);
  if (created) {
    refuseToReplace(config.path);
    createFile(config.path);
  }
  const database = new Database(config.path);
  try {
    return { ...applyAll(database, config, options), created };
  } finally {
    database.close();
  }
}

function applyAll(
  database: Database,
  config: SqliteConfig,
  { dryRun, by }: MigrateOptions,
): Omit<MigrationReport, "created"> {
  const deadlineMs = monotonicMs() + deadlineOf(config);
  return database.raw(deadlineMs, (transaction, exec) => {
    exec("BEGIN IMMEDIATE");
    const applied = appliedMigrations(transaction);
    const report = reportOf(migrations, applied);
    if (!dryRun) {
      for (const step of report.steps) {
        exec(step.sql);
        const { number, name, worksFrom } = step;
        transaction.run(RECORD, number, name, checksumOf(step), worksFrom, Date.now());
      }
      if (applied.length === 0) seed(database, transaction);
      const { from, to, steps } = report;
      if (by !== undefined && steps.length > 0) {
        addAudit(transaction, storeMigrated(by, Date.now(), from, to));
      }
    }
    // failpoint: sqlite-step-written
    exec("COMMIT");
    return report;
  });
}

function seed(database: Database, transaction: Transaction): void {
  const files = lookAtFiles(database.path);
  if (files === undefined) throw storeWentBack("the file of the store is gone");
  refuseToReplace(database.path);
  const storeId = randomUUID();
  const { present, next } = database.makeWitness({ storeId, generation: 0n, progress: 0n });
  transaction.run(SEED, storeId, randomUUID(), files.identity, present, next);
}

/**
 * A witness without its database means that somebody deleted or moved the database: one made in its place would issue
 * the same ids again.
 */
function refuseToReplace(databasePath: string): void {
  const witness = new Witness(databasePath);
  try {
    const seen = witness.look()?.mark;
    if (seen === undefined || seen.progress === 0n) return;
    throw storeWentBack(
      `there was a store at ${databasePath}; if its ids may be issued again, remove ${witness.path}`,
    );
  } finally {
    witness.close();
  }
}

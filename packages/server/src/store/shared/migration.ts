import { createHash } from "node:crypto";
import { IdmintError } from "@idmint/core";
import type { AuditNote } from "@idmint/core/server";
import { schemaMismatch } from "./failures.ts";
import type { StoreStatus } from "./status.ts";

/**
 * One numbered step of a schema. A published step never changes: its checksum is recorded where it was applied.
 *
 * INVARIANT: servers run while it is applied, those of the release before among them. So it holds its locks for a moment
 * only: it adds what is empty, and neither rewrites a table nor reads one as a whole.
 * It changes one table: a step that holds one and waits for another would wait for servers that wait for it.
 */
export interface Migration {
  /** 1, 2, 3, … without a gap. */
  readonly number: number;
  /** What it does, in a few words. */
  readonly name: string;
  /**
   * The oldest schema that a server may have been built for, to go on working where this step was applied: the statements of
   * that release still do what they did, and keep what they do not know of. `number` itself: all older servers have to be
   * stopped first.
   */
  readonly worksFrom: number;
  readonly sql: string;
}

/** A step as the store recorded it. */
export interface AppliedMigration {
  readonly number: number;
  readonly checksum: string;
  readonly worksFrom: number;
}

/** How a store is migrated. */
export interface MigrateOptions {
  /** Only tells what would be done. */
  readonly dryRun: boolean;
  /** Who migrates it, for the audit trail. Not set: nobody whom the trail has to name. */
  readonly by?: AuditNote;
}

/** What `migrateStore` did, or would do. */
export interface MigrationReport {
  /** Version of the schema that was found; 0: none. */
  readonly from: number;
  /** Version of the schema afterwards. */
  readonly to: number;
  /** Steps that were applied, or with `dryRun` would be. */
  readonly steps: readonly Migration[];
  /** Whether the store did not exist. */
  readonly created: boolean;
  /** What speaks against using the store as it was reached, in words. Absent: the backend looks for nothing. */
  readonly warnings?: readonly string[];
}

export function checksumOf(migration: Migration): string {
  return createHash("sha256").update(migration.sql).digest("hex");
}

/**
 * The steps that a store still needs. Throws for a store that has other steps, or newer ones that this release does not work
 * with.
 */
function pendingSteps(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
): readonly Migration[] {
  for (const { number, checksum, worksFrom } of applied) {
    const step = known.find((migration) => migration.number === number);
    if (step === undefined && worksFrom > known.length) {
      throw schemaMismatch(
        `the store has schema ${versionOf(applied)}, which needs servers of schema ${worksFrom} or later, and this release is of schema ${known.length}; upgrade idmint`,
      );
    }
    if (step !== undefined && checksum !== checksumOf(step)) {
      throw schemaMismatch(`step ${number} of the store's schema is not the one of this release`);
    }
  }
  return known.filter(({ number }) => !applied.some((a) => a.number === number));
}

/** The version of the schema that a store has; 0 without one. */
function versionOf(applied: readonly AppliedMigration[]): number {
  return Math.max(0, ...applied.map(({ number }) => number));
}

/** What is shown of a store's schema. */
export function schemaStanding(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
): Pick<StoreStatus, "knownSchemaVersion" | "schemaIllness" | "schemaVersion"> {
  const versions = { schemaVersion: versionOf(applied), knownSchemaVersion: known.length };
  try {
    workableVersion(known, applied);
    return { ...versions, schemaIllness: "" };
  } catch (error) {
    return { ...versions, schemaIllness: IdmintError.from(error).message };
  }
}

/** What a migration did or would do: a store that is newer, and that this release works with, stays as it is. */
export function reportOf(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
): MigrationReport {
  const from = versionOf(applied);
  const steps = pendingSteps(known, applied);
  return { from, to: Math.max(from, known.length), steps, created: applied.length === 0 };
}

/**
 * The version of a store's schema, with which a server can work.
 *
 * INVARIANT: a server works with the schema it was built for, and with a newer one whose steps say that it may. So stores are
 * migrated first and servers changed afterwards, one by one, in either direction. Throws for an older schema, which lacks
 * what this server writes. `command` brings it up to date.
 */
export function workableVersion(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
  command = "idmint migrate",
): number {
  const pending = pendingSteps(known, applied);
  if (pending.length === 0) return versionOf(applied);
  throw schemaMismatch(
    applied.length === 0
      ? `the database has no schema of idmint's yet; run: ${command}`
      : `the database has schema ${versionOf(applied)}, older than ${known.length}; run: ${command}`,
  );
}

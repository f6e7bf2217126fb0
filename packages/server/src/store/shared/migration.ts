import { createHash } from "node:crypto";
import { schemaMismatch } from "./failures.ts";

/** One numbered step of a schema. A published step never changes: its checksum is recorded where it was applied. */
export interface Migration {
  /** 1, 2, 3, … without a gap. */
  readonly number: number;
  /** What it does, in a few words. */
  readonly name: string;
  readonly sql: string;
}

/** A step as the store recorded it. */
export interface AppliedMigration {
  readonly number: number;
  readonly checksum: string;
}

/** What `migrateStore` did, or would do. */
export interface MigrationReport {
  /** Version of the schema that was found; 0: none. */
  readonly from: number;
  /** Version of the schema that this release works with. */
  readonly to: number;
  /** Steps that were applied, or with `dryRun` would be. */
  readonly steps: readonly Migration[];
  /** Whether the store did not exist. */
  readonly created: boolean;
}

export function checksumOf(migration: Migration): string {
  return createHash("sha256").update(migration.sql).digest("hex");
}

/** The steps that a store still needs. Throws for a store that is newer than this release, or that has other steps. */
export function pendingSteps(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
): readonly Migration[] {
  for (const { number, checksum } of applied) {
    const step = known.find((migration) => migration.number === number);
    if (step === undefined) {
      throw schemaMismatch(
        `the store has schema ${Math.max(...applied.map((a) => a.number))}, newer than ${known.length}, which this release knows; upgrade idmint`,
      );
    }
    if (checksum !== checksumOf(step)) {
      throw schemaMismatch(`step ${number} of the store's schema is not the one of this release`);
    }
  }
  return known.filter(({ number }) => !applied.some((a) => a.number === number));
}

/**
 * The version of a schema that a server can work with. Throws for an older or a newer one. `command` brings the schema
 * up to date.
 */
export function workableVersion(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
  command = "idmint migrate",
): number {
  const pending = pendingSteps(known, applied);
  if (pending.length === 0) return known.length;
  throw schemaMismatch(
    applied.length === 0
      ? `the database has no schema of idmint's yet; run: ${command}`
      : `the database has schema ${known.length - pending.length}, older than ${known.length}; run: ${command}`,
  );
}

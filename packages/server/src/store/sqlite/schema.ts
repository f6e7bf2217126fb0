import type { AppliedMigration } from "../shared/migration.ts";
import type { Transaction } from "./file/connection.ts";

const TABLE = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migration'";
const APPLIED = "SELECT number, checksum, works_from FROM migration ORDER BY number";

/** The steps a file has recorded; none without a schema. */
export function appliedMigrations(transaction: Transaction): readonly AppliedMigration[] {
  if (transaction.get(TABLE) === undefined) return [];
  return transaction.all(APPLIED).map((row) => ({
    number: Number(row["number"]),
    checksum: String(row["checksum"]),
    worksFrom: Number(row["works_from"]),
  }));
}

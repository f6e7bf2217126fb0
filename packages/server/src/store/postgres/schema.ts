import type { AppliedMigration } from "../shared/migration.ts";
import type { Session } from "./connections.ts";

/** The steps that a database has recorded for a schema of ours; none without it. */
export async function appliedMigrations(
  session: Session,
  schema = "idmint",
): Promise<readonly AppliedMigration[]> {
  const name = `${schema}.migration`;
  const [table] = await session.query<{ is_there: boolean }>({
    text: "SELECT to_regclass($1) IS NOT NULL AS is_there",
    values: [name],
  });
  if (table?.is_there !== true) return [];
  return session.query<AppliedMigration>({
    text: `SELECT number, checksum, works_from AS "worksFrom" FROM ${name} ORDER BY number`,
  });
}

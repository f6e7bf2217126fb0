import type { AppliedMigration } from "../shared/migration.ts";
import type { Session } from "./connections.ts";

/**
 * By rows of the catalog: to_regclass answers from a session's cache, which after a wait for an advisory lock may not know yet
 * of what another session made meanwhile.
 */
const HAS_TABLE = `SELECT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relname = 'migration') AS is_there`;

/** The steps that a database has recorded for a schema of ours; none without it. */
export async function appliedMigrations(
  session: Session,
  schema = "idmint",
): Promise<readonly AppliedMigration[]> {
  const name = `${schema}.migration`;
  const [table] = await session.query<{ is_there: boolean }>({ text: HAS_TABLE, values: [schema] });
  if (table?.is_there !== true) return [];
  return session.query<AppliedMigration>({
    text: `SELECT number, checksum, works_from AS "worksFrom" FROM ${name} ORDER BY number`,
  });
}

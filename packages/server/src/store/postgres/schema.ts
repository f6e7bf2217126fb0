import type { AppliedMigration } from "../shared/migration.ts";
import type { Session } from "./connections.ts";

/** The steps a database has recorded; none without a schema. */
export async function appliedMigrations(session: Session): Promise<readonly AppliedMigration[]> {
  const [table] = await session.query<{ name: string | null }>({
    text: "SELECT to_regclass('idmint.migration')::text AS name",
  });
  if (table?.name !== "idmint.migration") return [];
  return session.query<AppliedMigration>({
    text: "SELECT number, checksum FROM idmint.migration ORDER BY number",
  });
}

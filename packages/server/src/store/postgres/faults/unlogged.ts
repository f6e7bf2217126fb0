import { refuseUnsafe } from "../../shared/config.ts";
import type { Session } from "../connections.ts";

/** SQL: tables of a schema that a crash empties, as a text[]; `schema` is the place of a text parameter, or a literal. */
export function unloggedTables(schema: string): string {
  return `ARRAY (
  SELECT ${schema} || '.' || c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = ${schema} AND c.relkind IN ('r', 'p') AND c.relpersistence <> 'p' ORDER BY c.relname)`;
}

/** What makes them tables that keep what they are told. It writes all rows anew, which looks like a dump (identity.ts). */
export function toLogged(tables: readonly string[]): string {
  return tables.map((table) => `ALTER TABLE ${table} SET LOGGED`).join("; ");
}

/**
 * INVARIANT: no database is used, nor accepted, of which a crash would take floors away, and with them the proof that there
 * had been any.
 */
export async function assertLogged(
  session: Session,
  schema: "idmint" | "idmint_ticket",
): Promise<void> {
  const text = `SELECT ${unloggedTables("$1::text")} AS tables`;
  const [row] = await session.query<{ tables: readonly string[] }>({ text, values: [schema] });
  const tables = row?.tables ?? [];
  if (tables.length === 0) return;
  const accept = schema === "idmint" ? "idmint store accept" : "idmint ticket accept";
  refuseUnsafe(
    new Map([["unlogged", `a crash empties ${tables.join(", ")}, since UNLOGGED`]]),
    [],
    `; run ${toLogged(tables)}, and then ${accept}`,
  );
}

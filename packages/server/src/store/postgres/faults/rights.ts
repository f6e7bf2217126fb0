// What the role of a server must be allowed to do, as docs/postgres.md grants it; a test compares the two.

/** Rights on tables of the schema idmint besides SELECT, which is needed on all of them. */
const WRITES: Readonly<Record<string, readonly string[]>> = {
  access: ["UPDATE"],
  ask: ["INSERT", "UPDATE", "DELETE"],
  audit: ["INSERT", "DELETE"],
  claim: ["INSERT", "UPDATE", "DELETE"],
  claimant: ["INSERT", "UPDATE", "DELETE"],
  ledger: ["INSERT", "UPDATE", "DELETE"],
  ledger_forgotten: ["INSERT", "UPDATE", "DELETE"],
  migration: [],
  node: ["INSERT", "UPDATE", "DELETE"],
  period: ["INSERT", "UPDATE", "DELETE"],
  redis_mark: ["INSERT", "UPDATE", "DELETE"],
  store: ["UPDATE"],
  tag: ["INSERT", "UPDATE"],
  token: ["INSERT", "UPDATE", "DELETE"],
  traffic: ["INSERT", "UPDATE", "DELETE"],
  worker: ["INSERT", "UPDATE"],
};

const NEEDED = Object.entries(WRITES).flatMap(([table, writes]) =>
  ["SELECT", ...writes].map((right) => `('idmint.${table}', '${right}')`),
);

/**
 * SQL: what the role lacks, as a text[] of "RIGHT on object". A table that is not there is for the schema's version to tell,
 * and CASE keeps the question from being asked of it.
 */
export const LACKING: string = `ARRAY (
  SELECT w.right || ' on ' || w.object FROM (VALUES ${NEEDED.join(", ")}) AS w (object, "right")
  WHERE CASE WHEN to_regclass(w.object) IS NULL THEN false ELSE NOT has_table_privilege(to_regclass(w.object), w.right) END
  UNION ALL SELECT 'EXECUTE on pg_control_system()' WHERE NOT has_function_privilege('pg_control_system()', 'EXECUTE')
)`;

/** Rights on one object in one phrase each: "SELECT, INSERT on idmint.node". */
export function rightsByObject(lacking: readonly string[]): readonly string[] {
  const objects = new Map<string, string[]>();
  for (const text of lacking) {
    const [right = "", object = ""] = text.split(" on ");
    objects.set(object, [...(objects.get(object) ?? []), right]);
  }
  return [...objects].map(([object, rights]) => `${rights.join(", ")} on ${object}`);
}

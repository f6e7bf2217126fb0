import type { AppliedMigration, Migration } from "../shared/migration.ts";
import type { KeyValue } from "./cluster/protocol.ts";

/**
 * The steps of the schema. The first one makes the keys that a store is known by; all others come with its tags.
 *
 * A server writes the rows of tags and workers as a whole, with the columns that it knows. So a step that adds one which must
 * not be lost `worksFrom` its own number.
 */
export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "store and tags",
    worksFrom: 1,
    sql: "put store, revision, term, history and schema below the prefix; see keys.ts",
  },
];

/** The steps that the key `schema` records; none without it. */
export function appliedMigrations(kv: KeyValue | undefined): readonly AppliedMigration[] {
  return kv === undefined ? [] : (JSON.parse(kv.value.toString()) as AppliedMigration[]);
}

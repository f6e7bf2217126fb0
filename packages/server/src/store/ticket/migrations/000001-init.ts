import type { Migration } from "../../shared/migration.ts";

/**
 * `database` has one row. `written_by` as in the schema of the store: the transaction that wrote the row last.
 *
 * A grant changes last_id and written_by only. Neither has an index and pages keep room, so the new row stays on its page
 * and no index is touched (HOT).
 */
export const init: Migration = {
  number: 1,
  name: "slots of tags",
  worksFrom: 1,
  sql: `
CREATE TABLE idmint_ticket.migration (
  number integer PRIMARY KEY,
  name text NOT NULL,
  checksum text NOT NULL,
  works_from integer NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE idmint_ticket.database (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  database_id text NOT NULL,
  incarnation text NOT NULL,
  identity text NOT NULL,
  written_by xid NOT NULL
);

CREATE TABLE idmint_ticket.slot (
  slots_id text COLLATE "C" NOT NULL,
  slot integer NOT NULL CHECK (slot BETWEEN 0 AND slots - 1),
  slots integer NOT NULL CHECK (slots BETWEEN 1 AND 1024),
  owner text NOT NULL,
  epoch bigint NOT NULL CHECK (epoch >= 1),
  last_id bigint NOT NULL CHECK (last_id > -slots AND (last_id - slot) % slots = 0),
  state text NOT NULL CHECK (state IN ('active', 'frozen', 'moved')),
  raised_under timestamptz NOT NULL,
  written_by xid NOT NULL,
  PRIMARY KEY (slots_id, slot)
) WITH (fillfactor = 50);
`,
};

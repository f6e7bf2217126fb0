import type { Migration } from "../../shared/migration.ts";

/**
 * `ledger` has who was given which ids; `width` is the number of bits of a range's length, by which ids are looked up.
 * `ledger_forgotten` has up to which version rows of a tag are not all there any more. What is issued rests on neither, so they
 * are no part of `progress`.
 *
 * An older server or command would accept a store without forgetting what the lost history may have changed.
 */
export const ledger: Migration = {
  number: 4,
  name: "ledger",
  worksFrom: 4,
  sql: `
CREATE TABLE ledger (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  tag TEXT COLLATE BINARY NOT NULL,
  entry TEXT NOT NULL CHECK (entry IN ('allocation', 'gap', 'give-back', 'grant', 'release')),
  width INTEGER NOT NULL CHECK (width BETWEEN 0 AND 63),
  first_id INTEGER NOT NULL CHECK (first_id >= 0),
  last_id INTEGER NOT NULL CHECK (last_id >= first_id),
  version INTEGER NOT NULL CHECK (version >= 0),
  epoch INTEGER NOT NULL CHECK (epoch >= 0),
  node_id TEXT NOT NULL,
  server TEXT NOT NULL,
  sequence INTEGER NOT NULL CHECK (sequence >= 0),
  instance TEXT NOT NULL,
  principal TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  stored_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX ledger_by_range ON ledger (tag, width, first_id);

CREATE TABLE ledger_forgotten (
  tag TEXT COLLATE BINARY PRIMARY KEY,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`,
};

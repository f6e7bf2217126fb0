import type { Migration } from "../../shared/migration.ts";

/**
 * `token` has the tokens of callers, by their public ids; of the secrets only hashes. `access` has at most one row, with a
 * random text that changes with every change of `token`, so that polls read the table only then.
 */
export const access: Migration = {
  number: 2,
  name: "tokens of callers",
  worksFrom: 1,
  sql: `
CREATE TABLE token (
  id TEXT COLLATE BINARY PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
  principal TEXT NOT NULL CHECK (length(principal) BETWEEN 1 AND 128),
  rights TEXT NOT NULL CHECK (json_valid(rights)),
  hash TEXT NOT NULL CHECK (length(hash) = 64),
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE access (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  version TEXT NOT NULL
) STRICT;
`,
};

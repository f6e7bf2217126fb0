import type { Migration } from "../../shared/migration.ts";

/**
 * `token` has the tokens of callers, by their public ids; of the secrets only hashes. `access` has one row, with a random
 * text that changes with every change of `token`, so that polls read the table only then. Whoever writes locks it first.
 */
export const access: Migration = {
  number: 2,
  name: "tokens of callers",
  worksFrom: 1,
  sql: `
CREATE TABLE idmint.token (
  id text COLLATE "C" PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
  principal text NOT NULL CHECK (length(principal) BETWEEN 1 AND 128),
  rights jsonb NOT NULL,
  hash text NOT NULL CHECK (length(hash) = 64),
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL
);

CREATE TABLE idmint.access (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  version text NOT NULL
);

INSERT INTO idmint.access (version) VALUES ('');
`,
};

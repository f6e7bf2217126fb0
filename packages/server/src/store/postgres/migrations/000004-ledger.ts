import type { Migration } from "../../shared/migration.ts";

/**
 * `ledger` has who was given which ids; `width` is the number of bits of a range's length, by which ids are looked up.
 * `ledger_forgotten` has up to which version rows of a tag are not all there any more. What is issued rests on neither.
 *
 * An older server or command would accept a store without forgetting what the lost history may have changed.
 */
export const ledger: Migration = {
  number: 4,
  name: "ledger",
  worksFrom: 4,
  sql: `
CREATE TABLE idmint.ledger (
  position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tag text COLLATE "C" NOT NULL,
  entry text NOT NULL CHECK (entry IN ('allocation', 'gap', 'give-back', 'grant', 'release')),
  width integer NOT NULL CHECK (width BETWEEN 0 AND 63),
  first_id bigint NOT NULL CHECK (first_id >= 0),
  last_id bigint NOT NULL CHECK (last_id >= first_id),
  version bigint NOT NULL CHECK (version >= 0),
  epoch bigint NOT NULL CHECK (epoch >= 0),
  node_id text NOT NULL,
  server text NOT NULL,
  sequence bigint NOT NULL CHECK (sequence >= 0),
  instance text NOT NULL,
  principal text NOT NULL,
  at_ms bigint NOT NULL,
  stored_at_ms bigint NOT NULL DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
);

CREATE INDEX ledger_by_range ON idmint.ledger (tag, width, first_id);

CREATE TABLE idmint.ledger_forgotten (
  tag text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL
);
`,
};

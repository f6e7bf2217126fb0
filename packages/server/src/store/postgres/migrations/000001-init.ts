import type { Migration } from "../../shared/migration.ts";

/**
 * `store` has one row. `written_by` is the transaction that wrote the row last: PostgreSQL keeps the same number in the
 * hidden column xmin, so a row that a dump brought back gives itself away (identity.ts).
 *
 * A grant changes floor, version and written_by only. None of them has an index and pages keep room, so the new row stays
 * on its page and no index is touched (HOT).
 */
export const init: Migration = {
  number: 1,
  name: "store and tags",
  sql: `
CREATE TABLE idmint.migration (
  number integer PRIMARY KEY,
  name text NOT NULL,
  checksum text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE idmint.store (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  store_id text NOT NULL,
  incarnation text NOT NULL,
  identity text NOT NULL,
  revision bigint NOT NULL CHECK (revision >= 0),
  written_by xid NOT NULL
);

CREATE TABLE idmint.tag (
  name text COLLATE "C" PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 128),
  kind text NOT NULL,
  id_order text NOT NULL CHECK (id_order IN ('UNORDERED', 'PER_CLIENT', 'STRICT')),
  description text NOT NULL,
  ceiling bigint NOT NULL CHECK (ceiling >= 1),
  floor bigint NOT NULL CHECK (floor BETWEEN 0 AND ceiling),
  version bigint NOT NULL CHECK (version >= 0),
  epoch bigint NOT NULL CHECK (epoch >= 1),
  state text NOT NULL CHECK (state IN ('ACTIVE', 'PAUSED', 'DELETED')),
  revision bigint NOT NULL CHECK (revision >= 1),
  segment_start bigint CHECK (segment_start BETWEEN 1 AND ceiling),
  segment_min bigint CHECK (segment_min >= 1),
  segment_max bigint CHECK (segment_max >= segment_min),
  segment_hold_for_ms bigint CHECK (segment_hold_for_ms >= 1),
  segment_max_age_ms bigint CHECK (segment_max_age_ms >= 1),
  created_at_ms bigint NOT NULL,
  updated_at_ms bigint NOT NULL,
  written_by xid NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX tag_by_revision ON idmint.tag (revision);
`,
};

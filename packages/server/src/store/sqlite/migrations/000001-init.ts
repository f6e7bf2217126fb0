import type { Migration } from "../../shared/migration.ts";

/**
 * `store` has one row. `progress` is the sum of version and revision over all tags, of version over all workers, and of
 * `issuing_revision`: it rises with every change and shows a file that is pieced together from several times. `floors` is the sum of
 * all floors, of which 62 bits are kept: it shows one that another hand changed. `generation` counts the accepts.
 *
 * `issuing_revision`: the revision at which issuing was stopped or resumed last; `stopped_at_ms`: since when it is stopped.
 *
 * `settings` of a tag has all settings of its kind; those that statements need have columns of their own besides.
 * `period` has the periods of sequences that have ended; what is granted does not rest on it.
 *
 * `worker` has the worker ids of snowflake tags that were ever leased; its rows are never removed.
 *
 * `earlier_memory_ms`: for how long callers may hold ids that they were given before the revision beside it, where that is
 * longer than now. `node` has the servers on this store; each writes its own row with every poll.
 * `node_gone` has the last 10,000 of its rows that were removed: a row that is missing without a trace shows that the store went
 * back (file/own-row.ts).
 * `proved`: whether the server took the store for the one that others know; newcomers go by such rows alone.
 * `ask` has one row at most, while an accept asks servers what they were granted; `claimant` who answered, and `claim` what.
 * `traffic` has what operators said of servers, by their names, so its rows outlive restarts.
 *
 * `granted_at_ms` only tells which tags are in use.
 *
 * `redis_mark` has how far Redis had counted; only a Redis that went back is told by it, so it is no part of `progress`.
 *
 * The poll reads `tag` only when the revision has changed, so it needs no index for that.
 */
export const init: Migration = {
  number: 1,
  name: "store and tags",
  worksFrom: 1,
  sql: `
CREATE TABLE migration (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  works_from INTEGER NOT NULL,
  applied_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE store (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  store_id TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  identity TEXT NOT NULL,
  witness TEXT NOT NULL,
  next_witness TEXT NOT NULL,
  revision INTEGER NOT NULL CHECK (revision >= 0),
  generation INTEGER NOT NULL CHECK (generation >= 0),
  progress INTEGER NOT NULL CHECK (progress >= 0),
  floors INTEGER NOT NULL DEFAULT 0 CHECK (floors >= 0),
  issuing_revision INTEGER NOT NULL DEFAULT 0 CHECK (issuing_revision >= 0),
  stopped_at_ms INTEGER
) STRICT;

CREATE TABLE tag (
  name TEXT COLLATE BINARY PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 128),
  kind TEXT NOT NULL,
  id_order TEXT NOT NULL CHECK (id_order IN ('UNORDERED', 'PER_CLIENT', 'STRICT')),
  description TEXT NOT NULL,
  ceiling INTEGER NOT NULL CHECK (ceiling >= 1),
  floor INTEGER NOT NULL CHECK (floor BETWEEN 0 AND ceiling),
  version INTEGER NOT NULL CHECK (version >= 0),
  epoch INTEGER NOT NULL CHECK (epoch >= 1),
  state TEXT NOT NULL CHECK (state IN ('ACTIVE', 'PAUSED', 'DELETED')),
  revision INTEGER NOT NULL CHECK (revision >= 1),
  settings TEXT NOT NULL,
  redis INTEGER NOT NULL CHECK (redis IN (0, 1)),
  period_unit TEXT CHECK (period_unit IN ('DAY', 'WEEK', 'MONTH', 'YEAR')),
  time_zone TEXT CHECK ((time_zone IS NULL) = (period_unit IS NULL)),
  keep_for_ms INTEGER CHECK (keep_for_ms >= 1 AND (keep_for_ms IS NULL) = (period_unit IS NULL)),
  period_start TEXT CHECK (period_start GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
  other_periods TEXT CHECK (other_periods IS NULL OR json_valid(other_periods)),
  generation INTEGER NOT NULL CHECK (generation >= 0),
  earlier_memory_ms INTEGER CHECK (earlier_memory_ms >= 1),
  earlier_revision INTEGER CHECK ((earlier_revision IS NULL) = (earlier_memory_ms IS NULL)),
  granted_at_ms INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE period (
  tag TEXT COLLATE BINARY NOT NULL,
  start TEXT COLLATE BINARY NOT NULL,
  last_id INTEGER NOT NULL CHECK (last_id >= 1),
  ended_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tag, start)
) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
  tag TEXT COLLATE BINARY NOT NULL,
  data_center INTEGER NOT NULL CHECK (data_center >= 0),
  worker_id INTEGER NOT NULL CHECK (worker_id >= 0),
  instance TEXT COLLATE BINARY NOT NULL CHECK (length(instance) BETWEEN 1 AND 128),
  token INTEGER NOT NULL CHECK (token >= 1),
  extension INTEGER NOT NULL CHECK (extension >= 0),
  reserved_until_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  version INTEGER NOT NULL CHECK (version >= 1),
  PRIMARY KEY (tag, data_center, worker_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE node (
  id TEXT COLLATE BINARY PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 128),
  instance TEXT NOT NULL,
  address TEXT NOT NULL,
  version TEXT NOT NULL,
  zone TEXT NOT NULL,
  started_at_ms INTEGER NOT NULL,
  max_offline_ms INTEGER CHECK (max_offline_ms >= 1),
  renewals INTEGER NOT NULL CHECK (renewals >= 1),
  incarnation TEXT NOT NULL,
  obeyed INTEGER NOT NULL CHECK (obeyed >= 0),
  traffic INTEGER NOT NULL CHECK (traffic >= 0),
  proved INTEGER NOT NULL DEFAULT 0 CHECK (proved IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE TABLE ask (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  nonce TEXT NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  granting INTEGER NOT NULL,
  looks INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE claimant (
  id TEXT COLLATE BINARY PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 128),
  instance TEXT NOT NULL,
  address TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  whole INTEGER NOT NULL CHECK (whole IN (0, 1)),
  pages INTEGER NOT NULL CHECK (pages >= 1),
  spoken INTEGER NOT NULL CHECK (spoken IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE TABLE claim (
  tag TEXT COLLATE BINARY NOT NULL,
  period TEXT COLLATE BINARY NOT NULL,
  last INTEGER NOT NULL CHECK (last >= 1),
  PRIMARY KEY (tag, period)
) STRICT, WITHOUT ROWID;

CREATE TABLE node_gone (
  number INTEGER PRIMARY KEY,
  id TEXT COLLATE BINARY NOT NULL,
  renewals INTEGER NOT NULL
) STRICT;

CREATE INDEX node_gone_by_id ON node_gone (id);

CREATE TRIGGER note_node_gone AFTER DELETE ON node BEGIN
  INSERT INTO node_gone (id, renewals) VALUES (old.id, old.renewals);
  DELETE FROM node_gone WHERE number <= (SELECT max(number) FROM node_gone) - 10000;
END;

CREATE TABLE traffic (
  server TEXT COLLATE BINARY PRIMARY KEY CHECK (length(server) BETWEEN 1 AND 128),
  weight INTEGER NOT NULL CHECK (weight BETWEEN 0 AND 1000),
  draining INTEGER NOT NULL CHECK (draining IN (0, 1)),
  revision INTEGER NOT NULL CHECK (revision >= 1)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX worker_by_instance ON worker (tag, data_center, instance);

CREATE TABLE redis_mark (
  tag TEXT COLLATE BINARY NOT NULL,
  generation INTEGER NOT NULL CHECK (generation >= 0),
  mark INTEGER NOT NULL CHECK (mark >= 0),
  PRIMARY KEY (tag, generation)
) STRICT, WITHOUT ROWID;
`,
};

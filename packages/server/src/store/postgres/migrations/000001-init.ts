import type { Migration } from "../../shared/migration.ts";

/**
 * The function next_max_normal_sequence: raises the maximum of a sequence that counts in Redis and answers the new one. The
 * `step` ids up to it are the caller's, once its transaction is committed.
 *
 * INVARIANTS
 * - They are nobody else's: the row is locked before it is judged and read in its newest version; the generation rises, so
 *   a Redis that counts below them is given a new start above them and never counts into them.
 * - It has the guards of every grant: the store is the accepted one, the row is ours, the tag is ACTIVE, its ceiling holds.
 * - The commit reaches the disk, and a synchronous standby, whatever the session's synchronous_commit is.
 * - The row it leaves is ours (identity.ts), wherever it is called. Below a savepoint, and in a block with EXCEPTION, xmin is
 *   a subtransaction's, whose number nothing but the row that it wrote tells; so the row is written again with that number.
 *
 * It repeats what identity.ts says, since a published step of the schema never changes.
 */
const nextMax = `
CREATE FUNCTION idmint.next_max_normal_sequence(name text, step bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog AS $$
DECLARE
  wanted CONSTANT text := next_max_normal_sequence.name;
  s record;
  t record;
  next_max bigint;
  writer xid;
BEGIN
  IF step IS NULL OR step NOT BETWEEN 1 AND 1000000000 THEN
    RAISE EXCEPTION 'step must be 1 to 1000000000, got %', coalesce(step::text, 'null')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  SELECT o.standbys, o.xmin = o.written_by AS is_ours, o.identity = (SELECT system_identifier FROM pg_control_system())
      || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
      || '/' || (SELECT oid FROM pg_database WHERE datname = current_database()) AS is_accepted
    INTO s FROM idmint.store AS o;
  IF s.is_ours IS NOT TRUE OR s.is_accepted IS NOT TRUE THEN
    RAISE EXCEPTION 'the store is not the one that was accepted: see idmint store accept'
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  IF s.standbys <> '' AND current_setting('synchronous_standby_names') = '' THEN
    RAISE EXCEPTION 'the store names standbys, and synchronous_standby_names is empty'
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  SELECT r.kind, r.redis, r.state, r.floor, r.ceiling, r.xmin = r.written_by AS is_ours,
      r.moved_to IS NULL AND NOT r.moving AS is_here
    INTO t FROM idmint.tag AS r WHERE r.name = wanted FOR UPDATE;
  IF NOT FOUND OR t.state = 'DELETED' THEN
    RAISE EXCEPTION 'there is no tag "%"', wanted USING ERRCODE = 'no_data_found';
  END IF;
  IF NOT t.is_ours THEN
    RAISE EXCEPTION 'tag "%" was loaded from a dump or changed by hand: see idmint store accept', wanted
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  IF NOT t.is_here THEN
    RAISE EXCEPTION 'tag "%" is in another database', wanted
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  IF t.kind <> 'sequence' OR NOT t.redis THEN
    RAISE EXCEPTION 'tag "%" is no sequence that counts in Redis', wanted
      USING ERRCODE = 'wrong_object_type';
  END IF;
  IF t.state <> 'ACTIVE' THEN
    RAISE EXCEPTION 'tag "%" is paused', wanted USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  IF t.ceiling - t.floor < step THEN
    RAISE EXCEPTION 'tag "%" has % ids left, fewer than %', wanted, t.ceiling - t.floor, step
      USING ERRCODE = 'sequence_generator_limit_exceeded';
  END IF;
  UPDATE idmint.tag AS u SET
    floor = u.floor + step, generation = u.generation + 1, version = u.version + 1,
    written_by = pg_current_xact_id()::xid
    WHERE u.name = wanted RETURNING u.floor, u.xmin INTO next_max, writer;
  IF writer <> pg_current_xact_id()::xid THEN
    UPDATE idmint.tag AS u SET written_by = writer WHERE u.name = wanted;
  END IF;
  RETURN next_max;
END $$;
`;

/**
 * `store` has one row. `written_by` is the transaction that wrote the row last: PostgreSQL keeps the same number in the
 * hidden column xmin, so a row that a dump brought back gives itself away (identity.ts).
 *
 * A grant changes floor, period_start, other_periods, version and written_by only, a raise generation too. None of them has an index and
 * pages keep room, so the new row stays on its page and no index is touched (HOT).
 *
 * Where the tags are spread over several databases, `member` is this one's name, `members` all their names in order with
 * commas between them, and `fleet_id` the same random name in each. `moved_to` names the database a tag went to, or goes
 * to while it is `moving`; a tag that is `moving` without it is not open here yet (spread/move-state.ts).
 *
 * `settings` of a tag has all settings of its kind; those that statements need have columns of their own besides.
 * `period` has the periods of sequences that have ended, to be listed; what is granted rests on `other_periods`, the last ids
 * of some of them by first days, which lies in the row that a grant locks. `worker` has the worker ids of
 * snowflake tags that were ever leased; its rows are never removed, and a renewal is HOT too.
 *
 * `earlier_memory_ms`: for how long callers may hold ids that they were given before the revision beside it, where that is
 * longer than now. `node` has the servers on this store; each writes its own row with every poll.
 * `node_gone` has the last 10,000 of its rows that were removed: a row that is missing without a trace shows that the store went
 * back (hosts/own-row.ts).
 * `proved`: whether the server took the store for the one that others know; newcomers go by such rows alone.
 * `ask` has one row at most, while an accept asks servers what they were granted; `claimant` who answered, and `claim` what.
 * `traffic` has what operators said of servers, by their names, so its rows outlive restarts.
 *
 * `standbys` names those that answers wait for, in order with commas between them (hosts/record.ts).
 *
 * `issuing_revision`: the revision at which issuing was stopped or resumed last; `stopped_at_ms`: since when it is stopped.
 *
 * `redis_mark` has how far Redis had counted; only a Redis that went back is told by it.
 */
export const init: Migration = {
  number: 1,
  name: "store and tags",
  worksFrom: 1,
  sql: `
CREATE TABLE idmint.migration (
  number integer PRIMARY KEY,
  name text NOT NULL,
  checksum text NOT NULL,
  works_from integer NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE idmint.store (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  store_id text NOT NULL,
  incarnation text NOT NULL,
  identity text NOT NULL,
  revision bigint NOT NULL CHECK (revision >= 0),
  member text NOT NULL DEFAULT '',
  members text NOT NULL DEFAULT '',
  fleet_id text NOT NULL DEFAULT '',
  standbys text NOT NULL DEFAULT '',
  issuing_revision bigint NOT NULL DEFAULT 0 CHECK (issuing_revision >= 0),
  stopped_at_ms bigint,
  first_epoch bigint NOT NULL DEFAULT 1 CHECK (first_epoch >= 1),
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
  settings text NOT NULL,
  redis boolean NOT NULL,
  period_unit text CHECK (period_unit IN ('DAY', 'WEEK', 'MONTH', 'YEAR')),
  time_zone text CHECK ((time_zone IS NULL) = (period_unit IS NULL)),
  keep_for_ms bigint CHECK (keep_for_ms >= 1 AND (keep_for_ms IS NULL) = (period_unit IS NULL)),
  period_start text COLLATE "C" CHECK (period_start ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'),
  other_periods text,
  generation bigint NOT NULL CHECK (generation >= 0),
  earlier_memory_ms bigint CHECK (earlier_memory_ms >= 1),
  earlier_revision bigint CHECK ((earlier_revision IS NULL) = (earlier_memory_ms IS NULL)),
  moved_to text,
  moving boolean NOT NULL DEFAULT false,
  created_at_ms bigint NOT NULL,
  updated_at_ms bigint NOT NULL,
  written_by xid NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX tag_by_revision ON idmint.tag (revision);

CREATE TABLE idmint.period (
  tag text COLLATE "C" NOT NULL,
  start text COLLATE "C" NOT NULL,
  last_id bigint NOT NULL CHECK (last_id >= 1),
  ended_at_ms bigint NOT NULL,
  PRIMARY KEY (tag, start)
);

CREATE TABLE idmint.worker (
  tag text COLLATE "C" NOT NULL,
  data_center integer NOT NULL CHECK (data_center >= 0),
  worker_id integer NOT NULL CHECK (worker_id >= 0),
  instance text COLLATE "C" NOT NULL CHECK (length(instance) BETWEEN 1 AND 128),
  token bigint NOT NULL CHECK (token >= 1),
  extension integer NOT NULL CHECK (extension >= 0),
  reserved_until_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  written_by xid NOT NULL,
  PRIMARY KEY (tag, data_center, worker_id)
) WITH (fillfactor = 50);

CREATE TABLE idmint.node (
  id text COLLATE "C" PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 128),
  instance text NOT NULL,
  address text NOT NULL,
  version text NOT NULL,
  zone text NOT NULL,
  started_at_ms bigint NOT NULL,
  max_offline_ms bigint CHECK (max_offline_ms >= 1),
  renewals bigint NOT NULL CHECK (renewals >= 1),
  incarnation text NOT NULL,
  obeyed bigint NOT NULL CHECK (obeyed >= 0),
  traffic bigint NOT NULL CHECK (traffic >= 0),
  proved boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

CREATE TABLE idmint.ask (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  nonce text NOT NULL,
  expires_at_ms bigint NOT NULL,
  identity text NOT NULL,
  granting boolean NOT NULL,
  looks integer NOT NULL DEFAULT 0
);

CREATE TABLE idmint.claimant (
  nonce text NOT NULL,
  id text COLLATE "C" NOT NULL CHECK (length(id) BETWEEN 1 AND 128),
  instance text NOT NULL,
  address text NOT NULL,
  since_ms bigint NOT NULL,
  whole boolean NOT NULL,
  pages integer NOT NULL,
  spoken boolean NOT NULL,
  PRIMARY KEY (nonce, id)
);

CREATE TABLE idmint.claim (
  nonce text NOT NULL,
  tag text COLLATE "C" NOT NULL,
  period text COLLATE "C" NOT NULL,
  last bigint NOT NULL CHECK (last >= 1),
  PRIMARY KEY (nonce, tag, period)
);

CREATE TABLE idmint.node_gone (
  number bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  renewals bigint NOT NULL
);

CREATE INDEX node_gone_by_id ON idmint.node_gone (id);

CREATE FUNCTION idmint.note_node_gone() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  INSERT INTO idmint.node_gone (id, renewals) VALUES (old.id, old.renewals);
  DELETE FROM idmint.node_gone AS g
    WHERE g.number <= (SELECT max(l.number) FROM idmint.node_gone AS l) - 10000;
  RETURN NULL;
END $$;

CREATE TRIGGER node_gone AFTER DELETE ON idmint.node
  FOR EACH ROW EXECUTE FUNCTION idmint.note_node_gone();

CREATE TABLE idmint.traffic (
  server text COLLATE "C" PRIMARY KEY CHECK (length(server) BETWEEN 1 AND 128),
  weight integer NOT NULL CHECK (weight BETWEEN 0 AND 1000),
  draining boolean NOT NULL,
  revision bigint NOT NULL CHECK (revision >= 1)
);

CREATE UNIQUE INDEX worker_by_instance ON idmint.worker (tag, data_center, instance);

CREATE TABLE idmint.redis_mark (
  tag text COLLATE "C" NOT NULL,
  generation bigint NOT NULL CHECK (generation >= 0),
  mark bigint NOT NULL CHECK (mark >= 0),
  PRIMARY KEY (tag, generation)
) WITH (fillfactor = 50);

CREATE VIEW idmint.normal_sequence AS
SELECT t.name, t.floor AS current_max_id,
  (t.settings::json #>> '{redis,step}')::bigint AS increment_step
FROM idmint.tag AS t WHERE t.kind = 'sequence' AND t.redis AND t.state <> 'DELETED'
  AND t.moved_to IS NULL;
${nextMax}`,
};

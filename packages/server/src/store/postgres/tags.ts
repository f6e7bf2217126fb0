import {
  type AuditEvent,
  type CallArgs,
  type ChangeOptions,
  type Issuing,
  storeUnavailable,
  storeWentBack,
  type Tag,
  type TagPage,
  type TagSettings,
} from "@idmint/core/server";
import { GRANTED } from "../shared/settings.ts";
import { tagChanged } from "../shared/records/audit.ts";
import {
  advance,
  creation,
  isWritten,
  periodReturn,
  stateChange,
  type TagChanging,
  update,
  type Decision,
  type Stamp,
} from "../shared/change.ts";
import { assertMembership, type PlacedTag, TagMovedError } from "../shared/placed-tag.ts";
import { issuingFromRow, type IssuingRow } from "../shared/issuing.ts";
import { knownTimeZone, timeZoneUnknown } from "../shared/time-zone.ts";
import {
  TAG_COLUMNS,
  tagFromRow,
  type TagRow,
  tagsFromRows,
  valuesOfTag,
} from "../shared/tag-row.ts";
import { addAudit } from "./records/audit.ts";
import type { Connections, Session } from "./connections.ts";
import { proof, STORE_ROW, TAG_IS_OURS } from "./identity.ts";
import { membershipFromRow, type MembershipRow } from "./membership.ts";

const COLUMNS = TAG_COLUMNS.join(", ");
const T_COLUMNS = TAG_COLUMNS.map((column) => `t.${column}`).join(", ");
const PLACES = TAG_COLUMNS.map((_, index) => `$${index + 1}`).join(", ");
const EXCLUDED = TAG_COLUMNS.map((column) => `${column} = excluded.${column}`).join(", ");

const LOCK_STORE = `SELECT ${STORE_ROW}, s.first_epoch, s.member, s.members, s.fleet_id
  FROM idmint.store AS s FOR UPDATE`;
const LOCK_TAG = `SELECT ${T_COLUMNS}, t.moved_to, t.moving, ${TAG_IS_OURS} AS is_ours FROM idmint.tag AS t WHERE t.name = $1 FOR UPDATE`;
const WRITE_TAG = `INSERT INTO idmint.tag (${COLUMNS}, moved_to, moving, written_by)
  VALUES (${PLACES}, $${TAG_COLUMNS.length + 1}, $${TAG_COLUMNS.length + 2}, pg_current_xact_id()::xid)
  ON CONFLICT (name) DO UPDATE SET ${EXCLUDED}, moved_to = excluded.moved_to, moving = excluded.moving,
    written_by = excluded.written_by`;
const TAKE_REVISION = `UPDATE idmint.store SET
  revision = greatest(revision, $1::bigint), written_by = pg_current_xact_id()::xid`;

interface StoreRow extends MembershipRow, IssuingRow {
  readonly incarnation: string;
  readonly fenced: string;
  readonly revision: string;
  readonly first_epoch: string;
  readonly now_ms: string;
}

// The period that is left is listed with those that have ended.
const LEAVE_PERIOD = `INSERT INTO idmint.period (tag, start, last_id, ended_at_ms) VALUES ($1, $2, $3, $4)
  ON CONFLICT (tag, start) DO UPDATE SET last_id = excluded.last_id, ended_at_ms = excluded.ended_at_ms`;

/**
 * One change by an operator.
 *
 * INVARIANT: the row `store` is locked from before the revision is taken until the commit, so revisions become visible in
 * their order, and a poll that has seen one misses none below it. It is locked before the tag's row, always, and grants
 * never lock it: no deadlock. Who made the change is written by the same transaction.
 */
async function change(connections: Connections, wanted: TagChanging): Promise<Decision> {
  const { name, options, kind, leavesPeriod = false, decide } = wanted;
  const by = options?.by;
  const timeZone = kind === undefined ? undefined : knownTimeZone(kind);
  return connections.run((session) =>
    session.transaction(async () => {
      if (timeZone !== undefined) await assertKnown(session, timeZone);
      const { stamp } = await lockStore(session, connections);
      const row = await lockTag(session, name);
      if (row !== undefined && (row.movedTo !== "" || row.moving)) throw new TagMovedError(name);
      const decision = decide(row?.tag, stamp);
      if (isWritten(decision, wanted)) {
        await writeTag(session, { tag: decision.tag, movedTo: "", moving: false });
        if (leavesPeriod && row !== undefined) await leavePeriod(session, row.tag, stamp.nowMs);
        if (by !== undefined) await addAudit(session, tagChanged(by, row?.tag, decision.tag));
      }
      return decision;
    }),
  );
}

/**
 * One step of a move: what `decide` answers becomes the row; undefined leaves it. `incarnation`: the history of the
 * database in which the step was decided upon; in another one it is refused. `told` is what the audit trail is told of it.
 */
export async function rewriteTag(
  connections: Connections,
  name: string,
  decide: (row: PlacedTag | undefined, stamp: Stamp) => PlacedTag | undefined,
  incarnation?: string,
  told?: (stamp: Stamp) => AuditEvent,
): Promise<void> {
  await connections.run((session) =>
    session.transaction(async () => {
      const store = await lockStore(session, connections);
      if (incarnation !== undefined && incarnation !== store.incarnation) {
        throw storeUnavailable("the database was accepted anew meanwhile");
      }
      const row = decide(await lockTag(session, name), store.stamp);
      if (row === undefined) return;
      await writeTag(session, row);
      if (told !== undefined) await addAudit(session, told(store.stamp));
    }),
  );
}

async function leavePeriod(
  session: Session,
  { name, periodStart, floor }: Tag,
  nowMs: number,
): Promise<void> {
  if (floor === 0n) return;
  await session.query({ text: LEAVE_PERIOD, values: [name, periodStart, String(floor), nowMs] });
}

async function lockTag(session: Session, name: string): Promise<PlacedTag | undefined> {
  const [row] = await session.query<PlacedRow & { is_ours: boolean }>({
    text: LOCK_TAG,
    values: [name],
  });
  if (row?.is_ours === false) {
    throw storeWentBack(
      `tag "${name}" was loaded from a dump, changed by hand, or rewritten by an ALTER TABLE`,
    );
  }
  return row === undefined ? undefined : placedFromRow(row);
}

async function writeTag(session: Session, { tag, movedTo, moving }: PlacedTag): Promise<void> {
  const values = valuesOfTag(tag).map((value) => (value === null ? null : String(value)));
  const place = [movedTo === "" ? null : movedTo, moving];
  await session.query({ text: WRITE_TAG, values: [...values, ...place] });
  await session.query({ text: TAKE_REVISION, values: [String(tag.revision)] });
}

type PlacedRow = TagRow & { readonly moved_to: string | null; readonly moving: boolean };

function placedFromRow(row: PlacedRow): PlacedTag {
  return { tag: tagFromRow(row), movedTo: row.moved_to ?? "", moving: row.moving };
}

// A row with a zone that PostgreSQL does not know would fail every grant it is part of.
const KNOWS_ZONE =
  "SELECT EXISTS (SELECT FROM pg_timezone_names WHERE lower(name) = lower($1)) AS knows";

async function assertKnown(session: Session, timeZone: string): Promise<void> {
  const values = [timeZone];
  const [row] = await session.query<{ knows: boolean }>({ text: KNOWS_ZONE, values });
  if (row?.knows !== true) throw timeZoneUnknown(timeZone, "PostgreSQL");
}

/** Locks the row `store`, for one change by an operator. */
export async function lockStore(
  session: Session,
  { place }: Connections,
): Promise<{ stamp: Stamp; incarnation: string; issuing: Issuing }> {
  const [store] = await session.query<StoreRow>({ text: LOCK_STORE });
  if (store === undefined) throw storeWentBack("the store has lost its identity");
  if (store.fenced !== "") throw storeWentBack(store.fenced);
  assertMembership(membershipFromRow(store), place);
  const revision = BigInt(store.revision) + 1n;
  const firstEpoch = BigInt(store.first_epoch);
  const stamp = { revision, nowMs: Number(store.now_ms), firstEpoch };
  return { stamp, incarnation: store.incarnation, issuing: issuingFromRow(store) };
}

/** `isHome` is false in a database that the tag was moved to: there it can only be made over the row it has. */
export async function createTag(
  connections: Connections,
  settings: TagSettings,
  options?: ChangeOptions,
  isHome = true,
): Promise<Tag> {
  const wanted = creation(settings, options);
  const { tag } = await change(connections, {
    ...wanted,
    decide: (row, stamp) => {
      if (row === undefined && !isHome) throw new TagMovedError(settings.name);
      return wanted.decide(row, stamp);
    },
  });
  return tag;
}

export async function updateTag(
  connections: Connections,
  ...args: CallArgs["updateTag"]
): Promise<Tag> {
  const { tag } = await change(connections, update(...args));
  return tag;
}

export async function setTagState(
  connections: Connections,
  ...args: CallArgs["setTagState"]
): Promise<Tag> {
  const { tag } = await change(connections, stateChange(...args));
  return tag;
}

export async function advanceTag(
  connections: Connections,
  ...args: CallArgs["advanceTag"]
): Promise<{ tag: Tag; raised: boolean }> {
  const { tag, changed } = await change(connections, advance(...args));
  return { tag, raised: changed };
}

export async function returnToPeriod(
  connections: Connections,
  ...args: CallArgs["returnToPeriod"]
): Promise<{ tag: Tag; returned: boolean }> {
  const { tag, changed } = await change(connections, periodReturn(...args));
  return { tag, returned: changed };
}

const GET = {
  name: "idmint-get-1",
  text: `WITH ${proof("'{}'::text[]")}
SELECT p.fenced, ${T_COLUMNS}, t.moved_to, t.moving
FROM proof AS p LEFT JOIN idmint.tag AS t ON t.name = ANY ($1::text[])`,
};

// Names are ASCII and never hold "~", which is above all they may hold: it closes the range of a prefix.
const LIST = {
  name: "idmint-list-1",
  text: `WITH ${proof("'{}'::text[]")}, page AS (
  SELECT * FROM idmint.tag AS t
  WHERE t.name > $1 AND t.name >= $2 AND t.name < $2 || '~' AND ($3::boolean OR t.state <> 'DELETED')
    AND (t.moved_to IS NULL OR t.moving)
  ORDER BY t.name LIMIT $4
)
SELECT p.fenced, ${T_COLUMNS}, t.moved_to, t.moving FROM proof AS p LEFT JOIN page AS t ON true ORDER BY t.name`,
};

/** The rows of these names, also of tags that are elsewhere. */
export async function getRows(
  connections: Connections,
  names: readonly string[],
): Promise<readonly PlacedTag[]> {
  const rows = await readTags(connections, { ...GET, values: [names] });
  return rows.map(placedFromRow);
}

export async function getTags(
  connections: Connections,
  names: readonly string[],
): Promise<readonly Tag[]> {
  const rows = await getRows(connections, names);
  return rows.filter((row) => row.movedTo === "" || row.moving).map(({ tag }) => tag);
}

export async function listTags(
  connections: Connections,
  query: CallArgs["listTags"][0],
): Promise<TagPage> {
  const { afterName, prefix, showDeleted, limit } = query;
  const values = [afterName, prefix, showDeleted, limit];
  return tagsFromRows(await readTags(connections, { ...LIST, values }));
}

// The number of a transaction tells how old it is, whatever vacuuming has done to the row.
const RECENT = {
  name: "idmint-recent-1",
  text: `SELECT t.name FROM idmint.tag AS t 
  WHERE t.kind IN (${GRANTED}) AND t.state <> 'DELETED' AND (t.moved_to IS NULL OR t.moving)
  ORDER BY age(t.written_by), t.name LIMIT $1`,
};

export async function recentTags(
  connections: Connections,
  limit: number,
): Promise<readonly string[]> {
  const rows = await connections.run((session) =>
    session.query<{ readonly name: string }>({ ...RECENT, values: [limit] }),
  );
  return rows.map(({ name }) => name);
}

/** A row of proof with or without a tag beside it. */
type ProvenRow = { readonly fenced: string } & {
  readonly [Column in keyof PlacedRow]: PlacedRow[Column] | null;
};

async function readTags(
  connections: Connections,
  statement: { name: string; text: string; values: unknown[] },
): Promise<readonly PlacedRow[]> {
  const rows = await connections.run((session) => session.query<ProvenRow>(statement));
  const [first] = rows;
  if (first === undefined) throw storeWentBack("the store has lost its identity");
  if (first.fenced !== "") throw storeWentBack(first.fenced);
  return rows.filter(hasTag).map((row) => ({ ...row, moving: row.moving === true }));
}

/** Whether an outer join found a tag. */
export function hasTag<Row extends { readonly name: string | null }>(
  row: Row,
): row is Row & TagRow {
  return row.name !== null;
}

import type { Tag, TagChange, TagKind, TagSettings, TagStore } from "@idmint/core";
import {
  advancedTag,
  createdTag,
  type Decision,
  type Stamp,
  tagInState,
  updatedTag,
} from "../shared/change.ts";
import { storeWentBack } from "../shared/failures.ts";
import { knownTimeZone, timeZoneUnknown } from "../shared/time-zone.ts";
import { TAG_COLUMNS, tagFromRow, type TagRow, valuesOfTag } from "../shared/tag-row.ts";
import type { Connections, Session } from "./connections.ts";
import { proof, STORE_ROW, TAG_IS_OURS } from "./identity.ts";

const COLUMNS = TAG_COLUMNS.join(", ");
const T_COLUMNS = TAG_COLUMNS.map((column) => `t.${column}`).join(", ");
const PLACES = TAG_COLUMNS.map((_, index) => `$${index + 1}`).join(", ");
const EXCLUDED = TAG_COLUMNS.map((column) => `${column} = excluded.${column}`).join(", ");

const LOCK_STORE = `SELECT ${STORE_ROW} FROM idmint.store AS s FOR UPDATE`;
const LOCK_TAG = `SELECT ${T_COLUMNS}, ${TAG_IS_OURS} AS is_ours FROM idmint.tag AS t WHERE t.name = $1 FOR UPDATE`;
const WRITE_TAG = `INSERT INTO idmint.tag (${COLUMNS}, written_by) VALUES (${PLACES}, pg_current_xact_id()::xid)
  ON CONFLICT (name) DO UPDATE SET ${EXCLUDED}, written_by = excluded.written_by`;
const TAKE_REVISION =
  "UPDATE idmint.store SET revision = $1, written_by = pg_current_xact_id()::xid";

interface StoreRow {
  readonly fenced: string;
  readonly revision: string;
  readonly now_ms: string;
}

/**
 * One change by an operator.
 *
 * INVARIANT: the row `store` is locked from before the revision is taken until the commit, so revisions become visible in
 * their order, and a poll that has seen one misses none below it. It is locked before the tag's row, always, and grants
 * never lock it: no deadlock.
 */
async function change(
  connections: Connections,
  name: string,
  decide: (row: Tag | undefined, stamp: Stamp) => Decision,
  kind?: TagKind,
): Promise<Decision> {
  const timeZone = kind === undefined ? undefined : knownTimeZone(kind);
  return connections.run((session) =>
    session.transaction(async () => {
      if (timeZone !== undefined) await assertKnown(session, timeZone);
      const stamp = await lockStore(session);
      const rows = await session.query<TagRow & { is_ours: boolean }>({
        text: LOCK_TAG,
        values: [name],
      });
      const [row] = rows;
      if (row?.is_ours === false) {
        throw storeWentBack(`tag "${name}" was loaded from a dump or changed by hand`);
      }
      const decision = decide(row === undefined ? undefined : tagFromRow(row), stamp);
      if (!decision.changed) return decision;
      const values = valuesOfTag(decision.tag).map((value) =>
        value === null ? null : String(value),
      );
      await session.query({ text: WRITE_TAG, values });
      await session.query({ text: TAKE_REVISION, values: [String(stamp.revision)] });
      return decision;
    }),
  );
}

// A row with a zone that PostgreSQL does not know would fail every grant it is part of.
const KNOWS_ZONE =
  "SELECT EXISTS (SELECT FROM pg_timezone_names WHERE lower(name) = lower($1)) AS knows";

async function assertKnown(session: Session, timeZone: string): Promise<void> {
  const values = [timeZone];
  const [row] = await session.query<{ knows: boolean }>({ text: KNOWS_ZONE, values });
  if (row?.knows !== true) throw timeZoneUnknown(timeZone, "PostgreSQL");
}

async function lockStore(session: Session): Promise<Stamp> {
  const [store] = await session.query<StoreRow>({ text: LOCK_STORE });
  if (store === undefined) throw storeWentBack("the store has lost its identity");
  if (store.fenced !== "") throw storeWentBack(store.fenced);
  return { revision: BigInt(store.revision) + 1n, nowMs: Number(store.now_ms) };
}

export async function createTag(connections: Connections, settings: TagSettings): Promise<Tag> {
  const decision = await change(
    connections,
    settings.name,
    (row, stamp) => createdTag(row, settings, stamp),
    settings.kind,
  );
  return decision.tag;
}

export async function updateTag(
  connections: Connections,
  name: string,
  what: TagChange,
  expectedRevision: bigint | undefined,
): Promise<Tag> {
  const decision = await change(
    connections,
    name,
    (row, stamp) => updatedTag(name, row, what, expectedRevision, stamp),
    what.settings?.kind,
  );
  return decision.tag;
}

export async function setTagState(
  connections: Connections,
  name: string,
  state: Tag["state"],
  expectedRevision: bigint | undefined,
): Promise<Tag> {
  const decision = await change(connections, name, (row, stamp) =>
    tagInState(name, row, state, expectedRevision, stamp),
  );
  return decision.tag;
}

export async function advanceTag(
  connections: Connections,
  name: string,
  floor: bigint,
  options: Parameters<TagStore["advanceTag"]>[2],
): Promise<{ tag: Tag; raised: boolean }> {
  let raised = false;
  const decision = await change(connections, name, (row, stamp) => {
    const would = advancedTag(name, row, floor, options, stamp);
    raised = would.changed;
    return options.validateOnly ? { ...would, changed: false } : would;
  });
  return { tag: decision.tag, raised };
}

const GET = {
  name: "idmint-get-1",
  text: `WITH ${proof("'{}'::text[]")}
SELECT p.fenced, ${T_COLUMNS} FROM proof AS p LEFT JOIN idmint.tag AS t ON t.name = ANY ($1::text[])`,
};

// Names are ASCII and never hold "~", which is above all they may hold: it closes the range of a prefix.
const LIST = {
  name: "idmint-list-1",
  text: `WITH ${proof("'{}'::text[]")}, page AS (
  SELECT * FROM idmint.tag AS t
  WHERE t.name > $1 AND t.name >= $2 AND t.name < $2 || '~' AND ($3::boolean OR t.state <> 'DELETED')
  ORDER BY t.name LIMIT $4
)
SELECT p.fenced, ${T_COLUMNS} FROM proof AS p LEFT JOIN page AS t ON true ORDER BY t.name`,
};

export async function getTags(
  connections: Connections,
  names: readonly string[],
): Promise<readonly Tag[]> {
  return readTags(connections, { ...GET, values: [names] });
}

export async function listTags(
  connections: Connections,
  query: Parameters<TagStore["listTags"]>[0],
): Promise<readonly Tag[]> {
  const { afterName, prefix, showDeleted, limit } = query;
  return readTags(connections, { ...LIST, values: [afterName, prefix, showDeleted, limit] });
}

/** A row of proof with or without a tag beside it. */
type ProvenRow = { readonly fenced: string } & {
  readonly [Column in keyof TagRow]: TagRow[Column] | null;
};

async function readTags(
  connections: Connections,
  statement: { name: string; text: string; values: unknown[] },
): Promise<readonly Tag[]> {
  const rows = await connections.run((session) => session.query<ProvenRow>(statement));
  const [first] = rows;
  if (first === undefined) throw storeWentBack("the store has lost its identity");
  if (first.fenced !== "") throw storeWentBack(first.fenced);
  return rows.filter(hasTag).map(tagFromRow);
}

/** Whether an outer join found a tag. */
export function hasTag<Row extends { readonly name: string | null }>(
  row: Row,
): row is Row & TagRow {
  return row.name !== null;
}

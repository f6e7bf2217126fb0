import { storeWentBack } from "@idmint/core/server";
import type { Membership, PlacedTag } from "../shared/placed-tag.ts";
import { TAG_COLUMNS, tagFromRow, type TagRow, valuesOfTag } from "../shared/tag-row.ts";
import type { Connections, Session } from "./connections.ts";
import { STORE_ROW } from "./identity.ts";

export interface MembershipRow {
  readonly member: string;
  readonly members: string;
  readonly fleet_id: string;
}

/** A database as one of several. */
export interface Standing extends Membership {
  readonly incarnation: string;
  /** Why it grants nothing; empty when all is well. */
  readonly fenced: string;
  /** Whether it has any tag, also one on its way to or from it. */
  readonly hasTags: boolean;
}

const READ = `SELECT ${STORE_ROW}, s.member, s.members, s.fleet_id,
  EXISTS (SELECT FROM idmint.tag WHERE moved_to IS NULL OR moving) AS has_tags FROM idmint.store AS s`;
const WRITE = `UPDATE idmint.store SET member = $1, members = $2, fleet_id = $3,
  written_by = pg_current_xact_id()::xid`;
const PAGE = `SELECT * FROM idmint.tag AS t WHERE t.name > $1 ORDER BY t.name LIMIT $2`;
const COLUMNS = TAG_COLUMNS.join(", ");
const PLACES = TAG_COLUMNS.map((_, index) => `$${index + 1}`).join(", ");
const TO = `$${TAG_COLUMNS.length + 1}`;
const POINT = `INSERT INTO idmint.tag (${COLUMNS}, moved_to, written_by)
  SELECT ${PLACES}, ${TO}, pg_current_xact_id()::xid
  WHERE $${TAG_COLUMNS.length + 2}::boolean OR EXISTS (SELECT FROM idmint.tag AS o WHERE o.name = $1)
  ON CONFLICT (name) DO UPDATE SET moved_to = excluded.moved_to, moving = false,
    version = excluded.version, written_by = excluded.written_by
  WHERE tag.version < excluded.version`;
const COVER = `UPDATE idmint.store SET revision = greatest(revision, 1),
  written_by = pg_current_xact_id()::xid`;

export function membershipFromRow({
  member,
  members,
  fleet_id: fleetId,
}: MembershipRow): Membership {
  return { member, members: members === "" ? [] : members.split(","), fleetId };
}

async function readRow(
  session: Session,
  lock = "",
): Promise<MembershipRow & { fenced: string; incarnation: string; has_tags: boolean }> {
  type StoreRow = Awaited<ReturnType<typeof readRow>>;
  const [row] = await session.query<StoreRow>({ text: READ + lock });
  if (row === undefined) throw storeWentBack("the store has lost its identity");
  return row;
}

const FIND = "SELECT s.member, s.members, s.fleet_id FROM idmint.store AS s";

/** What a database is; undefined where it has lost its identity, and so grants nothing. */
export async function findMembership(connections: Connections): Promise<Membership | undefined> {
  const [row] = await connections.run((session) => session.query<MembershipRow>({ text: FIND }));
  return row === undefined ? undefined : membershipFromRow(row);
}

export async function readStanding(connections: Connections): Promise<Standing> {
  const row = await connections.run((session) => readRow(session));
  const { fenced, incarnation, has_tags: hasTags } = row;
  return { ...membershipFromRow(row), fenced, incarnation, hasTags };
}

/** Records what `decide` makes of the record, under its lock; undefined leaves it. */
export async function writeMembership(
  connections: Connections,
  decide: (found: Standing) => Membership | undefined,
): Promise<void> {
  await connections.run((session) =>
    session.transaction(async () => {
      const row = await readRow(session, " FOR UPDATE");
      if (row.fenced !== "") throw storeWentBack(row.fenced);
      const { fenced, incarnation, has_tags: hasTags } = row;
      const found = { ...membershipFromRow(row), fenced, incarnation, hasTags };
      const next = decide(found);
      if (next === undefined) return;
      await session.query({
        text: WRITE,
        values: [next.member, next.members.join(","), next.fleetId],
      });
    }),
  );
}

/** Up to `limit` rows with name > `afterName`, wherever their tags are. */
export async function pageOfRows(
  connections: Connections,
  afterName: string,
  limit: number,
): Promise<readonly PlacedTag[]> {
  const values = [afterName, limit];
  type PlacedTagRow = TagRow & { readonly moved_to: string | null; readonly moving: boolean };
  const rows = await connections.run((session) =>
    session.query<PlacedTagRow>({ text: PAGE, values }),
  );
  return rows.map((row) => ({
    tag: tagFromRow(row),
    movedTo: row.moved_to ?? "",
    moving: row.moving,
  }));
}

/** What this database shall know of a row of another one. */
export interface Pointer {
  readonly row: PlacedTag;
  /** The other database. */
  readonly in: string;
  /** Whether the tag is at home here, and so has to be known here. */
  readonly isHome: boolean;
}

/**
 * Makes the rows of tags that are elsewhere say so.
 *
 * INVARIANT: a row is overruled by a higher version only: of the rows of a tag the one that may grant has the highest.
 * What is written here has a version below that of the row it points to, and so overrules none that has arrived since. It
 * is written into a database that went back too, before that is accepted.
 */
export async function point(connections: Connections, pointers: readonly Pointer[]): Promise<void> {
  await connections.run((session) =>
    session.transaction(async () => {
      for (const { row, in: database, isHome } of pointers) {
        const { version } = row.tag;
        const below = { ...row.tag, version: version > 0n ? version - 1n : 0n, revision: 1n };
        const values = valuesOfTag(below).map((value) => (value === null ? null : String(value)));
        await session.query({ text: POINT, values: [...values, database, isHome] });
      }
      await session.query({ text: COVER });
    }),
  );
}

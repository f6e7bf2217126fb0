import type { GiveBackRequest } from "@idmint/core/server";
import type { Connections } from "./connections.ts";
import { SEGMENTS } from "../shared/settings.ts";
import { widthOf } from "../shared/records/ledger-row.ts";
import { proof, TAG_IS_OURS } from "./identity.ts";

/**
 * Lowers floors by the unused ends of grants: names, first ids, last ids, versions, allowed unsafe settings; then who gives
 * back, null where the ledger shall not say, and the widths of ranges.
 *
 * INVARIANT: the floor is lowered only while it still ends at the grant *and* the row still has the grant's version: an
 * equal floor alone may be that of a later grant, after another give-back. Both are read from the locked row, in its
 * newest version. The version rises here too, so a give-back that is sent twice finds another one and does nothing. A row
 * that another session has locked is left alone: most likely ids are being granted above. Only segments go back: ids of a
 * sequence were passed on in their order, and those of a tag that counts in Redis are Redis' until it has a new start.
 */
const GIVE_BACK = {
  name: "idmint-give-back-2",
  text: `WITH request AS MATERIALIZED (
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $6::text[], $7::text[], $8::bigint[], $9::int[])
    AS r (name, first_id, last_id, version, node_id, server, at_ms, width)
), ${proof("$5::text[]")}, locked AS MATERIALIZED (
  SELECT t.name, t.kind, t.state, t.floor, t.version, t.epoch,
    ${TAG_IS_OURS} AND t.moved_to IS NULL AND NOT t.moving AS is_ours
  FROM idmint.tag AS t WHERE t.name = ANY ($1::text[]) ORDER BY t.name FOR UPDATE SKIP LOCKED
), judged AS MATERIALIZED (
  SELECT r.*, r.first_id - 1 AS floor, r.last_id - r.first_id + 1 AS count, l.epoch
  FROM request AS r JOIN locked AS l ON l.name = r.name CROSS JOIN proof AS p
  WHERE p.fenced = '' AND l.is_ours AND l.kind IN (${SEGMENTS}) AND l.state <> 'DELETED'
    AND l.floor = r.last_id AND l.version = r.version
), noted AS (
  INSERT INTO idmint.ledger (tag, entry, width, first_id, last_id, version, epoch, node_id, server, sequence, instance, principal, at_ms)
  SELECT j.name, 'give-back', j.width, j.first_id, j.last_id, j.version + 1, j.epoch, j.node_id, j.server, 0, '', '', j.at_ms
  FROM judged AS j WHERE j.node_id IS NOT NULL
)
UPDATE idmint.tag AS t SET
  floor = j.floor, version = t.version + 1, written_by = pg_current_xact_id()::xid
FROM judged AS j WHERE t.name = j.name
RETURNING t.name, j.count`,
};

interface GiveBackRow {
  readonly name: string;
  readonly count: string;
}

export async function giveBack(
  connections: Connections,
  requests: readonly GiveBackRequest[],
): Promise<readonly number[]> {
  const values = [
    requests.map(({ tag }) => tag),
    requests.map(({ from }) => String(from)),
    requests.map(({ to }) => String(to)),
    requests.map(({ version }) => String(version)),
    [],
    requests.map(({ giver }) => giver?.nodeId ?? null),
    requests.map(({ giver }) => giver?.server ?? null),
    requests.map(({ giver }) => (giver === undefined ? null : String(Math.floor(giver.atMs)))),
    requests.map(({ from, to }) => widthOf(from, to)),
  ];
  const rows = await connections.run((session) =>
    session.query<GiveBackRow>({ ...GIVE_BACK, values }),
  );
  const counts = new Map(rows.map(({ name, count }) => [name, Number(count)]));
  return requests.map(({ tag }) => counts.get(tag) ?? 0);
}

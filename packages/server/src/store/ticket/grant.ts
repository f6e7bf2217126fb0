import { type SlotGrant, storeUnavailable, type TicketRequest } from "@idmint/core/server";
import { proof } from "../postgres/identity.ts";
import type { Connections } from "../postgres/connections.ts";
import { refuseUnsafeSettings } from "../postgres/grant.ts";
import { ticketWentBack } from "./config.ts";

/**
 * One statement for some slots of one tag: slotsId, slots, epochs, seen last ids, counts, ceiling, allowed unsafe settings.
 *
 * INVARIANTS
 * - Two grants of a slot never overlap, for the reasons given for the store's grants: `locked` holds the row locks, in the
 *   order of the slots, and has the newest row versions; all checks are made on those.
 * - A slot grants only where it is active, owned by this very database, under the epoch that the caller knows. Whoever
 *   froze it changed owner, epoch and state in one row version, so a grant is before that or refused, never both.
 * - It grants only if it was raised since the server was started: what was down comes back above the fleet's highest id
 *   even for callers who did not notice.
 * - `room` cannot overflow: ceiling − slots is compared before last_id, which is above −slots, is taken from it.
 */
const GRANT = {
  name: "idmint-ticket-grant-1",
  text: `WITH request AS MATERIALIZED (
  SELECT * FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[])
    WITH ORDINALITY AS r (slot, epoch, seen_last_id, count, position)
), ${proof("$7::text[]", "idmint_ticket.database")}, locked AS MATERIALIZED (
  SELECT t.slot, t.slots, t.owner, t.epoch, t.last_id, t.state, t.raised_under,
    t.xmin = t.written_by AS is_ours,
    CASE WHEN t.last_id > $6::bigint - t.slots THEN 0
      ELSE ($6::bigint - t.slots - t.last_id) / t.slots + 1 END AS room
  FROM idmint_ticket.slot AS t WHERE t.slots_id = $1 AND t.slot = ANY ($2::int[])
  ORDER BY t.slot FOR UPDATE
), judged AS MATERIALIZED (
  SELECT r.slot, r.position, l.slots, l.epoch, least(r.count, l.room) AS count, CASE
    WHEN l.slot IS NULL THEN 'it has lost the slot'
    WHEN NOT l.is_ours THEN 'the slot was loaded from a dump or changed by hand'
    WHEN l.epoch < r.epoch THEN 'the slot is at epoch ' || l.epoch || ', after ' || r.epoch
    WHEN l.last_id < r.seen_last_id
      THEN 'the slot is at ' || l.last_id || ', after ' || r.seen_last_id
    ELSE p.fenced END AS behind, CASE
    WHEN p.unsafe <> '' THEN 'UNSAFE'
    WHEN l.state <> 'active' OR l.epoch <> r.epoch OR l.owner <> d.database_id THEN 'MOVED'
    WHEN l.raised_under <> pg_postmaster_start_time() THEN 'NOT_RAISED'
    WHEN l.room < 1 THEN 'EXHAUSTED'
    ELSE '' END AS refused,
    p.unsafe, d.database_id
  FROM request AS r CROSS JOIN proof AS p CROSS JOIN idmint_ticket.database AS d
    LEFT JOIN locked AS l ON l.slot = r.slot
), granted AS (
  UPDATE idmint_ticket.slot AS t SET
    last_id = t.last_id + j.count * t.slots, written_by = pg_current_xact_id()::xid
  FROM judged AS j
  WHERE t.slots_id = $1 AND t.slot = j.slot AND j.behind = '' AND j.refused = ''
    AND t.owner = j.database_id AND t.epoch = j.epoch AND t.state = 'active'
  RETURNING t.slot, t.last_id
)
SELECT j.slot, j.behind, j.refused, j.unsafe, j.count, j.slots, g.last_id
FROM judged AS j LEFT JOIN granted AS g ON g.slot = j.slot ORDER BY j.position`,
};

interface SlotGrantRow {
  readonly slot: number;
  readonly behind: string;
  readonly refused: "UNSAFE" | "MOVED" | "NOT_RAISED" | "EXHAUSTED" | "";
  readonly unsafe: string;
  readonly count: string;
  readonly slots: number;
  readonly last_id: string | null;
}

export async function grant(
  connections: Connections,
  name: string,
  { slotsId, ceiling, requests }: TicketRequest,
): Promise<readonly SlotGrant[]> {
  const values = [
    slotsId,
    requests.map(({ slot }) => slot),
    requests.map(({ epoch }) => String(epoch)),
    requests.map(({ seenLastId }) => String(seenLastId)),
    requests.map(({ count }) => String(count)),
    String(ceiling),
    connections.allowUnsafe,
  ];
  const rows = await connections.run((session) =>
    session.query<SlotGrantRow>({ ...GRANT, values }),
  );
  if (rows.length === 0) throw ticketWentBack(name, "it has lost its identity");
  const unsafe = rows[0]?.unsafe ?? "";
  if (unsafe !== "") refuseUnsafeSettings(unsafe);
  for (const { slot, behind } of rows) {
    // What the other slots granted is burnt: nothing of a database that went back is used.
    if (behind !== "") throw ticketWentBack(name, `slot ${slot} of ${slotsId}: ${behind}`);
  }
  connections.hasServed();
  return rows.map((row) => grantOf(row, slotsId));
}

function grantOf(row: SlotGrantRow, slotsId: string): SlotGrant {
  const { slot, refused } = row;
  if (refused !== "" && refused !== "UNSAFE") return { slot, outcome: "refused", reason: refused };
  if (row.last_id === null) {
    throw storeUnavailable(`the outcome of a grant of slot ${slot} of ${slotsId} is not known`);
  }
  const lastId = BigInt(row.last_id);
  const count = Number(row.count);
  const first = lastId - BigInt(count - 1) * BigInt(row.slots);
  return { slot, outcome: "granted", first, count, lastId };
}

import {
  type Raised,
  type RaiseRequest,
  type Refused,
  storeUnavailable,
} from "@idmint/core/server";
import type { Connections } from "./connections.ts";
import { type Judged, refusedOf, safeRows } from "./grant.ts";
import { proof, TAG_IS_OURS } from "./identity.ts";

/**
 * Raises the bound of one tag: its name, by how far, to at least, whether with a new generation, the seen version, allowed
 * unsafe settings, the least new generation.
 *
 * INVARIANTS: as of a grant. The row is locked before it is judged, and judged in its newest version, so no two callers are
 * answered the same ids or the same new generation; `ceiling − floor` cannot overflow, `floor + by` could.
 */
const RAISE = {
  name: "idmint-raise-2",
  text: `WITH request AS MATERIALIZED (
  SELECT $1::text AS name, $2::bigint AS by, $3::bigint AS at_least, $4::boolean AS new_generation,
    $5::bigint AS seen_version, $7::bigint AS generation_from
), ${proof("$6::text[]")}, locked AS MATERIALIZED (
  SELECT t.name, t.redis, t.state, t.floor, t.ceiling, t.version, ${TAG_IS_OURS} AS is_ours,
    t.moved_to IS NULL AND NOT t.moving AS is_here
  FROM idmint.tag AS t WHERE t.name = $1 FOR UPDATE
), judged AS MATERIALIZED (
  SELECT r.name, r.new_generation, r.generation_from, l.version, p.unsafe, p.fenced, l.is_ours,
    greatest(least(r.by, l.ceiling - l.floor), least(r.at_least, l.ceiling) - l.floor) AS rise,
    CASE
    WHEN p.unsafe <> '' THEN 'STORE_UNSAFE'
    WHEN p.fenced <> '' OR NOT l.is_ours THEN 'STORE_EPOCH_CHANGED'
    WHEN NOT l.is_here THEN 'TAG_MOVED'
    WHEN l.version < r.seen_version THEN 'STORE_EPOCH_CHANGED'
    WHEN l.name IS NULL AND r.seen_version > 0 THEN 'STORE_EPOCH_CHANGED'
    WHEN l.name IS NULL OR l.state = 'DELETED' THEN 'TAG_NOT_FOUND'
    WHEN NOT l.redis THEN 'WRONG_KIND'
    WHEN l.state <> 'ACTIVE' THEN 'TAG_PAUSED'
    WHEN l.floor = l.ceiling THEN 'TAG_EXHAUSTED'
    ELSE '' END AS refused
  FROM request AS r CROSS JOIN proof AS p LEFT JOIN locked AS l ON l.name = r.name
), raised AS (
  UPDATE idmint.tag AS t SET
    floor = t.floor + j.rise,
    generation = CASE WHEN j.new_generation THEN greatest(t.generation + 1, j.generation_from)
      ELSE t.generation END,
    version = t.version + 1, written_by = pg_current_xact_id()::xid
  FROM judged AS j WHERE t.name = j.name AND j.refused = ''
  RETURNING t.name, t.floor, t.generation, t.version, t.epoch
)
SELECT j.name, j.refused, j.unsafe, j.fenced, j.is_ours, j.version AS seen, j.rise,
  n.floor, n.generation, n.version, n.epoch
FROM judged AS j LEFT JOIN raised AS n ON n.name = j.name`,
};

interface RaiseRow extends Judged {
  readonly rise: string;
  readonly floor: string | null;
  readonly generation: string;
  readonly version: string;
  readonly epoch: string;
}

export async function raise(
  connections: Connections,
  request: RaiseRequest,
): Promise<Raised | Refused> {
  const { tag, by, atLeast, newGeneration, generationFrom = 0n, seenVersion } = request;
  const values = [
    tag,
    String(by),
    String(atLeast),
    newGeneration,
    String(seenVersion),
    connections.allowUnsafe,
    String(generationFrom),
  ];
  const [row] = await connections.run(async (session) =>
    safeRows(await session.query<RaiseRow>({ ...RAISE, values })),
  );
  if (row === undefined) {
    const detail = "the store has lost its identity";
    return { outcome: "refused", tag, reason: "STORE_EPOCH_CHANGED", detail };
  }
  const refused = refusedOf(row, row.refused, request);
  if (refused !== undefined) return refused;
  // As in a grant: judged to be raised and not updated cannot be.
  if (row.floor === null) throw storeUnavailable(`the outcome of a raise of "${tag}" is not known`);
  const floor = BigInt(row.floor);
  return {
    outcome: "raised",
    tag,
    before: floor - BigInt(row.rise),
    floor,
    generation: BigInt(row.generation),
    version: BigInt(row.version),
    epoch: BigInt(row.epoch),
  };
}

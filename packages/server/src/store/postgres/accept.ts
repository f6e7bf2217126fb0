import { randomUUID } from "node:crypto";
import {
  GENERATIONS_AHEAD,
  type Accepted,
  type AskedClaims,
  type AuditNote,
  DEFAULT_MAX_OFFLINE_MS,
  FORGOTTEN,
  storeWentBack,
} from "@idmint/core/server";
import { ACCEPT_TIMEOUT_MS } from "../shared/config.ts";
import { storeAccepted } from "../shared/records/audit.ts";
import { CLOCK_MARGIN_MS } from "../shared/period.ts";
import { assertReadable, TAG_COLUMNS, type TagRow } from "../shared/tag-row.ts";
import { columnFrom } from "../shared/text-settings.ts";
import { LEASING } from "../shared/settings.ts";
import { acceptedFloor } from "../shared/worker-pool.ts";
import { addAudit } from "./records/audit.ts";
import { endAsks, NOTHING_TAKEN, takeClaims } from "./records/claims.ts";
import type { Connections, Session } from "./connections.ts";
import { assertLogged } from "./faults/unlogged.ts";
import { PRESENT_IDENTITY } from "./identity.ts";
import { forgetLedger } from "./records/ledger.ts";
import { addLostNodes } from "./nodes.ts";
import { timeLimits } from "./session.ts";
import { endPeriods, lastIdOf, periodAt } from "./periods.ts";

// Of this transaction: an accept has a time of its own.
const LIMITS =
  "SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true)";
const LOCK_STORE = "SELECT revision, incarnation FROM idmint.store FOR UPDATE";
const LOCK_TAGS = "SELECT count(*) FROM (SELECT FROM idmint.tag ORDER BY name FOR UPDATE) AS t";
const PAGE = `SELECT ${TAG_COLUMNS.join(", ")} FROM idmint.tag WHERE name > $1 ORDER BY name LIMIT 1000`;
const BEGIN_PERIODS = `WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS now), begun AS MATERIALIZED (
  SELECT t.name, t.period_start, t.floor, t.keep_for_ms, m.now, p.start,
    coalesce(t.period_start < p.start, false) AS has_ended, ${lastIdOf("t", "p.start")} AS begins_at
  FROM idmint.tag AS t CROSS JOIN moment AS m CROSS JOIN LATERAL (
    SELECT greatest(t.period_start, ${periodAt("t.period_unit", "t.time_zone", `(m.now + interval '${CLOCK_MARGIN_MS} ms')`)}) AS start
  ) AS p WHERE t.period_unit IS NOT NULL AND t.moved_to IS NULL
), over AS MATERIALIZED (SELECT * FROM begun WHERE has_ended), ${endPeriods("over")}
UPDATE idmint.tag AS t SET
  floor = CASE WHEN b.has_ended THEN b.begins_at ELSE t.floor END, period_start = b.start,
  other_periods = (jsonb_build_object(to_char(b.start::date - 1, 'YYYY-MM-DD'), '${FORGOTTEN}')
    || coalesce((SELECT jsonb_object_agg(e.key, e.value)
      FROM jsonb_each_text(t.other_periods::jsonb) AS e WHERE e.key COLLATE "C" > b.start), '{}'))::text,
  written_by = pg_current_xact_id()::xid
  FROM begun AS b WHERE b.name = t.name`;
// Of each row at once, so that it is written once: $2 to $4 are what was claimed. Each tag takes a revision of its own, so that a
// poll can page through all of them.
const RAISE = `WITH raised AS (
  UPDATE idmint.tag AS t SET
    floor = known.floor + least(t.ceiling - known.floor, $1::bigint),
    other_periods = (
      SELECT jsonb_object_agg(e.key, CASE WHEN e.value = '${FORGOTTEN}' THEN e.value
        ELSE least(t.ceiling, e.value::numeric + $1::numeric)::text END)
      FROM jsonb_each_text(known.other_periods::jsonb) AS e
    )::text,
    version = t.version + (t.moved_to IS NULL)::int,
    generation = CASE WHEN t.redis
      THEN greatest(t.generation, floor(extract(epoch FROM clock_timestamp()))::bigint) + ${GENERATIONS_AHEAD}
      ELSE t.generation END,
    epoch = greatest(t.epoch + 1, floor(extract(epoch FROM clock_timestamp()))::bigint),
    revision = $5::bigint + known.place,
    updated_at_ms = floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    written_by = pg_current_xact_id()::xid
  FROM (
    SELECT k.name, row_number() OVER (ORDER BY k.name) AS place, coalesce(w.floor, k.floor) AS floor,
      CASE WHEN w.name IS NULL THEN k.other_periods ELSE w.other_periods END AS other_periods
    FROM idmint.tag AS k
    LEFT JOIN unnest($2::text[], $3::bigint[], $4::text[]) AS w (name, floor, other_periods) ON w.name = k.name
  ) AS known
  WHERE known.name = t.name RETURNING t.name
) SELECT count(*)::int AS tags FROM raised`;
const SNOWFLAKES = `SELECT name, kind, settings, floor FROM idmint.tag WHERE kind IN (${LEASING})`;
const NOW = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms";
const CLOSE_SNOWFLAKES = `UPDATE idmint.tag AS t SET
  floor = s.floor, written_by = pg_current_xact_id()::xid
  FROM unnest($1::text[], $2::bigint[]) AS s (name, floor) WHERE s.name = t.name`;
const OWN_WORKERS = "UPDATE idmint.worker SET written_by = pg_current_xact_id()::xid";
const RECORD = `UPDATE idmint.store SET
  identity = ${PRESENT_IDENTITY}, store_id = coalesce($3, store_id), standbys = '', incarnation = $1, revision = revision + greatest(1, $2::bigint),
  first_epoch = greatest(first_epoch + 1, floor(extract(epoch FROM clock_timestamp()))::bigint),
  written_by = pg_current_xact_id()::xid`;

/**
 * Accepts the database as it is now, with every floor raised by `gap`.
 *
 * INVARIANTS
 * - Epochs go above any that the lost history had. They are raised by one or to the present time in seconds since 1970,
 *   whichever is more: the lost history counted from a lower number in steps of one. Those of tags that are made later begin there.
 * - A period that the lost history may have begun starts above the gap too: it is begun here, before floors are raised. Of
 *   others only those that are yet to come again are kept, above the gap; where earlier ones ended is not known any more.
 * - The version of a row that a tag left behind stays: it must remain below that of the row in the tag's new database.
 * - Tags that count in Redis take a generation that the lost history did not have, so that Redis starts again above the gap.
 * - What standbys of the lost history have is not known: the record of them begins anew.
 * - What the lost history wrote of ids that changed hands is not known: the ledger of all tags is forgotten.
 * - Servers of the lost history may be unknown to this one: a row stands for all of them.
 * - What servers claimed is taken after periods have begun and before the gap is added (claims.ts).
 * - Floors of snowflakes go above all that leases of the lost history may have reserved; its tokens are of older epochs.
 */
export async function accept(
  connections: Connections,
  gap: bigint,
  maxOfflineMs: number | null = DEFAULT_MAX_OFFLINE_MS,
  by?: AuditNote,
  newStore = false,
  asked?: AskedClaims,
): Promise<Accepted> {
  const work = (session: Session): Promise<Accepted> =>
    session.transaction(async () => {
      await session.query({ text: LIMITS, values: [...timeLimits(ACCEPT_TIMEOUT_MS)] });
      const [store] = await session.query<{ revision: string; incarnation: string }>({
        text: LOCK_STORE,
      });
      if (store === undefined) throw storeWentBack("the store has lost its identity");
      await assertLogged(session, "idmint");
      await session.query({ text: LOCK_TAGS });
      await assertAllReadable(session);
      await session.query({ text: BEGIN_PERIODS });
      const { taken: claims, changed } =
        asked === undefined ? NOTHING_TAKEN : await takeClaims(session, asked);
      const [raised] = await session.query<{ tags: number }>({
        text: RAISE,
        values: [String(gap), ...changed, store.revision],
      });
      const tags = raised?.tags ?? 0;
      await endAsks(session);
      await forgetLedger(session);
      const nowMs = await closeSnowflakes(session);
      await session.query({ text: OWN_WORKERS });
      const incarnation = randomUUID();
      await addLostNodes(session, incarnation, maxOfflineMs);
      await session.query({
        text: RECORD,
        values: [incarnation, String(tags), newStore ? randomUUID() : null],
      });
      const told = { old: store.incarnation, incarnation, gap, tags };
      if (by !== undefined) await addAudit(session, storeAccepted(by, nowMs, told));
      return { tags, ...(claims === undefined ? {} : { claims }) };
    });
  return connections.run(work, ACCEPT_TIMEOUT_MS);
}

async function assertAllReadable(session: Session): Promise<void> {
  let page: readonly TagRow[];
  for (let after = ""; ; after = page.at(-1)?.name ?? "") {
    page = await session.query<TagRow>({ text: PAGE, values: [after] });
    if (page.length === 0) return;
    assertReadable(page);
  }
}

interface SnowflakeRow {
  readonly name: string;
  readonly kind: string;
  readonly settings: string;
  readonly floor: string;
}

/** Answers the time by the store's clock. */
async function closeSnowflakes(session: Session): Promise<number> {
  const rows = await session.query<SnowflakeRow>({ text: SNOWFLAKES });
  const [clock] = await session.query<{ now_ms: string }>({ text: NOW });
  const nowMs = Number(clock?.now_ms);
  const closed = rows.map(({ name, kind: its, settings, floor }) => {
    const { kind } = columnFrom(name, its, settings);
    return [name, String(acceptedFloor(kind, BigInt(floor), nowMs))] as const;
  });
  if (closed.length === 0) return nowMs;
  const values = [closed.map(([name]) => name), closed.map(([, floor]) => floor)];
  await session.query({ text: CLOSE_SNOWFLAKES, values });
  return nowMs;
}

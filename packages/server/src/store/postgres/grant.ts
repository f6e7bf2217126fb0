import type { Period, PeriodDoubt } from "@idmint/core";
import type { PeriodUnit } from "@idmint/core/kinds";
import {
  type Grant,
  type GrantOptions,
  type GrantRequest,
  type Refused,
  storeUnavailable,
} from "@idmint/core/server";
import { refuseUnsafe } from "../shared/config.ts";
import { CLOCK_BOUND_MS, CLOCK_MARGIN_MS } from "../shared/period.ts";
import type { Connections, Session } from "./connections.ts";
import { proof, TAG_IS_OURS } from "./identity.ts";
import { isLockTimeout } from "./refusal.ts";
import { endPeriods, lastIdOf, otherPeriods, periodAt, periodEnd } from "./periods.ts";

/**
 * How long a batch waits for each row before it skips those that are locked, in milliseconds. Other servers lock a row for
 * the time of a commit; to skip it at once would cost two servers with the same tags most of their batches.
 */
const BRIEF_MS = 100;

/** Columns that something is made of. One that another hand wrote would fail the whole batch. */
const PERIOD_COLUMNS = ["period_unit", "time_zone", "period_start", "other_periods"];

/**
 * One statement for all tags of a batch: names, kinds, counts, least counts, `after`s, seen versions, allowed unsafe
 * settings, and the latest time by which this server begins a period.
 *
 * INVARIANTS
 * - Two grants of a tag never overlap. `locked` locks the rows and, under READ COMMITTED, reads their newest versions,
 *   also where the statement's snapshot is older: PostgreSQL fetches a row again that it had to wait for. All checks are
 *   made on these. The UPDATE finds the row by the snapshot, meets the newer version, fetches it again too, and computes
 *   from that. The row lock, held from `locked` to the commit, makes both the same version.
 * - Rows are locked in the order of their names, as by every statement of several tags: no deadlock.
 * - A row that is skipped since it is locked is not taken for one that is missing: it is in `visible`, which is read
 *   without locks by the statement's snapshot. A row that this server knows was there when the statement began.
 * - `ceiling − floor` cannot overflow; `floor + count` could.
 * - A tag that was moved, is being moved or has not arrived is granted nothing, whatever its version: the row of before
 *   stays behind.
 * - The store's identity is compared in this very statement, so no grant follows a fail-over or a restore unseen.
 * - Periods are told by one reading of the store's clock, taken when `moment` has all rows of `locked`, and so all locks; it
 *   counts as far as this server's own clock bears it out, so one clock that jumps forward begins no period. A row's period
 *   is the present one until that time is in a later one, so it never comes back; `greatest` leaves out what is null, and
 *   compares dates as texts, which is their order. A period that an operator went back from begins again above the ids that
 *   it gave, which the locked row itself says. The first period of a tag begins above the floor it finds, which is 0 unless
 *   an operator raised it.
 */
function grantText(lock: "wait" | "wait briefly" | "skip"): string {
  const patience =
    lock === "wait briefly"
      ? `patience AS MATERIALIZED (SELECT set_config('lock_timeout', '${BRIEF_MS}ms', true)), `
      : "";
  return `WITH ${patience}request AS MATERIALIZED (
  SELECT *
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
    WITH ORDINALITY AS r (name, kind, count, min_count, after_id, seen_version, position)
), ${proof("$7::text[]")}, locked AS MATERIALIZED (
  SELECT t.name, t.kind, t.redis, t.state, t.floor, t.ceiling, t.version, ${TAG_IS_OURS} AS is_ours,
    t.moved_to IS NULL AND NOT t.moving AS is_here, t.keep_for_ms,
    ${PERIOD_COLUMNS.map((column) => `CASE WHEN ${TAG_IS_OURS} THEN t.${column} END AS ${column}`).join(", ")}
  FROM idmint.tag AS t${patience === "" ? "" : " CROSS JOIN patience"} WHERE t.name = ANY ($1::text[])
  ORDER BY t.name FOR UPDATE OF t${lock === "skip" ? " SKIP LOCKED" : ""}
), visible AS MATERIALIZED (
  SELECT t.name FROM idmint.tag AS t WHERE t.name = ANY ($1::text[])
), moment AS MATERIALIZED (
  SELECT c.store_now, least(c.store_now, to_timestamp($8::bigint / 1000.0)) AS now
  FROM (SELECT clock_timestamp() AS store_now, count(*) FROM locked) AS c
), present AS MATERIALIZED (
  SELECT l.*, m.now, m.store_now, p.start, coalesce(l.period_start < p.start, false) AS has_ended,
    CASE WHEN l.period_start < p.start THEN ${lastIdOf("l", "p.start")} ELSE l.floor END AS present_floor
  FROM locked AS l CROSS JOIN moment AS m CROSS JOIN LATERAL (
    SELECT greatest(l.period_start, ${periodAt("l.period_unit", "l.time_zone", "m.now")}) AS start
  ) AS p
), judged AS MATERIALIZED (
  SELECT r.name, r.position, l.version, least(r.count, l.ceiling - l.present_floor) AS count, CASE
    WHEN p.unsafe <> '' THEN 'STORE_UNSAFE'
    WHEN p.fenced <> '' OR NOT l.is_ours THEN 'STORE_EPOCH_CHANGED'
    WHEN l.name IS NULL AND v.name IS NOT NULL THEN 'LOCKED'
    WHEN NOT l.is_here THEN 'TAG_MOVED'
    WHEN l.version < r.seen_version THEN 'STORE_EPOCH_CHANGED'
    WHEN l.name IS NULL AND r.seen_version > 0 THEN 'STORE_EPOCH_CHANGED'
    WHEN l.name IS NULL OR l.state = 'DELETED' THEN 'TAG_NOT_FOUND'
    WHEN l.kind <> r.kind OR l.redis THEN 'WRONG_KIND'
    WHEN l.state <> 'ACTIVE' THEN 'TAG_PAUSED'
    WHEN r.after_id > l.present_floor THEN 'AFTER_ABOVE_FLOOR'
    WHEN l.ceiling - l.present_floor < r.min_count THEN 'TAG_EXHAUSTED'
    ELSE '' END AS refused,
    p.unsafe, p.fenced, l.is_ours, l.period_unit, l.time_zone, l.keep_for_ms, l.period_start,
    l.other_periods, l.floor, l.present_floor, l.now, l.store_now, l.start, l.has_ended
  FROM request AS r CROSS JOIN proof AS p LEFT JOIN present AS l ON l.name = r.name
    LEFT JOIN visible AS v ON v.name = r.name
), over AS MATERIALIZED (
  SELECT * FROM judged WHERE refused = '' AND has_ended
), ${endPeriods("over")}, granted AS (
  UPDATE idmint.tag AS t SET
    floor = CASE WHEN j.has_ended THEN j.present_floor ELSE t.floor END + j.count,
    period_start = j.start,
    other_periods = CASE WHEN j.has_ended THEN ${otherPeriods("j")} ELSE t.other_periods END,
    version = t.version + 1, written_by = pg_current_xact_id()::xid
  FROM judged AS j WHERE t.name = j.name AND j.refused = ''
  RETURNING t.name, t.floor, t.version, t.epoch
)
SELECT j.name, j.refused, j.unsafe, j.fenced, j.is_ours, j.version AS seen, j.count,
  g.floor, g.version, g.epoch, j.period_unit, j.start,
  CASE WHEN g.name IS NOT NULL AND j.period_unit IS NOT NULL
    THEN ${periodEnd("j.period_unit", "j.time_zone", "j.start")} END AS ends_at_ms,
  CASE WHEN j.start > ${periodAt("j.period_unit", "j.time_zone", `(j.now + interval '${CLOCK_MARGIN_MS} ms')`)} THEN 'AHEAD'
    WHEN j.start < ${periodAt("j.period_unit", "j.time_zone", "j.store_now")} THEN 'HELD_BACK' END AS doubt
FROM judged AS j LEFT JOIN granted AS g ON g.name = j.name ORDER BY j.position`;
}

const GRANT = { name: "idmint-grant-2", text: grantText("wait") };
const GRANT_BRIEFLY = { name: "idmint-grant-brief-2", text: grantText("wait briefly") };
const GRANT_FREE = { name: "idmint-grant-free-2", text: grantText("skip") };

/** What a statement answers of every tag it was asked to change. */
export interface Judged {
  readonly name: string;
  readonly refused: Refused["reason"] | "STORE_UNSAFE" | "";
  readonly unsafe: string;
  readonly fenced: string;
  readonly is_ours: boolean | null;
  /** The row's version before; null without a row. */
  readonly seen: string | null;
}

interface GrantRow extends Omit<Judged, "refused"> {
  readonly refused: Judged["refused"] | "LOCKED";
  readonly count: string;
  readonly floor: string | null;
  readonly version: string;
  readonly epoch: string;
  readonly period_unit: PeriodUnit | null;
  readonly start: string | null;
  readonly ends_at_ms: string | null;
  readonly doubt: PeriodDoubt | null;
}

export async function grant(
  connections: Connections,
  requests: readonly GrantRequest[],
  { skipLocked = false }: GrantOptions = {},
): Promise<readonly Grant[]> {
  const values = [
    requests.map(({ tag }) => tag),
    requests.map(({ kind }) => kind),
    requests.map(({ count }) => String(count)),
    requests.map(({ minCount }) => String(minCount)),
    requests.map(({ after }) => String(after)),
    requests.map(({ seenVersion }) => String(seenVersion)),
    connections.allowUnsafe,
    String(Date.now() + CLOCK_BOUND_MS),
  ];
  const rows = await connections.run(async (session) => {
    const work = skipLocked
      ? grantFree(session, values)
      : session.query<GrantRow>({ ...GRANT, values });
    return safeRows(await work);
  });
  if (rows.length === 0) {
    const detail = "the store has lost its identity";
    return requests.map(({ tag }) => ({
      outcome: "refused",
      tag,
      reason: "STORE_EPOCH_CHANGED",
      detail,
    }));
  }
  return rows.map((row, index) => grantOf(row, requests[index] as GrantRequest));
}

/** Skips rows that stay locked. Of a statement that failed for a lock nothing was done, so it is followed by another. */
async function grantFree(
  session: Session,
  values: readonly unknown[],
): Promise<readonly GrantRow[]> {
  try {
    return await session.query<GrantRow>({ ...GRANT_BRIEFLY, values });
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    return session.query<GrantRow>({ ...GRANT_FREE, values });
  }
}

/** Throws where settings are unsafe: then nothing was done, and nothing has to be waited for. */
export function safeRows<Row extends Pick<Judged, "unsafe">>(rows: readonly Row[]): readonly Row[] {
  const unsafe = rows[0]?.unsafe ?? "";
  if (unsafe !== "") refuseUnsafeSettings(unsafe);
  return rows;
}

/** Settings that are unsafe now, by the names that `proof` gives them. */
export function refuseUnsafeSettings(names: string): void {
  // The connection is left for one that is proved anew.
  if (names.split(",").includes("store_id")) throw storeUnavailable("the store has another id");
  const found = names.split(",").map((name) => [name, wrongSetting(name)] as const);
  refuseUnsafe(new Map(found), []);
}

function wrongSetting(name: string): string {
  if (name === "synchronous_standby_names") {
    return "PostgreSQL runs with an empty synchronous_standby_names, and the store names standbys that commits must wait for; set it again, or give those standbys up for good with idmint store accept";
  }
  if (name === "standbys") {
    return "the store names standbys that answers must wait for, and the URL of this server names one host; name all of them";
  }
  if (name === "fsync" || name === "full_page_writes") return `PostgreSQL runs with ${name}=off`;
  return `PostgreSQL's session has lost idmint's ${name}, as behind a connection pooler in transaction mode; put it into session mode`;
}

function grantOf(row: GrantRow, request: GrantRequest): Grant {
  const tag = row.name;
  if (row.refused === "LOCKED") return { outcome: "locked", tag };
  const refused = refusedOf(row, row.refused, request);
  if (refused !== undefined) return refused;
  // A row that was judged to be granted and not updated cannot be: better burn it than trust it.
  if (row.floor === null) throw storeUnavailable(`the outcome of a grant of "${tag}" is not known`);
  const count = BigInt(row.count);
  return {
    outcome: "granted",
    tag,
    base: BigInt(row.floor) - count + 1n,
    count: Number(count),
    version: BigInt(row.version),
    epoch: BigInt(row.epoch),
    period: periodOf(row),
  };
}

function periodOf({ start, period_unit, ends_at_ms, doubt }: GrantRow): Period | undefined {
  if (start === null || period_unit === null || ends_at_ms === null) return undefined;
  const period = { start, unit: period_unit, endsAtMs: Number(ends_at_ms) };
  return doubt === null ? period : { ...period, doubt };
}

/** The refusal of a row that was judged with `proof`; undefined: it is not refused. */
export function refusedOf(
  row: Omit<Judged, "refused">,
  refused: Judged["refused"],
  request: { readonly tag: string; readonly seenVersion: bigint },
): Refused | undefined {
  const { tag } = request;
  if (refused === "") return undefined;
  if (refused !== "STORE_EPOCH_CHANGED") {
    return { outcome: "refused", tag, reason: refused as Refused["reason"] };
  }
  const ofStore = row.fenced !== "";
  return { outcome: "refused", tag, reason: refused, detail: detailOf(row, request), ofStore };
}

/** What went back, in words, of a row that was judged with `proof`. */
function detailOf(
  row: Omit<Judged, "refused">,
  { tag, seenVersion }: { readonly tag: string; readonly seenVersion: bigint },
): string {
  if (row.fenced !== "") return row.fenced;
  if (row.seen === null) return `tag "${tag}" was there and is gone`;
  if (row.is_ours === false)
    return `tag "${tag}" was loaded from a dump, changed by hand, or rewritten by an ALTER TABLE`;
  return `tag "${tag}" is at version ${row.seen}, after ${seenVersion} was seen`;
}

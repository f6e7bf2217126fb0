import { randomUUID } from "node:crypto";
import {
  GENERATIONS_AHEAD,
  type Accepted,
  type AskedClaims,
  type AuditNote,
  DEFAULT_MAX_OFFLINE_MS,
  storeUnavailable,
  storeWentBack,
} from "@idmint/core/server";
import { storeAccepted } from "../shared/records/audit.ts";
import {
  acceptedPeriods,
  CLOCK_MARGIN_MS,
  otherPeriodsText,
  periodAt,
  turnOf,
} from "../shared/period.ts";
import { assertReadable } from "../shared/tag-row.ts";
import { columnFrom } from "../shared/text-settings.ts";
import { LEASING } from "../shared/settings.ts";
import { acceptedFloor } from "../shared/worker-pool.ts";
import { addAudit } from "./records/audit.ts";
import { endAsks, takeClaims } from "./records/claims.ts";
import type { Transaction } from "./file/connection.ts";
import type { Database } from "./file/database.ts";
import { lookAtFiles } from "./file/files.ts";
import { beginPeriod, cutOf, positionOf } from "./grant.ts";
import { readStoreRow, sumOfRows } from "./file/identity.ts";
import { forgetLedger } from "./records/ledger.ts";
import { addLostNodes } from "./nodes.ts";
import { pagesOfTags } from "./tags.ts";

const WITH_PERIODS = `SELECT name, floor, ceiling, period_unit, time_zone, period_start, other_periods FROM tag
  WHERE period_unit IS NOT NULL`;
const BEGIN_AT = "UPDATE tag SET floor = ? WHERE name = ?";
const OTHER_PERIODS = "UPDATE tag SET other_periods = ? WHERE name = ?";
// ?1 gap, ?2 seconds since 1970, ?3 the store's revision, ?4 now. Each tag takes a revision of its own, so that a poll
// can page through all of them.
const RAISE = `UPDATE tag SET
  floor = floor + min(ceiling - floor, ?1), version = version + 1,
  generation = CASE redis WHEN 1 THEN max(generation, ?2) + ${GENERATIONS_AHEAD} ELSE generation END,
  epoch = max(epoch + 1, ?2), revision = ?3 + place.number, updated_at_ms = ?4
  FROM (SELECT name, row_number() OVER (ORDER BY name) AS number FROM tag) AS place
  WHERE place.name = tag.name`;
const SNOWFLAKES = `SELECT name, kind, settings, floor FROM tag WHERE kind IN (${LEASING})`;
const RECORD = `UPDATE store SET
  store_id = coalesce(?, store_id), identity = ?, witness = ?, next_witness = ?, incarnation = ?, revision = revision + max(1, ?), generation = max(generation + 1, ?), progress = ?, floors = ?`;

/**
 * Accepts the store as it lies there, with every floor raised by `gap`.
 *
 * INVARIANTS
 * - Epochs and the generation go above any that the lost history had. They are raised by one or to the present time in
 *   seconds since 1970, whichever is more: the lost history counted from a lower number in steps of one. Epochs of tags that are
 *   made later begin with the generation.
 * - A period that the lost history may have begun starts above the gap too: it is begun here, before floors are raised. Of
 *   others only those that are yet to come again are kept, above the gap; where earlier ones ended is not known any more.
 * - Tags that count in Redis take a generation that the lost history did not have, so that Redis starts again above the gap.
 * - What the lost history wrote of ids that changed hands is not known: the ledger of all tags is forgotten.
 * - Servers of the lost history may be unknown to this one: a row stands for all of them.
 * - What servers claimed is taken after periods have begun and before the gap is added (records/claims.ts).
 * - Floors of snowflakes go above all that leases of the lost history may have reserved; its tokens are of older epochs.
 */
export function accept(
  database: Database,
  deadlineMs: number,
  gap: bigint,
  maxOfflineMs: number | null = DEFAULT_MAX_OFFLINE_MS,
  by?: AuditNote,
  newStore = false,
  asked?: AskedClaims,
): Accepted {
  // What lies there now is accepted, not what a connection still sees of files that are gone.
  database.reopen();
  return database.write(
    deadlineMs,
    (transaction) => {
      const incarnation = randomUUID();
      addLostNodes(transaction, incarnation, maxOfflineMs);
      const { incarnation: old = "" } = readStoreRow(transaction) ?? {};
      const accepted = raise(database, transaction, { gap, incarnation, newStore, asked });
      const told = { old, incarnation, gap, tags: accepted.tags };
      if (by !== undefined) addAudit(transaction, storeAccepted(by, database.now(), told));
      return accepted;
    },
    { fenced: "allow" },
  );
}

interface Accepting {
  readonly gap: bigint;
  readonly incarnation: string;
  readonly newStore: boolean;
  readonly asked: AskedClaims | undefined;
}

function raise(
  database: Database,
  transaction: Transaction,
  { gap, incarnation, newStore, asked }: Accepting,
): Accepted {
  const verdict = transaction.get("PRAGMA integrity_check(1)")?.["integrity_check"];
  if (verdict !== "ok") {
    throw storeWentBack("the file of the store is damaged: stop the servers and restore it whole");
  }
  const store = readStoreRow(transaction);
  const files = lookAtFiles(database.path);
  if (store === undefined || files === undefined) throw storeUnavailable("the store is gone");
  for (const page of pagesOfTags(transaction)) assertReadable(page);
  const now = database.now();
  const seconds = Math.floor(now / 1_000);
  beginPeriods(transaction, now);
  // What one process alone sees is not looked for again: the last look did.
  const at = { nowMs: Math.floor(now), isRefused: store.identity !== files.identity };
  const claims = asked === undefined ? undefined : takeClaims(transaction, asked, at);
  endAsks(transaction);
  raisePeriods(transaction, gap);
  const tags = transaction.run(RAISE, gap, seconds, store.revision, now);
  forgetLedger(transaction);
  closeSnowflakes(transaction, now);
  const { progress, floors } = sumOfRows(transaction);
  const { present, next } = database.adoptWitness(store);
  const newId = newStore ? randomUUID() : null;
  const told = [
    files.identity,
    present,
    next,
    incarnation,
    tags,
    seconds,
    progress,
    floors,
  ] as const;
  transaction.run(RECORD, newId, ...told);
  return { tags, ...(claims === undefined ? {} : { claims }) };
}

function closeSnowflakes(transaction: Transaction, nowMs: number): void {
  for (const row of transaction.all(SNOWFLAKES)) {
    const name = String(row["name"]);
    const { kind } = columnFrom(name, String(row["kind"]), String(row["settings"]));
    transaction.run(BEGIN_AT, acceptedFloor(kind, row["floor"] as bigint, nowMs), name);
  }
}

function beginPeriods(transaction: Transaction, nowMs: number): void {
  for (const row of transaction.all(WITH_PERIODS)) {
    const cut = cutOf(row);
    if (cut === undefined) continue;
    const name = String(row["name"]);
    const old = positionOf(row);
    const turn = turnOf(old, periodAt(cut, nowMs + CLOCK_MARGIN_MS));
    beginPeriod(transaction, name, old, turn, nowMs);
    transaction.run(BEGIN_AT, turn.floor, name);
  }
}

/** Of the other periods those that are yet to come again, above the gap. */
function raisePeriods(transaction: Transaction, gap: bigint): void {
  for (const row of transaction.all(WITH_PERIODS)) {
    const others = acceptedPeriods(positionOf(row), gap, row["ceiling"] as bigint);
    transaction.run(OTHER_PERIODS, otherPeriodsText(others), String(row["name"]));
  }
}

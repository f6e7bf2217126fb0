import { IdmintError, type Period } from "@idmint/core";
import type { PeriodUnit } from "@idmint/core/kinds";
import type { Grant, GrantRequest, Refused } from "@idmint/core/server";
import {
  type Cut,
  doubtOf,
  MAX_FORGOTTEN,
  otherPeriodsFrom,
  otherPeriodsText,
  periodAt,
  periodEnd,
  type Position,
  type Turn,
  turnOf,
} from "../shared/period.ts";
import { whyUnreadable } from "../shared/tag-row.ts";
import { codeOf, type Transaction } from "./file/connection.ts";
import type { Database } from "./file/database.ts";
import { countChanges } from "./file/identity.ts";

const READ = `SELECT kind, redis, state, floor, ceiling, version, epoch, period_unit, time_zone, period_start,
  other_periods FROM tag WHERE name = ?`;
const GRANT = "UPDATE tag SET floor = ?, version = ?, granted_at_ms = ? WHERE name = ?";
const BEGIN_PERIOD = "UPDATE tag SET period_start = ?, other_periods = ? WHERE name = ?";
const END_PERIOD =
  "INSERT OR REPLACE INTO period (tag, start, last_id, ended_at_ms) VALUES (?, ?, ?, ?)";
const FORGET = `DELETE FROM period WHERE tag = ?1 AND start IN (
  SELECT p.start FROM period AS p JOIN tag AS t ON t.name = p.tag
  WHERE p.tag = ?1 AND p.ended_at_ms < ?2 - t.keep_for_ms ORDER BY p.start LIMIT ${MAX_FORGOTTEN})`;

/**
 * Grants ids of several tags in one transaction.
 *
 * INVARIANTS
 * - A floor is read, checked and raised under one write lock, so no two grants overlap.
 * - Ids are answered only when the raised floor is on disk.
 * - `ceiling − floor` cannot overflow, `floor + count` could.
 * - A refused tag leaves the others alone.
 * - Periods are told by one reading of the clock, taken under the lock: of two grants the later never has an older one.
 */
export function grant(
  database: Database,
  deadlineMs: number,
  requests: readonly GrantRequest[],
): readonly Grant[] {
  try {
    return database.write(deadlineMs, (transaction) => {
      const nowMs = database.now();
      const moved = { changes: 0, floors: 0n };
      const grants = requests.map((request) => {
        try {
          return grantOne(transaction, request, nowMs, moved);
        } catch (error) {
          if (error instanceof IdmintError || codeOf(error) !== undefined) throw error;
          // It was read before anything of it was written.
          return refused(request.tag, "SCHEMA_MISMATCH", whyUnreadable(request.tag, error));
        }
      });
      if (moved.changes > 0) countChanges(transaction, moved.changes, moved.floors);
      return grants;
    });
  } catch (error) {
    if (!(error instanceof IdmintError) || error.reason !== "STORE_EPOCH_CHANGED") throw error;
    const detail = error.metadata["detail"] ?? "";
    return requests.map(({ tag }) => refused(tag, "STORE_EPOCH_CHANGED", detail));
  }
}

function grantOne(
  transaction: Transaction,
  request: GrantRequest,
  nowMs: number,
  moved: { changes: number; floors: bigint },
): Grant {
  const { tag, kind, after } = request;
  const row = transaction.get(READ, tag);
  const unfit = refusalOf(row, request);
  if (row === undefined || unfit !== undefined) return unfit ?? refused(tag, "TAG_NOT_FOUND");
  if (row["kind"] !== kind || row["redis"] !== 0n) return refused(tag, "WRONG_KIND");
  if (row["state"] === "PAUSED") return refused(tag, "TAG_PAUSED");
  const cut = cutOf(row);
  const old = positionOf(row);
  const turn = cut === undefined ? undefined : turnOf(old, periodAt(cut, nowMs));
  const floor = turn?.floor ?? old.floor;
  const left = (row["ceiling"] as bigint) - floor;
  if (after > floor) return refused(tag, "AFTER_ABOVE_FLOOR");
  if (left < BigInt(request.minCount)) return refused(tag, "TAG_EXHAUSTED");
  const wanted = BigInt(request.count);
  const count = wanted < left ? wanted : left;
  const version = (row["version"] as bigint) + 1n;
  if (turn !== undefined) beginPeriod(transaction, tag, old, turn, nowMs);
  transaction.run(GRANT, floor + count, version, nowMs, tag);
  moved.changes++;
  moved.floors += floor + count - old.floor;
  return {
    outcome: "granted",
    tag,
    base: floor + 1n,
    count: Number(count),
    version,
    epoch: row["epoch"] as bigint,
    period: cut === undefined || turn === undefined ? undefined : periodOf(cut, turn.start, nowMs),
  };
}

function periodOf(cut: Cut, start: string, nowMs: number): Period {
  const doubt = doubtOf(cut, start, nowMs);
  const period = { start, unit: cut.unit, endsAtMs: periodEnd(cut, start) };
  return doubt === undefined ? period : { ...period, doubt };
}

/** The period and the floor of a row. */
export function positionOf(row: Record<string, unknown>): Position {
  return {
    start: (row["period_start"] as string | null) ?? "",
    floor: row["floor"] as bigint,
    others: otherPeriodsFrom(row["other_periods"] as string | null),
  };
}

/** How a row's periods are cut, or undefined. */
export function cutOf(row: Record<string, unknown>): Cut | undefined {
  if (row["period_unit"] === null) return undefined;
  return { unit: row["period_unit"] as PeriodUnit, timeZone: String(row["time_zone"]) };
}

/** Writes which period is the present one, and what is remembered of the one before. */
export function beginPeriod(
  transaction: Transaction,
  tag: string,
  old: Position,
  turn: Turn,
  nowMs: number,
): void {
  if (turn.start === old.start) return;
  transaction.run(BEGIN_PERIOD, turn.start, otherPeriodsText(turn.others), tag);
  if (!turn.hasEnded) return;
  endPeriod(transaction, tag, old, nowMs);
  transaction.run(FORGET, tag, nowMs);
}

/** Writes what is listed of a period that the row is in no longer. */
export function endPeriod(
  transaction: Transaction,
  tag: string,
  { start, floor }: Pick<Position, "floor" | "start">,
  nowMs: number,
): void {
  if (floor > 0n) transaction.run(END_PERIOD, tag, start, floor, nowMs);
}

/** Why a row is not to be touched whatever is wanted of it: the store went back, or it is not there. */
export function refusalOf(
  row: Record<string, unknown> | undefined,
  { tag, seenVersion }: { readonly tag: string; readonly seenVersion: bigint },
): Refused | undefined {
  if (row === undefined) {
    if (seenVersion === 0n) return refused(tag, "TAG_NOT_FOUND");
    return refused(tag, "STORE_EPOCH_CHANGED", `tag "${tag}" was there and is gone`);
  }
  const version = row["version"] as bigint;
  if (version < seenVersion) {
    const detail = `tag "${tag}" is at version ${version}, after ${seenVersion} was seen`;
    return refused(tag, "STORE_EPOCH_CHANGED", detail);
  }
  return row["state"] === "DELETED" ? refused(tag, "TAG_NOT_FOUND") : undefined;
}

export function refused(tag: string, reason: Refused["reason"], detail?: string): Refused {
  return { outcome: "refused", tag, reason, ...(detail === undefined ? {} : { detail }) };
}

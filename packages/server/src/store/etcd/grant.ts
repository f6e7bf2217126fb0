import { IdmintError, type Period } from "@idmint/core";
import { countsInRedis } from "@idmint/core/kinds";
import {
  type Grant,
  type GrantRequest,
  isOfStore,
  periodsOf,
  type Refused,
  type Tag,
} from "@idmint/core/server";
import { doubtOf, periodAt, periodEnd, turnOf } from "../shared/period.ts";
import type { Etcd, Kept, Session } from "./session/etcd.ts";
import { changeRows, type RowChange } from "./session/kept-rows.ts";
import { endedBy, positionOf } from "./periods.ts";

/**
 * Grants ids of several tags in one transaction, each of which is done or not by itself: one that met another server is
 * tried again alone.
 *
 * INVARIANTS
 * - No two grants overlap: each is written over the very row that it was decided on (`changeRows`).
 * - Ids are answered only when a quorum of the cluster has the raised floor on its disks.
 * - `ceiling − floor` cannot overflow, `floor + count` could.
 * - A refused tag leaves the others alone.
 * - Of two grants the later never has an older period: the row's period only moves forward, whatever a clock says.
 */
export async function grant(
  etcd: Etcd,
  requests: readonly GrantRequest[],
): Promise<readonly Grant[]> {
  const byName = new Map(requests.map((request) => [request.tag, request]));
  const names = [...byName.keys()];
  try {
    return await etcd.run((session) =>
      etcd.alone(names, session.deadlineMs, async () => {
        const nowMs = etcd.now();
        const grants = await changeRows<Grant>(
          session,
          names,
          (name, row) => granted(byName.get(name) as GrantRequest, row, nowMs),
          (_, row, change) => withEndedPeriod(session, row, change, nowMs),
        );
        return names.map((name) => grants.get(name) as Grant);
      }),
    );
  } catch (error) {
    if (!(error instanceof IdmintError) || error.reason !== "STORE_EPOCH_CHANGED") throw error;
    return names.map((tag) => refusedWith(tag, error));
  }
}

function granted(
  request: GrantRequest,
  from: Kept,
  nowMs: number,
): { change: RowChange; answer: Grant } | { answer: Grant } {
  const { tag: name, kind, after } = request;
  const fit = fitOf(from.tag, request);
  if ("outcome" in fit) return { answer: fit };
  const refuse = (reason: Refused["reason"]) => ({ answer: refused(name, reason) });
  if (fit.kind.kind !== kind || countsInRedis(fit.kind)) return refuse("WRONG_KIND");
  if (fit.state === "PAUSED") return refuse("TAG_PAUSED");
  const cut = periodsOf(fit.kind);
  const old = positionOf(fit);
  const turn = cut === undefined ? undefined : turnOf(old, periodAt(cut, nowMs));
  const floor = turn?.floor ?? old.floor;
  const left = fit.ceiling - floor;
  if (after > floor) return refuse("AFTER_ABOVE_FLOOR");
  if (left < BigInt(request.minCount)) return refuse("TAG_EXHAUSTED");
  const wanted = BigInt(request.count);
  const count = wanted < left ? wanted : left;
  const version = fit.version + 1n;
  const place = turn === undefined ? {} : { periodStart: turn.start, otherPeriods: turn.others };
  const tag: Tag = { ...fit, ...place, floor: floor + count, version };
  let period: Period | undefined;
  if (cut !== undefined && turn !== undefined) {
    const doubt = doubtOf(cut, turn.start, nowMs);
    const its = { start: turn.start, unit: cut.unit, endsAtMs: periodEnd(cut, turn.start) };
    period = doubt === undefined ? its : { ...its, doubt };
  }
  const { epoch } = fit;
  const ids = { base: floor + 1n, count: Number(count) };
  return {
    change: { name, from, tag },
    answer: { outcome: "granted", tag: name, ...ids, version, epoch, period },
  };
}

/** The change, with what is to be written of a period that ends by it. */
async function withEndedPeriod(
  session: Session,
  { tag: old }: Kept,
  change: RowChange,
  nowMs: number,
): Promise<RowChange> {
  if (old === undefined || old.periodStart === "" || old.periodStart === change.tag.periodStart) {
    return change;
  }
  return { ...change, more: await endedBy(session, old, nowMs) };
}

/** The row that a request is for; a refusal where the store went back or it is not there. */
export function fitOf(
  row: Tag | undefined,
  { tag, seenVersion }: { readonly tag: string; readonly seenVersion: bigint },
): Refused | Tag {
  if (row === undefined) {
    if (seenVersion === 0n) return refused(tag, "TAG_NOT_FOUND");
    return refused(tag, "STORE_EPOCH_CHANGED", `tag "${tag}" was there and is gone`);
  }
  if (row.version < seenVersion) {
    const detail = `tag "${tag}" is at version ${row.version}, after ${seenVersion} was seen`;
    return refused(tag, "STORE_EPOCH_CHANGED", detail);
  }
  return row.state === "DELETED" ? refused(tag, "TAG_NOT_FOUND") : row;
}

/** What an error of the store as a whole is to one tag. */
export function refusedWith(tag: string, error: IdmintError): Refused {
  const detail = error.metadata["detail"] ?? "";
  return { ...refused(tag, "STORE_EPOCH_CHANGED", detail), ofStore: isOfStore(error) };
}

export function refused(tag: string, reason: Refused["reason"], detail?: string): Refused {
  return { outcome: "refused", tag, reason, ...(detail === undefined ? {} : { detail }) };
}

import { type EndedPeriod, periodsOf, type PeriodStore, type Tag } from "@idmint/core/server";
import type { Position } from "../shared/period.ts";
import type { KeyValue, Op } from "./cluster/protocol.ts";
import type { Etcd, Session } from "./session/etcd.ts";
import { readRows } from "./session/kept-rows.ts";
import { Keys } from "./session/keys.ts";
import { fieldsOf } from "./session/rows.ts";

/** Most ended periods of one tag that one grant forgets. With those of a whole batch they are within etcd's limit. */
const MAX_FORGOTTEN = 20;

/** The period and the floor of a row. */
export function positionOf({ periodStart, floor, otherPeriods = [] }: Tag): Position {
  return { start: periodStart, floor, others: otherPeriods };
}

/** Writes what is listed of a period that a row is in no longer. */
export function endPeriod(
  session: Session,
  { name, periodStart, floor }: Tag,
  nowMs: number,
): Op[] {
  if (floor === 0n || periodStart === "") return [];
  const value = JSON.stringify({ last_id: String(floor), ended_at_ms: String(nowMs) });
  return [{ put: { key: session.keys.period(name, periodStart), value: Buffer.from(value) } }];
}

/** What ends the present period of a row, and forgets old ones. */
export async function endedBy(session: Session, old: Tag, nowMs: number): Promise<readonly Op[]> {
  return [...endPeriod(session, old, nowMs), ...(await forgetPeriods(session, old, nowMs))];
}

/** What forgets the oldest of those periods of a tag that its settings say to forget. */
async function forgetPeriods(session: Session, old: Tag, nowMs: number): Promise<readonly Op[]> {
  const range = { ...session.keys.periods(old.name, ""), limit: 100 };
  const [oldest = []] = await session.read([range]);
  return oldest
    .map((kv) => ({ kv, period: periodFrom(kv) }))
    .filter(({ period }) => isOver(old, period, nowMs) && period.start !== old.periodStart)
    .slice(0, MAX_FORGOTTEN)
    .map(({ kv }) => ({ remove: { key: kv.key } }));
}

/** Ended periods of a tag, newest first, without those that its settings say to forget. */
export async function listPeriods(
  etcd: Etcd,
  { tag, before, limit }: Parameters<PeriodStore["listPeriods"]>[0],
): Promise<readonly EndedPeriod[]> {
  return etcd.run(async (session) => {
    const [row] = await readRows(session, [tag]);
    const its = row?.tag;
    if (its === undefined) return [];
    const nowMs = etcd.now();
    // Those that are over lie at the end, and the present one may be among the first.
    const range = {
      ...session.keys.periods(tag, before),
      limit: limit + 1,
      order: "descending",
    } as const;
    const [kvs = []] = await session.read([range]);
    return kvs
      .map(periodFrom)
      .filter((period) => period.start !== its.periodStart && !isOver(its, period, nowMs))
      .slice(0, limit);
  });
}

function isOver({ kind }: Tag, { endedAtMs }: EndedPeriod, nowMs: number): boolean {
  return endedAtMs < nowMs - (periodsOf(kind)?.keepForMs ?? 0);
}

function periodFrom(kv: KeyValue): EndedPeriod {
  const { last_id: lastId = "0", ended_at_ms: endedAtMs } = fieldsOf(kv.value);
  return { start: Keys.lastOf(kv), lastId: BigInt(lastId), endedAtMs: Number(endedAtMs) };
}

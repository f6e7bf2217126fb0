import { randomUUID } from "node:crypto";
import { countsInRedis } from "@idmint/core/kinds";
import {
  type AuditNote,
  DEFAULT_MAX_OFFLINE_MS,
  periodsOf,
  storeUnavailable,
  type Tag,
} from "@idmint/core/server";
import { schemaMismatch } from "../shared/failures.ts";
import { storeAccepted } from "../shared/records/audit.ts";
import { acceptedPeriods, CLOCK_MARGIN_MS, periodAt, turnOf } from "../shared/period.ts";
import { acceptedFloor } from "../shared/worker-pool.ts";
import { putAudit } from "./records/audit.ts";
import type { StoreRecord } from "./cluster/guard-state.ts";
import type { Op } from "./cluster/protocol.ts";
import type { Etcd, Session } from "./session/etcd.ts";
import type { Standing } from "./session/proof.ts";
import { lostNodesRow } from "./nodes.ts";
import { endPeriod, forgetPeriods, positionOf } from "./periods.ts";
import { readCluster } from "./session/sight.ts";
import { recordChange } from "./tags.ts";
import { tagFrom, valueOfRecord, valueOfTag } from "./session/rows.ts";

/** Tags of one transaction; each takes up to four operations. */
const TAGS = 25;

/**
 * Accepts the cluster as it is now, with every floor raised by `gap`. A transaction of etcd takes few operations, so this is
 * several: the first closes the store, the last opens it under another incarnation.
 *
 * INVARIANTS
 * - While the store is closed nothing else writes it: every transaction compares the key `store`, which says so. One accept
 *   that meets another fails. After one that was interrupted the store stays closed until it is accepted again.
 * - Epochs and the generation go above any that the lost history had. They are raised by one or to the present time in
 *   seconds since 1970, whichever is more: the lost history counted from a lower number in steps of one.
 * - A period that the lost history may have begun starts above the gap too: it is begun here, before floors are raised. Of
 *   others only those that are yet to come again are kept, above the gap; where earlier ones ended is not known any more.
 * - Tags that count in Redis take a new generation, so that Redis starts again above the gap.
 * - Servers of the lost history may be unknown to this one: a row stands for all of them.
 * - Floors of snowflakes go above all that leases of the lost history may have reserved; its tokens are of older epochs.
 */
export async function accept(
  etcd: Etcd,
  gap: bigint,
  maxOfflineMs: number | null = DEFAULT_MAX_OFFLINE_MS,
  by?: AuditNote,
  newStore = false,
): Promise<{ tags: number }> {
  return etcd.run(async (session) => {
    await assertReadable(session);
    const incarnation = randomUUID();
    const nowMs = etcd.now();
    const begun = await writeRecord(session, ({ record }) => ({
      ...record,
      accepting: incarnation,
    }));
    const [[counter] = []] = await session.read([{ key: etcd.keys.one("revision") }], ALLOWED);
    const before = BigInt(counter?.value.toString() ?? "0");
    const names = await raiseAll(session, begun, { gap, nowMs, before });
    const revision = before + BigInt(Math.max(1, names));
    const seconds = BigInt(Math.floor(nowMs / 1_000));
    const { clusterId, lead, term } = await readCluster(session);
    const generation = begun.generation < seconds ? seconds : begun.generation + 1n;
    const storeId = newStore ? randomUUID() : begun.storeId;
    const told = { old: begun.incarnation, incarnation, gap, tags: names };
    const lostNodes = await lostNodesRow(session, incarnation, maxOfflineMs);
    await writeRecord(
      session,
      ({ record }) => {
        assertSame(record, begun);
        return { storeId, incarnation, generation, clusterId, lead };
      },
      [
        { put: { key: etcd.keys.one("revision"), value: Buffer.from(String(revision)) } },
        { put: { key: etcd.keys.one("term"), value: Buffer.from(String(term)) } },
        lostNodes,
        ...(by === undefined ? [] : [putAudit(etcd.keys, storeAccepted(by, nowMs, told))]),
      ],
    );
    etcd.kept.clear();
    return { tags: names };
  });
}

const ALLOWED = { fenced: "allow" } as const;

/** Tags that are read at once. */
const PAGE = 1_000;
const MAX_NAMED = 5;

/** One value that cannot be read would leave the store closed in the middle of an accept. */
async function assertReadable(session: Session): Promise<void> {
  const { keys } = session;
  const spoiled: string[] = [];
  for (let after = ""; spoiled.length < MAX_NAMED;) {
    const range = { ...keys.tags(after, ""), limit: PAGE };
    const [kvs = []] = await session.read([range], ALLOWED);
    const last = kvs.at(-1);
    if (last === undefined) break;
    spoiled.push(...kvs.filter(({ value }) => !isReadable(value)).map(({ key }) => String(key)));
    after = String(last.key).slice(keys.tag("").length);
  }
  if (spoiled.length === 0) return;
  const names = spoiled.slice(0, MAX_NAMED).join(", ");
  throw schemaMismatch(
    `nothing was changed: tags cannot be read, since their keys were changed by hand: ${names}. Put each value back as a snapshot has it (etcdctl snapshot restore, in another etcd, then etcdctl get); or remove the key, accept, and make the tag anew with a start above all its ids`,
  );
}

function isReadable(value: Buffer): boolean {
  try {
    tagFrom(value);
    return true;
  } catch {
    return false;
  }
}

/** Writes the key `store` over the one that was read. */
async function writeRecord(
  session: Session,
  next: (standing: Standing) => StoreRecord,
  more: readonly Op[] = [],
): Promise<StoreRecord> {
  const { standing } = await session.etcd.transact(session.deadlineMs, [], {
    effect: "any",
    fenced: "allow",
    prove: true,
  });
  const record = next(standing);
  const key = session.keys.one("store");
  const compare = [{ key, modRevision: standing.modRevision }];
  const put = { put: { key, value: valueOfRecord(record) } };
  const { answers } = await session.write(
    [{ txn: { compare, success: [put, ...more], failure: [] } }],
    ALLOWED,
  );
  if (answers[0]?.txn?.succeeded !== true) throw another();
  return record;
}

function assertSame(record: StoreRecord, begun: StoreRecord): void {
  if (record.accepting !== begun.accepting) throw another();
}

function another(): Error {
  return storeUnavailable("somebody else accepts the store at this moment");
}

interface Raise {
  readonly gap: bigint;
  readonly nowMs: number;
  /** The store's revision before. Each tag takes one of its own, so that a poll can page through all of them. */
  readonly before: bigint;
}

/** Raises the floors of all tags, and answers how many there are. */
async function raiseAll(session: Session, begun: StoreRecord, how: Raise): Promise<number> {
  const { etcd, keys } = session;
  let count = 0;
  for (let after = ""; ;) {
    const range = { ...keys.tags(after, ""), limit: TAGS };
    const { answers, standing } = await etcd.transact(session.deadlineMs, [{ range }], {
      effect: "any",
      ...ALLOWED,
    });
    assertSame(standing.record, begun);
    const kvs = answers[0]?.range?.kvs ?? [];
    if (kvs.length === 0) return count;
    const olds = kvs.map(({ value }) => tagFrom(value));
    const ops = olds.flatMap((old, at) =>
      raised(session, old, how, how.before + BigInt(count + at + 1)),
    );
    const closed = { key: keys.one("store"), modRevision: standing.modRevision };
    // A transaction each, since all of them together would be too many operations.
    for (const old of olds.filter((its) => turnAt(its, how.nowMs)?.hasEnded === true)) {
      const forgotten = await forgetPeriods(session, old, how.nowMs, ALLOWED);
      const forget = { txn: { compare: [closed], success: [...forgotten], failure: [] } };
      if (forgotten.length > 0) await session.write([forget], ALLOWED);
    }
    const compare = [closed, ...kvs.map(({ key, modRevision }) => ({ key, modRevision }))];
    const done = await session.write([{ txn: { compare, success: ops, failure: [] } }], ALLOWED);
    if (done.answers[0]?.txn?.succeeded !== true) throw another();
    count += kvs.length;
    after = tagFrom(kvs.at(-1)?.value ?? Buffer.of()).name;
  }
}

/** The period that the lost history may have begun; undefined for tags without periods. */
function turnAt(old: Tag, nowMs: number): ReturnType<typeof turnOf> | undefined {
  const cut = periodsOf(old.kind);
  if (cut === undefined) return undefined;
  return turnOf(positionOf(old), periodAt(cut, nowMs + CLOCK_MARGIN_MS));
}

function raised(session: Session, old: Tag, { gap, nowMs }: Raise, revision: bigint): Op[] {
  const seconds = BigInt(Math.floor(nowMs / 1_000));
  const turn = turnAt(old, nowMs);
  const place =
    turn === undefined
      ? {}
      : {
          periodStart: turn.start,
          otherPeriods: acceptedPeriods(turn, gap, old.ceiling),
        };
  const floor = turn?.floor ?? old.floor;
  const left = old.ceiling - floor;
  const raisedFloor = floor + (gap < left ? gap : left);
  const tag: Tag = {
    ...old,
    ...place,
    floor: acceptedFloor(old.kind, raisedFloor, nowMs),
    generation: old.generation + (countsInRedis(old.kind) ? 1n : 0n),
    version: old.version + 1n,
    epoch: old.epoch < seconds ? seconds : old.epoch + 1n,
    revision,
    updatedAtMs: nowMs,
  };
  return [
    { put: { key: session.keys.tag(tag.name), value: valueOfTag(tag) } },
    ...recordChange(session.etcd, old, tag),
    ...(turn?.hasEnded === true ? endPeriod(session, old, nowMs) : []),
  ];
}

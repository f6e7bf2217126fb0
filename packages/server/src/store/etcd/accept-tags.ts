// What an accept makes of the tags.
import { countsInRedis } from "@idmint/core/kinds";
import {
  acceptedGeneration,
  type Claimed,
  ClaimTally,
  FORGOTTEN,
  lostTag,
  periodsOf,
  storeUnavailable,
  type Tag,
  type TakenClaims,
  withClaims,
} from "@idmint/core/server";
import { schemaMismatch } from "../shared/failures.ts";
import { acceptedPeriods, CLOCK_MARGIN_MS, periodAt, turnOf } from "../shared/period.ts";
import { acceptedFloor } from "../shared/worker-pool.ts";
import type { Said } from "./claims.ts";
import type { Compare, KeyValue, Op, Range } from "./cluster/protocol.ts";
import { endPeriod, positionOf } from "./periods.ts";
import type { Session } from "./session/etcd.ts";
import { Keys, next } from "./session/keys.ts";
import { inLanes, partsOf } from "./session/lanes.ts";
import { tagFrom, valueOfPack, valueOfTag } from "./session/rows.ts";
import { pagesOfTags } from "./tags.ts";

const ALLOWED = { fenced: "allow" } as const;

/** Keys that are removed at once: etcd does nothing else meanwhile. */
const REMOVED = 5_000;
const MAX_NAMED = 5;
/** Most tags of one transaction, and of one within that; etcd takes 128 operations less those around them. */
const MAX_TOGETHER = 1_000;
const MAX_WITHIN = 50;
/** Most bytes of keys and rows of one transaction; etcd takes 1.5 MiB with all that is around them. */
const MAX_BYTES = 512 * 1_024;

/** The key `store` as this accept closed it. */
export type Closing = Extract<Compare, { readonly modRevision: string }>;

/** How tags are raised. */
export interface Raise {
  readonly gap: bigint;
  readonly nowMs: number;
  readonly claims: Said["claims"];
  readonly isTrusted: boolean;
}

/** One value that cannot be read, or a claim that cannot be taken, would leave the store closed in the middle of an accept. */
export async function check(session: Session, how: Raise): Promise<void> {
  const spoiled: string[] = [];
  const lost = new Set(how.claims.keys());
  for await (const kvs of pagesOfTags(session)) {
    for (const kv of kvs) {
      const old = readable(kv);
      if (old === undefined) spoiled.push(String(kv.key));
      else if (lost.delete(old.name)) claimed(old, how);
    }
    if (spoiled.length >= MAX_NAMED) break;
  }
  if (spoiled.length === 0) {
    for (const name of lost) lostRow(name, how);
    return;
  }
  const names = spoiled.slice(0, MAX_NAMED).join(", ");
  throw schemaMismatch(
    `nothing was changed: tags cannot be read, since their keys were changed by hand: ${names}. Put each value back as a snapshot has it (etcdctl snapshot restore, in another etcd, then etcdctl get); or remove the key, accept, and make the tag anew with a start above all its ids`,
  );
}

/** The row of a key; one of another tag, which somebody copied, is none. */
function readable(kv: KeyValue): Tag | undefined {
  try {
    const tag = tagFrom(kv.value);
    return tag.name === Keys.lastOf(kv) ? tag : undefined;
  } catch {
    return undefined;
  }
}

export function another(): Error {
  return storeUnavailable("somebody else accepts the store at this moment");
}

/** What became of all tags. */
type Taken = Omit<TakenClaims, "claimants"> & { readonly tags: number };

/**
 * Raises the floors of all tags, and makes those that the store has lost. `closed`: the transaction that gave this accept the store
 * for itself. `before`: the store's revision before. Each tag takes one of its own, so that a poll can page through all of them.
 *
 * INVARIANTS
 * - A transaction writes tags only while the store is closed by this accept, and only if nobody wrote any key among theirs since then:
 *   neither another accept nor a hand. All of it is done then, or nothing.
 * - Whoever polls after this accept finds the places of its changes alone. Packs of an accept before it, also of one that was
 *   interrupted and counted from the same revision, go before the first is written; other places at the end.
 */
export async function raiseAll(
  session: Session,
  closed: Closing,
  { before, ...how }: Raise & { readonly before: bigint },
): Promise<Taken> {
  const { keys } = session;
  const lost = new Set(how.claims.keys());
  let tags = 0;
  const tally = new ClaimTally();
  await removeAll(session, closed, keys.packs(-1n));
  for await (const kvs of pagesOfTags(session)) {
    const changes = kvs.map(({ value }): TagChange => {
      const old = tagFrom(value);
      lost.delete(old.name);
      const { row, missing } = claimed(old, how);
      tally.claimed(old.name, missing);
      return changeOf(session, old, row, how, before + BigInt(++tags));
    });
    await writeAll(session, changes, MAX_TOGETHER, (part) => {
      const [{ key }, last] = [part[0] as TagChange, part.at(-1) as TagChange];
      return [closed, { key, rangeEnd: next(last.key), writtenBefore: closed.modRevision }];
    });
  }
  const made = [...lost].map((name) =>
    changeOf(session, undefined, lostRow(name, how), how, before + BigInt(++tags)),
  );
  await writeAll(session, made, MAX_WITHIN, (part) => [
    closed,
    ...part.map(({ key }) => ({ key, modRevision: "0" })),
  ]);
  await removeAll(session, closed, keys.changes(-1n));
  return { ...tally.taken, tags, lost: lost.size };
}

/** What is written of one tag. */
interface TagChange {
  readonly name: string;
  readonly key: Buffer;
  readonly revision: bigint;
  readonly ops: readonly Op[];
}

async function writeAll(
  session: Session,
  changes: readonly TagChange[],
  most: number,
  compareOf: (part: readonly TagChange[]) => readonly Compare[],
): Promise<void> {
  await inLanes(inTransactions(changes, most), (part) =>
    write(session, compareOf(part), opsOf(session, part)),
  );
}

function inTransactions(
  changes: readonly TagChange[],
  most: number,
): readonly (readonly TagChange[])[] {
  const parts: TagChange[][] = [];
  let room = 0;
  for (const change of changes) {
    room -= bytesOf(change);
    const part = parts.at(-1);
    if (part === undefined || part.length === most || room < 0) {
      parts.push([change]);
      room = MAX_BYTES - bytesOf(change);
    } else {
      part.push(change);
    }
  }
  return parts;
}

/** About as many as it takes, with its place in a pack. */
function bytesOf({ name, ops }: TagChange): number {
  const puts = ops.map((op) => ("put" in op ? op.put.key.length + op.put.value.length : 0));
  return puts.reduce((sum, bytes) => sum + bytes, name.length);
}

function opsOf({ keys }: Session, part: readonly TagChange[]): readonly Op[] {
  const all = part.flatMap(({ ops }) => ops);
  const within = partsOf(all, MAX_WITHIN).map((success) => {
    return { txn: { compare: [], success, failure: [] } };
  });
  const { revision } = part.at(-1) as TagChange;
  const value = valueOfPack(part.map(({ name }) => name));
  return [...within, { put: { key: keys.pack(revision), value } }];
}

async function removeAll(session: Session, closed: Compare, range: Range): Promise<void> {
  for (;;) {
    const [kvs = []] = await session.read([{ ...range, limit: REMOVED, keysOnly: true }], ALLOWED);
    const last = kvs.at(-1);
    if (last === undefined) return;
    const remove = { key: range.key, rangeEnd: next(last.key) };
    await write(session, [closed], [{ remove }]);
  }
}

async function write(
  session: Session,
  compare: readonly Compare[],
  success: readonly Op[],
): Promise<void> {
  const { answers } = await session.write([{ txn: { compare, success, failure: [] } }], ALLOWED);
  if (answers[0]?.txn?.succeeded !== true) throw another();
}

/** The period that the lost history may have begun; undefined for tags without periods. */
function turnAt(old: Tag, nowMs: number): ReturnType<typeof turnOf> | undefined {
  const cut = periodsOf(old.kind);
  if (cut === undefined) return undefined;
  return turnOf(positionOf(old), periodAt(cut, nowMs + CLOCK_MARGIN_MS));
}

/** The row in its present period, with what was claimed of it. */
function claimed(old: Tag, { nowMs, claims, isTrusted }: Raise): Claimed {
  const turn = turnAt(old, nowMs);
  const place =
    turn === undefined
      ? {}
      : {
          floor: turn.floor,
          periodStart: turn.start,
          otherPeriods: acceptedPeriods(turn, 0n, old.ceiling),
        };
  return withClaims({ ...old, ...place }, claims.get(old.name) ?? [], isTrusted);
}

function lostRow(name: string, { claims, isTrusted, nowMs }: Raise): Tag {
  return lostTag(name, claims.get(name) ?? [], isTrusted, nowMs);
}

/** `old`: undefined where there is no key yet. `row`: what is known of the tag. The gap is added here. */
function changeOf(
  session: Session,
  old: Tag | undefined,
  row: Tag,
  { gap, nowMs }: Raise,
  revision: bigint,
): TagChange {
  const seconds = BigInt(Math.floor(nowMs / 1_000));
  const { ceiling, otherPeriods } = row;
  const above = (last: bigint): bigint => (gap < ceiling - last ? last + gap : ceiling);
  const floor = above(row.floor);
  const others = otherPeriods?.map(({ start, lastId }) => ({
    start,
    lastId: lastId === FORGOTTEN ? lastId : above(lastId),
  }));
  const tag: Tag = {
    ...row,
    ...(others === undefined ? {} : { otherPeriods: others }),
    floor: acceptedFloor(row.kind, floor, nowMs),
    generation: countsInRedis(row.kind)
      ? acceptedGeneration(row.generation, seconds)
      : row.generation,
    version: row.version + 1n,
    epoch: row.epoch < seconds ? seconds : row.epoch + 1n,
    revision,
    updatedAtMs: nowMs,
  };
  const hasEnded = old !== undefined && turnAt(old, nowMs)?.hasEnded === true;
  const key = session.keys.tag(tag.name);
  const ended = hasEnded ? endPeriod(session, old, nowMs) : [];
  const ops = [{ put: { key, value: valueOfTag(tag) } }, ...ended];
  return { name: tag.name, key, revision, ops };
}

// What an accept makes of the tags.
import { countsInRedis } from "@idmint/core/kinds";
import {
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
import type { Compare, Op, Range } from "./cluster/protocol.ts";
import { endPeriod, positionOf } from "./periods.ts";
import { MAX_OPS, type Session } from "./session/etcd.ts";
import { next } from "./session/keys.ts";
import { inLanes } from "./session/lanes.ts";
import { tagFrom, valueOfTag } from "./session/rows.ts";
import { pagesOfTags, recordChange } from "./tags.ts";

const ALLOWED = { fenced: "allow" } as const;

/** Keys that are removed at once: etcd does nothing else meanwhile. */
const REMOVED = 5_000;
const MAX_NAMED = 5;

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
    for (const { key, value } of kvs) {
      const old = readable(value);
      if (old === undefined) spoiled.push(String(key));
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

function readable(value: Buffer): Tag | undefined {
  try {
    return tagFrom(value);
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
 * Raises the floors of all tags, and makes those that the store has lost. `closed` holds while this accept has the store for itself.
 * `before`: the store's revision before. Each tag takes one of its own, so that a poll can page through all of them; places of
 * earlier changes go at the end.
 */
export async function raiseAll(
  session: Session,
  closed: Compare,
  { before, ...how }: Raise & { readonly before: bigint },
): Promise<Taken> {
  const { keys } = session;
  const lost = new Set(how.claims.keys());
  let tags = 0;
  const tally = new ClaimTally();
  for await (const kvs of pagesOfTags(session)) {
    const changes = kvs.map(({ key, value, modRevision }): TagChange => {
      const old = tagFrom(value);
      lost.delete(old.name);
      const { row, missing } = claimed(old, how);
      tally.claimed(old.name, missing);
      return {
        compare: { key, modRevision },
        ops: changeOf(session, old, row, how, before + BigInt(++tags)),
      };
    });
    await writeAll(session, closed, changes);
  }
  const made = [...lost].map((name): TagChange => {
    const compare = { key: keys.tag(name), modRevision: "0" };
    const row = lostRow(name, how);
    return { compare, ops: changeOf(session, undefined, row, how, before + BigInt(++tags)) };
  });
  await writeAll(session, closed, made);
  await removeAll(session, closed, { ...keys.changes(-1n), rangeEnd: keys.change(before + 1n) });
  // Of an accept that was interrupted, and wrote more.
  await removeAll(session, closed, keys.changes(before + BigInt(tags)));
  return { ...tally.taken, tags, lost: lost.size };
}

/** What is written of one tag, over the key as it was read. */
interface TagChange {
  readonly compare: Compare;
  readonly ops: readonly Op[];
}

async function writeAll(
  session: Session,
  closed: Compare,
  changes: readonly TagChange[],
): Promise<void> {
  await inLanes(inTransactions(changes), (part) => {
    const compare = [closed, ...part.map(({ compare: its }) => its)];
    return write(
      session,
      compare,
      part.flatMap(({ ops }) => ops),
    );
  });
}

function inTransactions(changes: readonly TagChange[]): (readonly TagChange[])[] {
  const parts: TagChange[][] = [];
  let room = 0;
  for (const change of changes) {
    room -= change.ops.length;
    if (room < 0) {
      parts.push([]);
      room = MAX_OPS - change.ops.length;
    }
    parts.at(-1)?.push(change);
  }
  return parts;
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
): Op[] {
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
    generation: row.generation + (countsInRedis(row.kind) ? 1n : 0n),
    version: row.version + 1n,
    epoch: row.epoch < seconds ? seconds : row.epoch + 1n,
    revision,
    updatedAtMs: nowMs,
  };
  const hasEnded = old !== undefined && turnAt(old, nowMs)?.hasEnded === true;
  return [
    { put: { key: session.keys.tag(tag.name), value: valueOfTag(tag) } },
    // That of the change before goes at the end.
    ...recordChange(session.etcd, undefined, tag),
    ...(hasEnded ? endPeriod(session, old, nowMs) : []),
  ];
}

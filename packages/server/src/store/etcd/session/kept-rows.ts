// Rows of tags as they are read, and how a transaction changes some of them.
import type { Tag } from "@idmint/core/server";
import { CallFailure } from "../cluster/failure.ts";
import type { KeyValue, Op, OpAnswer } from "../cluster/protocol.ts";
import type { Kept, Session } from "./etcd.ts";
import { tagFrom, valueOfTag } from "./rows.ts";

export function keptFrom(kv: KeyValue | undefined): Kept {
  return kv === undefined
    ? { tag: undefined, modRevision: "0" }
    : { tag: tagFrom(kv.value), modRevision: kv.modRevision };
}

/** Reads rows, in the order of the names. */
export async function readRows(
  session: Session,
  names: readonly string[],
): Promise<readonly Kept[]> {
  const pages = await session.read(names.map((name) => ({ key: session.keys.tag(name) })));
  const rows = pages.map(([kv]) => keptFrom(kv));
  rows.forEach((row, at) => session.etcd.keep(names[at] ?? "", row));
  return rows;
}

/** One step of a change: which row it was decided on, the row to write, and what goes with it. */
export interface RowChange {
  readonly name: string;
  readonly from: Kept;
  readonly tag: Tag;
  readonly more?: readonly Op[];
}

/** A transaction within another: writes a row where it is still the one that was read, and otherwise reads it. */
export function changeOf(session: Session, { name, from, tag, more = [] }: RowChange): Op {
  const key = session.keys.tag(name);
  return {
    txn: {
      compare: [{ key, modRevision: from.modRevision }],
      success: [{ put: { key, value: valueOfTag(tag) } }, ...more],
      failure: [{ range: { key } }],
    },
  };
}

/** Takes note of what became of a `changeOf`; answers whether it was done. */
export function noteChange(
  session: Session,
  { name, tag }: RowChange,
  answer: OpAnswer | undefined,
  revision: string,
): boolean {
  const its = answer?.txn;
  if (its === undefined || its === null) {
    throw new CallFailure("unknown", "the store", "an answer without its transaction");
  }
  const row = its.succeeded
    ? { tag, modRevision: revision }
    : keptFrom(its.answers[0]?.range?.kvs[0]);
  session.etcd.keep(name, row);
  return its.succeeded;
}

/**
 * Decides on rows and writes them until everything that was decided is written. `decide` sees each row as it is now, or as
 * this process saw it last; what it decides on a row that is not the present one is not written, and it is asked again.
 * Whatever it answers instead of a change must hold of the present row, so it is only asked for that on rows just read.
 *
 * INVARIANTS
 * - A row is written only over the very one it was decided on: the transaction compares its revision of etcd.
 * - What is answered as done was done by the transaction that said so. One whose outcome is not known is never counted. It
 *   is tried again on the row as it is then: on the same row, which means that the first one can do nothing any more, or on
 *   a newer one, whose floor lies above what the first one may have taken.
 */
export async function changeRows<T>(
  session: Session,
  names: readonly string[],
  decide: (name: string, row: Kept) => { change: RowChange; answer: T } | { answer: T },
  more: (name: string, row: Kept, change: RowChange) => Promise<RowChange> = async (
    _,
    __,
    change,
  ) => change,
): Promise<ReadonlyMap<string, T>> {
  const done = new Map<string, T>();
  const fresh = new Set<string>();
  let failure: CallFailure | undefined;
  for (let round = 0; done.size < names.length; round++) {
    if (round > 0) await session.afterConflict(round, failure);
    const open = names.filter((name) => !done.has(name));
    const unread = open.filter((name) => !fresh.has(name) && !session.etcd.kept.has(name));
    await readRows(session, unread);
    for (const name of unread) fresh.add(name);
    const changes: { change: RowChange; answer: T }[] = [];
    const doubtful: string[] = [];
    for (const name of open) {
      const row = session.etcd.kept.get(name) ?? { tag: undefined, modRevision: "0" };
      const decision = decide(name, row);
      if ("change" in decision) {
        changes.push({ ...decision, change: await more(name, row, decision.change) });
      } else if (fresh.has(name)) {
        done.set(name, decision.answer);
      } else {
        doubtful.push(name);
      }
    }
    // What is answered without a change is answered of a row that was read after the call began.
    for (const name of doubtful) session.etcd.kept.delete(name);
    if (changes.length === 0) continue;
    fresh.clear();
    try {
      const ops = changes.map(({ change }) => changeOf(session, change));
      const { answers, revision } = await session.write(ops);
      changes.forEach(({ change, answer }, at) => {
        if (noteChange(session, change, answers[at], revision)) done.set(change.name, answer);
        else fresh.add(change.name);
      });
    } catch (error) {
      for (const { change } of changes) session.etcd.kept.delete(change.name);
      if (!(error instanceof CallFailure) || error.kind !== "unknown") throw error;
      failure = error;
    }
  }
  return done;
}

import { KEPT_GENERATIONS, type MarkedGeneration, type RedisMark } from "@idmint/core/server";
import type { KeyValue, Op } from "./cluster/protocol.ts";
import { type Etcd, MAX_OPS, type Session } from "./session/etcd.ts";
import { fieldsOf } from "./session/rows.ts";

/** Raises marks and reads others. What rose is written over the very marks that were read, or not at all. */
export async function exchangeMarks(
  etcd: Etcd,
  risen: readonly RedisMark[],
  asked: readonly MarkedGeneration[],
): Promise<readonly RedisMark[]> {
  return etcd.run(async (session) => {
    let open = risen;
    for (let round = 0; open.length > 0; round++) {
      if (round > 0) await session.afterConflict(round);
      open = await keep(session, open);
    }
    const rows = await session.read(asked.map(({ tag }) => ({ key: session.keys.mark(tag) })));
    return asked.flatMap(({ tag, generation: from }, at) =>
      [...marksOf(rows[at]?.[0])].flatMap(([generation, mark]) =>
        generation >= from ? [{ tag, generation, mark }] : [],
      ),
    );
  });
}

/** Answers those that others wrote meanwhile. */
async function keep(session: Session, risen: readonly RedisMark[]): Promise<readonly RedisMark[]> {
  const rows = await session.read(risen.map(({ tag }) => ({ key: session.keys.mark(tag) })));
  const changes = risen.flatMap((mark, at) => {
    const [kv] = rows[at] ?? [];
    const value = raised(marksOf(kv), mark);
    if (value === undefined) return [];
    const key = session.keys.mark(mark.tag);
    const compare = [{ key, modRevision: kv?.modRevision ?? "0" }];
    const op: Op = { txn: { compare, success: [{ put: { key, value } }], failure: [] } };
    return [{ mark, op }];
  });
  const open: RedisMark[] = [];
  for (let from = 0; from < changes.length; from += MAX_OPS) {
    const some = changes.slice(from, from + MAX_OPS);
    const { answers } = await session.write(some.map(({ op }) => op));
    some.forEach(({ mark }, at) => {
      if (answers[at]?.txn?.succeeded !== true) open.push(mark);
    });
  }
  return open;
}

/** A tag's marks by generation, the highest first. */
function marksOf(kv: KeyValue | undefined): Map<bigint, bigint> {
  const all = Object.entries(kv === undefined ? {} : fieldsOf(kv.value));
  const marks = all.map(([generation, mark]) => [BigInt(generation), BigInt(mark)] as const);
  return new Map(marks.toSorted(([a], [b]) => (a < b ? 1 : -1)));
}

/** The marks with one that rose; undefined where nothing changes. */
function raised(marks: Map<bigint, bigint>, { generation, mark }: RedisMark): Buffer | undefined {
  if ((marks.get(generation) ?? -1n) >= mark) return undefined;
  const all = [...marks].filter(([its]) => its !== generation);
  const kept = [...all, [generation, mark] as const]
    .toSorted(([a], [b]) => (a < b ? 1 : -1))
    .slice(0, KEPT_GENERATIONS);
  if (!kept.some(([its]) => its === generation)) return undefined;
  const entries = kept.map(([its, value]) => [String(its), String(value)]);
  return Buffer.from(JSON.stringify(Object.fromEntries(entries)));
}

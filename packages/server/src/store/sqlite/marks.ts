import { KEPT_GENERATIONS, type MarkedGeneration, type RedisMark } from "@idmint/core/server";
import type { Transaction } from "./file/connection.ts";
import type { Database } from "./file/database.ts";

const HAS = "SELECT 1 FROM redis_mark WHERE tag = ? AND generation = ?";
const READ = "SELECT generation, mark FROM redis_mark WHERE tag = ? AND generation >= ?";
const KEEP = `INSERT INTO redis_mark AS m (tag, generation, mark) VALUES (?, ?, ?)
  ON CONFLICT (tag, generation) DO UPDATE SET mark = excluded.mark WHERE excluded.mark > m.mark`;
const PUSH_OUT = `DELETE FROM redis_mark WHERE tag = ?1 AND generation <= (
  SELECT h.generation FROM redis_mark AS h WHERE h.tag = ?1
  ORDER BY h.generation DESC LIMIT 1 OFFSET ${KEPT_GENERATIONS})`;

/** Raises marks and reads others. With none that rose it takes no lock and writes nothing. */
export function exchangeMarks(
  database: Database,
  deadlineMs: number,
  risen: readonly RedisMark[],
  asked: readonly MarkedGeneration[],
): readonly RedisMark[] {
  const read = (transaction: Transaction): readonly RedisMark[] =>
    asked.flatMap(({ tag, generation: from }) =>
      transaction.all(READ, tag, from).map((row) => {
        return { tag, generation: row["generation"] as bigint, mark: row["mark"] as bigint };
      }),
    );
  if (risen.length === 0) return database.read(deadlineMs, read);
  return database.write(deadlineMs, (transaction) => {
    for (const { tag, generation, mark } of risen) {
      const isNew = transaction.get(HAS, tag, generation) === undefined;
      transaction.run(KEEP, tag, generation, mark);
      if (isNew) transaction.run(PUSH_OUT, tag);
    }
    return read(transaction);
  });
}

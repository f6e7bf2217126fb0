import { KEPT_GENERATIONS, type MarkedGeneration, type RedisMark } from "@idmint/core/server";
import type { Connections } from "./connections.ts";

/** SQL: how many generations of a row's tag are kept above its own. */
const higher = (row: string): string =>
  `(SELECT count(*) FROM idmint.redis_mark AS h
    WHERE h.tag = ${row}.tag AND h.generation > ${row}.generation)`;

/**
 * Raises marks and reads others: tags, generations and marks that rose, then the tags and generations asked for. Rows are
 * locked in one order, so that servers do not wait for each other in a ring. A row that is new (its xmax is 0) pushes out
 * old generations; the statement does not see its own new row, so that one is counted besides.
 */
const EXCHANGE = {
  name: "idmint-marks-1",
  text: `WITH kept AS (
  INSERT INTO idmint.redis_mark AS m (tag, generation, mark)
  SELECT r.tag, r.generation, r.mark
  FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS r (tag, generation, mark)
  WHERE ${higher("r")} < ${KEPT_GENERATIONS}
  ORDER BY r.tag COLLATE "C", r.generation
  ON CONFLICT (tag, generation) DO UPDATE SET mark = excluded.mark WHERE excluded.mark > m.mark
  RETURNING m.tag, m.generation, m.xmax = 0 AS is_new
), pushed_out AS (
  DELETE FROM idmint.redis_mark AS o USING kept AS k
  WHERE k.is_new AND o.tag = k.tag AND o.generation < k.generation
    AND ${higher("o")} + 1 >= ${KEPT_GENERATIONS}
)
SELECT m.tag, m.generation, m.mark
FROM unnest($4::text[], $5::bigint[]) AS a (tag, generation)
JOIN idmint.redis_mark AS m ON m.tag = a.tag AND m.generation >= a.generation`,
};

interface MarkRow {
  readonly tag: string;
  readonly generation: string;
  readonly mark: string;
}

export async function exchangeMarks(
  connections: Connections,
  risen: readonly RedisMark[],
  asked: readonly MarkedGeneration[],
): Promise<readonly RedisMark[]> {
  const values = [
    risen.map(({ tag }) => tag),
    risen.map(({ generation }) => String(generation)),
    risen.map(({ mark }) => String(mark)),
    asked.map(({ tag }) => tag),
    asked.map(({ generation }) => String(generation)),
  ];
  const rows = await connections.run((session) => session.query<MarkRow>({ ...EXCHANGE, values }));
  return rows.map(({ tag, generation, mark }) => ({
    tag,
    generation: BigInt(generation),
    mark: BigInt(mark),
  }));
}

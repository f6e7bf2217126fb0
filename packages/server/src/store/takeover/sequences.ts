import { invalidField } from "@idmint/core";
import { UNSAFE_SETTINGS } from "../shared/backends.ts";
import type { PostgresConfig } from "../shared/config.ts";
import { Connections } from "../postgres/connections.ts";

/** How far a sequence of any PostgreSQL database has counted, by the database itself or by a dump of it. */
export interface SequenceSeen {
  /** With its schema, if that is not `public`. */
  readonly name: string;
  /** The last value that it gave. */
  readonly last: bigint;
  readonly increment: bigint;
  readonly cycles: boolean;
  /** The highest value in the column that it numbers (serial, identity); undefined: none, or it numbers no column. */
  readonly inRows: bigint | undefined;
}

const MAX_SEQUENCES = 10_000;

/** PostgreSQL itself puts the names into quotes. */
const SEQUENCES = `SELECT n.nspname AS schema, c.relname AS name, s.seqincrement::text AS increment,
  s.seqcycle AS cycles, format('SELECT last_value, is_called FROM %I.%I', n.nspname, c.relname) AS last_query,
  (SELECT format('SELECT max(%I)::text AS highest FROM %I.%I', a.attname, tn.nspname, t.relname)
    FROM pg_depend AS d JOIN pg_class AS t ON t.oid = d.refobjid JOIN pg_namespace AS tn ON tn.oid = t.relnamespace
    JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
      AND d.deptype IN ('a', 'i') LIMIT 1) AS rows_query
FROM pg_sequence AS s JOIN pg_class AS c ON c.oid = s.seqrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'idmint')
ORDER BY n.nspname, c.relname LIMIT ${MAX_SEQUENCES + 1}`;

interface SequenceRow {
  readonly schema: string;
  readonly name: string;
  readonly increment: string;
  readonly cycles: boolean;
  readonly last_query: string;
  readonly rows_query: string | null;
}

/**
 * Looks at all sequences of a database, and changes nothing. Those who use it may go on meanwhile: each sequence is read
 * before the rows that it numbered.
 */
export async function readSequences(
  config: Omit<PostgresConfig, "backend" | "allowUnsafe">,
): Promise<readonly SequenceSeen[]> {
  const connections = new Connections({
    ...config,
    backend: "postgres",
    allowUnsafe: UNSAFE_SETTINGS,
  });
  try {
    return await connections.run(async (session) => {
      const rows = await session.query<SequenceRow>({ text: SEQUENCES });
      if (rows.length > MAX_SEQUENCES) {
        throw invalidField("SOURCE", `has more than ${MAX_SEQUENCES} sequences`);
      }
      const found: SequenceSeen[] = [];
      for (const {
        schema,
        name,
        increment,
        cycles,
        last_query: lastQuery,
        rows_query: rowsQuery,
      } of rows) {
        const [last] = await session.query<{ last_value: string; is_called: boolean }>({
          text: lastQuery,
        });
        const inRows =
          rowsQuery === null
            ? undefined
            : (await session.query<{ highest: string | null }>({ text: rowsQuery }))[0]?.highest;
        const by = BigInt(increment);
        const value = BigInt(last?.last_value ?? 0);
        found.push({
          name: schema === "public" ? name : `${schema}.${name}`,
          last: last?.is_called === false ? value - by : value,
          increment: by,
          cycles,
          inRows: inRows === undefined || inRows === null ? undefined : BigInt(inRows),
        });
      }
      return found;
    });
  } finally {
    await connections.close();
  }
}

// What other makers of ids have given out, as far as their tables say. Pure.
import { invalidField } from "@idmint/core";
import type { SequenceSeen } from "@idmint/server";
import { plain } from "../../../process/plain.ts";
import { type Dump, type DumpedSequence, readDump, type Values } from "./sql-dump.ts";
import type { Dialect } from "./sql-tokens.ts";

/** One count of another maker, and the highest id that it may have given out by the time of the dump. */
export interface Count {
  readonly name: string;
  readonly highest: bigint;
  /** Where that comes from, for the report. */
  readonly because: string;
}

/** What is imported from, by the word that is typed. */
export const SOURCES = {
  leaf: "Leaf: a dump of leaf_alloc",
  tinyid: "Tinyid: a dump of tiny_id_info",
  mysql: "MySQL: a dump with AUTO_INCREMENT",
  postgres: "PostgreSQL: a dump with sequences, or a database (postgres://user@host/database)",
} as const;

export type SourceName = keyof typeof SOURCES;

/** Reads a dump. Refuses one in which nothing counts: it may be the dump of something else. */
export function countsOfDump(source: SourceName, text: string, file: string): readonly Count[] {
  const counts = READERS[source](text, file);
  if (counts.length > 0) return counts;
  throw invalidField(file, `has nothing that counts; it must be of ${SOURCES[source]}`);
}

const READERS: { readonly [Name in SourceName]: (text: string, file: string) => readonly Count[] } =
  {
    // max_id is where the next segment begins: every id that was given out is below it.
    leaf: (text, file) =>
      rowsOf(text, file, "leaf_alloc", ["biz_tag", "max_id", "step"], (values) => ({
        name: textOf(values, "biz_tag", file),
        highest: wholeOf(values, "max_id", file),
        because: `max_id ${values.get("max_id")}, step ${values.get("step")}`,
      })),
    // max_id is the last id that was given out, whatever delta and remainder are.
    tinyid: (text, file) =>
      rowsOf(text, file, "tiny_id_info", ["biz_type", "begin_id", "max_id"], (values) => {
        const [begin, max] = [wholeOf(values, "begin_id", file), wholeOf(values, "max_id", file)];
        const name = textOf(values, "biz_type", file);
        return { name, highest: begin > max ? begin : max, because: `max_id ${max}` };
      }),
    mysql: countsOfMysql,
    postgres: countsOfPostgres,
  };

/** The rows of one table, of a dump from MySQL or PostgreSQL. */
function rowsOf(
  text: string,
  file: string,
  wanted: string,
  columns: readonly string[],
  countOf: (values: Values) => Count,
): readonly Count[] {
  const counts: Count[] = [];
  readDump(text, dialectOf(text), file, {
    wants: (table) => (table.split(".").at(-1) === wanted ? columns : undefined),
    row: (_table, values) => counts.push(countOf(values)),
  });
  return counts;
}

/** By what each program writes at the top. */
function dialectOf(text: string): Dialect {
  return text.slice(0, 4_096).includes("PostgreSQL database dump") ? "postgres" : "mysql";
}

function countsOfMysql(text: string, file: string): readonly Count[] {
  const highest = new Map<string, bigint>();
  const dump = readDump(text, "mysql", file, {
    wants: (table, { tables }) => {
      const column = tables.get(table)?.autoColumn;
      return column === undefined ? undefined : [column];
    },
    row: (table, values) => {
      const [column = "", value] = [...values][0] ?? [];
      if (value !== undefined) raise(highest, table, wholeOf(values, column, file));
    },
  });
  return [...dump.tables].flatMap(([name, { autoColumn, autoIncrement }]) => {
    if (autoColumn === undefined) return [];
    const inRows = highest.get(name) ?? 0n;
    // Without the option a table is empty, or its dump was made without it and with the rows.
    const given = autoIncrement === undefined ? 0n : autoIncrement - 1n;
    const because =
      autoIncrement === undefined
        ? `rows up to ${inRows}`
        : `AUTO_INCREMENT=${autoIncrement}, rows up to ${inRows}`;
    return [{ name, highest: given > inRows ? given : inRows, because }];
  });
}

function countsOfPostgres(text: string, file: string): readonly Count[] {
  const highest = new Map<string, bigint>();
  const dump = readDump(text, "postgres", file, {
    wants: (table, { sequences }) => {
      const columns = ownedColumns(table, sequences);
      return columns.length === 0 ? undefined : columns;
    },
    row: (table, values) => {
      for (const [column, value] of values) {
        if (value !== undefined)
          raise(highest, `${table}.${column}`, wholeOf(values, column, file));
      }
    },
  });
  return [...dump.sequences].map(([name, { last, increment, cycles, owner }]) => {
    if (last === undefined) {
      throw invalidField(
        file,
        `does not say how far ${plain(name)} has counted: dump its data too (pg_dump without --schema-only)`,
      );
    }
    const value = last.isCalled ? last.value : last.value - increment;
    return sequenceCount({
      name,
      last: value,
      increment,
      cycles,
      inRows: highest.get(owner ?? ""),
    });
  });
}

function ownedColumns(table: string, sequences: Dump["sequences"]): string[] {
  const owners = [...sequences.values()].map(({ owner }: DumpedSequence) => owner);
  return owners.flatMap((owner) => {
    const at = owner?.lastIndexOf(".") ?? -1;
    return owner !== undefined && owner.slice(0, at) === table ? [owner.slice(at + 1)] : [];
  });
}

export function sequenceCount(sequence: SequenceSeen): Count {
  const { name, last, increment, cycles, inRows } = sequence;
  if (increment < 0n) throw invalidField(plain(name), "counts down, and tags count up only");
  if (cycles) throw invalidField(plain(name), "starts again at its end (CYCLE), so its ids repeat");
  const rows = inRows === undefined ? "" : `, rows up to ${inRows}`;
  const highest = inRows === undefined || last > inRows ? last : inRows;
  // A sequence that gave nothing yet stands below its start.
  return { name, highest: highest < 0n ? 0n : highest, because: `last value ${last}${rows}` };
}

function raise(highest: Map<string, bigint>, name: string, value: bigint): void {
  if (value > (highest.get(name) ?? 0n)) highest.set(name, value);
}

function textOf(values: Values, column: string, file: string): string {
  const value = values.get(column);
  if (value !== undefined && value !== "") return value;
  throw invalidField(file, `has a row without a ${column}`);
}

function wholeOf(values: Values, column: string, file: string): bigint {
  const value = values.get(column) ?? "";
  if (/^\d{1,20}$/.test(value)) return BigInt(value);
  throw invalidField(
    file,
    `has ${JSON.stringify(value)} in ${plain(column)}, which is no whole number from 0`,
  );
}

// What a dump says of tables, their rows and sequences. Pure.
import { type Dialect, type Token, Tokens } from "./sql-tokens.ts";

interface DumpedTable {
  /** As CREATE TABLE has them; empty when the dump has none. */
  columns: readonly string[];
  /** The column that counts by itself. */
  autoColumn: string | undefined;
  /** What AUTO_INCREMENT says: the next value. */
  autoIncrement: bigint | undefined;
}

export interface DumpedSequence {
  increment: bigint;
  cycles: boolean;
  /** What setval says; undefined: nothing. */
  last: { readonly value: bigint; readonly isCalled: boolean } | undefined;
  /** The column that it numbers, as table.column. */
  owner: string | undefined;
}

export interface Dump {
  readonly tables: ReadonlyMap<string, DumpedTable>;
  readonly sequences: ReadonlyMap<string, DumpedSequence>;
}

/** A value of a row: undefined where it is neither a number nor a text, such as NULL. */
export type Values = ReadonlyMap<string, string | undefined>;

/** Hears the rows of those tables that it wants, by INSERT, REPLACE or COPY. */
export interface RowReader {
  /** Columns that matter; undefined: none, and the rows are passed over. */
  readonly wants: (table: string, dump: Dump) => readonly string[] | undefined;
  readonly row: (table: string, values: Values) => void;
}

/** Begins what stands where a column might, without being one. */
const NO_COLUMN = new Set([
  "PRIMARY",
  "KEY",
  "UNIQUE",
  "INDEX",
  "CONSTRAINT",
  "FULLTEXT",
  "SPATIAL",
  "FOREIGN",
  "CHECK",
  "EXCLUDE",
  "LIKE",
]);

/** Reads a dump. Throws an INVALID_ARGUMENT with file and line for what it cannot read and has to. */
export function readDump(text: string, dialect: Dialect, file: string, reader: RowReader): Dump {
  return new DumpReader(new Tokens(text, dialect, file), dialect, reader).read();
}

class DumpReader {
  readonly #tokens: Tokens;
  readonly #dialect: Dialect;
  readonly #reader: RowReader;
  readonly #tables = new Map<string, DumpedTable>();
  readonly #sequences = new Map<string, DumpedSequence>();
  #database: string | undefined;

  constructor(tokens: Tokens, dialect: Dialect, reader: RowReader) {
    this.#tokens = tokens;
    this.#dialect = dialect;
    this.#reader = reader;
  }

  read(): Dump {
    const tokens = this.#tokens;
    while (tokens.peek().kind !== "end") this.#statement(tokens);
    return { tables: this.#tables, sequences: this.#sequences };
  }

  #statement(tokens: Tokens): void {
    if (tokens.takes("CREATE", "TABLE")) this.#createTable(tokens);
    else if (tokens.takes("CREATE", "SEQUENCE")) this.#createSequence(tokens);
    else if (tokens.takes("ALTER", "SEQUENCE")) this.#alterSequence(tokens);
    else if (tokens.takes("ALTER", "TABLE")) this.#alterTable(tokens);
    else if (tokens.takes("INSERT") || tokens.takes("REPLACE")) return this.#insert(tokens);
    else if (tokens.takes("UPDATE") || tokens.takes("DELETE")) return this.#change(tokens);
    else if (tokens.takes("COPY")) return this.#copy(tokens);
    else if (tokens.takes("SELECT")) this.#select(tokens);
    else if (this.#dialect === "mysql" && tokens.takes("USE")) this.#use(tokens);
    tokens.skipStatement();
  }

  /** A name with the schema before it, if that is not `public`. Of a name in three parts the database is left out. */
  #name(tokens: Tokens): string {
    const parts = [nameOf(tokens.next(), tokens)];
    while (tokens.takes(".")) parts.push(nameOf(tokens.next(), tokens));
    const [schema, name] = parts.length > 1 ? parts.slice(-2) : ["public", parts[0]];
    return schema === "public" || this.#dialect === "mysql" ? (name ?? "") : `${schema}.${name}`;
  }

  #table(name: string): DumpedTable {
    let table = this.#tables.get(name);
    if (table === undefined) {
      table = { columns: [], autoColumn: undefined, autoIncrement: undefined };
      this.#tables.set(name, table);
    }
    return table;
  }

  #sequence(name: string): DumpedSequence {
    let sequence = this.#sequences.get(name);
    if (sequence === undefined) {
      sequence = { increment: 1n, cycles: false, last: undefined, owner: undefined };
      this.#sequences.set(name, sequence);
    }
    return sequence;
  }

  #createTable(tokens: Tokens): void {
    tokens.takes("IF", "NOT", "EXISTS");
    const table = this.#table(this.#name(tokens));
    // CREATE TABLE … AS, PARTITION OF: no columns of its own.
    if (!tokens.takes("(")) return;
    const columns: string[] = [];
    let isFirst = true;
    for (let depth = 1; depth > 0;) {
      const token = tokens.next();
      if (token.kind === "end") throw tokens.refusal("ends within a CREATE TABLE");
      if (isFirst && isColumn(token)) columns.push(token.value);
      else if (isWord(token, "AUTO_INCREMENT")) table.autoColumn = columns.at(-1);
      isFirst = depth === 1 && isSign(token, ",");
      if (isSign(token, "(")) depth++;
      if (isSign(token, ")")) depth--;
    }
    table.columns = columns;
    for (
      let token = tokens.peek();
      !isSign(token, ";") && token.kind !== "end";
      token = tokens.peek()
    ) {
      if (!tokens.takes("AUTO_INCREMENT")) {
        tokens.next();
        continue;
      }
      tokens.takes("=");
      table.autoIncrement = wholeOf(tokens.next(), tokens);
    }
  }

  #createSequence(tokens: Tokens): void {
    tokens.takes("IF", "NOT", "EXISTS");
    this.#sequenceOptions(tokens, this.#sequence(this.#name(tokens)));
  }

  /** Up to the end of the statement, or the parenthesis that closes them. */
  #sequenceOptions(tokens: Tokens, sequence: DumpedSequence): void {
    for (;;) {
      const token = tokens.peek();
      if (token.kind === "end" || isSign(token, ";") || isSign(token, ")")) return;
      if (tokens.takes("INCREMENT", "BY") || tokens.takes("INCREMENT")) {
        const isDown = tokens.takes("-");
        const by = wholeOf(tokens.next(), tokens);
        sequence.increment = isDown ? -by : by;
      } else if (tokens.takes("NO", "CYCLE")) sequence.cycles = false;
      else if (tokens.takes("CYCLE")) sequence.cycles = true;
      else tokens.next();
    }
  }

  #alterSequence(tokens: Tokens): void {
    tokens.takes("IF", "EXISTS");
    const name = this.#name(tokens);
    if (tokens.takes("OWNED", "BY")) this.#sequence(name).owner = this.#name3(tokens);
    else if (tokens.takes("RESTART"))
      throw tokens.refusal("restarts a sequence: dump the database again");
  }

  /** schema.table.column, as table.column. */
  #name3(tokens: Tokens): string | undefined {
    const parts = [nameOf(tokens.next(), tokens)];
    while (tokens.takes(".")) parts.push(nameOf(tokens.next(), tokens));
    if (parts.length === 1) return undefined;
    return parts.length === 3 && parts[0] === "public" ? parts.slice(1).join(".") : parts.join(".");
  }

  #alterTable(tokens: Tokens): void {
    tokens.takes("IF", "EXISTS");
    tokens.takes("ONLY");
    const table = this.#name(tokens);
    if (!tokens.takes("ALTER", "COLUMN")) return;
    const column = nameOf(tokens.next(), tokens);
    if (!tokens.takes("ADD", "GENERATED")) return;
    while (!tokens.takes("(")) {
      if (tokens.peek().kind === "end" || isSign(tokens.peek(), ";")) return;
      tokens.next();
    }
    if (!tokens.takes("SEQUENCE", "NAME"))
      throw tokens.refusal("has an identity column whose sequence has no name");
    const sequence = this.#sequence(this.#name(tokens));
    sequence.owner = `${table}.${column}`;
    this.#sequenceOptions(tokens, sequence);
  }

  #wanted(table: string): readonly string[] | undefined {
    return this.#reader.wants(table, { tables: this.#tables, sequences: this.#sequences });
  }

  #insert(tokens: Tokens): void {
    for (const word of ["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"])
      tokens.takes(word);
    const table = this.#name(tokens);
    const wanted = this.#wanted(table);
    if (wanted === undefined) return tokens.skipStatement();
    let columns = this.#table(table).columns;
    if (tokens.takes("(")) {
      columns = this.#columnList(tokens);
    }
    tokens.takes("OVERRIDING", "SYSTEM", "VALUE");
    if (!tokens.takes("VALUES")) throw tokens.refusal(`fills ${table} without VALUES`);
    const places = placesOf(table, columns, wanted, tokens);
    do this.#reader.row(table, this.#values(tokens, table, places, columns.length));
    while (tokens.takes(","));
    if (!isSign(tokens.peek(), ";")) throw tokens.refusal(`fills ${table} by more than VALUES`);
    tokens.skipStatement();
  }

  #columnList(tokens: Tokens): readonly string[] {
    const columns = [nameOf(tokens.next(), tokens)];
    while (tokens.takes(",")) columns.push(nameOf(tokens.next(), tokens));
    if (!tokens.takes(")")) throw tokens.refusal("has a list of columns that does not end");
    return columns;
  }

  #values(
    tokens: Tokens,
    table: string,
    places: ReadonlyMap<number, string>,
    count: number,
  ): Values {
    if (!tokens.takes("(")) throw tokens.refusal(`fills ${table} by more than rows of values`);
    const values = new Map<string, string | undefined>();
    for (let at = 0; ; at++) {
      const value = this.#value(tokens);
      const column = places.get(at);
      if (column !== undefined) values.set(column, value);
      if (tokens.takes(",")) continue;
      if (!tokens.takes(")")) throw tokens.refusal(`has a row of ${table} that does not end`);
      if (at + 1 !== count)
        throw tokens.refusal(`has a row of ${table} with ${at + 1} of ${count} values`);
      return values;
    }
  }

  /** One value, whatever it is made of. */
  #value(tokens: Tokens): string | undefined {
    const found: Token[] = [];
    for (let depth = 0; ;) {
      const token = tokens.peek();
      if (token.kind === "end") throw tokens.refusal("ends within a row");
      if (depth === 0 && (isSign(token, ",") || isSign(token, ")"))) break;
      if (isSign(token, "(")) depth++;
      if (isSign(token, ")")) depth--;
      // Only a value of one or two tokens is one that is read.
      if (found.length < 3) found.push(token);
      tokens.next();
    }
    const [first, second] = found;
    if (first !== undefined && isSign(first, "-") && second?.kind === "number")
      return `-${second.value}`;
    return found.length === 1 && (first?.kind === "number" || first?.kind === "text")
      ? first.value
      : undefined;
  }

  #change(tokens: Tokens): void {
    tokens.takes("FROM");
    const table = this.#name(tokens);
    if (this.#wanted(table) !== undefined) {
      throw tokens.refusal(`changes rows of ${table}: a dump only fills tables`);
    }
    tokens.skipStatement();
  }

  #copy(tokens: Tokens): void {
    const table = this.#name(tokens);
    let columns = this.#table(table).columns;
    if (tokens.takes("(")) columns = this.#columnList(tokens);
    if (!tokens.takes("FROM", "STDIN")) return tokens.skipStatement();
    const wanted = this.#wanted(table);
    const places = wanted === undefined ? undefined : placesOf(table, columns, wanted, tokens);
    if (!isSign(tokens.next(), ";"))
      throw tokens.refusal(`has a COPY of ${table} in another form than pg_dump's`);
    for (const line of tokens.copyLines()) {
      if (places === undefined) continue;
      const fields = line.split("\t");
      if (fields.length !== columns.length)
        throw tokens.refusal(
          `has a row of ${table} with ${fields.length} of ${columns.length} values`,
        );
      const values = [...places].map(([at, name]) => {
        const field = fields[at] ?? "\\N";
        return [name, field === "\\N" ? undefined : field.replaceAll(/\\(.)/g, "$1")] as const;
      });
      this.#reader.row(table, new Map(values));
    }
  }

  #select(tokens: Tokens): void {
    if (!tokens.takes("PG_CATALOG", ".", "SETVAL", "(") && !tokens.takes("SETVAL", "(")) return;
    const { kind, value } = tokens.next();
    if (kind !== "text") throw tokens.refusal("sets a sequence that it does not name by a text");
    const name = this.#name(new Tokens(value, this.#dialect, "the name of a sequence"));
    if (!tokens.takes(",")) throw tokens.refusal(`sets ${name} to nothing`);
    const isNegative = tokens.takes("-");
    const last = wholeOf(tokens.next(), tokens);
    const isCalled = !tokens.takes(",", "FALSE");
    this.#sequence(name).last = { value: isNegative ? -last : last, isCalled };
  }

  #use(tokens: Tokens): void {
    const database = nameOf(tokens.next(), tokens);
    if (this.#database !== undefined && this.#database !== database) {
      throw tokens.refusal(
        `goes on with the database ${database} after ${this.#database}: dump one at a time`,
      );
    }
    this.#database = database;
  }
}

/** Where in a row the wanted columns are. */
function placesOf(
  table: string,
  columns: readonly string[],
  wanted: readonly string[],
  tokens: Tokens,
): ReadonlyMap<number, string> {
  return new Map(
    wanted.map((name) => {
      const at = columns.indexOf(name);
      if (at !== -1) return [at, name];
      const way =
        columns.length === 0
          ? "dump it with CREATE TABLE or with names of columns"
          : `it has ${columns.join(", ")}`;
      throw tokens.refusal(`has rows of ${table} without a column ${name}: ${way}`);
    }),
  );
}

function isWord({ kind, value }: Token, word: string): boolean {
  return kind === "word" && value.toUpperCase() === word;
}

function isSign({ kind, value }: Token, sign: string): boolean {
  return kind === "sign" && value === sign;
}

function isColumn({ kind, value }: Token): boolean {
  return kind === "name" || (kind === "word" && !NO_COLUMN.has(value.toUpperCase()));
}

function nameOf({ kind, value }: Token, tokens: Tokens): string {
  if (kind === "word" || kind === "name") return value;
  throw tokens.refusal(`has ${kind === "end" ? "its end" : value} where a name belongs`);
}

function wholeOf({ kind, value }: Token, tokens: Tokens): bigint {
  if (kind === "number" && /^\d{1,20}$/.test(value)) return BigInt(value);
  throw tokens.refusal(`has ${kind === "end" ? "its end" : value} where a whole number belongs`);
}

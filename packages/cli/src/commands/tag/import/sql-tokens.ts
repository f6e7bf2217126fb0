// The words of a dump made by mysqldump or pg_dump. Pure.
import { invalidField } from "@idmint/core";

/** Whose rules for quotes and comments hold. */
export type Dialect = "mysql" | "postgres";

export interface Token {
  /** `name` was quoted as a name; a `word` may be a name or a keyword; `end` is the end of the dump. */
  readonly kind: "word" | "name" | "text" | "number" | "sign" | "end";
  readonly value: string;
}

const END: Token = { kind: "end", value: "" };
const SPACE = /\s+/y;
const WORD = /[\p{L}_][\p{L}\p{N}_$]*/uy;
const NUMBER = /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LINE = /[^\n]*/y;
const DOLLAR = /\$(?:[A-Za-z_]\w*)?\$/y;

/**
 * Reads tokens one after the other.
 *
 * INVARIANT: no part of a text, a quoted name or a comment is ever taken for a statement. What is opened and not closed
 * is refused: where the rest belongs cannot be known.
 */
export class Tokens {
  readonly #text: string;
  readonly #dialect: Dialect;
  readonly #file: string;
  #at = 0;
  #next: Token | undefined;

  constructor(text: string, dialect: Dialect, file: string) {
    this.#text = text;
    this.#dialect = dialect;
    this.#file = file;
  }

  peek(): Token {
    this.#next ??= this.#read();
    return this.#next;
  }

  next(): Token {
    const token = this.peek();
    this.#next = undefined;
    return token;
  }

  /** Takes the words if they come next, whatever their case. */
  takes(...words: readonly string[]): boolean {
    const before = { at: this.#at, next: this.#next };
    for (const word of words) {
      const { kind, value } = this.next();
      if ((kind === "word" || kind === "sign") && value.toUpperCase() === word) continue;
      this.#at = before.at;
      this.#next = before.next;
      return false;
    }
    return true;
  }

  /** Goes behind the end of the statement. */
  skipStatement(): void {
    for (let token = this.next(); token.kind !== "end"; token = this.next()) {
      if (token.kind === "sign" && token.value === ";") return;
    }
  }

  /** The raw lines of COPY, up to the one that ends them. */
  *copyLines(): Generator<string> {
    this.#at = this.#match(LINE).length + this.#at + 1;
    for (;;) {
      if (this.#at >= this.#text.length) throw this.refusal("ends within the rows of a COPY");
      const line = this.#match(LINE);
      this.#at += line.length + 1;
      if (line.trimEnd() === "\\.") return;
      yield line.replace(/\r$/, "");
    }
  }

  /** An error at this place. */
  refusal(what: string): Error {
    const line = this.#text.slice(0, this.#at).split("\n").length;
    return invalidField(`${this.#file}:${line}`, what);
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text)?.[0] ?? "";
  }

  #read(): Token {
    this.#skip();
    if (this.#at >= this.#text.length) return END;
    const first = this.#text[this.#at] ?? "";
    if (first === "'") return { kind: "text", value: this.#quoted("'", this.#dialect === "mysql") };
    if (first === '"') {
      const isText = this.#dialect === "mysql";
      return { kind: isText ? "text" : "name", value: this.#quoted('"', isText) };
    }
    if (first === "`") return { kind: "name", value: this.#quoted("`", false) };
    const dollar = this.#dialect === "postgres" && first === "$" ? this.#match(DOLLAR) : "";
    if (dollar !== "") return { kind: "text", value: this.#upTo(dollar) };
    const word = this.#match(WORD);
    if (word !== "") {
      this.#at += word.length;
      const isEscaping =
        this.#dialect === "postgres" && /^e$/i.test(word) && this.#text[this.#at] === "'";
      return isEscaping
        ? { kind: "text", value: this.#quoted("'", true) }
        : { kind: "word", value: word };
    }
    const number = this.#match(NUMBER);
    this.#at += number.length || 1;
    return number === "" ? { kind: "sign", value: first } : { kind: "number", value: number };
  }

  /** Spaces and comments. What mysqldump puts into comments with a version is about the session, or how a table is stored. */
  #skip(): void {
    for (;;) {
      this.#at += this.#match(SPACE).length;
      const two = this.#text.slice(this.#at, this.#at + 2);
      if (two === "--" || (this.#dialect === "mysql" && two.startsWith("#"))) {
        this.#at += this.#match(LINE).length;
      } else if (two === "/*") {
        const end = this.#text.indexOf("*/", this.#at + 2);
        if (end === -1) throw this.refusal("has a comment that does not end");
        this.#at = end + 2;
      } else return;
    }
  }

  #upTo(mark: string): string {
    const start = this.#at + mark.length;
    const end = this.#text.indexOf(mark, start);
    if (end === -1) throw this.refusal(`has a text that begins with ${mark} and does not end`);
    this.#at = end + mark.length;
    return this.#text.slice(start, end);
  }

  #quoted(quote: string, hasEscapes: boolean): string {
    const parts: string[] = [];
    let start = this.#at + 1;
    for (let at = start; at < this.#text.length; at++) {
      const sign = this.#text[at];
      if (sign === "\\" && hasEscapes) {
        parts.push(this.#text.slice(start, at));
        // Names of tags have none of the signs that \n and the like stand for.
        start = ++at;
      } else if (sign === quote && this.#text[at + 1] === quote) {
        parts.push(this.#text.slice(start, at));
        start = ++at;
      } else if (sign === quote) {
        parts.push(this.#text.slice(start, at));
        this.#at = at + 1;
        return parts.join("");
      }
    }
    throw this.refusal(`has a ${quote} that is not closed`);
  }
}

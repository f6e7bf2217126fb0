import type { OwnRow } from "../node/ports.ts";
import { type HighestGranted, type KeptTag, othersAfter } from "../store/version-guard.ts";

/**
 * What a server writes of its grants and of its row while it runs, line by line, for its next life on the same machine. Pure: text
 * from and to state.
 *
 * INVARIANTS
 * 1. The lines are a beginning of what happened, in its order: each is whole in the file before anything rests on what it says.
 *    Nothing is used of a grant before its line is there, and no give-back is asked for. So what the lines say was granted is all
 *    that was ever granted here, however the server ended. A last line without its end is of something that nobody used.
 * 2. A row is written down only as it was acknowledged, and only of a server that was proved (newcomer-state.ts).
 */
export interface KeptGrants {
  /** Id of the store. */
  readonly storeId: string;
  /** The history that the server was in last; empty: it never was in one. */
  readonly incarnation: string;
  /** Since when all grants are known, by the wall clock of then, milliseconds since 1970. */
  readonly sinceMs: number;
  /** Whether nothing was granted under the server's row before that. */
  readonly isWhole: boolean;
  readonly rows: readonly KeptRow[];
  /** What was granted last comes last. */
  readonly tags: ReadonlyMap<string, KeptTag>;
  /**
   * How many of them, the last ones, may have been granted from after the renewal that some row tells of: after the one before it
   * was acknowledged.
   */
  readonly recent: number;
}

/** The server's row in one database, as it was acknowledged. */
export interface KeptRow extends OwnRow {
  readonly id: string;
  readonly part: string;
  /** When that renewal was sent, on a clock that goes on from one life to the next. */
  readonly atMs: number;
}

/** The file. One process at a time has it open; it lies beside that of the leases, under the same lock. */
export interface GrantFile {
  /** Lines of an earlier life on the present run of the machine, until they are replaced; undefined: nothing may be believed. */
  readonly found: string | undefined;
  /** How far the clock of `KeptRow.atMs` is ahead of this process' monotonic clock. */
  readonly offsetMs: number;
  /** Bytes. */
  readonly size: number;
  /** Whether it says nothing, since it could not be written; a `replace` ends that. */
  readonly isEmpty: boolean;
  /** The text is in the file, or the file says nothing, when this returns. Throws STORE_UNAVAILABLE when neither can be had. */
  append(text: string): void;
  /** The same, in the place of all that was in it. */
  replace(text: string): void;
}

function lifeLine(sinceMs: number, isWhole: boolean): string {
  return line(["life", sinceMs, isWhole]);
}

export function storeLine(storeId: string, incarnation: string): string {
  return line(["store", storeId, incarnation]);
}

export function idsLine(
  tag: string,
  { period, epoch, last }: HighestGranted,
  version: bigint,
): string {
  return line(["ids", tag, period, String(epoch), String(last), String(version)]);
}

export function rowLine(row: KeptRow): string {
  const { part, id, history, renewals, revision, storeMs, atMs } = row;
  return line(["row", part, id, history, String(renewals), revision, storeMs, atMs]);
}

function line(fields: readonly (boolean | number | string)[]): string {
  return `${JSON.stringify(fields)}\n`;
}

/** All that is known, in as few lines as may be. */
export function keptGrantsText(
  kept: Omit<KeptGrants, "tags"> & { tags: readonly KeptTag[] },
): string {
  const { sinceMs, isWhole, storeId, incarnation, rows, tags, recent } = kept;
  const lines = [lifeLine(sinceMs, isWhole), storeLine(storeId, incarnation)];
  // Twice: what was granted after the first of two was granted after the renewal that the second tells of.
  const rowLines = [...rows, ...rows].map(rowLine);
  const from = tags.length - recent;
  lines.push(...tags.slice(0, from).flatMap(linesOf), ...rowLines);
  lines.push(...tags.slice(from).flatMap(linesOf));
  return lines.join("");
}

/** Each line is of another period than the one before, which it puts among the others. */
function linesOf({ tag, granted, others, version }: KeptTag): readonly string[] {
  const older = others.toReversed().map((other) => idsLine(tag, other, 0n));
  return [...older, idsLine(tag, granted, version)];
}

/** Undefined: the text is not one of these. */
export function keptGrantsFrom(text: string): KeptGrants | undefined {
  const lines = text.split("\n");
  // Without its end a line is of something that nobody used.
  lines.pop();
  const [first, ...others] = lines;
  try {
    const life = first === undefined ? [] : (JSON.parse(first) as Fields);
    if (life[0] !== "life") return undefined;
    const known = new Replay();
    for (const each of others) known.take(JSON.parse(each) as Fields);
    const [, sinceMs, isWhole] = life;
    return { ...known.kept, sinceMs: Number(sinceMs), isWhole: isWhole === true };
  } catch {
    return undefined;
  }
}

type Fields = readonly (boolean | number | string)[];

/** How many fields a line has behind its name. */
const FIELDS: ReadonlyMap<string, number> = new Map([
  ["store", 2],
  ["ids", 5],
  ["row", 7],
]);

class Replay {
  #storeId = "";
  #incarnation = "";
  #count = 0;
  /** With the lines of the last one and of the one before. */
  readonly #rows = new Map<string, { row: KeptRow; at: number; before: number }>();
  /** What was granted last comes last. */
  readonly #tags = new Map<string, KeptTag>();
  readonly #grantedAt = new Map<string, number>();

  get kept(): Omit<KeptGrants, "isWhole" | "sinceMs"> {
    const rows = [...this.#rows.values()];
    const oldest = rows.reduce((least, { before }) => Math.min(least, before), Infinity);
    const recent = [...this.#grantedAt.values()].filter((at) => at > oldest).length;
    const [storeId, incarnation] = [this.#storeId, this.#incarnation];
    return { storeId, incarnation, rows: rows.map(({ row }) => row), tags: this.#tags, recent };
  }

  take([what, ...fields]: Fields): void {
    this.#count++;
    if (fields.length !== FIELDS.get(String(what))) throw new Error("a line of another release");
    const [one = "", two = "", three = "", four = "", five = "", ...more] = fields.map(String);
    if (what === "store") this.#entered(one, two);
    else if (what === "ids") {
      this.#granted(one, { period: two, epoch: BigInt(three), last: BigInt(four) }, BigInt(five));
    } else {
      const [storeMs = NaN, atMs = NaN] = more.map(Number);
      const row = { part: one, id: two, history: three, renewals: BigInt(four), revision: five };
      const before = this.#rows.get(one)?.at ?? 0;
      this.#rows.set(one, { row: { ...row, storeMs, atMs }, at: this.#count, before });
    }
  }

  /** Versions may be lower in another history. */
  #entered(storeId: string, incarnation: string): void {
    if (this.#incarnation !== incarnation) {
      for (const [name, tag] of this.#tags) this.#tags.set(name, { ...tag, version: 0n });
    }
    this.#storeId = storeId;
    this.#incarnation = incarnation;
  }

  #granted(tag: string, granted: HighestGranted, seen: bigint): void {
    const before = this.#tags.get(tag);
    const others = othersAfter(before?.granted, before?.others, granted.period) ?? [];
    const known = before?.version ?? 0n;
    // Set anew, it comes last.
    this.#tags.delete(tag);
    this.#tags.set(tag, { tag, granted, others, version: seen > known ? seen : known });
    this.#grantedAt.set(tag, this.#count);
  }
}

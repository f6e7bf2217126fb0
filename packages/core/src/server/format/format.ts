import { IdmintError, invalidField, invalidFields } from "../../errors.ts";
import {
  decode,
  encode,
  type SnowflakeLayout,
  type SnowflakeParts,
  timeOf as timeOfTick,
} from "../../snowflake/layout.ts";
import { type FieldName, FIELDS } from "../../snowflake/payment-serial.ts";
import { CHECKS } from "./check-digit.ts";
import { faultsOf } from "./faults.ts";
import {
  type DateDigits,
  type Pattern,
  periodOf,
  readDigits,
  timeOf,
  writePeriod,
  writeTime,
} from "./pattern.ts";
import { badDigitAt, digitsOf, paddedDigits, valueOf } from "./radix.ts";
import {
  type FormatSubject,
  isVariable,
  MAX_TEXT_LENGTH,
  mostOf,
  partLengths,
  periodPattern,
} from "./subject.ts";
import type { NumberPart, Part, Template, TimePart } from "./template.ts";

/** A text of an id, read. */
export interface ParsedText {
  readonly id: bigint;
  /** First day of the period, YYYY-MM-DD; empty without periods. */
  readonly period: string;
  /** The parts of the text in the template's order. Fixed text has no name. */
  readonly parts: readonly { readonly name: string; readonly value: string }[];
}

/**
 * How the ids of one tag are written, and read again.
 *
 * INVARIANT (injective): two ids of the tag, or two pairs of period and id where it has periods, have different texts.
 * 1. A text can be split into the template's parts in one way only. All parts but numbers without a width have a
 *    constant length. Of numbers without a width the last one ends where the constant lengths behind it begin, counted
 *    from the text's end; each other one is followed by fixed text whose first character is no digit of it, so it ends
 *    before the first character that is no digit. (`splitFaults` refuses anything else.)
 * 2. What stands in a part says its value. Numbers are written without loss: a padded one never outgrows its width
 *    (refused by `widthFaults`, and by `render` again). A time is at a fixed offset, or shows its offset, so it is one
 *    moment to the precision of its pattern; years have four digits.
 * 3. The values say the id. Either {id} is shown, or every field of the layout that has bits is, and the time to the
 *    length of a tick; with periods the period is shown. (`completenessFaults` refuses anything else.)
 */
export class TextFormat {
  /** How many texts there are: one for each id, in each period. */
  readonly capacity: bigint;
  /** Lengths of texts, in characters. */
  readonly shortest: number;
  readonly longest: number;
  readonly #template: Template;
  readonly #subject: FormatSubject;
  /** The last offset of the template's named zone, and the second that it is for. */
  #offset = { second: Number.NaN, minutes: 0 };

  /** Throws an INVALID_ARGUMENT that names every fault of the template for the tag. */
  constructor(template: Template, subject: FormatSubject, field = "tag.format.template") {
    this.#template = template;
    this.#subject = subject;
    const faults = faultsOf(template, subject);
    const lengths = template.parts.map((part) => partLengths(part, subject));
    this.shortest = lengths.reduce((sum, { least }) => sum + least, 0);
    this.longest = lengths.reduce((sum, { most }) => sum + most, 0);
    this.capacity = subject.lastId - subject.firstId + 1n;
    if (this.longest > MAX_TEXT_LENGTH)
      faults.push(`makes texts of ${this.longest} characters; the limit is ${MAX_TEXT_LENGTH}`);
    if (faults.length > 0)
      throw invalidFields(
        faults.map((description) => ({ field, description, reason: "INVALID_FORMAT" })),
      );
  }

  /** The text of an id; `period` is the first day of its period, YYYY-MM-DD. Throws TAG_EXHAUSTED past the tag's ids. */
  render(id: bigint, period = ""): string {
    const { firstId, lastId, snowflake } = this.#subject;
    if (id < firstId || id > lastId)
      throw outgrown(`id ${id} is not within ${firstId} … ${lastId}`);
    const fields = snowflake === undefined ? undefined : decode(snowflake, id);
    let text = "";
    for (const part of this.#template.parts) text += this.#write(part, id, fields, period, text);
    return text;
  }

  /**
   * The id of a text that `render` made. For any other text, throws an INVALID_ARGUMENT that names the position of the
   * fault, counted from 1.
   */
  parse(text: string, field = "text"): ParsedText {
    const pieces = split(this.#template, this.#subject, text, field);
    const period = this.#periodOf(pieces, field);
    const id = this.#idOf(pieces, field);
    const { firstId, lastId } = this.#subject;
    if (id < firstId || id > lastId)
      throw noId(field, `means id ${id}, which is not within ${firstId} … ${lastId}`);
    // What was not needed to find the id (check digit, padding, dates beside {id}) is right if this text is the id's
    // text.
    const right = this.render(id, period);
    if (right !== text) throw differs(field, pieces, text, right);
    return {
      id,
      period,
      parts: pieces.map(({ part, value }) => ({ name: nameOf(part), value })),
    };
  }

  /** The first and the last text there can be: of a period that begins in January 2026, and of times from now on. */
  examples(): readonly [first: string, last: string] {
    const { firstId, lastId, period } = this.#subject;
    const start = period === undefined ? "" : period === "WEEK" ? "2026-01-05" : "2026-01-01";
    return [this.render(firstId, start), this.render(lastId, start)];
  }

  #write(
    part: Part,
    id: bigint,
    fields: SnowflakeParts | undefined,
    period: string,
    before: string,
  ): string {
    if (part.kind === "literal") return part.text;
    if (part.kind === "check") {
      const digits = CHECKS[part.check].of(before);
      return part.isLowerCase ? digits.toLowerCase() : digits;
    }
    if (part.kind === "period") return writePeriod(periodPattern(part, this.#subject), period);
    if (part.kind === "number")
      return numberText(
        part,
        part.name === "id" ? id : BigInt(fields?.[FIELDS[part.name].part] ?? 0),
      );
    const { snowflake } = this.#subject;
    const ms = snowflake === undefined ? 0 : timeOfTick(snowflake, fields?.tick ?? 0);
    return writeTime(part.pattern, ms, this.#offsetAt(part, ms));
  }

  /**
   * Zones change their offset at whole seconds, and not always at a full hour: St John's did so a minute past midnight,
   * and Monrovia was 44 min 30 s behind UTC until 1972. A text shows offsets in minutes, so it is written with the
   * nearest one. It means the same moment, since the text shows the offset that it was written with.
   */
  #offsetAt({ zone }: TimePart, ms: number): number {
    if ("offsetMinutes" in zone) return zone.offsetMinutes;
    const second = Math.floor(ms / 1_000);
    if (second !== this.#offset.second) {
      const minutes = this.#subject.offsetAt?.(zone.name, ms);
      if (minutes === undefined)
        throw new IdmintError("INTERNAL", `this system does not know the time zone ${zone.name}`);
      this.#offset = { second, minutes: Math.round(minutes) };
    }
    return this.#offset.minutes;
  }

  #periodOf(pieces: readonly Piece[], field: string): string {
    const { period } = this.#subject;
    const piece = pieces.find(({ part }) => part.kind === "period");
    if (period === undefined || piece?.part.kind !== "period") return "";
    return periodOf(digitsAt(periodPattern(piece.part, this.#subject), piece, field), period);
  }

  #idOf(pieces: readonly Piece[], field: string): bigint {
    const shown = pieces.find(({ part }) => part.kind === "number" && part.name === "id");
    if (shown?.part.kind === "number") return valueOf(shown.value, shown.part.radix);
    // Templates without {id} are those of snowflakes with all fields; see completenessFaults.
    const layout = this.#subject.snowflake as SnowflakeLayout;
    const number = (name: FieldName): number => {
      const piece = pieces.find(({ part }) => part.kind === "number" && part.name === name);
      if (piece?.part.kind !== "number") return 0;
      const value = valueOf(piece.value, piece.part.radix);
      const most = mostOf(name, this.#subject);
      if (value <= most) return Number(value);
      throw noId(field, `at position ${piece.at + 1}: {${name}} must be at most ${most}`);
    };
    return encode(layout, {
      tick: this.#tickOf(pieces, field, layout),
      extension: number("extension"),
      dataCenter: number("data_center"),
      worker: number("machine"),
      sequence: number("seq"),
    });
  }

  /** The tick that begins within the time that the text shows; ticks may begin at a finer time than is shown. */
  #tickOf(pieces: readonly Piece[], field: string, layout: SnowflakeLayout): number {
    const piece = pieces.find(({ part }) => part.kind === "time") as Piece;
    const { pattern, zone } = piece.part as TimePart;
    const found = digitsAt(pattern, piece, field);
    const offset = found.xx ?? ("offsetMinutes" in zone ? zone.offsetMinutes : 0);
    const shownMs = timeOf(found, offset) - layout.timeOriginMs;
    const tick = Math.ceil(shownMs / layout.timeUnitMs);
    if (tick >= 0 && tick < 2 ** layout.timeBits) return tick;
    throw noId(field, `at position ${piece.at + 1}: the tag has no ids of this time`);
  }
}

function outgrown(text: string): IdmintError {
  return new IdmintError("TAG_EXHAUSTED", `${text}, so it has no text`);
}

function numberText({ name, radix, width }: NumberPart, value: bigint): string {
  if (width === undefined) return digitsOf(value, radix);
  const digits = paddedDigits(value, radix, width);
  if (digits === undefined) throw outgrown(`{${name}} ${value} has more than ${width} digits`);
  return digits;
}

function nameOf(part: Part): string {
  if (part.kind === "literal") return "";
  if (part.kind === "number") return part.name;
  return part.kind === "check" ? part.check : part.kind;
}

/** A part of a template, and the characters of a text that belong to it. */
interface Piece {
  readonly part: Part;
  readonly at: number;
  readonly value: string;
}

/** Splits a text in the one way there is; see the invariant of TextFormat. */
function split(template: Template, subject: FormatSubject, text: string, field: string): Piece[] {
  const { parts } = template;
  if (text.length > MAX_TEXT_LENGTH)
    throw noId(field, `must be at most ${MAX_TEXT_LENGTH} characters, got ${text.length}`);
  const last = parts.findLastIndex(isVariable);
  const lengthBehind = parts
    .slice(last + 1)
    .reduce((sum, part) => sum + partLengths(part, subject).most, 0);
  const pieces: Piece[] = [];
  let at = 0;
  for (const [index, part] of parts.entries()) {
    let length = partLengths(part, subject).most;
    if (index === last) length = Math.max(0, text.length - lengthBehind - at);
    else if (isVariable(part)) {
      const bad = badDigitAt(text.slice(at), part.radix);
      length = bad === -1 ? text.length - at : bad;
    }
    const value = text.slice(at, at + length);
    const fault = pieceFault(part, value, length);
    if (fault !== undefined)
      throw noId(field, `at position ${at + fault.at + 1}: ${fault.expected}`);
    pieces.push({ part, at, value });
    at += length;
  }
  if (at < text.length) throw noId(field, `at position ${at + 1}: must end here`);
  return pieces;
}

function pieceFault(
  part: Part,
  value: string,
  length: number,
): { at: number; expected: string } | undefined {
  if (part.kind === "literal" && value !== part.text)
    return { at: 0, expected: `expected "${part.text}"` };
  if (length === 0) return { at: 0, expected: `expected digits of {${nameOf(part)}}` };
  if (value.length < length)
    return { at: value.length, expected: `the text ends within {${nameOf(part)}}` };
  if (part.kind !== "number") return undefined;
  const bad = badDigitAt(value, part.radix);
  return bad === -1
    ? undefined
    : { at: bad, expected: `"${value.charAt(bad)}" is no digit of radix ${part.radix}` };
}

function digitsAt(pattern: Pattern, { at, value }: Piece, field: string): DateDigits {
  const found = readDigits(pattern, value);
  if (typeof found !== "number") return found;
  throw noId(
    field,
    `at position ${at + found + 1}: "${value.charAt(found)}" does not fit the date's pattern`,
  );
}

/** The refusal of a text that reads as an id whose own text is another. */
function differs(
  field: string,
  pieces: readonly Piece[],
  text: string,
  right: string,
): IdmintError {
  let at = 0;
  while (at < text.length && text.charAt(at) === right.charAt(at)) at++;
  const part = pieces.findLast((piece) => piece.at <= at)?.part;
  const what =
    part?.kind === "check"
      ? "the check digit does not fit the text before it"
      : `{${part === undefined ? "" : nameOf(part)}} does not fit the rest`;
  return noId(field, `at position ${at + 1}: ${what}`);
}

/** The refusal of a text that is no id of the tag. */
function noId(field: string, why: string): IdmintError {
  return invalidField(field, why, "INVALID_ID");
}

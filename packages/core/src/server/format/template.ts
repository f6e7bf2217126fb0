import type { FieldName } from "../../snowflake/payment-serial.ts";
import { type FieldViolation, invalidFields } from "../../errors.ts";
import { CHECKS, type CheckKind } from "./check-digit.ts";
import {
  type DateToken,
  type Pattern,
  readPattern,
  timePatternFault,
  tokensOf,
} from "./pattern.ts";
import { ALPHABETS, type Radix, radixOf } from "./radix.ts";

/** Longest template, in characters. */
const MAX_TEMPLATE_LENGTH = 256;
/** Widest padding, in digits: 2^63 − 1 has 63 at most. */
const MAX_WIDTH = 63;

/** The numbers a template can show: the whole id, or a field of a snowflake. */
export type NumberName = "id" | FieldName;

/** A number in a template. */
export interface NumberPart {
  readonly kind: "number";
  readonly name: NumberName;
  readonly radix: Radix;
  /** The digits to which it is padded with zeros; undefined without padding. */
  readonly width: number | undefined;
}

/** The zone of the local time that a template shows. */
type Zone =
  | { readonly offsetMinutes: number }
  /** A name of a zone needs a pattern that shows the offset. */
  | { readonly name: string };

/** The time of a snowflake in a template. */
export interface TimePart {
  readonly kind: "time";
  readonly pattern: Pattern;
  readonly zone: Zone;
}

/** One part of a template. */
export type Part =
  | { readonly kind: "literal"; readonly text: string }
  | NumberPart
  | TimePart
  /** The period of a sequence that restarts. Without a pattern it is written as in texts without a template. */
  | { readonly kind: "period"; readonly pattern: Pattern | undefined }
  /** Computed over the whole text before it; its letters have the case of the numbers before it. */
  | { readonly kind: "check"; readonly check: CheckKind; readonly isLowerCase: boolean };

/** A template, parsed. */
export interface Template {
  readonly source: string;
  readonly parts: readonly Part[];
}

const NUMBERS: readonly NumberName[] = ["id", "extension", "data_center", "machine", "seq"];
const PARTS = `{id}, {seq}, {machine}, {data_center}, {extension}, {period}, {yyyy…}, ${Object.keys(
  CHECKS,
)
  .map((name) => `{${name}}`)
  .join(", ")}`;
const MAX_OFFSET_MINUTES = 18 * 60;

/**
 * Reads a template: fixed text of printable ASCII, and parts in braces.
 *
 * `{id}`, `{seq}`, `{machine}`, `{data_center}`, `{extension}` with any of `:WIDTH` (padded with zeros) and `:radixN`;
 * `{yyyyMMddHHmmssSSS}` with `@UTC` (the default), `@+08:00` or, with the offset `xx` in the pattern, `@Zone/Name`;
 * `{period}` and `{period:yyyyMMdd}`; `{luhn}`, `{mod11_10}`, `{mod97_10}`, `{mod37_36}`.
 *
 * Throws an INVALID_ARGUMENT whose violations name the position in the template, counted from 1.
 */
export function parseTemplate(source: string, field = "tag.format.template"): Template {
  const reader = new TemplateReader(source);
  const parts = reader.read();
  const violations = reader.faults.map(({ at, fault }): FieldViolation => ({
    field,
    description: `at position ${at + 1}: ${fault}`,
    reason: "INVALID_FORMAT",
  }));
  if (violations.length === 0) violations.push(...togetherFaults(source, parts, field));
  if (violations.length > 0) throw invalidFields(violations);
  return { source, parts };
}

/** Faults of parts in combination. */
function togetherFaults(source: string, parts: readonly Part[], field: string): FieldViolation[] {
  const found: string[] = [];
  if (source.length > MAX_TEMPLATE_LENGTH)
    found.push(`must be at most ${MAX_TEMPLATE_LENGTH} characters, got ${source.length}`);
  if (parts.every((part) => part.kind === "literal" || part.kind === "check"))
    found.push("must have a part that changes from id to id, such as {id}");
  for (const name of ["time", "period", "check"] as const) {
    if (parts.filter((part) => part.kind === name).length > 1)
      found.push(`must have at most one ${name === "check" ? "check digit" : name}`);
  }
  for (const name of NUMBERS) {
    if (parts.filter((part) => part.kind === "number" && part.name === name).length > 1)
      found.push(`must show {${name}} at most once`);
  }
  found.push(...checkFaults(parts));
  return found.map((description) => ({ field, description, reason: "INVALID_FORMAT" }));
}

/** Faults of check digits: they are computed over what stands before them, so that must be digits that they know. */
function checkFaults(parts: readonly Part[]): string[] {
  const at = parts.findIndex((part) => part.kind === "check");
  const check = parts[at];
  if (check?.kind !== "check") return [];
  const numbers = parts.slice(0, at).filter((part) => part.kind === "number");
  const changing = parts.slice(0, at).some((part) => part.kind !== "literal");
  const { counts } = CHECKS[check.check];
  const most = counts === "digits" ? 10 : 36;
  if (!changing) return [`{${check.check}} must come after what it checks`];
  return numbers
    .filter(({ radix }) => radix > most)
    .map(
      ({ name, radix }) =>
        `{${check.check}} counts only ${counts}, but {${name}} before it has radix ${radix}`,
    );
}

/** Whether a part is a number with small letters. */
function isLowerCase(part: Part): boolean {
  return part.kind === "number" && (part.radix === 16 || part.radix === 36);
}

/** Reads a template from left to right, and goes on after a fault so that all are found. */
class TemplateReader {
  readonly faults: { readonly at: number; readonly fault: string }[] = [];
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  read(): Part[] {
    const parts: Part[] = [];
    let at = 0;
    while (at < this.#source.length) {
      const opened = this.#source.indexOf("{", at);
      const end = opened === -1 ? this.#source.length : opened;
      if (end > at) parts.push(this.#literal(at, this.#source.slice(at, end)));
      if (opened === -1) break;
      const closed = this.#source.indexOf("}", opened);
      if (closed === -1) {
        this.#fault(opened, "this brace has no closing brace");
        break;
      }
      const part = this.#part(opened + 1, this.#source.slice(opened + 1, closed));
      if (part?.kind === "check") parts.push({ ...part, isLowerCase: parts.some(isLowerCase) });
      else if (part !== undefined) parts.push(part);
      at = closed + 1;
    }
    return parts;
  }

  #fault(at: number, fault: string): undefined {
    this.faults.push({ at, fault });
  }

  #literal(at: number, text: string): Part {
    const bad = /[^ -~]|\}/.exec(text);
    if (bad !== null) {
      const fault = bad[0] === "}" ? "this brace has no opening brace" : "must be printable ASCII";
      this.#fault(at + bad.index, fault);
    }
    return { kind: "literal", text };
  }

  #part(at: number, text: string): Part | undefined {
    if (/^[yY]/.test(text)) return this.#time(at, text);
    const [name = "", ...options] = text.split(":");
    if (name === "period") return this.#period(at, text);
    if (Object.hasOwn(CHECKS, name) && options.length === 0)
      return { kind: "check", check: name as CheckKind, isLowerCase: false };
    const number = NUMBERS.find((each) => each === name);
    if (number !== undefined) return this.#number(at + name.length + 1, number, options);
    if (name === "biz")
      return this.#fault(at, "write the business number itself instead of {biz}, such as 101");
    return this.#fault(at, `{${text}} is not a part; the parts are ${PARTS}`);
  }

  #number(optionsAt: number, name: NumberName, options: readonly string[]): Part | undefined {
    let width: number | undefined;
    let radix: Radix | undefined;
    let at = optionsAt;
    for (const option of options) {
      if (/^[1-9]\d?$/.test(option) && Number(option) <= MAX_WIDTH && width === undefined) {
        width = Number(option);
      } else {
        const read = option.startsWith("radix") ? radixOf(option.slice(5)) : undefined;
        if (read === undefined || radix !== undefined) {
          const radixes = Object.keys(ALPHABETS).join(", ");
          return this.#fault(
            at,
            `"${option}" must be a width of 1 to ${MAX_WIDTH} digits, or radix and one of ${radixes}, each once`,
          );
        }
        radix = read;
      }
      at += option.length + 1;
    }
    return { kind: "number", name, radix: radix ?? 10, width };
  }

  #period(at: number, text: string): Part | undefined {
    if (text === "period") return { kind: "period", pattern: undefined };
    const patternAt = at + "period:".length;
    const pattern = readPattern(text.slice("period:".length));
    if (typeof pattern === "number") return this.#badPattern(patternAt + pattern);
    const known = ["yyyy", "yyyyMM", "yyyyMMdd", "YYYYww"];
    if (known.includes(tokensOf(pattern).join(""))) return { kind: "period", pattern };
    return this.#fault(patternAt, `the pattern of a period must be one of ${known.join(", ")}`);
  }

  #time(at: number, text: string): Part | undefined {
    const split = text.indexOf("@");
    const pattern = readPattern(split === -1 ? text : text.slice(0, split));
    if (typeof pattern === "number") return this.#badPattern(at + pattern);
    const fault = timePatternFault(pattern);
    if (fault !== undefined) return this.#fault(at, `the pattern ${fault}`);
    const zone = split === -1 ? { offsetMinutes: 0 } : zoneOf(text.slice(split + 1));
    if (typeof zone === "string") return this.#fault(at + split + 1, zone);
    // INVARIANT: a local time that does not show its offset is at a fixed offset. In a zone whose clocks are put back,
    // one hour comes twice, so two ids an hour apart would have the same text.
    if ("name" in zone && !pattern.includes("xx" satisfies DateToken)) {
      return this.#fault(
        at + split + 1,
        `in ${zone.name} an hour repeats when clocks are set back, and texts would repeat with it: show the offset (xx), or use UTC or a fixed offset such as +08:00`,
      );
    }
    return { kind: "time", pattern, zone };
  }

  #badPattern(at: number): undefined {
    return this.#fault(
      at,
      "a pattern is made of yyyy, MM, dd, HH, mm, ss, SSS, xx (offset), YYYY, ww (ISO week) and single characters of - _ . : / T W and space",
    );
  }
}

/** Reads a fixed offset, or the name of a zone. Answers what is wrong with any other text. */
function zoneOf(text: string): Zone | string {
  if (text === "UTC" || text === "Z") return { offsetMinutes: 0 };
  const [, sign, hours, minutes] = /^([+-])(\d{2}):?(\d{2})$/.exec(text) ?? [];
  if (sign !== undefined) {
    const offset = Number(hours) * 60 + Number(minutes);
    if (offset <= MAX_OFFSET_MINUTES && Number(minutes) < 60)
      return { offsetMinutes: sign === "-" ? -offset : offset };
    return "an offset must be at most +18:00";
  }
  if (/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(text)) return { name: text };
  return "after @ write UTC, an offset such as +08:00, or the name of a zone such as Asia/Shanghai";
}

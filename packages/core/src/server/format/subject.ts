import type { PeriodUnit } from "../../kinds/sequence.ts";
import type { SnowflakeLayout } from "../../snowflake/layout.ts";
import { FIELDS } from "../../snowflake/payment-serial.ts";
import { CHECKS } from "./check-digit.ts";
import { lengthOf, type Pattern, PERIOD_PATTERNS } from "./pattern.ts";
import { digitsOf } from "./radix.ts";
import type { NumberName, NumberPart, Part } from "./template.ts";

/** Longest text of an id, in characters. */
export const MAX_TEXT_LENGTH = 256;

/** What texts need to know of the ids of a tag. */
export interface FormatSubject {
  /** Smallest and largest id that a text may show. */
  readonly firstId: bigint;
  readonly lastId: bigint;
  /** The unit of periods, for sequences that restart. */
  readonly period?: PeriodUnit;
  /** The layout, for kind snowflake only: ids of other kinds hold no time, machine or sequence. */
  readonly snowflake?: SnowflakeLayout;
  /** Offset of a named zone from UTC at a moment, in minutes; undefined when there is no such zone. */
  readonly offsetAt?: (zone: string, ms: number) => number | undefined;
}

/** The pattern a period is shown in. */
export function periodPattern(part: Part & { kind: "period" }, { period }: FormatSubject): Pattern {
  return part.pattern ?? PERIOD_PATTERNS[period ?? "DAY"];
}

/** Whether the length of a part varies. */
export function isVariable(part: Part): part is NumberPart {
  return part.kind === "number" && part.width === undefined;
}

/** The largest value a number of a template can have. */
export function mostOf(name: NumberName, { lastId, snowflake }: FormatSubject): bigint {
  if (name === "id") return lastId;
  return snowflake === undefined ? 0n : 2n ** BigInt(snowflake[FIELDS[name].bits]) - 1n;
}

/** How many characters a part writes, at least and at most. */
export function partLengths(part: Part, subject: FormatSubject): { least: number; most: number } {
  if (isVariable(part)) {
    const least = part.name === "id" ? subject.firstId : 0n;
    return {
      least: digitsOf(least, part.radix).length,
      most: digitsOf(mostOf(part.name, subject), part.radix).length,
    };
  }
  const length = constantLength(part, subject);
  return { least: length, most: length };
}

function constantLength(part: Part, subject: FormatSubject): number {
  if (part.kind === "literal") return part.text.length;
  if (part.kind === "check") return CHECKS[part.check].length;
  if (part.kind === "number") return part.width ?? 0;
  return lengthOf(part.kind === "time" ? part.pattern : periodPattern(part, subject));
}

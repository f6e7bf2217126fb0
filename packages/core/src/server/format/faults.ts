import { endOf } from "../../snowflake/layout.ts";
import { type FieldName, FIELDS } from "../../snowflake/payment-serial.ts";
import { YEAR_10000_MS } from "./calendar.ts";
import { precisionMs, showsPeriod } from "./pattern.ts";
import { ALPHABETS, digitsOf } from "./radix.ts";
import { type FormatSubject, isVariable, mostOf, periodPattern } from "./subject.ts";
import type { NumberName, NumberPart, Part, Template } from "./template.ts";

/** All faults of a template for a tag, in words that follow “the template …”. */
export function faultsOf(template: Template, subject: FormatSubject): string[] {
  return [
    ...kindFaults(template, subject),
    ...widthFaults(template, subject),
    ...splitFaults(template),
    ...completenessFaults(template, subject),
  ];
}

/** Faults of parts that tags of this kind do not have. */
function kindFaults({ parts }: Template, subject: FormatSubject): string[] {
  const { snowflake, period, offsetAt } = subject;
  const faults: string[] = [];
  for (const part of parts) {
    if (part.kind === "period" && period === undefined)
      faults.push("shows {period}, which only a sequence with periods has");
    if (snowflake !== undefined) continue;
    if (part.kind === "time" || (part.kind === "number" && part.name !== "id"))
      faults.push(
        `shows {${part.kind === "time" ? "yyyy…" : part.name}}, which only kind snowflake has, because its ids contain time, machine and sequence`,
      );
  }
  for (const part of parts) {
    if (part.kind !== "time" || snowflake === undefined) continue;
    if (endOf(snowflake) > YEAR_10000_MS - 86_400_000)
      faults.push("shows four digits of a year, but the layout lasts past the year 9999");
    if ("name" in part.zone && offsetAt?.(part.zone.name, snowflake.timeOriginMs) === undefined)
      faults.push(`names the time zone ${part.zone.name}, which this system does not know`);
  }
  return faults;
}

/** Faults of numbers that outgrow their padding. */
function widthFaults({ parts }: Template, subject: FormatSubject): string[] {
  return parts.flatMap((part) => {
    if (part.kind !== "number" || part.width === undefined) return [];
    const most = mostOf(part.name, subject);
    const needed = digitsOf(most, part.radix).length;
    if (needed <= part.width) return [];
    const holds = BigInt(part.radix) ** BigInt(part.width) - 1n;
    const wayOut =
      part.name === "id"
        ? `widen it to ${needed}, or set a ceiling of at most ${holds}`
        : `widen it to ${needed}, or choose a layout with fewer bits`;
    return [
      `pads {${part.name}} to ${part.width} digits of radix ${part.radix}, but it can grow to ${most}: ${wayOut}`,
    ];
  });
}

/** Faults of numbers without a width whose end could not be found when a text is read. */
function splitFaults({ parts }: Template): string[] {
  const last = parts.findLastIndex(isVariable);
  return parts.flatMap((part, at) => {
    if (!isVariable(part) || at === last) return [];
    if (endsAtLiteral(part, parts[at + 1])) return [];
    return [
      `has {${part.name}} without a width before another number without one, so its end cannot be found: give it a width, or put a character behind it that is no digit of radix ${part.radix}`,
    ];
  });
}

function endsAtLiteral(part: NumberPart, next: Part | undefined): boolean {
  return next?.kind === "literal" && !ALPHABETS[part.radix].includes(next.text.charAt(0));
}

/** Faults of texts that do not say the whole id. */
function completenessFaults({ parts }: Template, subject: FormatSubject): string[] {
  const { period, snowflake } = subject;
  const faults: string[] = [];
  const shows = (name: NumberName): boolean =>
    parts.some((part) => part.kind === "number" && part.name === name);
  if (period !== undefined) {
    const part = parts.find((each) => each.kind === "period");
    if (part === undefined || !showsPeriod(periodPattern(part, subject), period))
      faults.push(
        `must show the period, because ids start again in each one: {period}, or {period:…} down to the ${period.toLowerCase()}`,
      );
  }
  if (shows("id")) return faults;
  if (snowflake === undefined) return [...faults, "must show {id}"];
  const missing = Object.entries(FIELDS)
    .filter(([name, { bits }]) => snowflake[bits] > 0 && !shows(name as FieldName))
    .map(([name]) => `{${name}}`);
  const time = parts.find((part) => part.kind === "time");
  if (time === undefined || precisionMs(time.pattern) > snowflake.timeUnitMs) {
    missing.unshift(
      snowflake.timeUnitMs % 1_000 === 0 ? "{yyyyMMddHHmmss}" : "{yyyyMMddHHmmssSSS}",
    );
  }
  if (missing.length === 0) return faults;
  return [
    ...faults,
    `must show {id}, or every part of an id: ${missing.join(", ")} ${missing.length > 1 ? "are" : "is"} missing`,
  ];
}

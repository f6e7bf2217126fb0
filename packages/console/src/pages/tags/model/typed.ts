// What is typed into a form, as values of fields and back.
import { durationFrom, durationText, type Field, plainText, type Value } from "@idmint/core/kinds";

/** Why a text is no value of a field's type. Whether the value is a good one is the server's to say. */
export type Fault = "duration" | "number" | "time";

/** What is typed into a box that is ticked. */
export const TICKED = "true";

const WIDTHS: Readonly<Partial<Record<Field["type"], readonly [min: bigint, max: bigint]>>> = {
  id: [-(2n ** 63n), 2n ** 63n - 1n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
};

/** The value of what was typed: undefined where nothing was. */
export function valueFrom(
  { type }: Field,
  typed: string,
): { readonly value: Value } | { readonly fault: Fault } {
  const text = typed.trim();
  if (text === "") return { value: undefined };
  switch (type) {
    case "id":
    case "int32":
    case "uint32": {
      const value = wholeNumber(type, text);
      if (value === undefined) return { fault: "number" };
      return { value: type === "id" ? value : Number(value) };
    }
    case "duration": {
      const value = durationFrom(text);
      return value === undefined ? { fault: "duration" } : { value };
    }
    case "time": {
      const value = timeFrom(text);
      return value === undefined ? { fault: "time" } : { value };
    }
    case "bool":
      return { value: text === TICKED };
    case "text":
      return { value: typed };
    case "enum":
    case "message":
      return { value: text };
    default:
      return type satisfies never;
  }
}

/** A number that its type in the API can carry, which knows no others. */
function wholeNumber(type: "id" | "int32" | "uint32", text: string): bigint | undefined {
  const [min, max] = WIDTHS[type] ?? [0n, 0n];
  const value = /^-?\d{1,30}$/u.test(text) ? BigInt(text) : undefined;
  return value === undefined || value < min || value > max ? undefined : value;
}

/** A value as it is typed. */
export function textOf({ type }: Field, value: Value): string {
  if (value === undefined || value === false) return "";
  if (type === "duration") return durationText(Number(value));
  if (type !== "time") return plainText(value);
  const time = new Date(Number(value)).toISOString();
  return time.replace("T00:00:00.000Z", "").replace(".000Z", "Z");
}

/**
 * Milliseconds since 1970 of a time in UTC (2026-01-01, or 2026-01-01T08:30:00Z with milliseconds if wished), or of
 * milliseconds since 1970, as other generators have their origin; shorter numbers would be years or seconds.
 */
function timeFrom(text: string): number | undefined {
  if (/^(?:0|[1-9]\d{11,12})$/u.test(text)) return Number(text);
  if (!/^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{3})?Z)?$/u.test(text)) return undefined;
  const ms = Date.parse(text);
  // Without this, 2026-02-30 would be read as a day in March.
  const isThere =
    !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text.replace(/(?:\.\d{3})?Z$/u, ""));
  return isThere ? ms : undefined;
}

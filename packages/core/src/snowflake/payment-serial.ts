import { invalidField } from "../errors.ts";
import type { SnowflakeLayout, SnowflakeParts } from "./layout.ts";

/** The numbers of a template that are fields of a snowflake. */
export type FieldName = "extension" | "data_center" | "machine" | "seq";

/** The other names of the fields of a snowflake, and the width of each in a layout. */
export const FIELDS: Readonly<
  Record<
    FieldName,
    {
      readonly part: Exclude<keyof SnowflakeParts, "tick">;
      readonly bits: "extensionBits" | "dataCenterBits" | "workerBits" | "sequenceBits";
    }
  >
> = {
  extension: { part: "extension", bits: "extensionBits" },
  data_center: { part: "dataCenter", bits: "dataCenterBits" },
  machine: { part: "worker", bits: "workerBits" },
  seq: { part: "sequence", bits: "sequenceBits" },
};

/**
 * The template of payment serials for a snowflake tag of this layout. It shows the business number (1 to 16 digits),
 * date and time to the millisecond at UTC, then extension, data center, machine and counter. Each of these is as wide
 * as its largest value, and fields without bits are left out. With 6 bits of worker and 12 of sequence:
 * `101{yyyyMMddHHmmssSSS}{machine:2}{seq:4}`.
 */
export function paymentSerial(
  business: string,
  layout: SnowflakeLayout,
  field = "business",
): string {
  if (!/^\d{1,16}$/.test(business))
    throw invalidField(field, `must be 1 to 16 digits, got "${business}"`);
  const fields = Object.entries(FIELDS)
    .filter(([, { bits }]) => layout[bits] > 0)
    .map(([name, { bits }]) => `{${name}:${String(2 ** layout[bits] - 1).length}}`);
  return `${business}{yyyyMMddHHmmssSSS}${fields.join("")}`;
}

import { isSameValue } from "./fields.ts";
import type { Field } from "./spec.ts";
import { specOf, type TagKind, valuesOf } from "./table.ts";

/** Whether two settings agree in all fields that `matters` says; never when they are of two kinds. */
function agree(one: TagKind, other: TagKind, matters: (field: Field) => boolean): boolean {
  if (one.kind !== other.kind) return false;
  const [a, b] = [valuesOf(one), valuesOf(other)];
  return Object.entries(specOf(one).fields).every(
    ([name, field]) => !matters(field) || isSameValue(field, a[name], b[name]),
  );
}

/** The rule of what may change after the first id: whether nothing else differs. */
export function isSameButForTuning(one: TagKind, other: TagKind): boolean {
  return agree(one, other, ({ change }) => change !== "any-time");
}

/** Whether a caller asked for the same: what servers decide makes no difference. */
export function isSameButForPlace(one: TagKind, other: TagKind): boolean {
  return agree(one, other, ({ role }) => role !== "placed" && role !== "row-only");
}

/** Whether two settings are the same, to the byte. */
export function isSameKind(one: TagKind, other: TagKind): boolean {
  return one.kind === other.kind && specOf(one).row.write(one) === specOf(other).row.write(other);
}

// Questions about the fields of any kind.
import type { Field, Fields, Value, Values } from "./spec.ts";

/** The fields with those of messages below the message's name, such as layout.time_bits. The messages themselves are left out. */
export function flatFields(fields: Fields): readonly (readonly [path: string, field: Field])[] {
  return Object.entries(fields).flatMap(([name, field]) =>
    field.fields === undefined
      ? [[name, field] as const]
      : flatFields(field.fields).map(([path, below]) => [`${name}.${path}`, below] as const),
  );
}

/** The value at a path of `flatFields`. */
export function valueAt(values: Values, path: string): Value {
  let value: Value = values;
  for (const name of path.split(".")) value = (value as Values | undefined)?.[name];
  return value;
}

/** A value as text. */
export function plainText(value: Value): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Whether two values of a field mean the same; an empty one means the default. */
export function isSameValue(field: Field, one: Value, other: Value): boolean {
  const { fields } = field;
  if (fields === undefined) return (one ?? field.default) === (other ?? field.default);
  if (one === undefined || other === undefined) return one === other;
  return Object.entries(fields).every(([name, below]) =>
    isSameValue(below, (one as Values)[name], (other as Values)[name]),
  );
}

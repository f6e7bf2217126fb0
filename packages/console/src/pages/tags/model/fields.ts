// The fields of a tag's form, made from the table of its kind.
import {
  type AnyKind,
  type Field,
  flatFields,
  type KindName,
  specOf,
  type TagKind,
  whyNotHidden,
} from "@idmint/core/kinds";
import { settledKind } from "./settle.ts";

/** One field of a form. */
export interface FormField {
  /** Where the API has it below the tag, such as `ceiling` or `snowflake.layout.time_bits`. */
  readonly path: string;
  readonly field: Field;
}

/** What is typed, by path. What is not there is empty. */
export type FormValues = Readonly<Record<string, string>>;

export const NAME_PATH = "name";

const DESCRIPTION: Field = { type: "text", change: "any-time", help: "" };
const CEILING: Field = { type: "id", change: "before-first-id", help: "" };
const TEMPLATE: Field = { type: "text", change: "never", flag: "format", help: "" };
const KEY_ID: Field = { type: "int32", range: [1, 999], change: "any-time", help: "" };
const KEY_DIGITS: Field = { type: "int32", default: 1, range: [1, 3], change: "never", help: "" };

/** The fields that every tag has, as far as they apply to the kind. Their help is in the console's texts. */
export function commonFields(kind: KindName): readonly FormField[] {
  const spec = specOf({ kind });
  return [
    { path: "description", field: DESCRIPTION },
    ...(spec.orders.length > 1 ? [{ path: "order", field: orderField(spec) }] : []),
    ...(spec.whyNoCeiling === undefined ? [{ path: "ceiling", field: CEILING }] : []),
    ...(spec.ids === "number" ? [{ path: "format.template", field: TEMPLATE }] : []),
    ...(whyNotHidden({ kind }) === undefined
      ? [
          { path: "unguessable.key_id", field: KEY_ID },
          { path: "unguessable.key_digits", field: KEY_DIGITS },
        ]
      : []),
  ];
}

function orderField({ orders }: AnyKind): Field {
  const type = { name: "ORDER", values: orders };
  return { type: "enum", enum: type, default: orders[0], change: "before-first-id", help: "" };
}

/** The fields of the kind that callers decide. */
export function kindFields(kind: KindName): readonly FormField[] {
  return flatFields(specOf({ kind }).fields)
    .filter(([, { role }]) => role === undefined || role === "input-only")
    .map(([path, field]) => ({ path: `${kind}.${path}`, field }));
}

export function formFields(kind: KindName): readonly FormField[] {
  return [...commonFields(kind), ...kindFields(kind)];
}

/** The messages of a kind: their fields stand together in the form. */
export function groupsOf(kind: KindName): readonly string[] {
  return Object.entries(specOf({ kind }).fields)
    .filter(([, { fields }]) => fields !== undefined)
    .map(([name]) => `${kind}.${name}`);
}

/** The settings of a kind of which nothing was asked. Kinds that want an answer have one that is of no meaning. */
export function plainSettings<Name extends KindName>(
  kind: Name,
): Extract<TagKind, { readonly kind: Name }> {
  const of = { name: "t", ceiling: undefined, nowMs: Number.MAX_SAFE_INTEGER };
  return settledKind({ kind }, of).settings as Extract<TagKind, { kind: Name }>;
}

// Flags of the settings of each kind, made from the kinds' tables. Whether a value suits the others is the server's to judge.
import { invalidField } from "@idmint/core";
import {
  durationText,
  type Field,
  flagOf,
  flatFields,
  KIND_NAMES,
  type KindName,
  KINDS,
  type Value,
  type Values,
  wordOf,
} from "@idmint/core/kinds";
import { type ProtoKind, protoKindFrom } from "@idmint/server/kind-values";
import { Option } from "commander";
import { duration, id, oneOf, type Parser, smallNumber, timeOrigin } from "./parse.ts";
import { DEFAULT_LAYOUT, layoutOption } from "./snowflake-layout.ts";

/** Flags that only some kinds have, as typed; undefined: not given. */
export type KindFlags = Readonly<Record<string, unknown>>;

/** A field that a flag sets. */
interface Use {
  readonly kind: KindName;
  /** As `flatFields` has it. */
  readonly path: string;
  readonly field: Field;
}

interface Flag {
  /** As it is typed, such as --hold-for. */
  readonly flag: string;
  readonly uses: readonly Use[];
  readonly option: Option;
}

const USES: readonly (Use & { readonly flag: string })[] = KIND_NAMES.flatMap((kind) =>
  flatFields(KINDS[kind].fields).flatMap(([path, field]) => {
    const flag = flagOf(path, field);
    return flag === undefined ? [] : [{ kind, path, field, flag }];
  }),
);

/** Made by hand: the widths of a layout are one flag. */
const LAYOUT: Flag = {
  flag: "--layout",
  uses: [{ kind: "snowflake", path: "layout", field: KINDS.snowflake.fields.layout }],
  option: layoutOption(),
};

/** What stands for the value in the help; the flag's last word for all other types. */
const PLACEHOLDERS: Readonly<Partial<Record<Field["type"], string>>> = {
  id: "id",
  int32: "number",
  uint32: "number",
  duration: "time",
  time: "time",
};

const FLAGS: readonly Flag[] = [
  ...[...Map.groupBy(USES, ({ flag }) => flag)].map(([flag, uses]) => ({
    flag,
    uses,
    option: optionOf(flag, uses),
  })),
  LAYOUT,
];

function optionOf(flag: string, uses: readonly Use[]): Option {
  const field = uses[0]?.field;
  if (field === undefined || uses.some((use) => use.field.type !== field.type)) {
    throw new Error(`the kinds that have ${flag} do not agree on its type`);
  }
  const text = `${uses.map(({ kind }) => wordOf(kind)).join(", ")}: ${field.help}${rangeText(field)}`;
  const parser = parserOf(flag, field);
  if (field.type === "bool") return new Option(flag, text);
  const value = PLACEHOLDERS[field.type] ?? flag.split("-").at(-1);
  const option = new Option(`${flag} <${value}>`, text);
  return parser === undefined ? option : option.argParser(parser);
}

/** What a flag takes, and what stands for it when it is left out. */
function rangeText(field: Field): string {
  const [range, usual] = [rangeOf(field), defaultOf(field)];
  const before = field.enum === undefined ? ", " : ": ";
  return `${range === "" ? "" : before + range}${usual === "" ? "" : ` (default ${usual})`}`;
}

/** The values that a field may have, as they are typed; empty when they are no range. */
export function rangeOf(field: Field): string {
  const { range, enum: type } = field;
  if (type === undefined) {
    return range === undefined ? "" : `${textOf(field, range[0])} to ${textOf(field, range[1])}`;
  }
  const words = type.values.map(wordOf);
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** A field's default as it is typed; empty when it has none. */
export function defaultOf(field: Field): string {
  return field.default === undefined ? "" : textOf(field, field.default);
}

/** A value as it is typed. */
function textOf({ type }: Field, value: bigint | number | string): string {
  if (type === "duration") return durationText(Number(value));
  if (type === "time") return new Date(Number(value)).toISOString().slice(0, 10);
  return type === "enum" ? wordOf(String(value)) : String(value);
}

function parserOf(
  flag: string,
  { type, range: [min, max] = [0, 0], enum: values }: Field,
): Parser<Value> | undefined {
  switch (type) {
    case "id":
      return id(flag);
    case "int32":
    case "uint32":
      return smallNumber(flag, { min, max });
    case "duration":
      return duration(flag, { minMs: min, maxMs: max });
    case "time": {
      const parse = timeOrigin(flag);
      return (text) => parse(text).getTime();
    }
    case "enum":
      return oneOf(
        flag,
        Object.fromEntries(values?.values.map((each) => [wordOf(each), each]) ?? []),
      );
    case "text":
    case "bool":
    case "message":
      return undefined;
    default:
      return type satisfies never;
  }
}

/** The path of UpdateTag's mask that changes what a flag sets; undefined: nothing does. */
function maskPath({ kind, path, field: { role, change } }: Use): string | undefined {
  // Of a message only the whole has a path, and no flag sets the whole.
  const canChange = role === undefined && change !== "never" && path in KINDS[kind].fields;
  return canChange && path !== LAYOUT.uses[0]?.path ? `${kind}.${path}` : undefined;
}

function maskPathOf({ uses }: Flag, kind: KindName): string | undefined {
  const use = uses.find((each) => each.kind === kind);
  return use === undefined ? undefined : maskPath(use);
}

/** The options of all kinds; with `isNew` also those that cannot be changed later. */
export function kindOptions({ isNew }: { isNew: boolean }): readonly Option[] {
  return FLAGS.filter(({ uses }) => isNew || uses.some((use) => maskPath(use) !== undefined)).map(
    ({ option }) => option,
  );
}

/** Throws INVALID_ARGUMENT that names the first flag which is not for this kind, and what would be. */
export function assertOfKind(flags: KindFlags, kind: KindName): void {
  for (const { flag, uses } of given(flags)) {
    if (uses.some((use) => use.kind === kind)) continue;
    const words = uses.map((use) => `--kind ${wordOf(use.kind)}`).join(" or ");
    throw invalidField(
      flag,
      `is for ${words}, and this tag is of kind ${wordOf(kind)}; leave it out, or choose that kind`,
    );
  }
}

/**
 * The kind that flags of `tag update` are for: the only one that all of them have. `undefined`: none is given, or they
 * leave it open. Throws INVALID_ARGUMENT when no kind has all of them.
 */
export function kindMeant(flags: KindFlags): KindName | "any" | undefined {
  const all = given(flags);
  const [first] = all;
  if (first === undefined) return undefined;
  const fitting = KIND_NAMES.filter((kind) =>
    all.every((flag) => maskPathOf(flag, kind) !== undefined),
  );
  const [only, ...others] = fitting;
  if (only !== undefined) return others.length === 0 ? only : "any";
  const kinds = new Set(first.uses.map(({ kind }) => kind));
  const other = all.find(({ uses }) => !uses.some(({ kind }) => kinds.has(kind)));
  throw invalidField(
    (other ?? first).flag,
    `cannot be changed together with ${first.flag}: no kind of tag has both`,
  );
}

/** The paths of UpdateTag's mask for the flags that are given. Throws for one that tags of this kind cannot change. */
export function kindPaths(flags: KindFlags, kind: KindName): string[] {
  return given(flags).map((flag) => {
    const path = maskPathOf(flag, kind);
    if (path !== undefined) return path;
    throw invalidField(flag.flag, `cannot be changed for tags of kind ${wordOf(kind)}`);
  });
}

/** The settings that flags ask for; what is not given is the server's to choose. */
export function kindFrom(kind: KindName, flags: KindFlags): ProtoKind {
  let values: Values = {};
  for (const { uses, option } of inOrder(flags)) {
    const path = uses.find((use) => use.kind === kind)?.path;
    if (path === undefined) continue;
    const value = flags[option.attributeName()] as Value;
    const [name = "", below] = path.split(".");
    // What is below a message is set in the one that is asked for, or in the default one.
    const base = (values[name] ?? DEFAULT_LAYOUT) as Values;
    values = { ...values, [name]: below === undefined ? value : { ...base, [below]: value } };
  }
  return protoKindFrom(kind, values);
}

/** A layout comes before what is set within it. */
function inOrder(flags: KindFlags): readonly Flag[] {
  return given(flags).toSorted((a, b) => Number(b === LAYOUT) - Number(a === LAYOUT));
}

function given(flags: KindFlags): readonly Flag[] {
  return FLAGS.filter(({ option }) => flags[option.attributeName()] !== undefined);
}

/** Where a field of a kind stands on the command line, by its name in violations. */
export const FLAG_OF_KIND_FIELD: Readonly<Record<string, string>> = Object.fromEntries(
  KIND_NAMES.flatMap(flagsOfKind),
);

function flagsOfKind(kind: KindName): readonly (readonly [field: string, flag: string])[] {
  const place = `tag.${kind}`;
  const fields = flatFields(KINDS[kind].fields).map(
    ([path, field]) =>
      [
        `${place}.${path}`,
        flagOf(path, field) ?? `--${path.split(".")[0]}: ${field.help}`,
      ] as const,
  );
  const layout = LAYOUT.uses.map(({ path }) => [`${place}.${path}`, LAYOUT.flag] as const);
  return [[place, `--kind ${wordOf(kind)}`], ...fields, ...layout];
}

/** Settings that have a flag, by their names in the API where these are no words of English. */
export const FLAG_OF_SETTING: Readonly<Record<string, string>> = Object.fromEntries(
  USES.map(({ path, flag }) => [path.split(".").at(-1) ?? "", flag] as const).filter(([name]) =>
    name.includes("_"),
  ),
);

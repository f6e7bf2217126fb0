import type { TagKind } from "@idmint/core/kinds";
import {
  type Fields,
  type KindDraft,
  KINDS,
  specOf,
  type Values,
  valuesOf,
} from "@idmint/core/kinds";
import { kindNameOf, type ProtoKind, protoKindFrom, valuesOfProto } from "./kind-values.ts";

type CamelCase<Text extends string> = Text extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Text;

/** The settings of a kind as callers see them. */
export function protoKindOf<Kind extends TagKind>(
  settings: Kind,
): Extract<ProtoKind, { $case: CamelCase<Kind["kind"]> }> {
  const { name, fields } = specOf(settings);
  const shown = without(fields, valuesOf(settings), ["input-only"]);
  return protoKindFrom(name, shown) as ReturnType<typeof protoKindOf<Kind>>;
}

/** The settings of a kind as a caller wrote them; nothing is checked yet. */
export function kindDraftOf(kind: ProtoKind): KindDraft {
  const name = kindNameOf(kind);
  const asked = without(KINDS[name].fields, valuesOfProto(kind), ["output-only", "placed"]);
  return { kind: name, ...asked };
}

type Role = NonNullable<Fields[string]["role"]>;

function without(fields: Fields, values: Values, roles: readonly Role[]): Values {
  const left = Object.entries(values).filter(([name]) => {
    const role = fields[name]?.role;
    return role === undefined || !roles.includes(role);
  });
  return Object.fromEntries(left);
}

/** Fields of a kind that only the server may set: which, whether it is set, and what to do instead. */
export function outputOnlyOfKind(
  kind: ProtoKind | undefined,
): readonly [field: string, isSet: boolean, wayOut: string][] {
  if (kind === undefined) return [];
  const name = kindNameOf(kind);
  const fields: Fields = KINDS[name].fields;
  const values = valuesOfProto(kind);
  return Object.entries(fields)
    .filter(([, { role }]) => role === "output-only" || role === "placed")
    .map(([field, { role, of = "" }]) => [
      `tag.${name}.${field}`,
      values[field] !== undefined,
      role === "placed"
        ? "; tags are spread over the Redis servers, and MoveTag moves one"
        : `; it follows from ${fields[of]?.type === "message" ? `the ${of}` : of}`,
    ]);
}

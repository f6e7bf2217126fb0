// Editing a tag: what may change, the request that asks for it, and what to do when somebody else was faster.
import { type Field, type KindName, plainText, specOf } from "@idmint/core/kinds";
import { mayHaveIssued } from "@idmint/core/server";
import { camelCase, draftOf, messageJson } from "./draft.ts";
import { type FormField, formFields, type FormValues, groupsOf } from "./fields.ts";
import { settingsOfTag, type TagJson } from "./tag-values.ts";

/** Why a field cannot be changed; its text is `fixed.NAME`. */
type WhyFixed = "issued" | "never" | "written";

export interface EditField extends FormField {
  readonly why: WhyFixed | undefined;
}

/** The fields of a tag, each with what keeps it from being changed. The server has the last word. */
export function editFields(tag: TagJson, kind: KindName): readonly EditField[] {
  const settings = settingsOfTag(tag, kind);
  const hasIssued = mayHaveIssued({ version: BigInt(tag.version), kind: settings });
  const hasFormat = (tag.format ?? undefined) !== undefined;
  const hasKey = (tag.unguessable ?? undefined) !== undefined;
  const why = (path: string, { change }: Field): WhyFixed | undefined => {
    if (change === "never") return "never";
    if (path === "unguessable.key_id" && !hasKey) return "never";
    if (change === "any-time") return undefined;
    if (hasFormat || hasKey) return "written";
    return hasIssued ? "issued" : undefined;
  };
  return formFields(kind)
    .filter(({ field }) => field.role !== "input-only")
    .map((one) => ({ ...one, why: why(one.path, one.field) }));
}

/** What was changed in a form, by the paths of its fields. */
export function changedPaths(base: FormValues, mine: FormValues): readonly string[] {
  const paths = new Set([...Object.keys(base), ...Object.keys(mine)]);
  return [...paths].filter((path) => (base[path] ?? "") !== (mine[path] ?? ""));
}

/** A change that UpdateTag takes. */
export interface TagUpdate {
  readonly tag: Readonly<Record<string, unknown>>;
  /** As JSON has a mask: paths in camel case with commas between them. */
  readonly updateMask: string;
}

/**
 * The request for what was changed in a form. INVARIANT: the mask names nothing else, so nobody's change of another field is
 * undone, and the etag makes the call fail where somebody changed anything since the form was opened.
 */
export function updateOf(
  tag: Pick<TagJson, "etag" | "name">,
  kind: KindName,
  { base, mine }: { readonly base: FormValues; readonly mine: FormValues },
): TagUpdate {
  const changed = changedPaths(base, mine);
  const { kind: settings, common } = draftOf(kind, mine);
  const groups = groupsOf(kind);
  const mask = new Set(
    changed.map((path) => groups.find((group) => path.startsWith(`${group}.`)) ?? path),
  );
  const isAsked = (path: string): boolean => mask.has(path);
  const fields = specOf({ kind }).fields;
  const asked = Object.entries(settings).filter(
    ([name]) => isAsked(`${kind}.${name}`) || fields[name]?.role === "input-only",
  );
  const message = messageJson(fields, Object.fromEntries(asked));
  return {
    tag: {
      name: tag.name,
      etag: tag.etag,
      ...(isAsked("description") ? { description: common["description"] ?? "" } : {}),
      ...(isAsked("order") && common["order"] !== undefined
        ? { order: `ORDER_${plainText(common["order"])}` }
        : {}),
      ...(isAsked("ceiling")
        ? { ceiling: String((common["ceiling"] as bigint | undefined) ?? 0n) }
        : {}),
      ...(isAsked("unguessable.key_id")
        ? { unguessable: { keyId: common["unguessable.key_id"] ?? 0 } }
        : {}),
      [camelCase(kind)]: message,
    },
    updateMask: [...mask].map(camelCase).join(","),
  };
}

/** A field that is not the same to all. */
export interface Difference {
  readonly path: string;
  /** When the form was opened. */
  readonly base: string;
  readonly mine: string;
  readonly theirs: string;
  /** Whether both changed it, and not to the same. */
  readonly isContested: boolean;
}

/** What differs after somebody else changed the tag while a form was open. */
export function differences(
  base: FormValues,
  mine: FormValues,
  theirs: FormValues,
): readonly Difference[] {
  const paths = new Set([...changedPaths(base, mine), ...changedPaths(base, theirs)]);
  return [...paths].map((path) => {
    const [was, is, other] = [base, mine, theirs].map((values) => values[path] ?? "") as [
      string,
      string,
      string,
    ];
    const isContested = is !== was && other !== was && is !== other;
    return { path, base: was, mine: is, theirs: other, isContested };
  });
}

/** My changes on top of what somebody else made of the tag. */
export function onTopOf(base: FormValues, mine: FormValues, theirs: FormValues): FormValues {
  const changed = Object.fromEntries(
    changedPaths(base, mine).map((path) => [path, mine[path] ?? ""]),
  );
  return { ...theirs, ...changed };
}

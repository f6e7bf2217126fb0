import {
  type FieldViolation,
  IdmintError,
  invalidField,
  invalidFields,
  type InvalidReason,
} from "@idmint/core";
import type { Tag, TagChange } from "@idmint/core/server";
import {
  type Field,
  isSameValue,
  KIND_NAMES,
  type KindDraft,
  type KindName,
  KINDS,
  plainText,
  type Value,
  valueOf,
  withValues,
} from "@idmint/core/kinds";
import type { TextPorts } from "../issue/tag-text.ts";
import { draftOf, settingsOf, type TagDraft } from "./settings.ts";

/** Most paths a mask may have; there are fewer fields than that. */
const MAX_MASK_PATHS = 32;

/** One path of an update mask. */
interface Path {
  /** The kind whose field it is; undefined: every tag has it. */
  readonly kind: KindName | undefined;
  /** How it changes what is there. */
  readonly merge: (old: TagDraft, draft: TagDraft) => TagDraft;
}

const KEY_ID = "unguessable.key_id";

/** The paths that are one field each. */
const PATHS: ReadonlyMap<string, Path> = new Map<string, Path>([
  ["description", top("description")],
  ["order", top("order")],
  ["ceiling", top("ceiling")],
  ...KIND_NAMES.flatMap((kind) =>
    fieldsOf(kind, ["any-time", "before-first-id"]).map(
      (name) => [`${kind}.${name}`, ofKind(kind, name)] as const,
    ),
  ),
  [KEY_ID, { kind: undefined, merge: withKeyId }],
]);

/** Stands for all paths that the tag has. */
const ALL = "*";
/** Paths that stand for those below them. */
const PARENTS: ReadonlySet<string> = new Set(
  [...PATHS.keys()].filter((path) => path.includes(".")).map((path) => path.split(".")[0] ?? ""),
);

/** The fields of a kind that callers decide and that change in one of these ways. */
function fieldsOf(kind: KindName, ways: readonly Field["change"][]): readonly string[] {
  return Object.entries<Field>(KINDS[kind].fields)
    .filter(([, { role, change }]) => role === undefined && ways.includes(change))
    .map(([name]) => name);
}

function top(field: "description" | "order" | "ceiling"): Path {
  return { kind: undefined, merge: (old, draft) => ({ ...old, [field]: draft[field] }) };
}

/** A tag changes to another key; whether it has one at all never changes. */
function withKeyId(old: TagDraft, draft: TagDraft): TagDraft {
  if (old.unguessable === undefined) {
    const text = "names unguessable.key_id, but the tag has no key";
    throw invalidField("update_mask", text, "INVALID_UPDATE_MASK");
  }
  const keyId = draft.unguessable?.keyId ?? 0;
  return { ...old, unguessable: { ...old.unguessable, keyId } };
}

function ofKind(kind: KindName, name: string): Path {
  const fields = Object.entries<Field>(KINDS[kind].fields);
  // How a field is to be taken goes with it.
  const ways = fields.filter(([, { role, of }]) => role === "input-only" && of === name);
  const names = [name, ...ways.map(([way]) => way)];
  const merge = (old: TagDraft, draft: TagDraft): TagDraft => {
    if (old.kind === undefined) return old;
    // A path into a kind that was left empty asks for its default.
    const from = draft.kind?.kind === kind ? draft.kind : undefined;
    const values = names.map((each) => [each, valueOf(from, each)] as const);
    return { ...old, kind: withValues(old.kind, Object.fromEntries(values)) };
  };
  return { kind, merge };
}

function bad(
  description: string,
  reason: InvalidReason = "INVALID_UPDATE_MASK",
): readonly FieldViolation[] {
  return [{ field: "update_mask", description, reason }];
}

/** The change a mask asks for, validated as a whole with what stays. `maskViolations` found nothing in the mask. */
export function changeOf(
  old: Tag,
  draft: TagDraft,
  paths: readonly string[],
  { nowMs, texts }: { readonly nowMs: number; readonly texts: TextPorts },
): TagChange {
  const keys = old.unguessable?.keys ?? [];
  const made = settingsOf(merged(old, draft, paths), { nowMs, placement: undefined, texts, keys });
  if ("violations" in made) throw invalidFields(made.violations);
  const { description, order, ceiling, kind, format, unguessable } = made.settings;
  const written = {
    ...(format === undefined ? {} : { format }),
    ...(unguessable === undefined ? {} : { unguessable }),
  };
  return { description, settings: { order, ceiling, kind }, texts: written };
}

/** What is wrong with a mask, whatever tag it is for. */
export function maskViolations(paths: readonly string[]): readonly FieldViolation[] {
  const known = [ALL, ...PARENTS, ...PATHS.keys()].join(", ");
  if (paths.length === 0) return bad(`is required: at least one of ${known}`, "FIELD_REQUIRED");
  if (paths.length > MAX_MASK_PATHS) return bad(`must have at most ${MAX_MASK_PATHS} paths`);
  const unknown = [...new Set(paths)].filter(
    (path) => path !== ALL && !PARENTS.has(path) && !PATHS.has(path),
  );
  if (unknown.length === 0) return [];
  const shown = unknown.map((path) => JSON.stringify(path.slice(0, 64))).join(", ");
  return bad(`names ${shown}, which cannot be changed; the paths are ${known}`);
}

/** What a tag becomes by a mask in which `maskViolations` found nothing. */
function merged(old: Tag, draft: TagDraft, mask: readonly string[]): TagDraft {
  if (mask.includes(ALL) && draft.kind === undefined) {
    const text = `is required with the path *: the tag is of kind ${old.kind.kind}`;
    throw invalidField("tag.kind", text, "FIELD_REQUIRED");
  }
  const paths = mask.flatMap((path) => (PATHS.has(path) ? [path] : pathsBelow(path, old, draft)));
  for (const path of mask) assertFixed(path, old, draft);
  assertOfKind(old.kind.kind, draft.kind, paths);
  let next: TagDraft = draftOf(old);
  for (const path of paths) next = PATHS.get(path)?.merge(next, draft) ?? next;
  return next;
}

/** The paths that a wide one stands for. */
function pathsBelow(wide: string, old: Tag, draft: TagDraft): readonly string[] {
  const below = [...PATHS].filter(([path]) => path.startsWith(`${wide}.`)).map(([path]) => path);
  if (wide !== ALL) return below;
  const common = [...PATHS]
    .filter(([, { kind }]) => kind === undefined || kind === old.kind.kind)
    .map(([path]) => path);
  // What a caller read and sends back as it was changes nothing, also where it could not be set: the ceiling of kinds that
  // have their own, and a layout that ends soon.
  const present = draftOf(old).kind;
  const isSent = (path: string): boolean =>
    (path !== KEY_ID || draft.unguessable !== undefined) &&
    (path !== "ceiling" || draft.ceiling !== old.ceiling) &&
    !isSentBack(path, present, draft.kind);
  return common.filter(isSent);
}

function isSentBack(
  path: string,
  present: KindDraft | undefined,
  sent: KindDraft | undefined,
): boolean {
  const [kind = "", name = ""] = path.split(".");
  if (kind !== present?.kind || kind !== sent?.kind) return false;
  const field = Object.entries<Field>(KINDS[sent.kind].fields).find(([each]) => each === name)?.[1];
  return field !== undefined && isSameValue(field, valueOf(present, name), valueOf(sent, name));
}

/** Fields of another kind than the tag's cannot be changed, nor can values be read from one. */
function assertOfKind(
  kind: Tag["kind"]["kind"],
  draft: KindDraft | undefined,
  paths: readonly string[],
): void {
  for (const path of paths) {
    const of = PATHS.get(path)?.kind;
    if (of === undefined) continue;
    if (of !== kind) {
      const text = `names ${path}, but the tag is of kind ${kind}`;
      throw invalidField("update_mask", text, "INVALID_UPDATE_MASK");
    }
    if (draft !== undefined && draft.kind !== of) {
      const wayOut = `set tag.${of}, or leave the kind empty for the default`;
      const text = `is ${draft.kind}, but update_mask names ${path}: ${wayOut}`;
      throw invalidField("tag.kind", text, "FIELD_CONFLICT");
    }
  }
}

/**
 * INVARIANT: no value that a caller sent is dropped in silence. A wide path covers fields that never change: there a value
 * must be that of the tag, and an empty one means it.
 */
function assertFixed(wide: string, old: Tag, draft: TagDraft): void {
  const { name } = old;
  const present = draftOf(old);
  const isAll = wide === ALL;
  const { kind } = draft;
  if (isAll && kind !== undefined && kind.kind !== old.kind.kind) {
    throw fixed(name, "tag.kind", `is ${old.kind.kind}`);
  }
  if (kind !== undefined && (isAll || wide === kind.kind)) {
    for (const field of fieldsOf(kind.kind, ["never"])) {
      const [sent, had] = [valueOf(kind, field), valueOf(present.kind, field)];
      assertSame(name, `tag.${kind.kind}.${field}`, sent, had);
    }
  }
  if (isAll) assertSame(name, "tag.format.template", draft.format, present.format);
  if (isAll || wide === "unguessable") {
    if (isAll && draft.unguessable !== undefined && present.unguessable === undefined) {
      throw fixed(name, "tag.unguessable", "is empty");
    }
    const [sent, had] = [draft.unguessable?.keyDigits, present.unguessable?.keyDigits];
    assertSame(name, "tag.unguessable.key_digits", sent, had);
  }
}

function assertSame(tag: string, field: string, sent: Value, present: Value): void {
  const isEmpty = sent === undefined || sent === "" || sent === 0;
  if (isEmpty || sent === present) return;
  throw fixed(tag, field, `is ${plainText(present)}`);
}

function fixed(tag: string, field: string, present: string): IdmintError {
  return new IdmintError(
    "FIELD_IMMUTABLE",
    `${field} ${present} and never changes; leave it empty, or delete the tag and create it again`,
    { metadata: { tag, field } },
  );
}

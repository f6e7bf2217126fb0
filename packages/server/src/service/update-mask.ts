import {
  type FieldViolation,
  IdmintError,
  invalidField,
  type InvalidReason,
  type Tag,
} from "@idmint/core";
import type { KindDraft } from "./kinds/draft.ts";
import { DEFAULT_SEGMENT, type SegmentDraft } from "./kinds/segment.ts";
import { DEFAULT_SEQUENCE, type SequenceDraft } from "./kinds/sequence.ts";
import { DEFAULT_SNOWFLAKE, type SnowflakeDraft } from "./kinds/snowflake.ts";
import { draftOf, type TagDraft } from "./tag-settings.ts";

/** Most paths a mask may have; there are fewer fields than that. */
const MAX_MASK_PATHS = 32;

/** One path of an update mask. */
interface Path {
  /** The kind whose field it is; undefined: every tag has it. */
  readonly kind: "segment" | "sequence" | "snowflake" | undefined;
  /** How it changes what is there. */
  readonly merge: (old: TagDraft, draft: TagDraft) => TagDraft;
}

const KEY_ID = "unguessable.key_id";

/** The paths that are one field each. */
const PATHS: ReadonlyMap<string, Path> = new Map([
  ["description", top("description")],
  ["order", top("order")],
  ["ceiling", top("ceiling")],
  ["segment.start", ofSegment("start")],
  ["segment.min", ofSegment("min")],
  ["segment.max", ofSegment("max")],
  ["segment.hold_for", ofSegment("holdForMs")],
  ["segment.max_age", ofSegment("maxAgeMs")],
  ["sequence.start", ofSequence("start")],
  ["sequence.period", ofSequence("period")],
  ["sequence.time_zone", ofSequence("timeZone")],
  ["sequence.keep_for", ofSequence("keepForMs")],
  ["sequence.step", ofSequence("step")],
  ["snowflake.layout", ofSnowflake("layout")],
  ["snowflake.data_center", ofSnowflake("dataCenter")],
  ["snowflake.clock_policy", ofSnowflake("clockPolicy")],
  ["snowflake.clock_wait", ofSnowflake("clockWaitMs")],
  [KEY_ID, { kind: undefined, merge: withKeyId }],
]);

/** Stands for all paths that the tag has. */
const ALL = "*";
/** Paths that stand for those below them. */
const PARENTS: ReadonlySet<string> = new Set([
  "segment",
  "sequence",
  "snowflake",
  KEY_ID.split(".")[0] ?? "",
]);

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

function ofSegment(field: Exclude<keyof SegmentDraft, "kind">): Path {
  return ofKind(DEFAULT_SEGMENT, field);
}

function ofSequence(field: Exclude<keyof SequenceDraft, "kind" | "backend" | "shard">): Path {
  return ofKind(DEFAULT_SEQUENCE, field);
}

function ofSnowflake(field: "layout" | "dataCenter" | "clockPolicy" | "clockWaitMs"): Path {
  const path = ofKind(DEFAULT_SNOWFLAKE, field);
  if (field !== "layout") return path;
  // How long a layout lives is looked at when it is set, so whether it may be short goes with it.
  const merge = (old: TagDraft, draft: TagDraft): TagDraft => {
    const allowShortLife = draft.kind?.kind === "snowflake" && draft.kind.allowShortLife;
    const { kind, ...rest } = path.merge(old, draft);
    return { ...rest, kind: { ...(kind as SnowflakeDraft), allowShortLife } };
  };
  return { ...path, merge };
}

function ofKind<Draft extends SegmentDraft | SequenceDraft | SnowflakeDraft>(
  defaults: Draft,
  field: keyof Draft,
): Path {
  const { kind } = defaults;
  const merge = (old: TagDraft, draft: TagDraft): TagDraft => {
    // A path into a kind that was left empty asks for its default.
    const from = draft.kind?.kind === kind ? (draft.kind as Draft) : defaults;
    return { ...old, kind: { ...(old.kind as Draft), [field]: from[field] } };
  };
  return { kind, merge };
}

function bad(
  description: string,
  reason: InvalidReason = "INVALID_UPDATE_MASK",
): readonly FieldViolation[] {
  return [{ field: "update_mask", description, reason }];
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
export function merged(old: Tag, draft: TagDraft, mask: readonly string[]): TagDraft {
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
  const isSent = (path: string): boolean =>
    (path !== KEY_ID || draft.unguessable !== undefined) &&
    (path !== "ceiling" || draft.ceiling !== old.ceiling) &&
    (path !== "snowflake.layout" || !isSameLayout(old, draft));
  return common.filter(isSent);
}

function isSameLayout({ kind: old }: Tag, { kind }: TagDraft): boolean {
  if (old.kind !== "snowflake" || kind?.kind !== "snowflake") return false;
  const { layout } = kind;
  const fields = Object.keys(old.layout) as (keyof typeof old.layout)[];
  return layout !== undefined && fields.every((field) => layout[field] === old.layout[field]);
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

/** Fields of a kind that no path changes. */
const FIXED: Readonly<Record<KindDraft["kind"], Readonly<Record<string, string>>>> = {
  segment: {},
  sequence: { backend: "backend" },
  snowflake: { registry: "registry" },
  redis_snowflake: { shard: "shard", timeOriginMs: "time_origin" },
  ticket: { start: "start", slots: "slots" },
  uuid: { version: "version", namespace: "namespace", domain: "domain", number: "number" },
  object_id: { variant: "variant" },
};

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
    for (const [key, field] of Object.entries(FIXED[kind.kind])) {
      assertSame(name, `tag.${kind.kind}.${field}`, valueOf(kind, key), valueOf(present.kind, key));
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

function valueOf(kind: KindDraft | undefined, key: string): unknown {
  return (kind as unknown as Readonly<Record<string, unknown>> | undefined)?.[key];
}

function assertSame(tag: string, field: string, sent: unknown, present: unknown): void {
  const isEmpty = sent === undefined || sent === "" || sent === 0 || sent === 0n;
  if (isEmpty || sent === present) return;
  throw fixed(tag, field, `is ${String(present)}`);
}

function fixed(tag: string, field: string, present: string): IdmintError {
  return new IdmintError(
    "FIELD_IMMUTABLE",
    `${field} ${present} and never changes; leave it empty, or delete the tag and create it again`,
    { metadata: { tag, field } },
  );
}

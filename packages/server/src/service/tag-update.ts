import {
  type FieldViolation,
  invalidField,
  invalidFields,
  type Tag,
  type TagChange,
  type TagKind,
} from "@idmint/core";
import type { KindDraft } from "./kinds/draft.ts";
import { DEFAULT_SEGMENT, type SegmentDraft } from "./kinds/segment.ts";
import { DEFAULT_SEQUENCE, isSameSequence, type SequenceDraft } from "./kinds/sequence.ts";
import { DEFAULT_SNOWFLAKE, isSameSnowflake, type SnowflakeDraft } from "./kinds/snowflake.ts";
import type { TextPorts } from "./tag-text.ts";
import { draftOf, settingsOf, type TagDraft } from "./tag-settings.ts";

/** Most paths a mask may have; there are fewer fields than that. */
const MAX_MASK_PATHS = 32;

/** One path of an update mask. */
interface Path {
  /** The kind whose field it is; undefined: every tag has it. */
  readonly kind: "segment" | "sequence" | "snowflake" | undefined;
  /** How it changes what is there. */
  readonly merge: (old: TagDraft, draft: TagDraft) => TagDraft;
}

/** The paths an update mask may name. */
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
  ["unguessable.key_id", { kind: undefined, merge: withKeyId }],
]);

function top(field: "description" | "order" | "ceiling"): Path {
  return { kind: undefined, merge: (old, draft) => ({ ...old, [field]: draft[field] }) };
}

/** A tag changes to another key; whether it has one at all never changes. */
function withKeyId(old: TagDraft, draft: TagDraft): TagDraft {
  if (old.unguessable === undefined) {
    throw invalidField("update_mask", "names unguessable.key_id, and the tag has no key");
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

/** What is wrong with a mask, whatever tag it is for. */
export function maskViolations(paths: readonly string[]): readonly FieldViolation[] {
  const field = "update_mask";
  const known = [...PATHS.keys()].join(", ");
  if (paths.length === 0) return [{ field, description: `is required: at least one of ${known}` }];
  if (paths.length > MAX_MASK_PATHS) {
    return [{ field, description: `must have at most ${MAX_MASK_PATHS} paths` }];
  }
  const unknown = [...new Set(paths)].filter((path) => !PATHS.has(path));
  if (unknown.length === 0) return [];
  const shown = unknown.map((path) => JSON.stringify(path.slice(0, 64))).join(", ");
  return [
    { field, description: `names ${shown}, which cannot be changed; the paths are ${known}` },
  ];
}

/** The change a mask asks for, validated as a whole with what stays. `maskViolations` found nothing in the mask. */
export function changeOf(
  old: Tag,
  draft: TagDraft,
  paths: readonly string[],
  { nowMs, texts }: { readonly nowMs: number; readonly texts: TextPorts },
): TagChange {
  assertOfKind(old.kind.kind, draft.kind, paths);
  let merged: TagDraft = draftOf(old);
  for (const path of paths) merged = PATHS.get(path)?.merge(merged, draft) ?? merged;
  const made = settingsOf(merged, {
    nowMs,
    placement: undefined,
    texts,
    keys: old.unguessable?.keys ?? [],
  });
  if ("violations" in made) throw invalidFields(made.violations);
  const { description, order, ceiling, kind, format, unguessable } = made.settings;
  const onlyIfUnissued =
    order !== old.order || ceiling !== old.ceiling || !isSameButForTuning(kind, old.kind);
  const written = {
    ...(format === undefined ? {} : { format }),
    ...(unguessable === undefined ? {} : { unguessable }),
  };
  return { description, settings: { order, ceiling, kind }, texts: written, onlyIfUnissued };
}

/** Fields of another kind than the tag's cannot be changed, nor can values be read from one. */
function assertOfKind(
  kind: TagKind["kind"],
  draft: KindDraft | undefined,
  paths: readonly string[],
): void {
  for (const path of paths) {
    const of = PATHS.get(path)?.kind;
    if (of === undefined) continue;
    if (of !== kind) {
      throw invalidField("update_mask", `names ${path}, and the tag is of kind ${kind}`);
    }
    if (draft !== undefined && draft.kind !== of) {
      const wayOut = `set tag.${of}, or leave the kind empty for the default`;
      throw invalidField("tag.kind", `is ${draft.kind}, and update_mask names ${path}: ${wayOut}`);
    }
  }
}

/** Whether nothing differs but what may change after the first id. */
function isSameButForTuning(one: TagKind, other: TagKind): boolean {
  if (one.kind === "segment" && other.kind === "segment") return one.start === other.start;
  if (one.kind === "sequence" && other.kind === "sequence") return isSameSequence(one, other);
  if (one.kind === "snowflake" && other.kind === "snowflake") return isSameSnowflake(one, other);
  // No path leads into the other kinds.
  return one.kind === other.kind;
}

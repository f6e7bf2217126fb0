// The entry @idmint/core/kinds: one table a kind. Servers and the command line load it, the SDK does not.
export { isSameButForPlace, isSameButForTuning, isSameKind } from "./compare.ts";
export { flatFields, isSameValue, plainText, valueAt } from "./fields.ts";
export { countsInRedis, hasPlace, inPlaceOf, placedIn, redisServerOf } from "./place.ts";
export type { SegmentDraft } from "./segment.ts";
export type { SequenceDraft } from "./sequence.ts";
export { durationText } from "./settling.ts";
export type { Field, Fields, Json, KindContext, Places, Value, Values } from "./spec.ts";
export {
  type AnyKind,
  KIND_NAMES,
  type KindDraft,
  type KindName,
  specOf,
  KINDS,
  valueOf,
  valuesOf,
  withValues,
} from "./table.ts";

// For everyone: what a tag, a segment and an error are.
export {
  type Code,
  CODE_OF_REASON,
  type ErrorDetails,
  type FieldViolation,
  IdmintError,
  invalidField,
  invalidFields,
  type Reason,
  segmentNotReady,
} from "./errors.ts";
export type { BufferEvent, WasteCause } from "./events.ts";
export {
  assertNoViolations,
  countViolation,
  MAX_COUNT_AS_LIST,
  MAX_COUNT_AS_SEGMENTS,
  MAX_DESCRIPTION_LENGTH,
  MAX_ID,
  MAX_RAISE,
  MAX_SAFE_ID,
  MAX_SEGMENT_COUNT,
  MAX_WAITERS,
  tagNameViolation,
} from "./limits.ts";
export type {
  Abort,
  AcceptStore,
  ChangeStore,
  Clock,
  EndedPeriod,
  GiveBackRequest,
  GiveBackStore,
  Grant,
  Granted,
  GrantRequest,
  GrantStore,
  Period,
  PeriodStore,
  Raised,
  RaiseRequest,
  RaiseStore,
  Random,
  Refused,
  SeenVersion,
  Store,
  StoreChanges,
  TagChange,
  TagStore,
  Timers,
} from "./ports.ts";
export { BACKOFF_MAX_MS, BACKOFF_MIN_MS, backoffMs } from "./segment/backoff.ts";
export {
  type BufferPorts,
  type Call,
  type Loader,
  SegmentBuffer,
  type Unused,
} from "./segment/buffer.ts";
export type { BufferOptions, Load, LoadRequest } from "./segment/buffer-types.ts";
export { countOf, idAt, idsOf, lastOf, type Segment, segmentOf, slice } from "./segment/segment.ts";
export { nextSize, type SizingOptions } from "./segment/sizing.ts";
export { VersionGuard } from "./segment/version-guard.ts";
export {
  firstIdOf,
  type Order,
  type Periods,
  type PeriodUnit,
  type RedisPlace,
  type RedisSnowflakeKind,
  type SegmentKind,
  type SequenceKind,
  type Tag,
  type TagKind,
  type TagSettings,
  type TagState,
  type TicketKind,
} from "./tag.ts";

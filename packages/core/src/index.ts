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
export { type CheckKind, CHECKS } from "./format/check-digit.ts";
export { type ParsedText, TextFormat } from "./format/format.ts";
export { textFormatOf } from "./format/of-tag.ts";
export { paymentSerial } from "./format/presets.ts";
export { type FormatSubject, MAX_TEXT_LENGTH } from "./format/subject.ts";
export { MAX_TEMPLATE_LENGTH, parseTemplate, type Template } from "./format/template.ts";
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
  RenewedWorkerLease,
  SeenVersion,
  Store,
  StoreChanges,
  TagChange,
  TagStore,
  Timers,
  Worker,
  WorkerLease,
  WorkerLeaseKey,
  WorkerLeaseRequest,
  WorkerRegistry,
  WorkerRenewal,
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
  bigintOf,
  bitsOf,
  composeHalves,
  decode,
  encode,
  endOf,
  type Halves,
  idsOfSpan,
  idsPerSecond,
  layoutViolations,
  maxIdOf,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
  type SnowflakeParts,
  tickAt,
  timeOf,
} from "./snowflake/layout.ts";
export type { SlotsOptions, SlotsPorts, SnowflakeEvent } from "./snowflake/slots.ts";
export { type SnowflakeCall, type SnowflakeOptions, SnowflakeSource } from "./snowflake/source.ts";
export {
  type ClockPolicy,
  firstIdOf,
  type Format,
  type ObjectIdKind,
  type Order,
  type Periods,
  type PeriodUnit,
  type RedisPlace,
  type RedisSnowflakeKind,
  type SegmentKind,
  type SequenceKind,
  type SnowflakeKind,
  type Tag,
  type TagKind,
  type TagSettings,
  type TagState,
  type TicketKind,
  type Unguessable,
  type UuidKind,
} from "./tag.ts";
export { type Permutation, unguessableViolations } from "./unguessable/domain.ts";
export { type KeyedPermutation, keyUnknown, UnguessableIds } from "./unguessable/ids.ts";
export { decodeObjectId, type DecodedUuid, decodeUuid, namespaceOf } from "./uuid/decode.ts";
export type { DceDomain } from "./uuid/dce-state.ts";
export { ObjectIdMaker, type TextIdPorts, type UuidLibrary, UuidMaker } from "./uuid/makers.ts";
export type { HolderPorts } from "./worker/holder.ts";
export {
  dataCenterOf,
  DEFAULT_RESERVE_AHEAD_MS,
  instanceViolation,
  isFree,
  type LeaseCandidates,
  type LeasedWorker,
  leasedWorker,
  MAX_LEAD_MS,
  MAX_RESERVE_AHEAD_MS,
  MIN_RESERVE_AHEAD_MS,
  releasedWorker,
  type RenewedWorker,
  renewedWorker,
  reserveAheadViolation,
  WORKER_TTL_MS,
} from "./worker/registry-state.ts";

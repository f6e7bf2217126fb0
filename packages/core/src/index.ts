// The entry @idmint/core: what the SDK, servers and the command line share. The SDK loads all of it.
export { bounded } from "./bounded.ts";
export { ANSWER_MARGIN_MS, answerBy, type Call, cancelled, tooManyWaiters } from "./call.ts";
export { type Duration, durationOf, millisecondsOf } from "./duration.ts";
export { elapsedClock, type TimeSources } from "./elapsed.ts";
export {
  type Code,
  busyMs,
  CODE_OF_REASON,
  type ErrorDetails,
  type FieldReason,
  type FieldViolation,
  IdmintError,
  invalidField,
  invalidFields,
  type InvalidReason,
  notWarm,
  type Reason,
  segmentNotReady,
} from "./errors.ts";
export type { BufferEvent } from "./events.ts";
export {
  MAX_COUNT_AS_SEGMENTS,
  MAX_ID,
  MAX_SAFE_ID,
  MAX_SEGMENT_COUNT,
  MAX_TEXT_AGE_MS,
  MAX_WAITERS,
  assertNoViolations,
  countViolation,
  principalViolation,
  tagNameViolation,
} from "./limits.ts";
export type { Clock, Random, Timers } from "./ports.ts";
export { backoffMs } from "./segment/backoff.ts";
export { BurstEnd, CALM_STRIDE, strideAfter } from "./segment/burst.ts";
export type {
  BufferOptions,
  BufferPorts,
  Load,
  LoadRequest,
  Unused,
} from "./segment/buffer-types.ts";
export { DecimalTexts } from "./segment/decimal-texts.ts";
export { SegmentBuffer } from "./segment/buffer.ts";
export { SeenRanges } from "./segment/seen-ranges.ts";
export { countOf, idsOf, lastOf, type Segment, segmentOf, slice } from "./segment/segment.ts";
export type { Committed, GroupCommitOptions } from "./sequence/group-commit-state.ts";
export { GroupCommit } from "./sequence/group-commit.ts";
export { type Period, type PeriodDoubt, periodText } from "./sequence/period.ts";
export {
  decode,
  encode,
  endOf,
  idsOfSpan,
  idsPerSecond,
  lastMsAtOrBelow,
  MAX_WORKER_BITS,
  maxIdOf,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
  type SnowflakeParts,
  tickAt,
  timeOf,
} from "./snowflake/layout.ts";
export type { MadeSnowflakes } from "./snowflake/generator-state.ts";
export { createMadeTimes } from "./snowflake/made-times.ts";
export { paymentSerial } from "./snowflake/payment-serial.ts";
export type { SnowflakeEvent } from "./snowflake/held-workers.ts";
export { SnowflakeSource } from "./snowflake/source.ts";
export { unguessableViolations } from "./unguessable/domain.ts";
export { type KeyedPermutation, keyUnknown, UnguessableIds } from "./unguessable/ids.ts";
export type { DceDomain } from "./uuid/dce-state.ts";
export { type DecodedUuid, decodeObjectId, decodeUuid } from "./uuid/decode.ts";
export { ObjectIdMaker, type UuidLibrary, UuidMaker } from "./uuid/makers.ts";
export type { HolderPorts, LeaseLeft } from "./worker/holder.ts";
export {
  DEFAULT_RESERVE_AHEAD_MS,
  instanceViolation,
  MAX_LEAD_MS,
  MAX_RESERVE_AHEAD_MS,
  reserveAheadViolation,
  WORKER_TTL_MS,
} from "./worker/limits.ts";
export type {
  RenewedWorkerLease,
  WorkerLease,
  WorkerLeaseKey,
  WorkerLeaseRequest,
  WorkerRenewal,
} from "./worker/ports.ts";

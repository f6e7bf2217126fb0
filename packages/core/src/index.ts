// For everyone: what a tag, a segment and an error are.
export { bounded } from "./bounded.ts";
export { ANSWER_MARGIN_MS, answerBy, type Call, cancelled, tooManyWaiters } from "./call.ts";
export {
  type Code,
  CODE_OF_REASON,
  type ErrorDetails,
  type FieldViolation,
  type InvalidReason,
  IdmintError,
  invalidField,
  invalidFields,
  type Reason,
  notWarm,
  segmentNotReady,
} from "./errors.ts";
export { elapsedClock, type TimeSources } from "./elapsed.ts";
export type { BufferEvent, WasteCause } from "./events.ts";
export { type CheckKind, CHECKS } from "./format/check-digit.ts";
export { type ParsedText, TextFormat } from "./format/format.ts";
export { textFormatOf } from "./format/of-tag.ts";
export { paymentSerial } from "./format/presets.ts";
export { type FormatSubject, MAX_TEXT_LENGTH } from "./format/subject.ts";
export { MAX_TEMPLATE_LENGTH, parseTemplate, type Template } from "./format/template.ts";
export type { ObjectIdKind } from "./kinds/object-id.ts";
export type { RedisSnowflakeKind } from "./kinds/redis-snowflake.ts";
export type { SegmentKind } from "./kinds/segment.ts";
export type { Periods, PeriodUnit, RedisPlace, SequenceKind } from "./kinds/sequence.ts";
export type { ClockPolicy, SnowflakeKind } from "./kinds/snowflake.ts";
export type { Order } from "./kinds/spec.ts";
export type { TagKind } from "./kinds/table.ts";
export type { TicketKind } from "./kinds/ticket.ts";
export type { UuidKind } from "./kinds/uuid.ts";
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
  ChangeOptions,
  ChangeStore,
  Clock,
  EndedPeriod,
  GiveBackRequest,
  GiveBackStore,
  Grant,
  Granted,
  GrantOptions,
  GrantRequest,
  GrantStore,
  MarkedGeneration,
  MarkStore,
  Period,
  PeriodDoubt,
  PeriodStore,
  Raised,
  RaiseRequest,
  RaiseStore,
  Random,
  RedisMark,
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
export type {
  RedisDoubt,
  RedisLeaseRequest,
  RedisRelease,
  RedisRenewal,
  RedisSeeded,
  RedisSequences,
  CountingRedis,
  RedisSnowflakes,
  RedisWorkers,
  RedisWorkersAnswer,
  RedisWorkersSeed,
  SequenceIssued,
  SequenceIssueRequest,
  SequenceRates,
  SequenceReading,
  SequenceSeedRequest,
  SnowflakeIssued,
  SnowflakeIssueRequest,
  SnowflakeSeedRequest,
  TimedDoubt,
} from "./redis-ports.ts";
export { storeUnavailable, storeWentBack, tagNotFound, tagPaused } from "./refusals.ts";
export {
  type Around,
  type Ask,
  type CallAnswers,
  type CallArgs,
  checkedCall,
  STORE_CALLS,
  type StoreCall,
  type StoreCalls,
  storeCalls,
  wrapStore,
} from "./store-calls.ts";
export { assertGap, KEPT_GENERATIONS, MAX_BATCH } from "./store-limits.ts";
export {
  composeId,
  COUNTERS_PER_MS,
  decomposeId,
  lifeEndMs,
  MAX_AHEAD_MS,
  MAX_SNOWFLAKE_COUNT,
  MAX_SNOWFLAKE_SHARD,
  type Position,
  positionOf,
  runsOf,
  type RedisSnowflakeLayout,
  type RedisSnowflakeParts,
  type SnowflakeRun,
} from "./redis-snowflake/layout.ts";
export { firstAbove, floorToReserve, isEnding, limitOf } from "./redis-snowflake/reservation.ts";
export { BACKOFF_MAX_MS, BACKOFF_MIN_MS, backoffMs } from "./segment/backoff.ts";
export { SegmentBuffer } from "./segment/buffer.ts";
export type {
  BufferOptions,
  BufferPorts,
  Load,
  Loader,
  LoadRequest,
  Unused,
} from "./segment/buffer-types.ts";
export { commonIdOf, SeenRanges } from "./segment/seen-ranges.ts";
export { countOf, idAt, idsOf, lastOf, type Segment, segmentOf, slice } from "./segment/segment.ts";
export { nextSize, type SizingOptions } from "./segment/sizing.ts";
export { type Duration, durationOf, millisecondsOf } from "./duration.ts";
export { earlierMemory, memoryMsOf } from "./memory.ts";
export {
  DEFAULT_MAX_OFFLINE_MS,
  lostNodes,
  MAX_NODES,
  type NodeInfo,
  type NodeRenewal,
  type NodeRow,
  type NodeRowKey,
  type NodeStore,
  type StorePart,
} from "./node/ports.ts";
export {
  type Acknowledged,
  createPresenceState,
  issueUntil,
  pollObeyed,
  type PresenceState,
  renewalAcknowledged,
  resumePresence,
} from "./node/presence-state.ts";
export {
  createNodeWatchState,
  type Laggard,
  type NodeWatchState,
  noteRevision,
  type Obedience,
  obedienceOf,
  obedienceSince,
  sawPart,
  stoppedNodes,
  watchedNodes,
  withClockMargin,
} from "./node/watch-state.ts";
export { VersionGuard } from "./segment/version-guard.ts";
export { GroupCommit, type GroupCommitPorts } from "./sequence/group-commit.ts";
export type { Committed, GroupCommitOptions } from "./sequence/group-commit-state.ts";
export { periodName, periodText } from "./sequence/period-name.ts";
export {
  type ForecastOptions,
  type ForecastReading,
  type ForecastState,
  observeReading,
  raiseWanted,
  startForecast,
} from "./sequence/redis-forecast-state.ts";
export {
  createMarkState,
  expectMark,
  knownGenerations,
  knownMark,
  type MarkState,
  marksTold,
  newestMarked,
  raiseMark,
  risenMarks,
} from "./sequence/redis-mark-state.ts";
export {
  type CountingPlace,
  doubted,
  MOVE_FAILED_AFTER_MS,
  outdated,
  placeRead,
  seedAnswered,
  type SeedingState,
  type SeedingStep,
  startSeeding,
} from "./sequence/redis-seeding-state.ts";
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
  lastMsAtOrBelow,
  layoutViolations,
  MAX_WORKER_BITS,
  maxIdOf,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
  type SnowflakeParts,
  tickAt,
  timeOf,
} from "./snowflake/layout.ts";
export type { SlotsOptions, SlotsPorts, SnowflakeEvent } from "./snowflake/slots.ts";
export { type SnowflakeOptions, SnowflakeSource } from "./snowflake/source.ts";
export {
  firstIdOf,
  type Format,
  type KeyCheck,
  type OtherPeriod,
  periodsOf,
  type Tag,
  type TagSettings,
  type TagState,
  type Unguessable,
} from "./tag.ts";
export { applyPlan, planTag, type TagPlan } from "./ticket/apply.ts";
export {
  answered,
  createFleet,
  type DatabaseHealth,
  failed,
  type FleetState,
  nextDatabase,
  retryInMs,
} from "./ticket/fleet-state.ts";
export { type Holdings, holdingsOf, type Pending } from "./ticket/holdings.ts";
export { survey } from "./ticket/mover.ts";
export { acceptNeedsAll, reconcile, type Reconciliation } from "./ticket/reconcile.ts";
export { type Move, planMoves } from "./ticket/plan.ts";
export {
  nameOfId,
  type Slot,
  type SlotGrant,
  type SlotState,
  type SlotsView,
  type SlotWish,
  type TicketDatabase,
  type TicketRequest,
} from "./ticket/ports.ts";
export { initialSlots, lastIdUpTo, MAX_SLOTS } from "./ticket/slots.ts";
export {
  behindOf,
  closeSlots,
  createTagSlots,
  openingOf,
  openSlots,
  type SeenSlots,
  seenOf,
  type TagSlots,
  takeGrants,
  wishesOf,
} from "./ticket/slots-state.ts";
export { type Permutation, unguessableViolations } from "./unguessable/domain.ts";
export { type KeyedPermutation, keyUnknown, UnguessableIds } from "./unguessable/ids.ts";
export { decodeObjectId, type DecodedUuid, decodeUuid, namespaceOf } from "./uuid/decode.ts";
export type { DceDomain } from "./uuid/dce-state.ts";
export { ObjectIdMaker, type TextIdPorts, type UuidLibrary, UuidMaker } from "./uuid/makers.ts";
export {
  checkClock,
  type ClockCheckState,
  type ClockEffect,
  type ClockRefusal,
  createClockCheckState,
  type PeerSighting,
  sawPeers,
  sawStore,
  type Sighting,
  wantsPeers,
} from "./worker/clock-check-state.ts";
export type { HolderPorts } from "./worker/holder.ts";
export {
  answerOf,
  hasTimeLeft,
  KEPT_RESERVE_AHEAD_MS,
  type KeptContents,
  type KeptLease,
  type KeptNode,
  keptLease,
  type LeaseFile,
  raised,
  renewalAhead,
  renewedAhead,
  takenUp,
} from "./worker/kept-lease-state.ts";
export {
  DEFAULT_RESERVE_AHEAD_MS,
  FREE_CANDIDATES,
  MAX_LEAD_MS,
  MAX_RESERVE_AHEAD_MS,
  MIN_RESERVE_AHEAD_MS,
  WORKER_TTL_MS,
} from "./worker/limits.ts";
export {
  dataCenterOf,
  instanceViolation,
  isFree,
  type LeaseCandidates,
  type LeasedWorker,
  leasedWorker,
  releasedWorker,
  type RenewedWorker,
  renewedWorker,
  reserveAheadViolation,
} from "./worker/registry-state.ts";

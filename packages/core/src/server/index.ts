// The entry @idmint/core/server: what only servers run, and the command line beside them. The SDK imports nothing of it.
export type { Principal } from "./access/principal.ts";
export {
  type AccessFile,
  certified,
  createKnownState,
  fileRead,
  judgeToken,
  keptFound,
  keptOf,
  type KeptCallers,
  type KnownToken,
  listRead,
  principalsKnown,
  provesSomebody,
} from "./access/known-state.ts";
export {
  bearerOf,
  isTokenId,
  TOKEN_BEGINNING,
  TOKEN_ID_BYTES,
  TOKEN_SECRET_BYTES,
  tokenText,
} from "./access/token-text.ts";
export {
  type AccessStore,
  KEPT_EXPIRED_MS,
  MAX_TOKENS,
  type Token,
  type TokenList,
} from "./access/tokens.ts";
export {
  assertRights,
  decide,
  isTagPattern,
  MAX_RIGHTS,
  type Right,
  Rights,
  type Role,
  ROLES,
  rolesOf,
  rolesText,
  type Subject,
} from "./access/rights.ts";
export { type Bucket, type Fill, fullBucket, refill } from "./admission/bucket.ts";
export {
  createHeldState,
  HELD_SLOT_MS,
  type HeldState,
  hold,
  mayAnswerNow,
  releaseAll,
  released,
} from "./admission/held-state.ts";
export {
  admits,
  createOverloadState,
  lookAtCallers,
  type OverloadState,
  turnEnded,
} from "./admission/overload-state.ts";
export {
  createQuotaState,
  giveBackIds,
  hasQuotas,
  type OverQuota,
  type QuotaName,
  type QuotaOptions,
  type QuotaState,
  type Rates,
  setServers,
  sweepQuotas,
  takeOfQuotas,
} from "./admission/quota-state.ts";
export {
  type CallerStreams,
  createStreamLimitsState,
  lookAtStreams,
  NARROW_STREAMS,
  type StreamLimitsState,
} from "./admission/stream-limits-state.ts";
export {
  beganToWait,
  createWaitingState,
  endedToWait,
  isCrowded,
  mayWait,
  type WaitingState,
} from "./admission/waiting-state.ts";
export { type Horizon, horizonsOf, type LimitName } from "./capacity/horizons.ts";
export { rateOf, sawUsed, type Usage, type UseRate } from "./capacity/usage-state.ts";
export { createWarningState, type WarningState, warningOf } from "./capacity/warning-state.ts";
export { auditShare } from "./audit/share.ts";
export {
  type AuditEvent,
  type AuditKind,
  type AuditNote,
  type AuditPlace,
  type AuditStore,
  MAX_AUDIT_BATCH,
  MAX_AUDIT_TEXT,
} from "./audit/ports.ts";
export { type Holder, holderOf } from "./ledger/holder.ts";
export {
  batchFailed,
  batchStored,
  createLedgerState,
  hasRows,
  type LedgerState,
  nextBatch,
  note,
} from "./ledger/ledger-state.ts";
export {
  type LedgerEntry,
  type LedgerFindings,
  type LedgerLimits,
  type LedgerPage,
  type LedgerPlace,
  type LedgerRow,
  type LedgerStore,
  MAX_FORGOTTEN_ROWS,
  MAX_FOUND,
  type PlacedLedgerRow,
} from "./store/ledger.ts";
export { acceptAsking, type AcceptReport } from "./claims/asking.ts";
export { type AskTimes } from "./claims/ask-state.ts";
export { type Claimed, ClaimTally, lostTag, withClaims } from "./claims/claimed-state.ts";
export * from "./claims/kept-grants-state.ts";
export * from "./claims/ports.ts";
export { omitStacks } from "../errors.ts";
export { type ParsedText, TextFormat } from "./format/format.ts";
export { hidingViolations, textFormatOf } from "./format/of-tag.ts";
export { type FormatSubject, MAX_TEXT_LENGTH } from "./format/subject.ts";
export { parseTemplate } from "./format/template.ts";
export { zoneOffsets } from "./format/zone-offsets.ts";
export { type CalledNode, nodesVersionOf } from "./node/nodes-version.ts";
export {
  type IssuingEffect,
  type IssuingState,
  sawIssuing,
  type SeenIssuing,
  stoppedSince,
} from "./node/issuing-state.ts";
export * from "./node/ports.ts";
export * from "./node/newcomer-state.ts";
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
  createTrafficState,
  MAX_TRAFFIC,
  MAX_WEIGHT,
  sawTraffic,
  serverNameOf,
  type Traffic,
  trafficAfter,
  trafficOf,
  type TrafficState,
  type TrafficStore,
} from "./node/traffic-state.ts";
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
  watchedCount,
  watchedNodes,
  withClockMargin,
} from "./node/watch-state.ts";
export {
  type ForecastOptions,
  type ForecastReading,
  type ForecastState,
  observeReading,
  type RaiseBounds,
  raiseWanted,
  startForecast,
} from "./redis/forecast-state.ts";
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
} from "./redis/mark-state.ts";
export type {
  CountingRedis,
  RedisDoubt,
  RedisLeaseRequest,
  RedisRelease,
  RedisRenewal,
  RedisSeeded,
  RedisSequences,
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
} from "./redis/ports.ts";
export {
  type CountingPlace,
  doubted,
  acceptedGeneration,
  GENERATIONS_AHEAD,
  MOVE_FAILED_AFTER_MS,
  outdated,
  placeRead,
  seedAnswered,
  type SeedingState,
  startSeeding,
} from "./redis/seeding-state.ts";
export { firstAbove, floorToReserve, isEnding, limitOf } from "./redis/snowflake-reservation.ts";
export {
  isForeign,
  isOfStore,
  isRefusal,
  noMemberAnswers,
  redisIsForeign,
  storeIsAnother,
  storeIsForeign,
  storeRefusesNow,
  storeUnavailable,
  storeWentBack,
  tagNotFound,
  tagPaused,
} from "./refusals.ts";
export {
  type CallAnswers,
  type CallArgs,
  checkedCall,
  STORE_CALLS,
  type StoreCall,
  type StoreCalls,
  storeCalls,
  type StoreInterceptor,
  wrapStore,
} from "./store/calls.ts";
export { type ChangeStore, MAX_WATCHED, type StoreChanges } from "./store/changes.ts";
export type {
  GiveBackRequest,
  GiveBackStore,
  Grant,
  Granted,
  GrantOptions,
  GrantRequest,
  GrantStore,
  Refused,
} from "./store/grants.ts";
export {
  type Issuing,
  type IssuingStore,
  NEVER_STOPPED,
  type PartIssuing,
} from "./store/issuing.ts";
export { assertGap, KEPT_GENERATIONS, MAX_BATCH } from "./store/limits.ts";
export type {
  MarkedGeneration,
  MarkStore,
  Raised,
  RaiseRequest,
  RaiseStore,
  RedisMark,
} from "./store/redis-bounds.ts";
export type { Accepted, AcceptStore, Store } from "./store/store.ts";
export {
  type ChangeOptions,
  type EndedPeriod,
  namesOn,
  type PeriodStore,
  type TagChange,
  type TagPage,
  type TagStore,
  upTo,
} from "./store/tags.ts";
export {
  type GrantedIds,
  type GrantKeeper,
  type HighestGranted,
  type KeptTag,
  type RowFloor,
  VersionGuard,
} from "./store/version-guard.ts";
export type { Worker, WorkerRegistry } from "./store/worker-registry.ts";
export { earlierMemory, memoryMsOf } from "./tag/memory.ts";
export { periodName } from "./tag/period-name.ts";
export { exampleTexts, idCountsOf } from "./tag/plan.ts";
export {
  firstIdOf,
  type Format,
  type KeyCheck,
  MAX_DESCRIPTION_LENGTH,
  MAX_RAISE,
  mayHaveIssued,
  FORGOTTEN,
  type OtherPeriod,
  periodsOf,
  type Tag,
  type TagSettings,
  type TagState,
  type Unguessable,
  type UnreadableTag,
} from "./tag/tag.ts";
export { applyPlan, forgetLost, missingSlots, planTag, type TagPlan } from "./ticket/apply.ts";
export {
  answered,
  createFleet,
  type DatabaseHealth,
  failed,
  type FleetState,
  nextDatabase,
  retryInMs,
} from "./ticket/fleet-state.ts";
export { survey } from "./ticket/mover.ts";
export {
  nameOfId,
  NOBODY,
  type Slot,
  type SlotGrant,
  type SlotState,
  type SlotsView,
  type TicketDatabase,
  type TicketRequest,
} from "./ticket/ports.ts";
export { acceptNeedsAll, reconcile, type Reconciliation } from "./ticket/reconcile.ts";
export {
  behindOf,
  closeSlots,
  createTagSlots,
  openingOf,
  openSlots,
  seenOf,
  type SeenSlots,
  type TagSlots,
  takeGrants,
  slotRequestsOf,
} from "./ticket/slots-state.ts";
export { initialSlots, lastIdUpTo } from "./ticket/slots.ts";
export {
  checkClock,
  clockOffsets,
  type ClockCheckState,
  type ClockRefusal,
  createClockCheckState,
  type PeerSighting,
  sawPeers,
  sawStore,
  type Sighting,
  wantsPeers,
} from "./worker/clock-check-state.ts";
export {
  answerOf,
  hasTimeLeft,
  KEPT_RESERVE_AHEAD_MS,
  type KeptContents,
  type KeptLease,
  keptLease,
  type KeptNode,
  type LeaseFile,
  raised,
  renewalAhead,
  renewedAhead,
  takenUp,
} from "./worker/kept-lease-state.ts";
export {
  dataCenterOf,
  FREE_CANDIDATES,
  isFree,
  type LeaseCandidates,
  leasedWorker,
  type LeasedWorker,
  releasedWorker,
  renewedWorker,
  type RenewedWorker,
} from "./worker/registry-state.ts";

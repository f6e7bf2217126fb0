export { type CampaignOptions, createElection, type Election } from "./election/election.ts";
export type { Leadership } from "./election/leadership.ts";
export type { ElectionEvent, ElectionOptions } from "./election/options.ts";
export { type Code, CoordinationError, type NodeCause, type Reason } from "./errors.ts";
export type { LockEvent } from "./lock/events.ts";
export type { LockGrant } from "./lock/grant.ts";
export { type AcquireOptions, createLocks, type Lock, type Locks } from "./lock/locks.ts";
export type { LocksOptions, TokenSource } from "./lock/options.ts";
export type {
  Message,
  Queue,
  QueueEvent,
  QueueOptions,
  QueueOrder,
  TakenMessage,
  TakeOptions,
} from "./queue/api.ts";
export { createQueue } from "./queue/queue.ts";
export { NOT_A_SENTINEL } from "./redis/master-connector.ts";
export type { RedisSource } from "./redis/node.ts";
export { plainError } from "./redis/plain-error.ts";
export { namesSentinels, sentinelOptions, type SentinelSecrets } from "./redis/sentinel-url.ts";
export type {
  Listener,
  Signal,
  SignalEvent,
  Signals,
  SignalsOptions,
  WaitOptions,
  Wakeup,
  Wanted,
} from "./signal/api.ts";
export { createSignals } from "./signal/signals.ts";

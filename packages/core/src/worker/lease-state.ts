import { busyMs, type IdmintError } from "../errors.ts";
import type { Random } from "../ports.ts";
import { backoffAfter } from "../segment/backoff.ts";
import { MAX_LEAD_MS } from "./limits.ts";
import type { RenewedWorkerLease, WorkerLease, WorkerRenewal } from "./ports.ts";

/**
 * The lease of one worker id on the holder's side, as pure state: (state, event, time) → what to do. It knows no
 * registry and no clock. `holder.ts` is the shell.
 *
 * INVARIANTS
 * 1. At most one call to the registry is under way. Its answer is taken only under the number that it was sent with,
 *    and not after `end`.
 * 2. What is reserved is what an answer said, never what was asked for. The same holds for the extension.
 * 3. A token is presented again only while it is not known whether it was used up. The registry then either takes it
 *    for the first time or says that the lease is lost, and both are true.
 * 4. When the holder is told that the lease is lost, or that the tag may not issue, it makes nothing more under the
 *    lease. Whatever it does not learn, it stops at the end of its reservation.
 */
export interface LeaseState {
  readonly options: LeaseOptions;
  held: HeldLease | undefined;
  /** Why there is no lease, or why its reservation was not raised; undefined when all is well. */
  error: IdmintError | undefined;
  /** Number of the call under way. */
  inFlight: number | undefined;
  nextCall: number;
  /** When the next call is due, on the monotonic clock. */
  dueAt: number;
  failures: number;
  /** When the last call was sent. */
  sentAt: number;
  /** The time that ids had then, in milliseconds since 1970. */
  sentTimeMs: number;
  /**
   * By how much the last renewal reserves less than that. It is 0 before the first renewal, and negative when all is
   * well.
   */
  missingMs: number;
  shared: SharedName;
  ended: boolean;
}

export interface LeaseOptions {
  readonly tag: string;
  readonly instance: string;
  /** The tag's data center when undefined. */
  readonly dataCenter: number | undefined;
  /** How far ahead of use time is reserved, in milliseconds. */
  readonly reserveAheadMs: number;
  /** Epoch of the tag's record by which ids will be made; a lease of another one is not taken up. Default: any. */
  readonly epoch?: bigint | undefined;
  /** How often the lease is renewed, in milliseconds; at most a third of what is reserved ahead. */
  readonly renewEveryMs: number;
}

export interface HeldLease {
  readonly dataCenter: number;
  readonly workerId: number;
  readonly token: bigint;
  readonly extension: number;
  readonly reservedUntilMs: number;
}

export type LeaseEffect =
  /** Send this call, and report its answer under this number. */
  | { readonly type: "lease"; readonly call: number }
  | { readonly type: "renew"; readonly call: number; readonly renewal: WorkerRenewal }
  /** A new reservation: of a new lease, or of the next extension. */
  | {
      readonly type: "take-up";
      readonly lease: HeldLease;
      /** First millisecond reserved. */
      readonly notBeforeMs: number;
      /**
       * How far ahead of the registry's clock the lease begins, in milliseconds. It is 0 if no right clock can have
       * reserved so far ahead, since then the registry's clock went back.
       */
      readonly leadMs: number;
    }
  /** More of the same reservation. */
  | { readonly type: "extend"; readonly reservedUntilMs: number }
  /** No more ids may be made under the lease. */
  | { readonly type: "give-up"; readonly error: IdmintError }
  /** Another holder with the same name runs, so the two take the worker id from each other. */
  | { readonly type: "name-shared"; readonly workerId: number };

/** Shows whether two holders have one name: then a lease is taken before its end, and taken back, again and again. */
interface SharedName {
  /** When the registry last answered about the lease, and for how long that answer was good. */
  answeredAt: number;
  ttlMs: number;
  /** The lease that was lost before its end. */
  lost: (Pick<HeldLease, "dataCenter" | "workerId"> & { readonly epoch: bigint }) | undefined;
  epoch: bigint;
  /** When it was taken back, the last few times. */
  takenBackAt: readonly number[];
}

/** Most calls that are sent in the time of one renewal while somebody waits. */
const HURRIES_PER_RENEWAL = 10;
/**
 * More than once shows it: a single time may be a registry that lost its state, or an operator who released the lease.
 */
const TIMES_TAKEN_BACK = 2;
const SHARED_WITHIN_MS = 60_000;
/** How far the clocks of registries and servers differ without a fault. */
const LEAD_SLACK_MS = 1_000;

export function createLeaseState(options: LeaseOptions): LeaseState {
  return {
    options,
    held: undefined,
    error: undefined,
    inFlight: undefined,
    nextCall: 1,
    dueAt: -Infinity,
    failures: 0,
    sentAt: -Infinity,
    sentTimeMs: 0,
    missingMs: 0,
    shared: { answeredAt: -Infinity, ttlMs: 0, lost: undefined, epoch: 0n, takenBackAt: [] },
    ended: false,
  };
}

/** What a holder needs its next call to ask for. */
export interface LeaseDemand {
  /** The time of ids now, in milliseconds since 1970. The reservation is asked for ahead of it. */
  readonly timeMs: number;
  /** Whether the clock went back too far, so that a reservation of the next extension is wanted, ahead of `timeMs`. */
  readonly wantsExtension: boolean;
}

/** The call that is due, if any. */
export function callDue(state: LeaseState, now: number, demand: LeaseDemand): LeaseEffect[] {
  if (state.ended || state.inFlight !== undefined || now < state.dueAt) return [];
  const { held, options } = state;
  const call = state.nextCall++;
  state.inFlight = call;
  state.sentAt = now;
  state.sentTimeMs = demand.timeMs;
  if (held === undefined) return [{ type: "lease", call }];
  const { tag, reserveAheadMs } = options;
  const { dataCenter, workerId, token } = held;
  const extension = held.extension + (demand.wantsExtension ? 1 : 0);
  const reserveUntilMs = Math.ceil(demand.timeMs) + reserveAheadMs;
  const renewal: WorkerRenewal = {
    tag,
    dataCenter,
    workerId,
    token,
    extension,
    reserveUntilMs,
    reserveAheadMs,
  };
  return [{ type: "renew", call, renewal }];
}

/** Takes a lease that the registry answered. */
export function leased(
  state: LeaseState,
  call: number,
  lease: WorkerLease,
  now: number,
): LeaseEffect[] {
  if (!settle(state, call)) return [];
  const { dataCenter, workerId, token, extension, reservedUntilMs } = lease;
  const held = { dataCenter, workerId, token, extension, reservedUntilMs };
  const isShared = isTakenBack(state, lease, now);
  succeed(state, held, lease, now);
  state.missingMs = 0;
  const { notBeforeMs } = lease;
  const leadMs = leadOf(state.options, lease);
  const effects: LeaseEffect[] = [{ type: "take-up", lease: held, notBeforeMs, leadMs }];
  if (isShared) effects.push({ type: "name-shared", workerId });
  return effects;
}

/**
 * How far ahead a lease may begin. A registry that reserves time for a lease has allowed its lead, for example above a
 * floor. Quick restarts may use up all that is allowed. Then nothing is reserved until the clock has gone on, and that
 * is right.
 */
function leadOf({ reserveAheadMs }: LeaseOptions, lease: WorkerLease): number {
  const { notBeforeMs, reservedUntilMs, nowMs } = lease;
  const leadMs = Math.max(0, notBeforeMs - nowMs);
  const isAllowed = leadMs <= reserveAheadMs + MAX_LEAD_MS + LEAD_SLACK_MS;
  return isAllowed || reservedUntilMs >= notBeforeMs ? leadMs : 0;
}

/**
 * Whether somebody else must have this name: the lease was taken away before its end, and taken back under the same
 * name, too often. Nobody else can take a lease that has not ended. A new epoch ends all leases, so it shows nothing.
 */
function isTakenBack({ shared }: LeaseState, lease: WorkerLease, now: number): boolean {
  const { lost } = shared;
  shared.lost = undefined;
  const { dataCenter, workerId, epoch } = lease;
  if (lost?.dataCenter !== dataCenter || lost.workerId !== workerId || lost.epoch !== epoch) {
    return false;
  }
  const recent = shared.takenBackAt.filter((at) => now - at < SHARED_WITHIN_MS);
  const isShared = recent.length + 1 >= TIMES_TAKEN_BACK;
  shared.takenBackAt = isShared ? [] : [...recent, now];
  return isShared;
}

/** Takes a renewal that the registry answered. */
export function renewed(
  state: LeaseState,
  call: number,
  answer: RenewedWorkerLease,
  now: number,
): LeaseEffect[] {
  const { held } = state;
  if (!settle(state, call) || held === undefined) return [];
  const { token, extension, reservedUntilMs } = answer;
  const next = { ...held, token, extension, reservedUntilMs };
  succeed(state, next, answer, now);
  if (extension !== held.extension) {
    // No id was ever made of a new extension, so it begins wherever the clock is.
    return [{ type: "take-up", lease: next, notBeforeMs: 0, leadMs: 0 }];
  }
  return [{ type: "extend", reservedUntilMs }];
}

/** Takes the failure of a call, or that its outcome is not known. */
export function callFailed(
  state: LeaseState,
  call: number,
  error: IdmintError,
  now: number,
  random: Random,
): LeaseEffect[] {
  if (!settle(state, call)) return [];
  state.error = error;
  state.failures++;
  state.dueAt = now + backoffAfter(error, state.failures, random);
  if (error.retryable || error.code === "DEADLINE_EXCEEDED" || error.code === "CANCELLED")
    return [];
  // Invariant 4 does not apply: a registry that is overloaded or fails says nothing of the lease.
  const isBusy = error.reason === "OVERLOADED" || busyMs(error) !== undefined;
  if (state.held !== undefined && (isBusy || error.code === "INTERNAL")) return [];
  // The lease is lost. The first time, another one is asked for at once.
  if (error.reason === "WORKER_LEASE_LOST" && state.failures === 1) state.dueAt = now;
  const { shared, held } = state;
  const isEarly = now - shared.answeredAt < shared.ttlMs;
  if (error.reason === "WORKER_LEASE_LOST" && held !== undefined && isEarly) {
    shared.lost = { ...held, epoch: shared.epoch };
  }
  state.held = undefined;
  state.missingMs = 0;
  return [{ type: "give-up", error }];
}

/** Whoever makes ids under the lease may not. Nothing is told of a call that is under way. */
export function lose(state: LeaseState, error: IdmintError, now: number): LeaseEffect[] {
  if (state.held === undefined || state.inFlight !== undefined) return [];
  state.held = undefined;
  state.error = error;
  state.missingMs = 0;
  state.dueAt = now;
  return [{ type: "give-up", error }];
}

/**
 * Makes the next call due at once, since somebody waits for time to be reserved or for the next extension. It does not
 * after a failure, or soon after the last call.
 */
export function hurry(state: LeaseState, now: number): void {
  if (state.failures > 0) return;
  const earliest = state.sentAt + state.options.renewEveryMs / HURRIES_PER_RENEWAL;
  state.dueAt = Math.min(state.dueAt, Math.max(now, earliest));
}

/** Stops for good, and answers the lease that may be released. */
export function end(state: LeaseState): HeldLease | undefined {
  const { held, inFlight } = state;
  state.ended = true;
  state.held = undefined;
  state.inFlight = undefined;
  // While a call is under way, the token may be used up. The lease then ends by itself.
  return inFlight === undefined ? held : undefined;
}

/** Whether an answer may be taken: invariant 1. */
function settle(state: LeaseState, call: number): boolean {
  if (state.inFlight !== call) return false;
  state.inFlight = undefined;
  return true;
}

function succeed(
  state: LeaseState,
  held: HeldLease,
  { ttlMs, epoch }: Pick<RenewedWorkerLease, "ttlMs" | "epoch">,
  now: number,
): void {
  state.held = held;
  Object.assign(state.shared, { answeredAt: now, ttlMs, epoch });
  state.missingMs = state.sentTimeMs - held.reservedUntilMs;
  state.error = undefined;
  state.failures = 0;
  state.dueAt = now + state.options.renewEveryMs;
}

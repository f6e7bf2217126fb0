import { IdmintError, segmentNotReady, type Timers } from "@idmint/core";
import {
  type Grant,
  type Granted,
  type GrantedIds,
  type GrantRequest,
  type GrantStore,
  storeUnavailable,
  storeWentBack,
  type VersionGuard,
} from "@idmint/core/server";
import { overloaded, within } from "../call.ts";
import type { Counters } from "../counters.ts";
import type { Emit } from "../events.ts";
import { askApart } from "./apart.ts";
import {
  type Call,
  callEnded,
  createGrantsState,
  isAnswerTo,
  nextCall,
  takeQueued,
  want,
  type Wanted,
} from "./grants-state.ts";
import { type CallTrace, presentTrace, runFor } from "../trace.ts";
import { PeriodWatch } from "./period-watch.ts";
import { type OnBelow, type OnWentBack, refusalOf } from "./refusals.ts";

/** Calls of `store.grant` in flight at once to each part of the store: enough to keep a store busy, few enough to batch under load. */
const MAX_CALLS = 4;
/** Connections to each part of a store that does not say how many it has. */
const DEFAULT_CONNECTIONS = MAX_CALLS;
/** Loads that wait to be sent. A tag has one load in flight, so only large direct ones come on top. */
const MAX_QUEUED = 100_000;

export interface GrantsPorts {
  readonly store: GrantStore;
  readonly guard: VersionGuard;
  readonly timers: Timers;
  readonly storeTimeoutMs: number;
  /** Most connections to each part of the store; calls that wait for locks take at most half of them. Default: 4. */
  readonly storeConnections?: number;
  readonly counters: Counters;
  readonly emit: Emit;
  /** Runs a function after the current turn, so that loads which begin together are sent together. */
  readonly afterTurn: (run: () => void) => void;
  /** The store went back for this tag. */
  readonly onWentBack: OnWentBack;
  /** The tag's floor is below what was granted here before it was accepted. */
  readonly onBelow: OnBelow;
}

interface Pending {
  readonly resolve: (granted: Granted) => void;
  readonly reject: (error: IdmintError) => void;
  readonly trace: CallTrace | undefined;
}

/**
 * Gathers the loads of one turn into one statement, and checks every answer against the version guard.
 *
 * INVARIANT: what is answered here is used by nobody else and was not granted before: the call was answered in time, the
 * store's history is the one it was sent under, the version is above all that were seen when it was sent, and the ids are
 * above those of the same period that were granted here before, in whichever history.
 */
export class Grants {
  readonly #state;
  readonly #ports: GrantsPorts;
  readonly #pending = new Map<number, Pending>();
  readonly #periods: PeriodWatch;
  #nextId = 1;
  /** Counts the histories of the store: answers to calls of an earlier one are waste. */
  #history = 0;
  #flushes = false;

  constructor(ports: GrantsPorts) {
    this.#ports = ports;
    this.#periods = new PeriodWatch(ports.emit);
    const { maxBatch, groupOf } = ports.store;
    const connections = Math.min(MAX_CALLS, ports.storeConnections ?? DEFAULT_CONNECTIONS);
    const maxWaiting = Math.max(1, Math.floor(connections / 2));
    const limits = { maxBatch, maxCalls: MAX_CALLS, maxWaiting, maxQueued: MAX_QUEUED };
    this.#state = createGrantsState({ ...limits, groupOf });
  }

  /** One attempt to get ids; rejects with the refusals of the tag, or STORE_UNAVAILABLE when the outcome is unknown. */
  request(request: Omit<GrantRequest, "seenVersion">): Promise<Granted> {
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<Granted>();
    if (!want(this.#state, { id, request })) {
      reject(overloaded("too many tags load at once", { tag: request.tag }));
      return promise;
    }
    this.#pending.set(id, { resolve, reject, trace: presentTrace() });
    this.#flushAfterTurn();
    return promise;
  }

  /** Another history of the store began: what is queued is refused, what is in flight becomes waste. */
  startHistory(): void {
    this.#history++;
    for (const { id, request } of takeQueued(this.#state)) {
      this.#settle(id)?.reject(segmentNotReady(request.tag, 100));
    }
  }

  #flushAfterTurn(): void {
    if (this.#flushes) return;
    this.#flushes = true;
    this.#ports.afterTurn(() => {
      this.#flushes = false;
      this.#flush();
    });
  }

  #flush(): void {
    for (let call = nextCall(this.#state); call !== undefined; call = nextCall(this.#state)) {
      void this.#send(call);
    }
  }

  async #send(call: Call): Promise<void> {
    const { batch, skipLocked } = call;
    const { store, guard, storeTimeoutMs, timers, counters } = this.#ports;
    const history = this.#history;
    counters.grantCalls++;
    const requests = batch.map(({ request }) => ({
      ...request,
      seenVersion: guard.seen(request.tag),
    }));
    let locked: readonly Wanted[] = [];
    try {
      const ask = (): Promise<readonly Grant[]> =>
        runFor(this.#traceOf(batch), () =>
          askApart(
            requests,
            (some) => store.grant(some, skipLocked ? { skipLocked } : undefined),
            ({ tag }, error) => [unreadable(tag, error)],
          ),
        );
      const grants = await within(ask, storeTimeoutMs, timers, (late) =>
        this.#comeLate(requests, late, history),
      );
      if (history === this.#history) locked = this.#accept(call, requests, grants);
      else this.#discard(batch, grants);
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      for (const { id } of batch) this.#settle(id)?.reject(error);
    }
    callEnded(this.#state, call, locked);
    this.#flush();
  }

  /** Answers those that were locked: they go on waiting. */
  #accept(
    { batch, skipLocked }: Call,
    requests: readonly GrantRequest[],
    grants: readonly Grant[],
  ): readonly Wanted[] {
    const locked: Wanted[] = [];
    for (const [at, wanted] of batch.entries()) {
      const request = requests[at];
      const grant = grants[at];
      if (grant?.outcome === "locked" && grant.tag === request?.tag && skipLocked) {
        locked.push(wanted);
        continue;
      }
      const pending = this.#settle(wanted.id);
      if (request === undefined || pending === undefined) continue;
      if (grant === undefined || grant.outcome === "locked" || !isAnswerTo(request, grant)) {
        const { tag } = request;
        const cause = new Error(`an answer of the store that does not fit the request for ${tag}`);
        pending.reject(storeUnavailable("the store answered nonsense", cause));
      } else if (grant.outcome === "refused") {
        pending.reject(refusalOf(grant, this.#ports.onWentBack));
      } else {
        this.#admit(request, grant, pending);
      }
    }
    return locked;
  }

  #admit(request: GrantRequest, grant: Granted, pending: Pending): void {
    const { version, count } = grant;
    // The request's name is the one that the tag's entry holds already; the answer's would be kept beside it.
    const { tag } = request;
    const { guard } = this.#ports;
    const isAbove = guard.admitGrant(tag, request.seenVersion, grant);
    const ids = idsOf(grant);
    const verdict = isAbove ? guard.admitIds(tag, ids) : "again";
    if (verdict === "new") {
      this.#ports.counters.grants++;
      if (grant.period !== undefined) this.#periods.observe(tag, grant.period);
      // failpoint: grant-arrived
      pending.resolve(grant);
      return;
    }
    this.#ports.counters.wastedIds += count;
    if (verdict === "below") {
      this.#ports.onBelow(tag, ids);
      pending.reject(segmentNotReady(tag, 100));
      return;
    }
    const detail = isAbove
      ? `a grant begins at ${grant.base}, which is not above all ids granted to this server before`
      : wentBackText(version, request.seenVersion);
    this.#ports.onWentBack(tag, detail);
    pending.reject(storeWentBack(detail, tag));
  }

  #discard(batch: readonly Wanted[], grants: readonly Grant[]): void {
    this.#waste(grants);
    for (const { id, request } of batch) {
      this.#settle(id)?.reject(segmentNotReady(request.tag, 100));
    }
  }

  /** Nobody gets the ids any more, but what the answer says of the store still counts. */
  #comeLate(requests: readonly GrantRequest[], grants: readonly Grant[], history: number): void {
    this.#waste(grants);
    if (history !== this.#history) return;
    for (const [at, request] of requests.entries()) {
      const grant = grants[at];
      if (grant?.outcome !== "granted") continue;
      const { tag, version } = grant;
      if (this.#ports.guard.admitGrant(tag, request.seenVersion, grant)) continue;
      this.#ports.onWentBack(tag, wentBackText(version, request.seenVersion));
    }
  }

  #waste(grants: readonly Grant[]): void {
    for (const grant of grants) {
      if (grant.outcome !== "granted") continue;
      this.#ports.counters.wastedIds += grant.count;
      this.#ports.emit({ type: "late-grant", tag: grant.tag, count: grant.count });
    }
  }

  /** A statement is for several calls, and its span below one of them. */
  #traceOf(batch: readonly Wanted[]): CallTrace | undefined {
    for (const { id } of batch) {
      const trace = this.#pending.get(id)?.trace;
      if (trace !== undefined) return trace;
    }
    return undefined;
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }
}

function unreadable(tag: string, { reason, message }: IdmintError): Grant {
  const detail = message.slice(`${reason}: `.length);
  return { outcome: "refused", tag, reason: "SCHEMA_MISMATCH", detail };
}

function idsOf({ base, count, epoch, period }: Granted): GrantedIds {
  return { epoch, first: base, last: base + BigInt(count) - 1n, period: period?.start ?? "" };
}

function wentBackText(version: bigint, seen: bigint): string {
  return `a grant has version ${version}, and ${seen} was seen before`;
}

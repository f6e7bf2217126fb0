import type { Clock, Timers } from "@idmint/core";
import {
  admits,
  beganToWait,
  createOverloadState,
  createQuotaState,
  createWaitingState,
  endedToWait,
  giveBackIds,
  hasQuotas,
  isCrowded,
  lookAtCallers,
  mayWait,
  type OverloadState,
  type OverQuota,
  type QuotaOptions,
  type QuotaState,
  rolesOf,
  setServers,
  sweepQuotas,
  takeOfQuotas,
  turnEnded,
  type WaitingState,
} from "@idmint/core/server";
import type { CallContext } from "../call.ts";
import { countOne, type Counters } from "../counters.ts";
import type { Emit } from "../events.ts";
import { overloadError, QuotaErrors, waitingError } from "./errors.ts";
import { HeldRefusals } from "./held.ts";

/**
 * When a server is overloaded. docs/overload.md explains them. The calls are more than a connection may have in flight at
 * once, since these are bounded already.
 */
const OVERLOAD = { ageMs: 25, calls: 1_025, lastsMs: 500, turnMs: 5, calmMs: 250 };
/** Health follows an overload that has lasted so long. */
const HEALTH_AFTER_MS = 10_000;

export interface AdmissionOptions {
  readonly quotas: QuotaOptions;
  /** Of administrators. */
  readonly adminQuotas: QuotaOptions;
  /** Calls that may wait at once. */
  readonly maxWaiting: number;
}

export interface AdmissionPorts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly afterTurn: (run: () => void) => void;
  /** Time in which the event loop had nothing to do, since its start. */
  readonly idleMs: () => number;
  readonly counters: Counters;
  readonly emit: Emit;
}

/** Who calls, and how long an answer is of use. */
type Call = Pick<CallContext, "caller" | "deadline" | "signal">;
/** Quotas are of whoever a caller proves to be, wherever it calls from. */
type ChargedCall = Call & Pick<CallContext, "principal">;

/** What a call takes of quotas. */
export interface Cost {
  readonly tag: string;
  readonly ids: number;
}

/** What a call of an administrator takes of quotas. */
export interface AdminCost {
  readonly tagsMade: number;
  /** Whether it stops something that may be going wrong. */
  readonly isBrake: boolean;
}

const ADMIN = rolesOf("admin");

/**
 * Which calls are taken, whatever door they came through: the shell around core's admission/.
 *
 * A warm call of a server that is not overloaded and has no quotas costs a comparison here; nothing is asked of it.
 */
export class Admission {
  readonly #ports: AdmissionPorts;
  readonly #overload: OverloadState = createOverloadState(OVERLOAD);
  readonly #waiting: WaitingState;
  readonly #quotas: QuotaState;
  readonly #adminQuotas: QuotaState;
  readonly #quotaErrors = new QuotaErrors();
  readonly #held: HeldRefusals;
  readonly #tooManyWait: ReturnType<typeof waitingError>;
  /** Whether calls are counted against quotas. */
  readonly hasQuotas: boolean;
  #isTurnOpen = false;
  #isGuarding = false;
  #holding: ReadonlySet<string> = new Set();
  #turnAt: number;
  #idleAt: number;
  /** In the present overload, or the last one. */
  #refused = 0;
  #overloadedAt = 0;

  constructor(ports: AdmissionPorts, { quotas, adminQuotas, maxWaiting }: AdmissionOptions) {
    this.#ports = ports;
    this.#quotas = createQuotaState(quotas);
    this.#adminQuotas = createQuotaState(adminQuotas);
    this.#waiting = createWaitingState(maxWaiting);
    this.#held = new HeldRefusals(ports, () => this.#overload.costMs);
    this.#tooManyWait = waitingError(maxWaiting);
    this.hasQuotas = hasQuotas(this.#quotas);
    this.#turnAt = ports.clock.now();
    this.#idleAt = ports.idleMs();
  }

  /**
   * A call came; to be asked before anything else is done with it. Undefined: go on. Throws why it is refused, or answers a
   * promise that rejects with it when it is time to say so.
   */
  arrived(call: Call): Promise<never> | undefined {
    if (!this.#isTurnOpen) this.#openTurn();
    if (this.#isGuarding) return this.#guard(call);
    this.#overload.admitted++;
    return undefined;
  }

  /** Makes a call that counts, if the quotas allow it. Ids that it does not get do not count. */
  charged<T>(call: ChargedCall, { tag, ids }: Cost, work: () => T | Promise<T>): T | Promise<T> {
    const { clock } = this.#ports;
    const take = { caller: call.principal?.name ?? call.caller, tag, ids };
    const over = takeOfQuotas(this.#quotas, take, clock.now());
    if (over !== undefined) return this.#overQuota(call, over);
    const giveBack = (): void => giveBackIds(this.#quotas, take, clock.now());
    try {
      const answer = work();
      return answer instanceof Promise ? this.waits(call, answer, giveBack) : answer;
    } catch (thrown) {
      giveBack();
      throw thrown;
    }
  }

  /**
   * A call of an administrator came, which was found allowed. Undefined: go on; else a promise that rejects with why it is
   * refused. Whoever is an administrator of all tags has a quota only by name, and may always stop something. Strangers have
   * none, where they may do everything.
   */
  administers({ tagsMade, isBrake }: AdminCost, call: ChargedCall): Promise<never> | undefined {
    const { principal } = call;
    if (principal === undefined || !hasQuotas(this.#adminQuotas)) return undefined;
    const isOfAll = (principal.rights.under("") & ADMIN) !== 0;
    if (isOfAll && isBrake) return undefined;
    const take = { caller: principal.name, tag: "", ids: tagsMade, isByNameOnly: isOfAll };
    const over = takeOfQuotas(this.#adminQuotas, take, this.#ports.clock.now());
    return over === undefined ? undefined : this.#overQuota(call, over);
  }

  #overQuota(call: Call, over: OverQuota): Promise<never> {
    const { clock, counters } = this.#ports;
    counters.overQuotaCalls++;
    countOne(counters.quotaRefusals, over.quota);
    return this.#held.refuse(call, this.#quotaErrors.of(over, clock.now()));
  }

  /** A call that waits for its answer. */
  async waits<T>(call: Call, answer: Promise<T>, onRefused?: () => void): Promise<T> {
    const { caller } = call;
    beganToWait(this.#waiting, caller);
    this.#look();
    try {
      return await answer;
    } catch (thrown) {
      onRefused?.();
      throw thrown;
    } finally {
      endedToWait(this.#waiting, caller);
      this.#look();
    }
  }

  /** To be called about once a second. `servers`: those that are alive; undefined: not known at the moment. */
  check(servers: number | undefined): void {
    const now = this.#ports.clock.now();
    for (const quotas of [this.#quotas, this.#adminQuotas]) {
      if (servers !== undefined) setServers(quotas, servers);
      sweepQuotas(quotas, now);
    }
    this.#quotaErrors.forget();
    this.#changed(lookAtCallers(this.#overload, this.#held.shed), now);
  }

  /** Whether most callers have been refused something for so long that they are better off elsewhere. */
  get isLasting(): boolean {
    const { since, isWide } = this.#overload;
    return since !== undefined && isWide && this.#ports.clock.now() - since >= HEALTH_AFTER_MS;
  }

  /** Calls that wait for their answers. */
  get waitingCalls(): number {
    return this.#waiting.total;
  }

  get isOverloaded(): boolean {
    return this.#overload.since !== undefined;
  }

  /** Refuses what comes of these callers, and no others, and answers no refusal until it is told that there are none. */
  holdAll(callers: ReadonlySet<string>): void {
    this.#holding = callers;
    this.#held.isPaused = callers.size > 0;
    this.#look();
  }

  /** The connections of these callers, and of no others, are narrow from now on. */
  narrowed(callers: ReadonlySet<string>): void {
    this.#held.narrowed(callers);
  }

  /** Refusals that are held of each caller. */
  get held(): ReadonlyMap<string, number> {
    return this.#held.callers;
  }

  /** Refuses at once whoever is to be refused, from now on: the server stops. */
  stop(): void {
    this.#held.stop();
  }

  #guard(call: Call): Promise<never> | undefined {
    const { caller } = call;
    const { counters } = this.#ports;
    if (this.#holding.has(caller)) {
      counters.shedCalls++;
      return this.#held.refuse(call, overloadError());
    }
    if (this.#overload.since === undefined) this.#overload.admitted++;
    else if (!admits(this.#overload, caller)) {
      counters.shedCalls++;
      this.#refused++;
      return this.#held.refuse(call, overloadError());
    }
    if (mayWait(this.#waiting, caller)) return undefined;
    counters.shedCalls++;
    return this.#held.refuse(call, this.#tooManyWait);
  }

  #openTurn(): void {
    this.#isTurnOpen = true;
    this.#ports.afterTurn(() => this.#endTurn());
  }

  #endTurn(): void {
    this.#isTurnOpen = false;
    const now = this.#ports.clock.now();
    const idle = this.#ports.idleMs();
    const idleMs = idle - this.#idleAt;
    const busyMs = Math.max(0, now - this.#turnAt - idleMs);
    this.#turnAt = now;
    this.#idleAt = idle;
    const turn = { endedAt: now, busyMs, idleMs, held: this.#held.shed };
    this.#changed(turnEnded(this.#overload, turn), now);
  }

  #changed(change: "began" | "ended" | undefined, now: number): void {
    if (change === undefined) return;
    const { emit } = this.#ports;
    if (change === "began") {
      this.#refused = 0;
      this.#overloadedAt = now;
      emit({ type: "overloaded" });
    } else {
      emit({ type: "overload-over", afterMs: now - this.#overloadedAt, refused: this.#refused });
    }
    this.#look();
  }

  #look(): void {
    const isOverloaded = this.#overload.since !== undefined;
    this.#isGuarding = isOverloaded || isCrowded(this.#waiting) || this.#holding.size > 0;
  }
}

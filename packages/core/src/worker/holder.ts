import { IdmintError, segmentNotReady } from "../errors.ts";
import type { Clock, Random, Timers } from "../ports.ts";
import {
  callDue,
  callFailed,
  createLeaseState,
  end,
  hurry,
  leased,
  type LeaseDemand,
  type LeaseEffect,
  type LeaseOptions,
  type LeaseState,
  lose,
  renewed,
} from "./lease-state.ts";
import type { WorkerLeases } from "./ports.ts";

/** When a lease of the right epoch may be had, in milliseconds. */
const RETRY_AFTER_MS = 100;

/** What a holder needs of the outside world. */
export interface HolderPorts {
  /** Each call must settle in bounded time. */
  readonly registry: WorkerLeases;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
}

/** What happens to a lease, for those who make ids under it. */
export type LeaseChange = Exclude<LeaseEffect, { readonly type: "lease" | "renew" }>;

/** What is left of a lease; below 0 where it has run out. */
export interface LeaseLeft {
  readonly leaseMs: number;
  readonly reservedMs: number;
}

/** Makes ids under a lease. */
export interface LeaseUser {
  demand(): LeaseDemand;
  onChange(change: LeaseChange): void;
}

/**
 * Holds the lease of one worker id: leases it, renews it, and leases another when it was lost. The rules are in
 * `lease-state.ts`; this shell has the calls and one timer.
 */
export class WorkerHolder {
  readonly #state: LeaseState;
  readonly #ports: HolderPorts;
  readonly #user: LeaseUser;
  #cancelTimer: (() => void) | undefined;

  constructor(options: LeaseOptions, ports: HolderPorts, user: LeaseUser) {
    this.#state = createLeaseState(options);
    this.#ports = ports;
    this.#user = user;
  }

  /** Sends the call that is due, and continues by a timer. */
  run(): void {
    const state = this.#state;
    const now = this.#ports.clock.now();
    const effects = callDue(state, now, this.#user.demand());
    for (const effect of effects) this.#send(effect);
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (state.ended || state.inFlight !== undefined) return;
    this.#cancelTimer = this.#ports.timers.after(Math.max(0, state.dueAt - now), () => this.run());
  }

  /** Somebody waits for time to be reserved, or for the next extension. */
  hurry(): void {
    hurry(this.#state, this.#ports.clock.now());
    this.run();
  }

  /** Whoever uses the lease can make nothing under it: another one is leased. */
  lose(error: IdmintError): void {
    for (const effect of lose(this.#state, error, this.#ports.clock.now())) this.#send(effect);
    this.run();
  }

  /** Why there is no lease, or why its reservation was not raised; undefined when all is well. */
  get error(): IdmintError | undefined {
    return this.#state.error;
  }

  /**
   * By how many milliseconds the registry's last renewal falls short of the time that ids had when it was asked for. It
   * is 0 or less when all is well, and before the first renewal.
   */
  get missingMs(): number {
    return this.#state.missingMs;
  }

  /**
   * How long the lease goes on by itself, and how far ahead of `timeMs` time is reserved; in milliseconds, and undefined
   * while there is no lease.
   */
  left(timeMs: number): LeaseLeft | undefined {
    const { held, shared } = this.#state;
    if (held === undefined) return undefined;
    const leaseMs = shared.answeredAt + shared.ttlMs - this.#ports.clock.now();
    return { leaseMs, reservedMs: held.reservedUntilMs - timeMs };
  }

  /** Stops, and releases the lease if that is safe. If that fails, the worker id stays taken until its lease ends. */
  async close(): Promise<void> {
    const held = end(this.#state);
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (held === undefined) return;
    const { dataCenter, workerId, token } = held;
    const { tag } = this.#state.options;
    try {
      await this.#ports.registry.releaseWorker({ tag, dataCenter, workerId, token });
    } catch {
      // The lease ends by itself.
    }
  }

  #send(effect: LeaseEffect): void {
    if (effect.type === "lease") void this.#lease(effect.call);
    else if (effect.type === "renew") void this.#renew(effect);
    else this.#user.onChange(effect);
  }

  async #lease(call: number): Promise<void> {
    const { tag, instance, dataCenter, reserveAheadMs, epoch } = this.#state.options;
    const request = { tag, instance, dataCenter, reserveAheadMs, epoch };
    await this.#settle(call, async () => {
      const lease = await this.#ports.registry.leaseWorker(request);
      // One that was kept from an earlier life may be of another epoch, whatever was asked for.
      if (epoch !== undefined && lease.epoch !== epoch) throw segmentNotReady(tag, RETRY_AFTER_MS);
      return () => leased(this.#state, call, lease, this.#ports.clock.now());
    });
  }

  async #renew(effect: Extract<LeaseEffect, { type: "renew" }>): Promise<void> {
    const { call, renewal } = effect;
    await this.#settle(call, async () => {
      const answer = await this.#ports.registry.renewWorker(renewal);
      return () => renewed(this.#state, call, answer, this.#ports.clock.now());
    });
  }

  async #settle(call: number, send: () => Promise<() => LeaseEffect[]>): Promise<void> {
    let effects: LeaseEffect[];
    try {
      effects = (await send())();
    } catch (thrown) {
      const { clock, random } = this.#ports;
      const error = IdmintError.from(thrown);
      effects = callFailed(this.#state, call, error, clock.now(), random);
    }
    for (const effect of effects) this.#send(effect);
    this.run();
  }
}

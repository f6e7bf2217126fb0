import { answerBy, ANSWER_MARGIN_MS, type Call, cancelled, whenCancelled } from "../call.ts";
import { IdmintError } from "../errors.ts";
import type { BufferEvent } from "../events.ts";
import type { Clock, Timers } from "../ports.ts";
import {
  ask,
  closeBatch,
  type Committed,
  committed,
  commitFailed,
  createGroupCommitState,
  endCall,
  fenceCommits,
  type GroupCommitEffect,
  type GroupCommitOptions,
  type GroupCommitState,
  observeCommitEpoch,
  unanswered,
  unfenceCommits,
} from "./group-commit-state.ts";

/** The outside world of group commits; those of many tags may share one. */
export interface GroupCommitPorts<C extends Committed = Committed> {
  /**
   * One round trip: grants exactly `count` ids of a tag, all or none, above all that were granted when it began. Rejects
   * with IdmintError, and must settle in bounded time; what it may have granted when it rejects is never used.
   */
  readonly commit: (tag: string, count: number) => Promise<C>;
  /** Runs a function after the current turn, so that calls which come together are one batch. */
  readonly afterTurn: (run: () => void) => void;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onEvent?: (event: BufferEvent) => void;
}

interface Pending<C> {
  readonly resolve: (ids: C) => void;
  readonly reject: (error: IdmintError) => void;
  /** The wait ends then, on the clock. */
  readonly endAtMs: number;
  /** Undefined when nobody can cancel it. */
  readonly unwatch: (() => void) | undefined;
}

/** The one timer of all calls that wait: set for the earliest end, and off while nobody waits. */
interface Alarm {
  readonly atMs: number;
  readonly cancel: () => void;
}

/**
 * Issues strictly increasing ids of one tag, one round trip for all calls that came during the last one. The shell around
 * `group-commit-state.ts`, which has the rules and the invariants; here are only promises, timers and round trips.
 */
export class GroupCommit<C extends Committed = Committed> {
  readonly #state: GroupCommitState;
  readonly #ports: GroupCommitPorts<C>;
  readonly #pending = new Map<number, Pending<C>>();
  #alarm: Alarm | undefined;

  constructor(tag: string, options: GroupCommitOptions, ports: GroupCommitPorts<C>) {
    this.#state = createGroupCommitState(tag, options);
    this.#ports = ports;
  }

  /**
   * Exactly `count` ids that follow each other, larger than every id of the tag (in its period) that was answered before
   * this call, by whichever server. Rejects with the refusals of the tag, with STORE_UNAVAILABLE when its round trip
   * failed or did not end before the deadline, OVERLOADED when too many calls wait, CALL_CANCELLED.
   */
  take(count: number, call?: Call): Promise<C> {
    if (call?.signal?.aborted === true) return Promise.reject(cancelled(call.signal));
    const asked = ask(this.#state, count);
    const { promise, resolve, reject } = Promise.withResolvers<C>();
    const endAtMs = answerBy(this.#ports.clock.now(), call);
    const unwatch = whenCancelled(call?.signal, (error) => this.#give(asked.call, error));
    this.#pending.set(asked.call, { resolve, reject, endAtMs, unwatch });
    this.#wakeAt(endAtMs);
    this.#run(asked.effects);
    return promise;
  }

  /** Some answer told the tag's epoch: ids that are granted under lower ones are not used. */
  observeEpoch(epoch: bigint): void {
    observeCommitEpoch(this.#state, epoch);
  }

  /** Refuses everything with `error` until `unfence`. */
  fence(error: IdmintError): void {
    this.#run(fenceCommits(this.#state, error));
  }

  /** Issues again. */
  unfence(): void {
    unfenceCommits(this.#state);
  }

  /** Calls that wait. */
  get waiting(): number {
    return unanswered(this.#state);
  }

  /** A timer for each call would cost more than all else that a call of a large batch does here. */
  #wakeAt(atMs: number): void {
    if (this.#alarm !== undefined && this.#alarm.atMs <= atMs) return;
    this.#alarm?.cancel();
    const waitMs = Math.max(0, atMs - this.#ports.clock.now());
    this.#alarm = { atMs, cancel: this.#ports.timers.after(waitMs, () => this.#endOverdue()) };
  }

  /** Ends the waits whose time is over, shortly before their deadlines. */
  #endOverdue(): void {
    this.#alarm = undefined;
    const now = this.#ports.clock.now();
    let nextAtMs = Infinity;
    for (const [call, { endAtMs }] of this.#pending) {
      if (endAtMs <= now) this.#give(call, tooLate(this.#state.tag));
      else nextAtMs = Math.min(nextAtMs, endAtMs);
    }
    if (nextAtMs < Infinity) this.#wakeAt(nextAtMs);
  }

  /** Ends a wait from this side; the state may not answer it any more. */
  #give(call: number, error: IdmintError): void {
    if (endCall(this.#state, call)) this.#settle(call)?.reject(error);
  }

  #settle(call: number): Pending<C> | undefined {
    const pending = this.#pending.get(call);
    this.#pending.delete(call);
    pending?.unwatch?.();
    if (this.#pending.size === 0) {
      this.#alarm?.cancel();
      this.#alarm = undefined;
    }
    return pending;
  }

  #run(effects: readonly GroupCommitEffect<C>[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case "close-after-turn":
          this.#ports.afterTurn(() => this.#run(closeBatch(this.#state)));
          break;
        case "commit":
          void this.#commit(effect.token, effect.count);
          break;
        case "answer":
          this.#settle(effect.call)?.resolve(effect.ids);
          break;
        case "refuse":
          this.#settle(effect.call)?.reject(effect.error);
          break;
        case "wasted":
          this.#emit({ tag: this.#state.tag, ...effect });
          break;
      }
    }
  }

  async #commit(token: number, count: number): Promise<void> {
    try {
      const ids = await this.#ports.commit(this.#state.tag, count);
      if (ids.count !== count) throw new Error(`granted ${ids.count} ids for ${count}`);
      this.#run(committed(this.#state, token, ids));
    } catch (thrown) {
      this.#run(commitFailed(this.#state, token, IdmintError.from(thrown)));
    }
  }

  #emit(event: BufferEvent): void {
    try {
      this.#ports.onEvent?.(event);
    } catch {
      // A listener that throws must not cost its caller an id.
    }
  }
}

function tooLate(tag: string): IdmintError {
  return new IdmintError("STORE_UNAVAILABLE", `no id of tag "${tag}" became durable in time`, {
    metadata: { tag },
    retryAfterMs: ANSWER_MARGIN_MS,
  });
}

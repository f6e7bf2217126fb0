import { type Clock, IdmintError, type Timers } from "@idmint/core";
import {
  checkClock,
  clockOffsets,
  type ClockCheckState,
  createClockCheckState,
  type PeerSighting,
  sawPeers,
  sawStore,
  type Sighting,
  wantsPeers,
} from "@idmint/core/server";
import type { Emit } from "../events.ts";

/** The clocks of other servers. */
export interface PeerClocks {
  /** What those that answer in bounded time show; never rejects. */
  ask(): Promise<readonly PeerSighting[]>;
}

export interface ClockWatchPorts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly wallClock: () => number;
  readonly peers: PeerClocks;
  /** The store's clock as it was seen last. */
  readonly storeTime: () => Sighting | undefined;
  /** Whether this server makes ids by its clock. */
  readonly usesClock: () => boolean;
  /** Makes the server's own time durable, where it has a place for that; never rejects. */
  readonly report: () => Promise<void>;
  readonly emit: Emit;
}

export interface ClockWatchOptions {
  readonly maxOffsetMs: number;
  /** What an earlier life of this server reported last, milliseconds since 1970. */
  readonly reportedMs: number | undefined;
}

/** How often the clock is looked at, and the server's own time is reported; sooner while it is refused. */
const CHECK_EVERY_MS = 3_000;
const RECHECK_EVERY_MS = 500;

/** A tag that its policy refuses for the clock. */
interface RefusedTag {
  readonly since: number;
}

/**
 * Whether this server's clock is used for ids: the shell around core's clock-check-state.ts, and whatever tags are refused
 * for the clock by their own policies. A server that refuses for its clock takes itself out, if it makes ids by it.
 */
export class ClockWatch {
  readonly #ports: ClockWatchPorts;
  readonly #state: ClockCheckState;
  readonly #tags = new Map<string, RefusedTag>();
  #cancelTimer: (() => void) | undefined;
  #isStopped = false;

  constructor(ports: ClockWatchPorts, { maxOffsetMs, reportedMs }: ClockWatchOptions) {
    this.#ports = ports;
    this.#state = createClockCheckState(maxOffsetMs, reportedMs);
  }

  /** Fulfils after the first look; never rejects. Then it looks again by itself until `stop`. */
  async start(): Promise<void> {
    await this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  /** Whether callers should be sent elsewhere. */
  get isOut(): boolean {
    return (this.#state.refusal !== undefined && this.#ports.usesClock()) || this.#tags.size > 0;
  }

  /**
   * By how many milliseconds this server's clock is ahead of the store's, and of the mean of its peers'; undefined where
   * none was seen for a while.
   */
  get offsets(): { readonly store: number | undefined; readonly peers: number | undefined } {
    const { wallClock, clock } = this.#ports;
    return clockOffsets(this.#state, { wallMs: wallClock(), monotonicMs: clock.now() });
  }

  /** Why no id of a tag may be made by this server's clock; undefined when it may. */
  refusalOf(tag: string): IdmintError | undefined {
    const { refusal } = this.#state;
    if (refusal === undefined) return undefined;
    const { why, detail } = refusal;
    const driftMs = Math.round(refusal.driftMs);
    const metadata = { tag, drift_ms: String(why === "behind-report" ? -driftMs : driftMs) };
    if (why === "behind-report") {
      const text = `the clock of this server is ${-driftMs} ms behind the last time that it reported; no ids of tag "${tag}" are made until it has caught up`;
      return new IdmintError("CLOCK_MOVED_BACKWARDS", text, { metadata, retryAfterMs: -driftMs });
    }
    const text = `the clock of this server is not confirmed (${detail}), so it makes no ids of tag "${tag}"; ask another server`;
    const retryAfterMs = RECHECK_EVERY_MS;
    return new IdmintError("CLOCK_NOT_CONFIRMED", text, { metadata, retryAfterMs });
  }

  /** A tag was refused for the clock by its own policy, or, without an error, is not any more. */
  note(tag: string, error: IdmintError | undefined): void {
    const { clock, emit } = this.#ports;
    const refused = this.#tags.get(tag);
    if (error === undefined) {
      if (!this.#tags.delete(tag)) return;
      emit({ type: "clock-recovered", tag, afterMs: clock.now() - (refused?.since ?? 0) });
      return;
    }
    if (refused !== undefined) return;
    this.#tags.set(tag, { since: clock.now() });
    const driftMs = -Number(error.metadata["drift_ms"] ?? 0);
    emit({ type: "clock-refused", tag, why: "went-back", driftMs, detail: error.message });
  }

  async #look(): Promise<void> {
    const { peers, storeTime, clock, timers, wallClock, report, emit } = this.#ports;
    const state = this.#state;
    if (wantsPeers(state)) sawPeers(state, await peers.ask());
    const store = storeTime();
    if (store !== undefined) sawStore(state, store);
    const reading = { wallMs: wallClock(), monotonicMs: clock.now() };
    for (const effect of checkClock(state, reading)) {
      if (effect.type === "recovered") {
        emit({ type: "clock-recovered", tag: undefined, afterMs: effect.afterMs });
      } else {
        const { why, driftMs, detail } = effect.refusal;
        const rounded = Math.round(driftMs);
        emit({ type: "clock-refused", tag: undefined, why, driftMs: rounded, detail });
      }
    }
    const isRefused = state.refusal !== undefined;
    if (!isRefused) await report();
    if (this.#isStopped) return;
    const delayMs = isRefused ? RECHECK_EVERY_MS : CHECK_EVERY_MS;
    this.#cancelTimer = timers.after(delayMs, () => void this.#look());
  }
}

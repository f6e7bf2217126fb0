import { type Clock, IdmintError, MAX_ID, type Timers } from "@idmint/core";
import {
  type Acknowledged,
  type ChangeStore,
  type IssuingState,
  MAX_WATCHED,
  type Sighting,
  stoppedSince,
  type StoreChanges,
  type Tag,
  type VersionGuard,
} from "@idmint/core/server";
import { within } from "../call.ts";
import type { Counters } from "../counters.ts";
import type { Emit } from "../events.ts";
import type { NodeWatch } from "../node-watch.ts";
import type { Obeyed, Presence } from "../presence.ts";
import type { GrantRecord } from "./grant-record.ts";
import type { LateClaims } from "./late-claims.ts";
import type { OwnAccept } from "./own-accept.ts";
import type { Speaker } from "./speaker.ts";
import type { StoreWait } from "./store-wait.ts";
import {
  createPollState,
  type EarlierHistories,
  fenceOf,
  type KnownHistory,
  pollAnswered,
  type PollEffect,
  pollFailed,
  type PollState,
  resumeHistory,
} from "./poll-state.ts";

/** Changed tags one statement answers, and how many statements follow each other at once when there are more. */
const MAX_CHANGED = 1_000;
const MAX_PAGES = 20;
/** Polls that were given up and have not settled yet; a store that never settles them gets no more. */
const MAX_UNSETTLED = 4;
/** Time between polls while the store does not answer, or waits to be accepted, so that the end of that is noticed soon. */
const RETRY_MS = 250;
/** Least time between the beginnings of two polls, however often other servers tell of changes. */
const HASTE_MS = 50;

/** Who is told what polls show: the directory of this server's tags. */
interface Told {
  readonly history: number;
  apply(tags: readonly Tag[], history: number): Promise<void>;
  startHistory(): void;
  fenceAll(detail: string): void;
  unfenceAll(): void;
  fenceTag(name: string, detail: string): void;
  retryAll(): void;
  stopIssuing(sinceMs: number): void;
  resumeIssuing(): void;
  dropHeld(): void;
}

/** What is known of the store from earlier lives of this server, and what later ones shall know. */
export interface PollMemory {
  readonly known: EarlierHistories;
  /** The store's history is this one now; never rejects. */
  entered(incarnation: string): Promise<void>;
}

export interface PollPorts {
  readonly store: ChangeStore;
  /** Accepts a store that went back, if this server may. */
  readonly ownAccept: Pick<OwnAccept, "needed" | "over">;
  /** Says what this server was granted, when a poll shows that an accept asks. */
  readonly speaker: Pick<Speaker, "saw">;
  readonly directory: Told;
  readonly claims: Pick<LateClaims, "startHistory">;
  readonly guard: VersionGuard;
  readonly record: Pick<GrantRecord, "entered">;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly presence: Presence;
  readonly nodes: Pick<NodeWatch, "saw" | "sawTraffic" | "trafficRevision" | "wantsNodes">;
  /** Default: nothing is known of earlier lives of this server. */
  readonly memory?: PollMemory | undefined;
  /** Makes durable what a later life of this server would have to know of changes that were applied. */
  readonly saved: () => Promise<void>;
  readonly counters: Counters;
  readonly emit: Emit;
}

/** An answer, and what it says of this server's row. */
interface Asked {
  readonly changes: StoreChanges;
  readonly sentAt: number;
  readonly acknowledged: readonly Acknowledged[];
}

/** Longest wait for a poll that shows a new change. */
const REFRESH_MS = 1_500;
const NOTHING_OBEYED: Obeyed = { incarnation: "", revision: 0n };

/**
 * Asks the store every second what changed, and whether it is still the store it was. One statement, one poll at a
 * time; a poll that is given up is never used. Each carries a renewal of this server's row.
 *
 * INVARIANT: what a renewal says of obedience was applied to this server before it is sent, and made durable where a
 * later life of this server would go on from a record of its own.
 */
export class Poll {
  readonly #ports: PollPorts;
  readonly #state: PollState;
  readonly #cursor = { after: 0 };
  #unsettled = 0;
  #stopped = false;
  #cancelTimer: (() => void) | undefined;
  /** When the last poll began; undefined before the first one ended. */
  #startedAt: number | undefined;
  #isPolling = false;
  /** Whether a change was heard of that the last poll, or the one under way, may not have seen. */
  #isHastened = false;
  /** Whether the store, or a tag of it, was seen to have gone back in the present history. */
  #detected = false;
  #lost: IdmintError | undefined;
  #storeTime: Sighting | undefined;
  #obeyed = NOTHING_OBEYED;
  /** Those who wait for the end of a poll that has not begun yet. */
  readonly #refreshing: (() => void)[] = [];

  constructor(ports: PollPorts) {
    this.#ports = ports;
    this.#state = createPollState(MAX_ID, ports.memory?.known);
  }

  /**
   * The first poll, which learns where the store is; then the others follow. Rejects when it is not answered and
   * `storeWait` ends, unless it is known where the store was.
   */
  async start(known?: KnownHistory, storeWait?: StoreWait): Promise<void> {
    const { clock, intervalMs, emit } = this.#ports;
    const startedAt = clock.now();
    let asked: Asked;
    if (known !== undefined) this.#resume(known);
    try {
      const ask = (): Promise<Asked> => this.#ask();
      asked = await (known === undefined && storeWait !== undefined ? storeWait.of(ask) : ask());
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      if (known === undefined || !error.retryable) throw error;
      this.#lost = error;
      pollFailed(this.#state, clock.now());
      emit({ type: "store-lost", error });
      this.#startedAt = startedAt;
      this.#later(Math.min(RETRY_MS, intervalMs));
      return;
    }
    await this.#take(asked);
    this.#startedAt = startedAt;
    // The row is there now; what was changed before it was is known by a poll that is sent after it.
    await this.#once();
  }

  #resume(known: KnownHistory): void {
    resumeHistory(this.#state, known);
    const sinceMs = stoppedSince(known.issuing);
    if (sinceMs !== undefined) this.#ports.directory.stopIssuing(sinceMs);
  }

  /** Fulfils when a poll that began after this call has ended, or soon anyway. False: there are no polls any more. */
  async refresh(): Promise<boolean> {
    if (this.#stopped) return false;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#ports.timers.after(REFRESH_MS, resolve);
    this.#refreshing.push(resolve);
    this.hasten();
    await promise;
    cancel();
    return !this.#stopped;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
  }

  /** Another server changed something: the next poll need not wait for its time. Never more than one is in flight. */
  hasten(): void {
    if (this.#stopped || this.#isHastened || this.#startedAt === undefined) return;
    this.#isHastened = true;
    if (this.#isPolling || !this.reachable) return;
    this.#cancelTimer?.();
    this.#later(this.#startedAt + HASTE_MS - this.#ports.clock.now());
  }

  /** Whether the last poll was answered. */
  get reachable(): boolean {
    return this.#state.failingSince === undefined;
  }

  /** Why the last poll was not answered; undefined when it was. */
  get lost(): IdmintError | undefined {
    return this.reachable ? undefined : this.#lost;
  }

  /** Why nothing is granted, in words; empty when all is well. */
  get fenced(): string {
    return fenceOf(this.#state);
  }

  /** Why the store takes no writes though it answers, in words; empty: it takes them. */
  get refusesWrites(): string {
    return this.#state.refusesWrites;
  }

  /** The store's clock in its last answer. */
  get storeTime(): Sighting | undefined {
    return this.#storeTime;
  }

  /** The store's history; undefined before its first answer. */
  get incarnation(): string | undefined {
    return this.#state.present;
  }

  /** Whether servers are stopped, by database; another object when something has changed. */
  get issuing(): IssuingState {
    return this.#state.issuing;
  }

  /** A grant showed that the store went back. */
  noteWentBack(): void {
    this.#detected = true;
  }

  #later(delayMs: number): void {
    if (this.#stopped) return;
    this.#cancelTimer = this.#ports.timers.after(Math.max(0, delayMs), () => {
      void this.#once();
    });
  }

  async #once(): Promise<void> {
    const { clock, intervalMs, emit } = this.#ports;
    const startedAt = clock.now();
    const refreshing = this.#refreshing.splice(0);
    let isAnswered = true;
    this.#startedAt = startedAt;
    this.#isPolling = true;
    this.#isHastened = false;
    try {
      await this.#pages();
      this.#tellOwnAccept();
    } catch (thrown) {
      isAnswered = false;
      const error = IdmintError.from(thrown);
      this.#lost = error;
      const isLost = pollFailed(this.#state, clock.now()).length > 0;
      emit({ type: isLost ? "store-lost" : "poll-failed", error });
    }
    this.#isPolling = false;
    for (const resolve of refreshing) resolve();
    const elapsed = clock.now() - startedAt;
    const isWell = isAnswered && this.fenced === "";
    const everyMs = isWell ? intervalMs : Math.min(RETRY_MS, intervalMs);
    this.#later((isAnswered && this.#isHastened ? HASTE_MS : everyMs) - elapsed);
  }

  async #pages(): Promise<void> {
    for (let page = 0; page < MAX_PAGES && !this.#stopped; page++) {
      // A page depends on the one before.
      const asked = await this.#ask();
      if (this.#stopped) return;
      if (!(await this.#take(asked))) return;
    }
  }

  /** Obeys an answer. True: there is more to ask for at once. */
  async #take({ changes, sentAt, acknowledged }: Asked): Promise<boolean> {
    const { clock, presence, nodes, speaker, saved, memory, record, emit } = this.#ports;
    if (changes.isAccepted === true) emit({ type: "promotion-accepted" });
    const isTold = nodes.sawTraffic(changes.parts);
    const effects = pollAnswered(this.#state, changes, clock.now());
    const { present: incarnation = "", since } = this.#state;
    if (incarnation !== "") {
      record.entered(incarnation);
      await memory?.entered(incarnation);
    }
    await this.#run(effects);
    await saved();
    this.#obeyed = { incarnation, revision: since };
    if (effects.some((effect) => effect.type === "poll-again")) return true;
    presence.obeyed(acknowledged);
    // Somebody may wait to hear that this server has obeyed, which the next renewal says.
    if (isTold || effects.some(({ type }) => type === "changed")) this.#isHastened = true;
    nodes.saw(changes.parts, sentAt);
    speaker.saw(changes.parts.find(({ ask }) => ask !== undefined)?.ask);
    return acknowledged.some(({ isContinuous }) => !isContinuous);
  }

  async #ask(): Promise<Asked> {
    const { store, guard, clock, timers, timeoutMs, counters, presence, nodes } = this.#ports;
    if (this.#unsettled >= MAX_UNSETTLED) {
      throw new IdmintError("STORE_UNAVAILABLE", "earlier polls are not answered yet");
    }
    counters.polls++;
    const watched = [...guard.watch(MAX_WATCHED, this.#cursor)];
    this.#unsettled++;
    const sentAt = clock.now();
    const query = {
      since: this.#state.since,
      watched,
      limit: MAX_CHANGED,
      renewal: presence.renewal(this.#obeyed, nodes.trafficRevision),
      nodes: nodes.wantsNodes || presence.wantsNodes,
    };
    const changes = await within(
      async () => {
        try {
          return await store.changes(query);
        } finally {
          this.#unsettled--;
        }
      },
      timeoutMs,
      timers,
    );
    this.#storeTime = { timeMs: changes.nowMs, at: (sentAt + clock.now()) / 2 };
    return { changes, sentAt, acknowledged: presence.acknowledged(changes.parts, sentAt) };
  }

  async #run(effects: readonly PollEffect[]): Promise<void> {
    const { claims, directory, ownAccept, emit } = this.#ports;
    for (const effect of effects) {
      switch (effect.type) {
        case "changed":
          // Effects are in the order in which they must happen.
          await directory.apply(effect.tags, directory.history);
          break;
        case "new-history":
          this.#detected = false;
          ownAccept.over();
          directory.startHistory();
          claims.startHistory();
          emit({ type: "incarnation-changed", incarnation: effect.incarnation });
          break;
        case "stop-issuing":
          directory.stopIssuing(effect.sinceMs);
          emit({ type: "issuing-stopped", sinceMs: effect.sinceMs });
          break;
        case "drop-held":
          directory.dropHeld();
          break;
        case "resume-issuing":
          directory.resumeIssuing();
          emit({ type: "issuing-resumed" });
          break;
        case "fence-all":
          this.#detected = true;
          directory.fenceAll(effect.detail);
          break;
        case "unfence-all":
          directory.unfenceAll();
          break;
        case "fence-tags":
          this.#detected = true;
          for (const tag of effect.tags) {
            directory.fenceTag(tag, effect.detail);
          }
          break;
        case "refuse-tag":
          directory.fenceTag(effect.tag, effect.detail);
          break;
        case "store-back":
          emit(effect);
          directory.retryAll();
          break;
        case "store-warning":
        case "store-warning-over":
          emit(effect);
          break;
        case "store-lost":
        case "poll-again":
          break;
      }
    }
  }

  /** Where an operator stopped everything, the accept is left to an operator too: what went back may lack the stop. */
  #tellOwnAccept(): void {
    const { present, issuing } = this.#state;
    if (!this.#detected || this.#stopped || stoppedSince(issuing) !== undefined) return;
    this.#ports.ownAccept.needed(present);
  }
}

import { type Clock, IdmintError, type Segment, type Timers } from "@idmint/core";
import {
  batchFailed,
  batchStored,
  createLedgerState,
  type GiveBackRequest,
  type GrantStore,
  hasRows,
  type LedgerLimits,
  type LedgerState,
  type LedgerStore,
  nextBatch,
  note,
  type VersionGuard,
} from "@idmint/core/server";
import { within } from "./call.ts";
import type { Counters } from "./counters.ts";
import type { Emit } from "./events.ts";

/** Rows that wait for each database. */
const MAX_QUEUED = 20_000;
const FLUSH_EVERY_MS = 500;
/** Batches that one flush writes, so that a database that is slow gets its turns. */
const MAX_BATCHES = 20;

/** Sequences go on above those of an earlier process of the same name, which wrote fewer rows than this. */
const ROWS_A_MS = 1_000n;

/** A client that issues ids itself, as the ledger names it. */
export interface LedgerClient {
  /** What it calls itself. */
  readonly instance: string;
  /** Who it was proved to be; empty: nobody. */
  readonly principal: string;
}

export interface LedgerPorts {
  readonly store: LedgerStore & Pick<GrantStore, "groupOf">;
  readonly guard: Pick<VersionGuard, "seen">;
  readonly nodeId: string;
  readonly server: string;
  readonly limits: LedgerLimits;
  readonly storeTimeoutMs: number;
  readonly clock: Clock;
  readonly wallClock: () => number;
  readonly timers: Timers;
  readonly counters: Counters;
  readonly emit: Emit;
}

interface Release {
  readonly sequence: bigint;
  readonly settle: (isDurable: boolean) => void;
}

/** What goes to one database. */
interface Lane {
  readonly state: LedgerState;
  releases: Release[];
  flushing: Promise<void> | undefined;
  isFailing: boolean;
}

const NOBODY: LedgerClient = { instance: "", principal: "" };

/**
 * Writes down who was given which ids: the shell around core's ledger-state.ts. Rows wait in memory and are written within half a
 * second; nothing that is issued waits for them, but a release does.
 *
 * INVARIANT: from `start` to `stop`, while rows wait, a flush is due or under way. Without rows none is, so an idle server does not
 * wake up for its ledger.
 */
export class Ledger {
  readonly #ports: LedgerPorts;
  readonly #lanes = new Map<string, Lane>();
  /** Shared by all databases, since a tag may move from one to another. */
  readonly #count: { last: bigint };
  #cancelTimer: (() => void) | undefined;
  #isRunning = false;
  #isDue = false;

  constructor(ports: LedgerPorts) {
    this.#ports = ports;
    this.#count = { last: BigInt(Math.floor(ports.wallClock())) * ROWS_A_MS };
  }

  start(): void {
    this.#isRunning = true;
    this.#later();
  }

  /** The store granted ids to this server. */
  granted(tag: string, segment: Segment, version: bigint, epoch: bigint): void {
    const atMs = this.#ports.wallClock();
    this.#note({ entry: "grant", tag, segment, version, epoch, ...NOBODY, atMs });
  }

  /** A client was handed ids that it issues itself. */
  allocated(tag: string, segments: readonly Segment[], epoch: bigint, client: LedgerClient): void {
    const version = this.#ports.guard.seen(tag);
    const atMs = this.#ports.wallClock();
    const { instance, principal } = client;
    for (const segment of segments) {
      this.#note({ entry: "allocation", tag, segment, version, epoch, instance, principal, atMs });
    }
  }

  /**
   * A client gave ids back to this server. False: the ledger could not say so in time, so nobody may be handed them again.
   *
   * INVARIANT: true only after the rows are durable.
   */
  async released(tag: string, segments: readonly Segment[], epoch: bigint): Promise<boolean> {
    const lane = this.#laneOf(tag);
    const version = this.#ports.guard.seen(tag);
    const atMs = this.#ports.wallClock();
    for (const segment of segments) {
      const event = { entry: "release", tag, segment, version, epoch, ...NOBODY, atMs } as const;
      if (!note(lane.state, event)) return false;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { storeTimeoutMs, timers } = this.#ports;
    const stopTimer = timers.after(storeTimeoutMs, () => resolve(false));
    const settle = (isDurable: boolean): void => {
      stopTimer();
      resolve(isDurable);
    };
    lane.releases.push({ sequence: this.#count.last, settle });
    this.#later();
    void this.#flush(lane);
    return promise;
  }

  /** Who gives ids back to the store, for the row that the store writes. */
  get giver(): NonNullable<GiveBackRequest["giver"]> {
    const { nodeId, server, wallClock } = this.#ports;
    return { nodeId, server, atMs: wallClock() };
  }

  /** Writes what waits. Never rejects; what cannot be written goes on waiting. */
  async flush(): Promise<void> {
    await Promise.all([...this.#lanes.values()].map((lane) => this.#flush(lane)));
  }

  stop(): void {
    this.#isRunning = false;
    this.#cancelTimer?.();
  }

  /** Writes what waits for the last time. */
  async close(): Promise<void> {
    this.stop();
    await this.flush();
    await this.flush();
  }

  #note(event: Parameters<typeof note>[1]): void {
    const { counters, emit } = this.#ports;
    const lane = this.#laneOf(event.tag);
    this.#later();
    if (note(lane.state, event)) {
      counters.ledgerRows++;
      return;
    }
    counters.ledgerDropped++;
    const isFirst = !lane.isFailing;
    lane.isFailing = true;
    if (isFirst)
      emit({ type: "ledger-behind", queued: lane.state.queued.length, error: undefined });
  }

  #laneOf(tag: string): Lane {
    const group = this.#ports.store.groupOf?.(tag) ?? "";
    let lane = this.#lanes.get(group);
    if (lane === undefined) {
      const { nodeId, server } = this.#ports;
      const count = this.#count;
      const state = createLedgerState({ maxQueued: MAX_QUEUED, nodeId, server, count });
      lane = { state, releases: [], flushing: undefined, isFailing: false };
      this.#lanes.set(group, lane);
    }
    return lane;
  }

  #later(): void {
    if (!this.#isRunning || this.#isDue) return;
    this.#isDue = true;
    this.#cancelTimer = this.#ports.timers.after(FLUSH_EVERY_MS, () => void this.#turn());
  }

  async #turn(): Promise<void> {
    await this.flush();
    this.#isDue = false;
    if ([...this.#lanes.values()].some(({ state }) => hasRows(state))) this.#later();
  }

  /** One at a time for each database; who asks meanwhile waits for the one that runs. */
  #flush(lane: Lane): Promise<void> {
    lane.flushing ??= this.#write(lane).finally(() => {
      lane.flushing = undefined;
    });
    return lane.flushing;
  }

  async #write(lane: Lane): Promise<void> {
    const { store, limits, storeTimeoutMs, timers, wallClock } = this.#ports;
    // Releases of the same turn go along.
    await Promise.resolve();
    for (let batches = 0; batches < MAX_BATCHES; batches++) {
      const batch = nextBatch(lane.state, wallClock());
      const last = batch.at(-1);
      if (last === undefined) return;
      try {
        // Later rows may rest on these.
        await within(() => store.recordLedger(batch, limits), storeTimeoutMs, timers);
      } catch (thrown) {
        this.#failed(lane, IdmintError.from(thrown));
        return;
      }
      batchStored(lane.state);
      lane.isFailing = false;
      const isDone = ({ sequence }: Release): boolean => sequence <= last.sequence;
      const done = lane.releases.filter(isDone);
      lane.releases = lane.releases.filter((release) => !isDone(release));
      for (const { settle } of done) settle(true);
    }
  }

  /** Who waits for a release hears at once. The rows wait for another try, for as long as there is room. */
  #failed(lane: Lane, error: IdmintError): void {
    batchFailed(lane.state);
    const { releases } = lane;
    lane.releases = [];
    for (const { settle } of releases) settle(false);
    if (lane.isFailing) return;
    lane.isFailing = true;
    this.#ports.emit({ type: "ledger-behind", queued: lane.state.queued.length, error });
  }
}

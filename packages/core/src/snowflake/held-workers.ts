import { IdmintError } from "../errors.ts";
import type { SnowflakeKind } from "../kinds/snowflake.ts";
import {
  type HolderPorts,
  type LeaseChange,
  type LeaseLeft,
  WorkerHolder,
} from "../worker/holder.ts";
import type { LeaseDemand } from "../worker/lease-state.ts";
import { MAX_LEAD_MS } from "../worker/limits.ts";
import type { MadeSnowflakes } from "./generator-state.ts";
import { SnowflakeGenerator } from "./generator.ts";
import { createMadeTimes } from "./made-times.ts";

/** What happens to a snowflake tag, for listeners. A listener must not throw; one that does is ignored. */
export type SnowflakeEvent =
  | {
      readonly type: "worker-leased";
      readonly tag: string;
      readonly dataCenter: number;
      readonly workerId: number;
      readonly extension: number;
      /** How far ahead of the registry's clock its ids begin, in milliseconds. */
      readonly leadMs: number;
    }
  /** A lease ended before its time, or none could be had. */
  | { readonly type: "worker-lost"; readonly tag: string; readonly error: IdmintError }
  /** An alarm: the clock went back, and the tag's policy is applied. It comes at most once a second. */
  | {
      readonly type: "clock-back";
      readonly tag: string;
      readonly driftMs: number;
      /** Whether the policy refuses ids. Otherwise it goes on, or is about to. */
      readonly isRefused: boolean;
    }
  /**
   * Another process has the same name, so the two take the worker id from each other, and time with it. No id comes
   * twice.
   */
  | {
      readonly type: "name-shared";
      readonly tag: string;
      readonly instance: string;
      readonly workerId: number;
    }
  /** An alarm: the clock is past what the registry reserves by its own clock. It comes at most once a second. */
  | { readonly type: "clock-ahead"; readonly tag: string; readonly aheadMs: number };

export interface HeldWorkersOptions {
  readonly tag: string;
  readonly kind: SnowflakeKind;
  /** The stable name of the process that makes the ids. Its backups add `#1` to `#3` to it. */
  readonly instance: string;
  /** The tag's data center when undefined. */
  readonly dataCenter: number | undefined;
  /** See LeaseOptions. */
  readonly epoch?: bigint | undefined;
  /** How far ahead of use time is reserved, in milliseconds. */
  readonly reserveAheadMs: number;
  /** How far ahead the registry reserves, where something between keeps what it reserved. Default: reserveAheadMs. */
  readonly registryAheadMs?: number;
  /** What this process made, over all sources of ids. Default: nothing is known from before. */
  readonly made?: MadeSnowflakes | undefined;
}

export interface HeldWorkersPorts extends HolderPorts {
  /** Milliseconds since 1970. May go back and jump. */
  readonly wallClock: () => number;
  readonly onEvent?: (event: SnowflakeEvent) => void;
}

/** What to do when the active generator makes no id at this moment. */
export type Way =
  /** Another worker id took over, and may be asked at once. */
  | { readonly type: "again" }
  | { readonly type: "wait"; readonly ms: number; readonly why: string }
  | { readonly type: "refuse"; readonly error: IdmintError };

/** Most worker ids that are held beside the first one, with policy BACKUP_WORKER. */
const MAX_BACKUPS = 3;
/** When to look again while it is not known how long to wait. */
const LOOK_AGAIN_MS = 50;
const ALARM_EVERY_MS = 1_000;
const TOO_FAST = "it makes ids as fast as its layout allows, or the clock went back a little";
/** Renewals in the time of one reservation: two of them may fail before it ends. */
const RENEWALS_PER_RESERVATION = 3;

/** One worker id: its lease, and the generator of its ids. */
interface HeldWorker {
  readonly instance: string;
  readonly generator: SnowflakeGenerator;
  readonly holder: WorkerHolder;
  isLeased: boolean;
  extension: number;
}

/**
 * The worker ids that one process holds for a tag. One of them is active, and without backups there is only one. This
 * is also where the tag's policy is applied when the clock went back.
 *
 * INVARIANT: ids are made under the lease of the worker id whose generator makes them. No two leases share a worker id and a
 * reservation, so which worker id is active decides nothing about uniqueness.
 */
export class HeldWorkers {
  readonly #options: HeldWorkersOptions;
  readonly #ports: HeldWorkersPorts;
  readonly #onTime: () => void;
  readonly #workers: HeldWorker[] = [];
  readonly #made: MadeSnowflakes;
  #active: HeldWorker;
  #alarmedAt = -Infinity;

  /** `onTime` is called when time was reserved. */
  constructor(options: HeldWorkersOptions, ports: HeldWorkersPorts, onTime: () => void) {
    this.#options = options;
    this.#ports = ports;
    this.#onTime = onTime;
    this.#made = options.made ?? createMadeTimes();
    this.#active = this.#addWorker(options.instance);
  }

  /** Leases a worker id, and keeps it until `close`. */
  start(): void {
    this.#active.holder.run();
  }

  get active(): SnowflakeGenerator {
    return this.#active.generator;
  }

  /** What is left of the active worker id's lease. */
  get left(): LeaseLeft | undefined {
    return this.#active.holder.left(this.#ports.wallClock());
  }

  /** Looks again why the active generator makes nothing, and says what to do. */
  consider(): Way {
    const { generator, holder } = this.#active;
    generator.make(0);
    const { verdict } = generator;
    const { tag } = this.#options;
    if (verdict.type === "ready") return { type: "again" };
    if (verdict.type === "wait") return { type: "wait", ms: verdict.ms, why: TOO_FAST };
    if (verdict.type === "exhausted") return { type: "refuse", error: timestampExhausted(tag) };
    if (verdict.type === "clock-back") {
      const { driftMs } = verdict;
      const way = this.#onClockBack(driftMs);
      this.#alarm({ type: "clock-back", tag, driftMs, isRefused: way.type === "refuse" });
      return way;
    }
    let why = this.#whyUnreserved(this.#active);
    // A registry that has not answered says nothing about the clock.
    if (verdict.aheadMs > 0 && holder.missingMs > 0) {
      why = `the clock is ${Math.ceil(verdict.aheadMs)} ms ahead of the time that the registry reserves by its own clock`;
      this.#alarm({ type: "clock-ahead", tag, aheadMs: verdict.aheadMs });
    }
    if (holder.error !== undefined && isFinal(holder.error)) {
      return { type: "refuse", error: holder.error };
    }
    holder.hurry();
    return { type: "wait", ms: LOOK_AGAIN_MS, why };
  }

  #whyUnreserved({ generator, isLeased }: HeldWorker): string {
    const aheadMs = Math.ceil(generator.timeNow() - this.#ports.wallClock());
    if (!isLeased || aheadMs <= MAX_LEAD_MS) return "no time is reserved for its ids yet";
    return `its ids are ${aheadMs} ms ahead of the clock, and no more time is reserved until the clock has caught up`;
  }

  /** Why a call that cannot wait is refused. */
  refusal(way: Exclude<Way, { type: "again" }>): IdmintError {
    if (way.type === "refuse") return way.error;
    const { tag } = this.#options;
    const cause = this.#active.holder.error;
    return new IdmintError(
      "SEGMENT_NOT_READY",
      `no id of tag "${tag}" can be made now: ${way.why}`,
      {
        metadata: { tag },
        retryAfterMs: Math.max(1, Math.ceil(way.ms)),
        ...(cause === undefined ? {} : { cause }),
      },
    );
  }

  /** Makes nothing more, and releases the leases. */
  async close(): Promise<void> {
    for (const worker of this.#workers) worker.generator.giveUp();
    await Promise.all(this.#workers.map(async (worker) => worker.holder.close()));
  }

  /** What the tag's policy does about a clock that is `driftMs` behind. */
  #onClockBack(driftMs: number): Way {
    const { tag, kind } = this.#options;
    let way: Way | undefined;
    if (kind.clockPolicy === "BACKUP_WORKER") way = this.#changeWorker();
    if (kind.clockPolicy === "EXTENSION" && this.#hasNextExtension(this.#active)) {
      this.#active.holder.hurry();
      way = { type: "wait", ms: LOOK_AGAIN_MS, why: "its next extension is not saved yet" };
    }
    return way ?? { type: "refuse", error: clockMovedBackwards(tag, driftMs) };
  }

  /** Changes to a worker id whose time the clock has reached. When there is none, another backup is leased. */
  #changeWorker(): Way | undefined {
    let isAnyComing = false;
    for (const worker of this.#workers) {
      worker.generator.make(0);
      const { type } = worker.generator.verdict;
      if (type === "ready") {
        this.#active = worker;
        return { type: "again" };
      }
      const { error } = worker.holder;
      if (!worker.isLeased && (error === undefined || !isFinal(error))) isAnyComing = true;
    }
    if (!isAnyComing) {
      if (this.#workers.length > MAX_BACKUPS) return undefined;
      if (this.#workers.some((worker) => !worker.isLeased)) return undefined;
      this.#addWorker(`${this.#options.instance}#${this.#workers.length}`).holder.run();
    }
    return { type: "wait", ms: LOOK_AGAIN_MS, why: "its backup worker is not leased yet" };
  }

  #hasNextExtension(worker: HeldWorker): boolean {
    return worker.isLeased && worker.extension + 1 < 2 ** this.#options.kind.layout.extensionBits;
  }

  #addWorker(instance: string): HeldWorker {
    const { tag, kind, dataCenter, reserveAheadMs, epoch } = this.#options;
    const renewEveryMs = reserveAheadMs / RENEWALS_PER_RESERVATION;
    const lease = { tag, instance, dataCenter, reserveAheadMs, epoch, renewEveryMs };
    const worker: HeldWorker = {
      instance,
      generator: new SnowflakeGenerator({ ...kind, tag }, this.#made, this.#ports),
      holder: new WorkerHolder(lease, this.#ports, {
        demand: () => this.#demand(worker),
        onChange: (change) => this.#change(worker, change),
      }),
      isLeased: false,
      extension: 0,
    };
    this.#workers.push(worker);
    return worker;
  }

  #demand(worker: HeldWorker): LeaseDemand {
    const timeMs = worker.generator.timeNow();
    if (this.#options.kind.clockPolicy !== "EXTENSION" || !this.#hasNextExtension(worker)) {
      return { timeMs, wantsExtension: false };
    }
    worker.generator.make(0);
    const wantsExtension = worker.generator.verdict.type === "clock-back";
    return { timeMs: wantsExtension ? this.#ports.wallClock() : timeMs, wantsExtension };
  }

  #change(worker: HeldWorker, change: LeaseChange): void {
    const { tag, reserveAheadMs, registryAheadMs = reserveAheadMs } = this.#options;
    switch (change.type) {
      case "take-up": {
        const { dataCenter, workerId, extension } = change.lease;
        worker.isLeased = true;
        worker.extension = extension;
        const reservation = { ...change.lease, notBeforeMs: change.notBeforeMs };
        const { leadMs } = change;
        worker.generator.takeUp(reservation, Math.max(registryAheadMs, leadMs) + MAX_LEAD_MS);
        this.#emit({ type: "worker-leased", tag, dataCenter, workerId, extension, leadMs });
        break;
      }
      case "name-shared":
        this.#emit({
          type: "name-shared",
          tag,
          instance: worker.instance,
          workerId: change.workerId,
        });
        return;
      case "extend":
        if (worker.generator.extend(change.reservedUntilMs)) break;
        // The next lease begins above whatever the registry has reserved by then.
        worker.holder.lose(takenOver(tag));
        return;
      case "give-up":
        worker.isLeased = false;
        worker.generator.giveUp();
        this.#emit({ type: "worker-lost", tag, error: change.error });
        break;
    }
    this.#onTime();
  }

  #alarm(event: SnowflakeEvent): void {
    const now = this.#ports.clock.now();
    if (now - this.#alarmedAt < ALARM_EVERY_MS) return;
    this.#alarmedAt = now;
    this.#emit(event);
  }

  #emit(event: SnowflakeEvent): void {
    try {
      this.#ports.onEvent?.(event);
    } catch {
      // A listener that throws must not cost its caller an id.
    }
  }
}

/** Whether waiting does not help. A lost lease is not final, since another one is leased at once. */
function isFinal(error: IdmintError): boolean {
  return !error.retryable && error.code !== "ABORTED" && error.code !== "DEADLINE_EXCEEDED";
}

function takenOver(tag: string): IdmintError {
  const text = `another lease of the same worker id of tag "${tag}" was used in this process, so where worker ids are kept went back; a worker id is leased again`;
  return new IdmintError("WORKER_LEASE_LOST", text, { metadata: { tag } });
}

function clockMovedBackwards(tag: string, driftMs: number): IdmintError {
  const ms = Math.ceil(driftMs);
  const text = `the clock is ${ms} ms behind the time already used in ids of tag "${tag}"; no ids are made until it has caught up`;
  return new IdmintError("CLOCK_MOVED_BACKWARDS", text, {
    metadata: { tag, drift_ms: String(ms) },
    retryAfterMs: ms,
  });
}

function timestampExhausted(tag: string): IdmintError {
  const text = `the time bits of tag "${tag}" are used up, or the clock is that far ahead; make a tag with a later time_origin`;
  return new IdmintError("TIMESTAMP_EXHAUSTED", text, { metadata: { tag } });
}

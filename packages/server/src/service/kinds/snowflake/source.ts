import {
  assertNoViolations,
  type Clock,
  countViolation,
  IdmintError,
  idsPerSecond,
  type LeaseLeft,
  type MadeSnowflakes,
  type Random,
  type Segment,
  segmentNotReady,
  type SnowflakeEvent,
  SnowflakeSource,
  type Timers,
} from "@idmint/core";
import { comesFrom, asKind, type SnowflakeKind } from "@idmint/core/kinds";
import type { Tag, WorkerRegistry } from "@idmint/core/server";
import type { Patience } from "../../call.ts";
import type { KeptRegistry } from "../../worker-ids/lease-keeper.ts";
import type { TagSource, TakenIds } from "../source.ts";

/** The registry that has the workers of a tag; each call settles in bounded time. */
export interface TagRegistry extends WorkerRegistry {
  /** A newer record of the tag was seen. */
  update?(tag: Tag): void;
}

export interface SnowflakeSourceOptions {
  /** Stable name of this server, or process, among all that lease worker ids. */
  readonly instance: string;
  /** Of tags whose ids have one. Undefined: that of the tag. */
  readonly dataCenter: number | undefined;
  readonly reserveAheadMs: number;
  /** The same where leases are kept, for the registry. */
  readonly registryAheadMs: number;
  readonly maxWaiters: number;
}

/** What judges the clock that ids are made by. */
interface ClockJudge {
  /** Why no id of a tag may be made by it; undefined when it may. */
  refusalOf(tag: string): IdmintError | undefined;
  /** A tag was refused for the clock, or, without an error, is not any more. */
  note(tag: string, error: IdmintError | undefined): void;
}

export interface SnowflakeSourcePorts {
  /** Where the tag has its workers. */
  readonly registry: TagRegistry;
  /** What stands between it and this server's own leases; undefined: nothing. */
  readonly keeper: KeptRegistry | undefined;
  /** What this server made, over all sources. */
  readonly made: MadeSnowflakes;
  readonly judge: ClockJudge;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly wallClock: () => number;
  readonly onEvent: (event: SnowflakeEvent) => void;
}

/** When a tag whose lease ended with an epoch can be asked again. */
const RETRY_AFTER_MS = 100;

/**
 * The ids of one snowflake tag on this server: made in memory, under a lease that begins with the first call.
 *
 * INVARIANTS
 * - Ids are made only while nothing fences the tag, by the newest record seen and under a lease of that record's epoch: a
 *   higher epoch, and every fence, ends the lease at once; a registry in which the tag is in another epoch leases nothing.
 * - What is reserved for a lease that ended is never used again here: the next one starts above it.
 */
export class SnowflakeTagSource implements TagSource {
  readonly #name: string;
  readonly #options: SnowflakeSourceOptions;
  readonly #ports: SnowflakeSourcePorts;
  #kind: SnowflakeKind;
  #epoch = 0n;
  /** Under the lease of now; undefined until the first call, and after its end. */
  #maker: SnowflakeSource | undefined;
  #refusal: IdmintError | undefined;
  #isDrained = false;
  #waiting = 0;
  #isRefusedForClock = false;
  /** Leases that are being released, which takes bounded time. */
  readonly #closing = new Set<Promise<void>>();

  constructor(
    { name, kind, epoch }: Tag,
    options: SnowflakeSourceOptions,
    ports: SnowflakeSourcePorts,
  ) {
    this.#name = name;
    this.#kind = asKind(kind, "snowflake");
    this.#epoch = epoch;
    this.#options = options;
    this.#ports = ports;
  }

  async take(count: number, call: Patience): Promise<TakenIds> {
    const most = Math.max(1, idsPerSecond(this.#kind.layout));
    const wayOut = "a worker makes no more in a second; send several calls";
    assertNoViolations(countViolation("count", count, most, wayOut));
    const refusal = this.#refusal ?? this.#ports.judge.refusalOf(this.#name);
    if (refusal !== undefined) throw refusal;
    this.#maker ??= this.#start();
    const maker = this.#maker;
    try {
      const taken = maker.take(count, call);
      const segments = taken instanceof Promise ? await this.#wait(maker, taken) : taken;
      return { segments, epoch: this.#epoch, period: undefined };
    } catch (error) {
      if (isForClock(error)) this.#noteClock(error);
      throw error;
    }
  }

  async #wait(
    maker: SnowflakeSource,
    taken: Promise<readonly Segment[]>,
  ): Promise<readonly Segment[]> {
    this.#waiting++;
    try {
      const segments = await taken;
      // They were made in a turn before this one, and their lease may have ended since.
      if (maker === this.#maker) return segments;
      throw this.#refusal ?? segmentNotReady(this.#name, RETRY_AFTER_MS);
    } finally {
      this.#waiting--;
    }
  }

  /** For those who make ids of the tag themselves. */
  get registry(): WorkerRegistry {
    return this.#ports.registry;
  }

  /** Of the newest record seen. */
  get epoch(): bigint {
    return this.#epoch;
  }

  update(tag: Tag): void {
    const { kind } = tag;
    if (!comesFrom(kind, "lease")) return;
    this.#ports.registry.update?.(tag);
    this.#ports.keeper?.update(tag);
    const isChanged = SETTINGS.some((setting) => kind[setting] !== this.#kind[setting]);
    const isOther = isChanged || JSON.stringify(kind.layout) !== JSON.stringify(this.#kind.layout);
    this.#kind = kind;
    if (isOther) this.#end(segmentNotReady(this.#name, RETRY_AFTER_MS));
  }

  observeEpoch(epoch: bigint): void {
    if (epoch <= this.#epoch) return;
    this.#epoch = epoch;
    this.#end(segmentNotReady(this.#name, RETRY_AFTER_MS));
  }

  fence(error: IdmintError): void {
    if (this.#isDrained) return;
    this.#refusal = error;
    this.#end(error);
  }

  unfence(): void {
    if (!this.#isDrained) this.#refusal = undefined;
  }

  /** A holder tries again by itself, and hurries when somebody waits. */
  retryNow(): void {}

  /** Whether a clock that the tag was refused for has caught up, when nobody asks any more. */
  sample(): void {
    if (this.#isRefusedForClock && !isForClock(this.#maker?.refusal())) this.#noteClock(undefined);
  }

  get waiting(): number {
    return this.#waiting;
  }

  get leaseLeft(): LeaseLeft | undefined {
    return this.#maker?.left;
  }

  /** None are made ahead. */
  get ready(): number {
    return 0;
  }

  async drain(refusal: IdmintError): Promise<number> {
    this.#isDrained = true;
    this.#refusal = refusal;
    this.#end(refusal);
    await Promise.all(this.#closing);
    return 0;
  }

  #start(): SnowflakeSource {
    const { registry, keeper, made, judge: _, ...ports } = this.#ports;
    const hasDataCenter = this.#kind.layout.dataCenterBits > 0;
    const dataCenter = hasDataCenter ? this.#options.dataCenter : undefined;
    const maker = new SnowflakeSource(
      { ...this.#options, tag: this.#name, kind: this.#kind, dataCenter, epoch: this.#epoch, made },
      { ...ports, registry: keeper ?? registry },
    );
    maker.start();
    return maker;
  }

  #noteClock(error: IdmintError | undefined): void {
    this.#isRefusedForClock = error !== undefined;
    this.#ports.judge.note(this.#name, error);
  }

  #end(refusal: IdmintError): void {
    if (this.#isRefusedForClock) this.#noteClock(undefined);
    const maker = this.#maker;
    if (maker === undefined) return;
    this.#maker = undefined;
    const closing = maker.close(refusal).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

function isForClock(error: unknown): error is IdmintError {
  return error instanceof IdmintError && error.reason === "CLOCK_MOVED_BACKWARDS";
}

/** Settings, beside the layout, that a maker is made with. */
const SETTINGS = ["dataCenter", "clockPolicy", "clockWaitMs", "registry", "redisServer"] as const;

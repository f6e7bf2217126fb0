import {
  ANSWER_MARGIN_MS,
  type Call,
  IdmintError,
  type Segment,
  type SnowflakeEvent,
  type SnowflakeKind,
  SnowflakeSource,
} from "@idmint/core";
import type { PeriodId } from "./api.ts";
import { Idleness } from "./idleness.ts";
import type { KindIds } from "./kind-ids.ts";
import { hasNoNames, hasNoPeriods } from "./kinds.ts";
import type { LeaseCalls } from "./leases.ts";
import type { TagContext } from "./tag.ts";

/** Refusals of a lease after which the tag may come back as another one. */
const IN_DOUBT: ReadonlySet<IdmintError["reason"]> = new Set(["TAG_NOT_FOUND", "WRONG_KIND"]);

interface LeasedTag {
  readonly tag: string;
  readonly kind: SnowflakeKind;
  readonly leases: LeaseCalls;
  /** Told when the tag may have become another one. */
  readonly onDoubt: () => void;
}

/**
 * The ids of a tag of kind snowflake: made in this process by core's generator, under a worker id that core's holder
 * leases, renews ahead of use, and leases anew when it was lost. Between two answers of the registry nothing but the
 * reservation is relied on: when it cannot be extended, calls wait, and synchronous ones are refused.
 */
export class LeasedIds implements KindIds {
  readonly kind = "snowflake";
  readonly #tag: string;
  readonly #context: TagContext;
  readonly #source: SnowflakeSource;
  readonly #idleness: Idleness;

  constructor({ tag, kind, leases, onDoubt }: LeasedTag, context: TagContext) {
    this.#tag = tag;
    this.#context = context;
    this.#idleness = new Idleness(context.clock);
    const { instance, dataCenter, reserveAheadMs } = context.worker;
    const { maxWaiters } = context.buffer;
    const onEvent = (event: SnowflakeEvent): void => {
      context.emit(event);
      if (event.type === "worker-lost" && IN_DOUBT.has(event.error.reason)) onDoubt();
    };
    const { clock, random } = context.ports;
    this.#source = new SnowflakeSource(
      { tag, kind, instance, dataCenter, reserveAheadMs, maxWaiters },
      {
        registry: leases,
        clock,
        // What keeps a lease is no reason for a process to stay; a call that waits is, see `take`.
        timers: context.quietTimers,
        random,
        wallClock: context.wallClock,
        onEvent,
      },
    );
    this.#source.start();
  }

  now(): bigint | undefined {
    this.#idleness.use();
    return this.#source.tryNext();
  }

  async next(call: Call): Promise<bigint> {
    const [first] = await this.take(1, call);
    if (first === undefined) throw new IdmintError("INTERNAL", "an answer without an id");
    return first.base;
  }

  async nextText(call: Call, name: string | undefined): Promise<string> {
    if (name !== undefined) throw hasNoNames(this.#tag);
    return String(await this.next(call));
  }

  async nextNumber(call: Call): Promise<number> {
    this.#idleness.use();
    // It refuses a layout whose ids are no numbers, before one is made.
    const id = this.#source.tryNextNumber();
    return id >= 0 ? id : Number(await this.next(call));
  }

  async nextPeriodId(): Promise<PeriodId> {
    throw hasNoPeriods(this.#tag, this.kind);
  }

  async take(count: number, call: Call): Promise<readonly Segment[]> {
    this.#idleness.use();
    const made = this.#source.take(count, call);
    if (!(made instanceof Promise)) return made;
    const { clock, timers } = this.#context.ports;
    // It keeps the process alive, and ends with the call.
    const leftMs = Math.max(0, (call.deadline ?? clock.now()) - clock.now());
    const release = timers.after(leftMs + ANSWER_MARGIN_MS, () => {});
    try {
      return await made;
    } finally {
      release();
    }
  }

  /** That an id can be made is known when one was; it is a gap. */
  async warm(call: Call): Promise<void> {
    this.#idleness.keep();
    await this.take(1, call);
  }

  nextSync(): bigint {
    this.#idleness.keep();
    const id = this.#source.tryNext();
    if (id === undefined) throw this.#refusal();
    return id;
  }

  nextTextSync(): string {
    return String(this.nextSync());
  }

  nextNumberSync(): number {
    this.#idleness.keep();
    const id = this.#source.tryNextNumber();
    if (id < 0) throw this.#refusal();
    return id;
  }

  idleMs(): number {
    return this.#idleness.measure();
  }

  resume(): boolean {
    return false;
  }

  forget(): void {
    const text = `tag "${this.#tag}" may have changed; the SDK looks it up again`;
    void this.close(new IdmintError("WRONG_KIND", text, { metadata: { tag: this.#tag } }));
  }

  close(error: IdmintError): Promise<void> {
    return this.#source.close(error);
  }

  #refusal(): IdmintError {
    const now = "an id can be made now; ask again";
    return this.#source.refusal() ?? new IdmintError("SEGMENT_NOT_READY", now, { retryAfterMs: 1 });
  }
}

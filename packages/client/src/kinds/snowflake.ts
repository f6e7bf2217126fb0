import {
  ANSWER_MARGIN_MS,
  type Call,
  IdmintError,
  type Segment,
  type SnowflakeEvent,
  SnowflakeSource,
} from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import type { PeriodId } from "../api.ts";
import { Idleness } from "../idleness.ts";
import type { TagContext } from "../tag-context.ts";
import type { IdSource, IdSourceRequest } from "./id-source.ts";
import { hasNoNames, hasNoPeriods } from "./refusals.ts";
import { LeaseCalls } from "./snowflake-leases.ts";

/** Refusals of a lease after which the tag may come back with other settings. */
const IN_DOUBT: ReadonlySet<IdmintError["reason"]> = new Set(["TAG_NOT_FOUND", "WRONG_KIND"]);

/** The ids of a tag of kind snowflake that are numbers. Rejects when no worker id is free. */
export async function snowflakeIds(
  { tag, route, onDoubt, isWanted }: IdSourceRequest,
  context: TagContext,
): Promise<IdSource | undefined> {
  const leases = new LeaseCalls(context.endpoints, route);
  const kind = await leases.begin({ tag, ...context.worker });
  if (isWanted()) return new SnowflakeIds({ tag, kind, leases, onDoubt }, context);
  // It ends by itself when this does not arrive.
  await leases.abandon(tag).catch(() => undefined);
  return undefined;
}

interface SnowflakeTag {
  readonly tag: string;
  readonly kind: SnowflakeKind;
  readonly leases: LeaseCalls;
  /** Called when the tag may have other settings now. */
  readonly onDoubt: () => void;
}

/**
 * The ids of a tag of kind snowflake. Core's generator makes them in this process, under a worker id. Core's holder leases
 * the worker id, renews the lease before it is needed, and leases again after it lost the lease. Between two answers of the
 * registry only the reservation counts: when it cannot be extended, calls wait and synchronous calls are refused.
 */
class SnowflakeIds implements IdSource {
  readonly kind = "snowflake";
  readonly #tag: string;
  readonly #context: TagContext;
  readonly #source: SnowflakeSource;
  readonly #idleness: Idleness;

  constructor({ tag, kind, leases, onDoubt }: SnowflakeTag, context: TagContext) {
    this.#tag = tag;
    this.#context = context;
    this.#idleness = new Idleness(context.clock);
    const { instance, dataCenter, reserveAheadMs } = context.worker;
    const { maxWaiters } = context.buffer;
    const onEvent = (event: SnowflakeEvent): void => {
      context.emit(event);
      if (event.type === "worker-lost" && IN_DOUBT.has(event.error.reason)) onDoubt();
    };
    const { made, ports } = context;
    const { clock, random } = ports;
    this.#source = new SnowflakeSource(
      { tag, kind, instance, dataCenter, reserveAheadMs, maxWaiters, made },
      {
        registry: leases,
        clock,
        // Keeping a lease does not keep the process alive; a waiting call does, see `take`.
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
    // It refuses a layout whose ids do not fit a number before it makes one.
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

  /** Making an id is the only way to know that one can be made; that id is a gap. */
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

  expire(): void {
    // What it may make is bounded by what was reserved for it.
  }

  close(error: IdmintError): Promise<void> {
    return this.#source.close(error);
  }

  #refusal(): IdmintError {
    const now = "an id can be made now; ask again";
    return this.#source.refusal() ?? new IdmintError("SEGMENT_NOT_READY", now, { retryAfterMs: 1 });
  }
}

import {
  type BufferOptions,
  type BufferPorts,
  type Clock,
  type IdmintError,
  type Load,
  type LoadRequest,
  type Random,
  type Segment,
  SegmentBuffer,
  type Timers,
} from "@idmint/core";
import { comesFrom } from "@idmint/core/kinds";
import type { Tag } from "@idmint/core/server";
import type { Patience } from "../../call.ts";
import type { TicketFleet } from "../../tickets/fleet.ts";
import { TicketSlots } from "../../tickets/slots.ts";
import type { TagOf } from "../kind.ts";
import type { TagSource, TakenIds } from "../source.ts";

/** Ids of one load unless it is known that more are needed. */
const MIN_LOAD = 20;
const MAX_LOAD = 100_000;
/** A load lasts as long as this at the peak rate, so that a database is asked a few times a second at most. */
const HOLD_FOR_MS = 1_000;
/** Ids that nobody asked for in this time are a gap: later they would be old. */
const IDLE_MS = 5_000;

export interface TicketSourcePorts {
  readonly fleet: TicketFleet;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly onEvent: NonNullable<BufferPorts<undefined>["onEvent"]>;
}

/**
 * The ids of one ticket tag: a small buffer over its databases, so that calls share loads and the next load is under way
 * while the last one is used.
 *
 * INVARIANT: a load is of the epoch, above the floor and below the ceiling of the newest record that was seen when it
 * began. An operator's advance raises the epoch with the floor, so what was loaded under the old floor is dropped.
 */
export class TicketSource implements TagSource {
  readonly #slots: TicketSlots;
  readonly #buffer: SegmentBuffer<undefined>;
  readonly #clock: Clock;
  #tag: TagOf<"ticket">;

  constructor(
    tag: TagOf<"ticket">,
    options: Pick<BufferOptions, "prefetchShare" | "maxWaiters">,
    ports: TicketSourcePorts,
  ) {
    this.#tag = tag;
    const { slotsId, slots } = tag.kind;
    this.#slots = new TicketSlots(slotsId, slots, ports);
    const { clock, timers, random, onEvent } = ports;
    this.#clock = clock;
    const sizes = { min: MIN_LOAD, max: MAX_LOAD, holdForMs: HOLD_FOR_MS, ordered: false };
    this.#buffer = new SegmentBuffer(
      tag.name,
      { ...sizes, ...options },
      {
        load: (request) => this.#load(request),
        clock,
        timers,
        random,
        onEvent,
      },
    );
  }

  /** In the order of their first ids: those of several slots interleave. */
  async take(count: number, call: Patience): Promise<TakenIds> {
    const segments = await this.#buffer.take(count, call);
    const ascending = segments.toSorted((a, b) => (a.base < b.base ? -1 : 1));
    return { segments: ascending, epoch: this.#buffer.epoch, period: undefined };
  }

  update(tag: Tag): void {
    if (comesFrom(tag.kind, "tickets")) this.#tag = { ...tag, kind: tag.kind };
  }

  observeEpoch(epoch: bigint): void {
    this.#buffer.observeEpoch(epoch);
  }

  fence(error: IdmintError): void {
    this.#buffer.fence(error);
  }

  unfence(): void {
    this.#buffer.unfence();
  }

  /** It is the store that came back, which has no part in this; databases that were away are asked in their time. */
  retryNow(): void {}

  sample(): void {
    this.#buffer.sample();
  }

  get waiting(): number {
    return this.#buffer.waiting;
  }

  get ready(): number {
    return this.#buffer.ready;
  }

  drain(error: IdmintError): number {
    const held = this.#buffer.ready;
    this.#buffer.drain(error);
    return held;
  }

  async #load({ count }: LoadRequest): Promise<Load<undefined>> {
    const { epoch, floor, ceiling } = this.#tag;
    const segments: readonly Segment[] = await this.#slots.load({ count, above: floor, ceiling });
    const expiresAt = this.#clock.now() + IDLE_MS;
    return { segments, epoch, receipt: undefined, expiresAt };
  }
}

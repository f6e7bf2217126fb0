import {
  type Committed,
  COUNTERS_PER_MS,
  type CountingPlace,
  firstAbove,
  floorToReserve,
  IdmintError,
  isEnding,
  lifeEndMs,
  limitOf,
  MAX_AHEAD_MS,
  type Position,
  type SnowflakeIssued,
  type SnowflakeLayout,
  type TimedDoubt,
} from "@idmint/core";
import { RedisAgreement } from "./redis-agreement.ts";
import { RedisRaise } from "./redis-raise.ts";
import type { RedisSourcePorts } from "./redis-sequence.ts";

/** Extensions one round trip waits for: the first may be overtaken by time, or by another server's. */
const MAX_EXTENSIONS = 3;
const RETRY_AFTER_MS = 200;

/** What a source takes of the tag's record. */
export interface RedisSnowflakeTag extends CountingPlace {
  readonly name: string;
  readonly layout: SnowflakeLayout;
  readonly ceiling: bigint;
  readonly epoch: bigint;
}

type Answer = Exclude<SnowflakeIssued, TimedDoubt>;

/**
 * Positions of one tag of kind redis_snowflake, counted by Redis and its clock. One `commit` at a time, from the group
 * commit above; callers make ids of positions.
 *
 * INVARIANT: a position is issued only within the reservation that the RDBMS has for the generation Redis counts under,
 * so a Redis that lost its state, or whose clock went back, repeats nothing: the next generation begins above it.
 */
export class RedisSnowflakeSource {
  #tag: RedisSnowflakeTag;
  /** The position after the last one that was answered to this server. */
  #seen: Position = 0;
  /** Redis' clock at its last answer. */
  #nowMs = 0;
  readonly #agreement: RedisAgreement<number, Answer>;
  readonly #raise: RedisRaise;

  constructor(tag: RedisSnowflakeTag, ports: RedisSourcePorts) {
    this.#tag = tag;
    this.#raise = new RedisRaise(tag.name, ports);
    const { name } = tag;
    this.#agreement = new RedisAgreement<number, Answer>(name, tag, {
      ...ports,
      ask: async (shard, generation, count) => {
        const seen = this.#seen;
        const answer = await shard.snowflakes.issue({ tag: name, generation, count, seen });
        this.#nowMs = answer.nowMs;
        return answer;
      },
      raise: () => {
        const atLeast = this.#floorToReserve();
        return ports.raises.raise({ tag: name, by: 0n, atLeast, newGeneration: true });
      },
      readPlace: () => ports.readPlace(name),
      seed: (shard, { generation, before, floor }, instead) => {
        const { layout } = this.#tag;
        const first = firstAbove(layout, before);
        const limitMs = limitOf(layout, floor);
        return shard.snowflakes.seed({ tag: name, generation, first, limitMs, instead });
      },
    });
  }

  /** A newer record of the tag was seen. */
  update(tag: RedisSnowflakeTag): void {
    this.#tag = tag;
    this.#agreement.update(tag);
  }

  /** Makes Redis ready for the tag, and issues nothing. */
  async prepare(): Promise<void> {
    await this.#agreement.ask(0);
  }

  /** One round trip: `count` positions that follow each other, all or none; `base` is the first. */
  async commit(count: number): Promise<Committed> {
    const { epoch } = this.#tag;
    for (let extensions = 0; ; extensions++) {
      const answer = await this.#agreement.ask(count);
      if (answer.status === "ahead") throw this.#ahead(answer.aheadMs);
      if (answer.status === "issued") {
        const { first, limitMs, nowMs } = answer;
        if (first + count > this.#seen) this.#seen = first + count;
        if (isEnding(limitMs, nowMs)) void this.#extend().catch(ignore);
        return { base: BigInt(first), count, epoch, period: undefined };
      }
      if (extensions >= MAX_EXTENSIONS) throw this.#notReserved(undefined);
      try {
        await this.#extend();
      } catch (thrown) {
        const error = IdmintError.from(thrown);
        throw error.retryable ? this.#notReserved(error) : error;
      }
    }
  }

  async #extend(): Promise<void> {
    const { layout } = this.#tag;
    const { shard } = this.#agreement.place;
    await this.#raise.reservation(shard, this.#floorToReserve(), (floor) => limitOf(layout, floor));
  }

  #floorToReserve(): bigint {
    const { name, layout, ceiling } = this.#tag;
    const floor = floorToReserve(layout, this.#nowMs);
    if (floor !== undefined) return floor < ceiling ? floor : ceiling;
    const end = new Date(lifeEndMs(layout.timeOriginMs)).toISOString();
    throw new IdmintError(
      "TIMESTAMP_EXHAUSTED",
      `tag "${name}" has no time left in its ids since ${end}; make a tag with a later time_origin`,
      { metadata: { tag: name } },
    );
  }

  #ahead(aheadMs: number): IdmintError {
    const { name } = this.#tag;
    const waitMs = Math.max(1, aheadMs - MAX_AHEAD_MS);
    return new IdmintError(
      "CLOCK_MOVED_BACKWARDS",
      `the next ids of tag "${name}" would be ${aheadMs} ms ahead of the clock of Redis, and ${MAX_AHEAD_MS} ms are allowed: it was set back or started anew, or more than ${COUNTERS_PER_MS} ids a millisecond are asked for`,
      { metadata: { tag: name, drift_ms: String(aheadMs) }, retryAfterMs: waitMs },
    );
  }

  #notReserved(cause: IdmintError | undefined): IdmintError {
    const { name } = this.#tag;
    return new IdmintError(
      "MAX_NOT_RAISED",
      `tag "${name}" has used up the time that is reserved for it, and the store has not reserved more yet`,
      { metadata: { tag: name }, retryAfterMs: RETRY_AFTER_MS, cause },
    );
  }
}

/** The next call tries again. */
function ignore(): void {}

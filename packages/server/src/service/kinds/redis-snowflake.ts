import { type Committed, IdmintError, type Segment, segmentOf } from "@idmint/core";
import {
  composeId,
  COUNTERS_PER_MS,
  lifeEndMs,
  MAX_AHEAD_MS,
  MAX_SNOWFLAKE_COUNT,
  type Position,
  type RedisSnowflakeLayout,
  runsOf,
  asKind,
} from "@idmint/core/kinds";
import {
  firstAbove,
  floorToReserve,
  isEnding,
  limitOf,
  type SnowflakeIssued,
  type Tag,
  type TimedDoubt,
} from "@idmint/core/server";
import { RedisAgreement } from "../redis/agreement.ts";
import type { RedisCounterPorts } from "../redis/counter-ports.ts";
import { inEpoch, placeOf } from "../redis/place.ts";
import { RedisRaise } from "../redis/raise.ts";
import type { Counter } from "./grouped-source.ts";

/** Extensions one round trip waits for: the first may be overtaken by time, or by another server's. */
const MAX_EXTENSIONS = 3;
const RETRY_AFTER_MS = 200;

/** What is used of the tag's record. */
interface Settings {
  readonly layout: RedisSnowflakeLayout;
  readonly ceiling: bigint;
  readonly epoch: bigint;
}

type Answer = Exclude<SnowflakeIssued, TimedDoubt>;

/**
 * Positions of one tag of kind redis_snowflake, counted by Redis and its clock. One `commit` at a time, from the group
 * commit above; callers make ids of positions.
 *
 * INVARIANTS
 * 1. A position is issued only within the reservation that the RDBMS has for the generation Redis counts under, so a Redis
 *    that lost its state, or whose clock went back, repeats nothing: the next generation begins above it.
 * 2. Ids are made by the layout that the tag's row has. A generation is learned only together with the row's epoch, and
 *    another layout is of another epoch; the raise before a generation's start makes the layout immutable.
 */
export class RedisSnowflakeCounter implements Counter {
  /** Most ids of one round trip. */
  readonly maxCount: number = MAX_SNOWFLAKE_COUNT;
  readonly #name: string;
  #settings: Settings;
  /** The position after the last one that was answered to this server. */
  #seen: Position = 0;
  /** Redis' clock at its last answer. */
  #nowMs = 0;
  readonly #agreement: RedisAgreement<number, Answer>;
  readonly #raise: RedisRaise;

  constructor(tag: Tag, ports: RedisCounterPorts) {
    const { name } = tag;
    this.#name = name;
    this.#settings = settingsFrom(tag);
    const { raises, readPlace } = inEpoch(ports, () => this.#settings.epoch);
    const heard = (generation: bigint): void => this.#agreement.heard(generation);
    this.#raise = new RedisRaise(name, { ...ports, raises, readPlace, heard });
    this.#agreement = new RedisAgreement<number, Answer>(name, placeOf(tag), {
      ...ports,
      isOrdered: false,
      ask: async (redisServer, generation, count, mark) => {
        const seen = Math.max(this.#seen, Number(mark));
        const answer = await redisServer.snowflakes.issue({ tag: name, generation, count, seen });
        if (answer.status === "issued" && count > 0) {
          ports.marks.note({ tag: name, generation, mark: BigInt(answer.first + count) });
        }
        this.#nowMs = answer.nowMs;
        return answer;
      },
      raise: async (_count, generationFrom) => {
        // A floor of another layout's ids may be one that is never reached.
        await readPlace(name);
        const atLeast = this.#floorToReserve();
        return raises.raise({
          tag: name,
          by: 0n,
          atLeast,
          newGeneration: true,
          generationFrom,
        });
      },
      readPlace: () => readPlace(name),
      seed: (redisServer, { generation, before, floor }, doubt) => {
        const { layout } = this.#settings;
        const first = firstAbove(layout, before);
        const limitMs = limitOf(layout, floor);
        return redisServer.snowflakes.seed({ tag: name, generation, first, limitMs, doubt });
      },
    });
  }

  /** A newer record of the tag was seen. */
  update(tag: Tag): void {
    this.#settings = settingsFrom(tag);
    this.#agreement.update(placeOf(tag));
  }

  /** The ids of positions: consecutive within a millisecond. */
  segmentsOf({ base, count }: Committed): readonly Segment[] {
    const { layout } = this.#settings;
    return runsOf(Number(base), count).map((run) =>
      segmentOf(composeId(layout, run.atMs, run.counter), run.count),
    );
  }

  /** Makes Redis ready for the tag, and issues nothing. */
  async prepare(): Promise<void> {
    await this.#agreement.ask(0);
  }

  /** One round trip: `count` positions that follow each other, all or none; `base` is the first. */
  async commit(count: number): Promise<Committed> {
    const { epoch } = this.#settings;
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
    const { layout } = this.#settings;
    const { redisServer } = this.#agreement.place;
    await this.#raise.limit(redisServer, this.#floorToReserve(), (floor) => limitOf(layout, floor));
  }

  #floorToReserve(): bigint {
    const { layout, ceiling } = this.#settings;
    const floor = floorToReserve(layout, this.#nowMs);
    if (floor !== undefined) return floor < ceiling ? floor : ceiling;
    const end = new Date(lifeEndMs(layout.timeOriginMs)).toISOString();
    throw new IdmintError(
      "TIMESTAMP_EXHAUSTED",
      `tag "${this.#name}" has had no time bits left since ${end}; make a tag with a later time_origin`,
      { metadata: { tag: this.#name } },
    );
  }

  #ahead(aheadMs: number): IdmintError {
    const name = this.#name;
    const waitMs = Math.max(1, aheadMs - MAX_AHEAD_MS);
    return new IdmintError(
      "CLOCK_MOVED_BACKWARDS",
      `the next ids of tag "${name}" would be ${aheadMs} ms ahead of the clock of Redis, and ${MAX_AHEAD_MS} ms are allowed: it was set back or started anew, or more than ${COUNTERS_PER_MS} ids a millisecond are asked for`,
      { metadata: { tag: name, drift_ms: String(aheadMs) }, retryAfterMs: waitMs },
    );
  }

  #notReserved(cause: IdmintError | undefined): IdmintError {
    const name = this.#name;
    return new IdmintError(
      "MAX_NOT_RAISED",
      `tag "${name}" has used up its reserved time, and the store has not yet reserved more`,
      { metadata: { tag: name }, retryAfterMs: RETRY_AFTER_MS, cause },
    );
  }
}

/** The next call tries again. */
function ignore(): void {}

function settingsFrom({ kind, ceiling, epoch }: Tag): Settings {
  return { layout: asKind(kind, "redis_snowflake"), ceiling, epoch };
}

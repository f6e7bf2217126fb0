import type { Refused } from "./grants.ts";

/** A wish to raise the durable bound of a tag that counts in Redis. */
export interface RaiseRequest {
  readonly tag: string;
  /** How far the floor shall rise; 0n with `atLeast`. */
  readonly by: bigint;
  /** The floor shall be at least this afterwards. 0n: no such wish. */
  readonly atLeast: bigint;
  /**
   * Redis is to be given a new start: the generation rises by one too, so that no other server is given the same one.
   */
  readonly newGeneration: boolean;
  /**
   * With `newGeneration`: it shall be at least this, so that it is none that Redis may know from elsewhere, such as a
   * history of the store that was lost. Default: 0n.
   */
  readonly generationFrom?: bigint;
  /** As in GrantRequest. */
  readonly seenVersion: bigint;
}

/** A raised bound, durable before this answer. The ids (before, floor] belong to the tag's Redis and to nobody else. */
export interface Raised {
  readonly outcome: "raised";
  readonly tag: string;
  readonly before: bigint;
  /** Never above the ceiling. */
  readonly floor: bigint;
  readonly generation: bigint;
  readonly version: bigint;
  readonly epoch: bigint;
}

/** Keeps the bounds of tags that count in Redis. */
export interface RaiseStore {
  /**
   * floor := min(ceiling, max(floor + by, atLeast)), version + 1, and generation + 1 if wished, in one transaction with
   * the guards of `grant`. TAG_EXHAUSTED when the floor is the ceiling already; WRONG_KIND for tags that do not count in
   * Redis.
   */
  raise(request: RaiseRequest): Promise<Raised | Refused>;
}

/** A tag that counts in Redis, under one generation. */
export interface MarkedGeneration {
  readonly tag: string;
  readonly generation: bigint;
}

/**
 * How far a tag had counted in Redis under a generation, as somebody was answered: the last id of a sequence, the position
 * after the last of a redis_snowflake, the number of changes of a registry of workers.
 */
export interface RedisMark extends MarkedGeneration {
  readonly mark: bigint;
}

/** Remembers marks for all servers, so that each knows what the others were answered. */
export interface MarkStore {
  /**
   * Keeps each of `risen` where none of its generation is kept, or a lower one. Answers what is kept of those `asked` for
   * and of higher generations of the same tags, with or without what is risen now. Of each tag the eight highest generations
   * are kept. One round trip; neither revision nor version changes. At most 1,000 of each, and no tag twice.
   */
  exchangeMarks(
    risen: readonly RedisMark[],
    asked: readonly MarkedGeneration[],
  ): Promise<readonly RedisMark[]>;
}

/** How the ids of a tag are ordered in time; design words, see docs/guarantees.md. */
export type Order = "UNORDERED" | "PER_CLIENT" | "STRICT";

/** Settings of a tag of kind segment, defaults filled in. */
export interface SegmentKind {
  readonly kind: "segment";
  /** First id; 1 … ceiling. */
  readonly start: bigint;
  /** Fewest ids a server takes from the store at once; 1 … max. */
  readonly min: number;
  /** Most ids a server takes from the store at once; min … 1,000,000,000. */
  readonly max: number;
  /** How long a server's segment shall last at the peak rate, in milliseconds; 1,000 … 86,400,000. */
  readonly holdForMs: number;
  /** How long an SDK may keep a segment, in milliseconds; 1,000 … 86,400,000. */
  readonly maxAgeMs: number;
}

/** How often a sequence starts again from 1. */
export type PeriodUnit = "DAY" | "WEEK" | "MONTH" | "YEAR";

/** Periods of a sequence that restarts. */
export interface Periods {
  readonly unit: PeriodUnit;
  /** A name of the IANA database. */
  readonly timeZone: string;
  /** How long the last ids of ended periods are kept, in milliseconds; 1 … 3,650 days. */
  readonly keepForMs: number;
}

/** Settings of a tag of kind sequence, defaults filled in. */
export interface SequenceKind {
  readonly kind: "sequence";
  /** First id; 1 … ceiling, 1 with periods. */
  readonly start: bigint;
  /** Undefined: it never restarts. Always so in Redis. */
  readonly periods: Periods | undefined;
  /** Undefined: it counts in the store. */
  readonly redis: RedisPlace | undefined;
}

/** Where and how a sequence counts in Redis. */
export interface RedisPlace {
  /** Name of the Redis shard. */
  readonly shard: string;
  /** Fewest ids by which the maximum is raised; 1 … 1,000,000,000. */
  readonly step: number;
}

/** Settings of a tag of kind redis_snowflake, defaults filled in. */
export interface RedisSnowflakeKind {
  readonly kind: "redis_snowflake";
  /** The shard's number within the ids; 0 … 4,095. */
  readonly shard: number;
  /** Where time begins, milliseconds since 1970. */
  readonly timeOriginMs: number;
  /** Name of the Redis shard that counts. */
  readonly redisShard: string;
}

/** Settings of a tag of kind ticket, defaults filled in. */
export interface TicketKind {
  readonly kind: "ticket";
  /** First id; 1 … ceiling. */
  readonly start: bigint;
  /** Number of residue classes; 1 … 1,024. */
  readonly slots: number;
  /**
   * Names the slots in the ticket databases, `tag.random`. They are made before the tag is, so that no server ever makes
   * them again; a tag made over a tombstone keeps those of the tombstone.
   */
  readonly slotsId: string;
}

/** The settings of each kind of tag. */
export type TagKind = SegmentKind | SequenceKind | RedisSnowflakeKind | TicketKind;

/** The first id that a tag of this kind may issue. */
export function firstIdOf(kind: TagKind): bigint {
  return kind.kind === "redis_snowflake" ? 1n : kind.start;
}

/** What a caller decides about a tag. */
export interface TagSettings {
  readonly name: string;
  readonly description: string;
  readonly order: Order;
  /** Highest id the tag may issue. */
  readonly ceiling: bigint;
  readonly kind: TagKind;
}

/** Whether a tag issues ids. */
export type TagState = "ACTIVE" | "PAUSED" | "DELETED";

/** A tag as its row in the store has it. */
export interface Tag extends TagSettings {
  readonly state: TagState;
  /** Highest id that may have been issued. */
  readonly floor: bigint;
  /** First day of the current period, YYYY-MM-DD; empty before the first id and without periods. */
  readonly periodStart: string;
  /**
   * Of a tag that counts in Redis: rises whenever Redis is given a new start, so that an older Redis is known by it. It
   * rises with every tag made over a tombstone too, whatever it counts in; 0n in any other tag.
   */
  readonly generation: bigint;
  /** Rises with every grant, give-back and raise of the floor; 0 means that nothing was ever issued. */
  readonly version: bigint;
  /** Rises when an operator advances, pauses, resumes or deletes the tag, or accepts a store that went back. */
  readonly epoch: bigint;
  /** The store's revision at the last change by an operator; the tag's etag is made of it. */
  readonly revision: bigint;
  /** By the store's clock, milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

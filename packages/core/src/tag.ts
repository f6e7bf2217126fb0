import type { SnowflakeLayout } from "./snowflake/layout.ts";

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

/**
 * What a worker does when its clock went back further than its reservation reaches and than is waited for: refuse until
 * the clock has caught up; go on with the next extension; go on with another worker id.
 */
export type ClockPolicy = "REFUSE" | "EXTENSION" | "BACKUP_WORKER";

/** Settings of a tag of kind snowflake, defaults filled in. Its ceiling is the highest id of the layout. */
export interface SnowflakeKind {
  readonly kind: "snowflake";
  readonly layout: SnowflakeLayout;
  /** Data centre of workers that name none; 0 … 2^dataCenterBits − 1. */
  readonly dataCenter: number;
  /** EXTENSION only with extension bits. */
  readonly clockPolicy: ClockPolicy;
  /** Longest setting back of the clock that is waited for, in milliseconds; 0 … 1,000. */
  readonly clockWaitMs: number;
  /** Where worker ids are leased, and nowhere else. */
  readonly registry: "STORE" | "REDIS";
  /** Name of the Redis shard that has the registry; a new tag is placed on one. Absent with registry STORE. */
  readonly redisShard?: string;
}

/** Settings of a tag of kind uuid, defaults filled in. */
export type UuidKind =
  | { readonly kind: "uuid"; readonly version: 1 | 4 | 6 | 7 }
  | {
      readonly kind: "uuid";
      readonly version: 2;
      readonly domain: "PERSON" | "GROUP" | "ORG";
      /** 0 … 2^32 − 1. */
      readonly number: number;
    }
  | {
      readonly kind: "uuid";
      readonly version: 3 | 5;
      /** A UUID in lower case, whatever it was named by. */
      readonly namespace: string;
    };

/** Settings of a tag of kind object_id, defaults filled in. */
export interface ObjectIdKind {
  readonly kind: "object_id";
  readonly variant: "CLASSIC" | "MACHINE_PROCESS";
}

/** The settings of each kind of tag. */
export type TagKind =
  | SegmentKind
  | SequenceKind
  | RedisSnowflakeKind
  | TicketKind
  | SnowflakeKind
  | UuidKind
  | ObjectIdKind;

/** The first id that a tag of this kind may issue. */
export function firstIdOf(kind: TagKind): bigint {
  return "start" in kind ? kind.start : 1n;
}

/** How the ids of a tag are written as text. */
export interface Format {
  readonly template: string;
}

/** A key that ids of a tag were made with: its number, and what tells it from other keys without saying it. */
export interface KeyCheck {
  readonly keyId: number;
  /** 16 hexadecimal digits. */
  readonly check: string;
}

/** By which key the numbers of a tag are permuted. The key itself is in the configuration of servers only. */
export interface Unguessable {
  /** Number of the key; 1 … 10^keyDigits − 1. */
  readonly keyId: number;
  /** How many of the highest decimal digits of an id hold the number of its key; 1 … 3. */
  readonly keyDigits: number;
  /**
   * Every key the tag ever had, that of keyId included, ascending by number. A server whose key of a number has another
   * check refuses: two keys under one number would make the same ids of different numbers.
   */
  readonly keys: readonly KeyCheck[];
}

/** What a caller decides about a tag. */
export interface TagSettings {
  readonly name: string;
  readonly description: string;
  readonly order: Order;
  /** Highest id the tag may issue. */
  readonly ceiling: bigint;
  readonly kind: TagKind;
  /** Absent: ids are numbers. Never with kinds uuid and object_id. */
  readonly format?: Format;
  /** Absent: ids are as they were minted. Never with kinds uuid and object_id. */
  readonly unguessable?: Unguessable;
}

/** Whether a tag issues ids. */
export type TagState = "ACTIVE" | "PAUSED" | "DELETED";

/** How long callers may hold ids by themselves that they were given before the tag was changed to allow less. */
export interface EarlierMemory {
  readonly memoryMs: number;
  /** Since every server has obeyed this revision, nobody is given ids for so long any more. */
  readonly revision: bigint;
}

/** A tag as its row in the store has it. */
/** A period that a tag was in and is not in now: it ended, or an operator went back from it. */
export interface OtherPeriod {
  /** First day, YYYY-MM-DD. */
  readonly start: string;
  /** Highest id that may have been issued in it. */
  readonly lastId: bigint;
}

export interface Tag extends TagSettings {
  readonly state: TagState;
  /** Highest id that may have been issued. */
  readonly floor: bigint;
  /** First day of the current period, YYYY-MM-DD; empty before the first id and without periods. */
  readonly periodStart: string;
  /**
   * Other periods that the tag has been in and their last ids, so that none begins twice with the same ids; newest first.
   * Absent: none.
   */
  readonly otherPeriods?: readonly OtherPeriod[];
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
  /** Absent: no callers hold ids for longer than the present settings say. */
  readonly earlier?: EarlierMemory;
  /** By the store's clock, milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

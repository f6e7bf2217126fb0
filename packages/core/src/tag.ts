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

/** The settings of each kind of tag. */
export type TagKind = SegmentKind;

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

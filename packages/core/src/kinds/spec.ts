import type { FieldViolation } from "../errors.ts";
import type { SnowflakeLayout, SnowflakeParts } from "../snowflake/layout.ts";

/** How the ids of a tag are ordered in time; see docs/guarantees.md. */
export type Order = "UNORDERED" | "PER_CLIENT" | "STRICT";

/** The values of an enum of the API, in the order of their numbers, from 1 on. 0 is the enum's UNSPECIFIED. */
export interface EnumType {
  /** What the names of its values begin with in the API, such as PERIOD_UNIT. */
  readonly name: string;
  readonly values: readonly string[];
}

/** Stands for a time that never ends, where times are milliseconds in a row. */
export const HELD_FOR_EVER_MS: number = Number.MAX_SAFE_INTEGER;

/** One setting of a kind. It is data only: no conditions, callbacks or user interface. */
export interface Field {
  /** Durations are milliseconds. Times are milliseconds since 1970, up to now. */
  readonly type:
    | "bool"
    | "duration"
    | "enum"
    | "id"
    | "int32"
    | "message"
    | "text"
    | "time"
    | "uint32";
  /** Of an enum. */
  readonly enum?: EnumType;
  /** Of a message. They may change when the message may. */
  readonly fields?: Fields;
  /** Stands for a value that the caller left empty. Rules across fields may say that it does not. */
  readonly default?: bigint | number | string;
  readonly range?: readonly [min: number, max: number];
  readonly change: "any-time" | "before-first-id" | "never";
  /**
   * - `input-only`: says how another field, `of`, is taken, and is not kept.
   * - `output-only`: follows from another field, `of`.
   * - `placed`: the server decides it; MoveTag may change it.
   * - `row-only`: the server decides it, and only the tag's row has it.
   * Absent: the caller decides it.
   */
  readonly role?: "input-only" | "output-only" | "placed" | "row-only";
  readonly of?: string;
  /** The flag of the command line; its name in kebab case unless told. null: another flag sets it. */
  readonly flag?: string | null;
  /** What it is, for the command line and the docs. */
  readonly help: string;
}

/** Fields by their names in the API. */
export type Fields = Readonly<Record<string, Field>>;

/** A value of a field; undefined where the caller left it empty, and where it does not apply. */
export type Value = bigint | boolean | number | string | Values | undefined;
export interface Values {
  readonly [field: string]: Value;
}

/** The fields of a draft, all of them. */
export type FieldsOf<Draft> = { readonly [Name in Exclude<keyof Draft, "kind">]-?: Field };

/** Where a new tag would count. */
export interface Places {
  /** The Redis server on which a new tag of this name counts; undefined: this server has no Redis. */
  readonly redisServerFor: (tag: string) => string | undefined;
  readonly hasTicketDatabases: boolean;
}

/** What the settings of a kind are checked against, and where their violations go. */
export interface KindContext {
  readonly name: string;
  readonly ceiling: bigint;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** Undefined: the tag has its place already. */
  readonly placement: Places | undefined;
  readonly violations: FieldViolation[];
}

/** Why a tag cannot be made over a deleted one of its name. */
type Conflict = Pick<FieldViolation, "description" | "field">;

/** A field of the bits of an id. */
export interface Bits {
  readonly name: string;
  readonly bits: number;
}

/** Numbers that are composed of a time and more. */
export interface Composed<Settings> {
  /** From the highest bit down, without those that have none. */
  bits(settings: Settings): readonly Bits[];
  /** Most ids a second, of all that make them at the same time. */
  idsPerSecond(settings: Settings): bigint;
  /** An id of this time, and the last one. */
  examples(settings: Settings, nowMs: number): readonly [now: bigint, last: bigint];
  layout(settings: Settings): SnowflakeLayout;
  /** The parts that an id has unless it is told. */
  own(settings: Settings): Partial<SnowflakeParts>;
  /** Whether a format may show the parts. */
  readonly isShown: boolean;
}

/**
 * A kind of tag. A `draft` is what a caller wrote: everything may be left out or wrong. `settings` are complete and good.
 */
export interface KindSpec<Name extends string, Draft, Settings> {
  readonly name: Name;
  /** The orders it has, its default first. */
  readonly orders: readonly [Order, ...Order[]];
  /** Why it has no others. */
  readonly whyOrders: string;
  readonly ids: "number" | "text";
  /** Undefined: its ids are counted, or text. */
  readonly composed: Composed<Settings> | undefined;
  /** When the bits of the time in its ids run out, milliseconds since 1970; undefined: they hold none, or none that matters. */
  timeEndMs(settings: Settings): number | undefined;
  /** Whether callers give the name that an id is made of. */
  isOfNames(settings: Settings): boolean;
  /** Whether the floor of its row says up to which id some may have been issued, and not only what operators raised. */
  readonly issuesToFloor: boolean;
  /** Whether the store hears of the first id, and counts versions from then on. */
  readonly reportsIssued: boolean;
  /** Whether ids of other settings are other numbers, so that a change of them must begin an epoch. */
  readonly isLayout: boolean;
  readonly fields: FieldsOf<Draft>;
  /** Why callers cannot choose the ceiling; undefined: they can. */
  readonly whyNoCeiling?: string;
  /** The highest ceiling that a draft may ask for. Absent: MAX_ID. */
  maxCeiling?(draft: Draft): bigint;
  /** The ceiling that follows from the settings. Absent: the one that was asked for. */
  ceiling?(settings: Settings): bigint;
  /** Fills in defaults, and notes everything that is wrong. Nothing is clamped. */
  settle(draft: Draft, context: KindContext): Settings;
  /** A draft that asks for exactly these settings, with what follows from them. What does not apply is undefined. */
  draftOf(settings: Settings): Draft;
  /** The text of the tag's row: JSON without spaces, its fields in a fixed order. */
  readonly row: {
    write(settings: Settings): string;
    /** Throws TypeError for what `write` never wrote. */
    read(json: Json): Settings;
  };
  /** Where its ids or its worker ids are counted. */
  countedIn(settings: Settings): "nothing" | "redis" | "store" | "tickets";
  /** The Redis server that counts; undefined: none. Absent, with the next: the kind never counts in Redis. */
  redisServer?(settings: Settings): string | undefined;
  /** The same settings on another Redis server; unchanged where none counts. */
  placedIn?(settings: Settings, redisServer: string): Settings;
  /** How long callers may go on by themselves with what they hold, in milliseconds; HELD_FOR_EVER_MS: nobody knows. */
  memoryMs(settings: Settings): number;
  /**
   * Why a tag cannot be made over a deleted one of this kind that may have issued ids: the floor alone would not keep its
   * ids from being repeated. `next`: undefined when it is of another kind.
   */
  mayFollow(dead: Settings, next: Settings | undefined): Conflict | undefined;
  /** The settings with what a deleted tag of this kind leaves to the next one of its name. Absent: nothing. */
  inherit?(settings: Settings, dead: Settings): Settings;
}

/** An object of JSON. */
export type Json = Readonly<Record<string, unknown>>;

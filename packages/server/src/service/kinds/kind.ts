import type { Tag } from "@idmint/core/server";
import type { SourceKind, TagSource } from "./source.ts";
import type { Counter } from "./grouped-source.ts";

/** Every kind that has no buffer. */
export type SourceName = SourceKind["kind"];

/** A tag with the settings of one kind. */
export type TagOf<Name extends SourceName> = Tag & {
  readonly kind: Extract<SourceKind, { readonly kind: Name }>;
};

/** Makes what issues the ids of a tag of one kind. */
export type SourceOf<Name extends SourceName> = (tag: TagOf<Name>) => TagSource;

/** Makes what issues the ids of a tag that is not of kind segment. */
export type MakeSource = SourceOf<SourceName>;

/** Makes what counts the ids of a tag of one kind. */
type CounterOf<Name extends SourceName> = (tag: TagOf<Name>) => Counter;

/** What counts in Redis. */
export interface RedisCounters {
  readonly sequence: CounterOf<"sequence">;
  readonly redis_snowflake: CounterOf<"redis_snowflake">;
}

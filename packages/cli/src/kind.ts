import type { Tag } from "@idmint/proto";
import type { Option } from "commander";

/** A tag's settings of its kind. */
export type Kind = NonNullable<Tag["kind"]>;
export type KindName = Kind["$case"];

/** A flag that some kinds have. */
export interface KindFlag {
  readonly kinds: readonly KindName[];
  /** Fields of UpdateTag's mask, by kind, where it can be changed later. */
  readonly paths: Readonly<Partial<Record<KindName, string>>>;
  readonly option: () => Option;
}

import type { NodeRenewal, StorePart } from "../node/ports.ts";
import type { Tag, UnreadableTag } from "../tag/tag.ts";
import type { SeenTag } from "./version-guard.ts";

/** Tags whose versions one poll compares; with more they take turns. */
export const MAX_WATCHED = 1_000;

/** What changed in the store since the last poll. */
export interface StoreChanges {
  /** Random name of the store's history; another one after every `idmint store accept`. */
  readonly incarnation: string;
  /** The store's revision: counts every change of a tag's settings, state or floor by an operator. */
  readonly revision: bigint;
  /** Tags changed by operators after `since`, oldest change first, at most `limit`; `more` when there are further ones. */
  readonly changed: readonly Tag[];
  readonly more: boolean;
  /** Those that changed too, and whose rows cannot be read: nobody knows what an operator wants of them. Absent: none. */
  readonly unreadable?: readonly UnreadableTag[];
  /** With `more`: where the next poll goes on, if not after the last change's revision. */
  readonly next?: bigint | undefined;
  /** Those of the watched tags whose row is missing, or lower than was seen: the store went back. */
  readonly behind: readonly string[];
  /** Those of `behind` whose row is there and was written by another hand than idmint's. Absent: the store cannot tell. */
  readonly changedByHand?: readonly string[];
  /** Why nothing may be granted (its identity is not the accepted one), in words; empty when all is well. */
  readonly fenced: string;
  /** What an operator should do soon, lest the store stops granting, in words; absent or empty when all is well. */
  readonly warning?: string;
  /** Why the store takes no writes though it can be read, in words; absent or empty while it takes them. */
  readonly refusesWrites?: string;
  /**
   * This poll found a promoted standby in the store's place, and accepted it, since it was proved that nothing which was
   * answered is missing. The history goes on.
   */
  readonly isAccepted?: boolean;
  /** The store's wall clock, milliseconds since 1970. */
  readonly nowMs: number;
  /** The databases that answered; of a store that is one database exactly one. */
  readonly parts: readonly StorePart[];
}

/** How servers learn of each other's changes, and of a store that went back, without a query per request. */
export interface ChangeStore {
  /**
   * One round trip. At most MAX_WATCHED watched tags. `renewal` is written into the server's row, which is made where there is
   * none (unless there are MAX_NODES already); where that is not possible the poll is answered all the same. `nodes`: answer
   * the rows of servers too.
   */
  changes(query: {
    since: bigint;
    watched: readonly SeenTag[];
    limit: number;
    renewal?: NodeRenewal | undefined;
    nodes?: boolean;
  }): Promise<StoreChanges>;
  /**
   * Calls `heard` when something may have been changed that a poll would show, until the store is closed. To be called once.
   * Not every change is heard of, so polls go on. Not set: the store tells of nothing.
   */
  readonly listen?: (heard: () => void) => void;
}

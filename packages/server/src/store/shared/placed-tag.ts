import { IdmintError } from "@idmint/core";
import type { Tag } from "@idmint/core/server";
import { schemaMismatch } from "./failures.ts";

/** A row of a tag in one of several databases. */
export interface PlacedTag {
  readonly tag: Tag;
  /** The database to which the tag went or goes; empty when there is none. */
  readonly movedTo: string;
  /**
   * With `movedTo`, the tag is leaving and has not arrived yet. Without it, the tag has arrived and is not open yet.
   */
  readonly moving: boolean;
}

/** What a database knows of the databases that tags are spread over. All of it is empty when there is only one. */
export interface Membership {
  readonly member: string;
  /** All names, in order. */
  readonly members: readonly string[];
  /** The same random name in all databases of a fleet, and in no other fleet's. */
  readonly fleetId: string;
}

/** The database that store.url names. */
export const FIRST_DATABASE = "default";

export const ALONE: Membership = { member: "", members: [], fleetId: "" };

/** Says that the tag is not in this database (any more), or is not open in it. */
export class TagMovedError extends IdmintError {
  constructor(tag: string) {
    super(
      "STORE_UNAVAILABLE",
      `tag "${tag}" is in another database of the store, or on its way there; if it stays so, finish with: idmint store spread move ${tag}`,
      { metadata: { tag }, retryAfterMs: 200 },
    );
  }
}

/**
 * Throws for a database whose record of the databases differs from the configuration.
 *
 * INVARIANT: a tag is at home in one database only. The home follows from the names, so no two servers may use
 * different names when they make a tag. Each change by an operator compares the names with the record, under its lock.
 */
export function assertMembership(found: Membership, wanted: Omit<Membership, "fleetId">): void {
  const names = wanted.members.join(",");
  if (found.member === wanted.member && found.members.join(",") === names) return;
  const recorded =
    found.members.length === 0
      ? "belongs to no set of several yet"
      : `is ${found.member} out of ${found.members.join(",")}`;
  const configured = wanted.members.length === 0 ? "alone" : `as ${wanted.member} out of ${names}`;
  throw schemaMismatch(
    `the store's database is configured ${configured}, but ${recorded}; mend store.more_urls, or add databases with: idmint store spread add`,
  );
}

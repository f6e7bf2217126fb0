import type { AuditNote } from "../audit/ports.ts";
import type { Tag, TagSettings, UnreadableTag } from "../tag/tag.ts";

/** A period that has ended, with its last id. */
export interface EndedPeriod {
  readonly start: string;
  readonly lastId: bigint;
  /** When the sequence began its next period, milliseconds since 1970. */
  readonly endedAtMs: number;
}

/** Remembers ended periods. They are written by the grant that begins the next one, which also forgets old ones. */
export interface PeriodStore {
  /** Up to `limit` ended periods of a tag that began before `before` (YYYY-MM-DD; empty: any), newest first. */
  listPeriods(query: {
    tag: string;
    before: string;
    limit: number;
  }): Promise<readonly EndedPeriod[]>;
}

/** A change of settings. Once ids may have been issued, only what tunes a kind may change (FIELD_IMMUTABLE). */
export interface TagChange {
  readonly description?: string;
  readonly settings?: Pick<TagSettings, "order" | "ceiling" | "kind">;
  /** How ids are written, as a whole: what is absent in it is taken away. */
  readonly texts?: Pick<TagSettings, "format" | "unguessable">;
  /** Whoever was allowed to hold ids for longer by the row's `earlier` settings holds none any more. Default: false. */
  readonly isEarlierOver?: boolean;
}

/** How a change is made. */
export interface ChangeOptions {
  /** Checks everything and answers what the change would answer, without making it. Default: false. */
  readonly validateOnly?: boolean;
  /** Who makes it, for the audit trail. Not set: nobody whom the trail has to name. */
  readonly by?: AuditNote | undefined;
}

/** Tags by name, and those whose rows cannot be read, which count too where a page has a limit. */
export interface TagPage {
  readonly tags: readonly Tag[];
  readonly unreadable: readonly UnreadableTag[];
}

/** The names on a page, in their order. */
export function namesOn({ tags, unreadable }: TagPage): readonly string[] {
  const names = [...tags.map(({ name }) => name), ...unreadable.map(({ tag }) => tag)];
  return [...new Set(names)].toSorted((a, b) => (a < b ? -1 : 1));
}

/** A page up to a name; undefined: all of it. */
export function upTo(page: TagPage, last: string | undefined): TagPage {
  if (last === undefined) return page;
  return {
    tags: page.tags.filter(({ name }) => name <= last),
    unreadable: page.unreadable.filter(({ tag }) => tag <= last),
  };
}

/**
 * Tags as operators see them. `expectedRevision` (from an etag): undefined, no check; another than the row's: ABORTED
 * ETAG_MISMATCH. Unknown or deleted names: NOT_FOUND TAG_NOT_FOUND. Each change takes the store's next revision, and
 * every method first compares the store's identity: FAILED_PRECONDITION STORE_EPOCH_CHANGED.
 */
export interface TagStore {
  /**
   * Makes a tag with floor = start − 1, version 0 and epoch 1. With the same settings already there: answers it, and
   * changes nothing; with others: ALREADY_EXISTS TAG_EXISTS. Over a tombstone: ACTIVE again with the new settings,
   * floor = max(old floor, start − 1), version + 1, epoch + 1, generation + 1, its period kept (INVALID_ARGUMENT when that
   * floor is above the ceiling, or does not hold the new ids: over a sequence with periods that issued any only one with
   * the same unit is made, over a ticket tag only one with as many slots). Of tags that count in Redis the place that
   * servers chose makes no difference. INVALID_ARGUMENT for a time zone that the runtime or the store does not know.
   */
  createTag(settings: TagSettings, options?: ChangeOptions): Promise<Tag>;
  /** The tags of these names, tombstones included, in any order; unknown ones are left out. At most 1,000 names. */
  getTags(names: readonly string[]): Promise<readonly Tag[]>;
  /**
   * Names of up to `limit` tags of kinds segment and sequence that are not deleted, those first whose rows were written last, as
   * every grant does. Of a store in several databases each has its share, and one that is away has none. At most 1,000.
   */
  recentTags(limit: number): Promise<readonly string[]>;
  /** Up to `limit` tags, by code point, with name > `afterName`, whose name starts with `prefix`. */
  listTags(query: {
    afterName: string;
    prefix: string;
    showDeleted: boolean;
    limit: number;
  }): Promise<TagPage>;
  updateTag(
    name: string,
    change: TagChange,
    expectedRevision: bigint | undefined,
    options?: ChangeOptions,
  ): Promise<Tag>;
  /**
   * Raises the floor, with periods that of the row's period, to `floor` (version + 1, epoch + 1, generation + 1 where Redis
   * counts) if it is lower; otherwise changes nothing.
   */
  advanceTag(
    name: string,
    floor: bigint,
    options: ChangeOptions & { maxRaise: bigint; expectedRevision: bigint | undefined },
  ): Promise<{ tag: Tag; raised: boolean }>;
  /**
   * Goes back to an earlier period of a sequence, above every id that it gave (version + 1, epoch + 1); already there:
   * changes nothing. `floor`: a bound of those ids, required where the store does not know one (INVALID_ARGUMENT). The
   * period that is left goes on above its own ids when its time comes. WRONG_KIND for tags without periods.
   */
  returnToPeriod(
    name: string,
    period: { readonly start: string; readonly floor: bigint | undefined },
    options: ChangeOptions & { expectedRevision: bigint | undefined },
  ): Promise<{ tag: Tag; returned: boolean }>;
  /** Sets the state (epoch + 1) if it is another; otherwise changes nothing. DELETED makes a tombstone. */
  setTagState(
    name: string,
    state: "ACTIVE" | "PAUSED" | "DELETED",
    expectedRevision: bigint | undefined,
    options?: ChangeOptions,
  ): Promise<Tag>;
}

import {
  IdmintError,
  type KeyedPermutation,
  keyUnknown,
  type Period,
  segmentNotReady,
  UnguessableIds,
} from "@idmint/core";
import {
  type ParsedText,
  type Tag,
  type TextFormat,
  textFormatOf,
  type Unguessable,
} from "@idmint/core/server";

/** A key of unguessable ids, which does not show itself. */
export interface UnguessableKey {
  /** Its permutation of one tag's numbers. */
  readonly permutationOf: (tag: string) => KeyedPermutation;
  /** Tells keys apart; see KeyCheck. */
  readonly check: string;
}

/** What the ids of tags are written with, besides the tags' own settings. */
export interface TextPorts {
  /** Keys by their number. */
  readonly keys: ReadonlyMap<number, UnguessableKey>;
  /** Offset of a time zone from UTC in minutes, undefined when there is no such zone. */
  readonly offsetAt: (zone: string, ms: number) => number | undefined;
}

/** Most unguessable ids a call may ask for: each takes a core tens of microseconds, and other calls wait meanwhile. */
const MAX_UNGUESSABLE_COUNT = 1_000;

/** A newer record is there within a second. */
const RETRY_AFTER_MS = 1_000;

/** An id as its caller gets it. */
export interface WrittenId {
  /** 0 when the id is text. */
  readonly id: bigint;
  /** Empty when it is a number. */
  readonly text: string;
}

/**
 * How the ids of a tag with a format or a key are written. Throws what is wrong with the settings or the key.
 *
 * INVARIANT: an id is written by a record no older than the epoch it was issued under. The way of writing changes only with
 * a tag that is deleted and made again, which raises the epoch; so where a newer epoch is seen before its record, the call
 * is refused until the poll has brought it, and the ids are a gap.
 */
export class TagText {
  readonly #format: TextFormat | undefined;
  readonly #ids: UnguessableIds | undefined;
  readonly #keyId: number;
  readonly #tag: string;
  readonly #epoch: bigint;

  constructor(tag: Tag, ports: TextPorts) {
    const { name, ceiling, unguessable } = tag;
    this.#format = textFormatOf(tag, ports.offsetAt);
    this.#keyId = unguessable?.keyId ?? 0;
    this.#tag = name;
    this.#epoch = tag.epoch;
    this.#ids =
      unguessable === undefined
        ? undefined
        : new UnguessableIds(
            { ceiling, keyDigits: unguessable.keyDigits },
            keysOf(name, unguessable, ports),
          );
  }

  /** Whether ids are text, and no numbers. */
  get isText(): boolean {
    return this.#format !== undefined;
  }

  /** Most ids that a call may ask for. */
  get maxCount(): number {
    return this.#ids === undefined ? Infinity : MAX_UNGUESSABLE_COUNT;
  }

  /** Throws SEGMENT_NOT_READY when the record this was made of may not be that of ids of an epoch. */
  assertCovers(epoch: bigint): void {
    if (epoch > this.#epoch) throw segmentNotReady(this.#tag, RETRY_AFTER_MS);
  }

  /** What a number that was minted looks like to its caller. */
  write(number: bigint, period: Period | undefined): WrittenId {
    const id = this.#ids?.hide(number, this.#keyId) ?? number;
    if (this.#format === undefined) return { id, text: "" };
    return { id: 0n, text: this.#format.render(id, period?.start) };
  }

  /** The number behind an id, and what its text is made of. INVALID_ARGUMENT for what is no id of the tag. */
  read(
    value: { readonly id: bigint } | { readonly text: string },
  ): Pick<ParsedText, "period" | "parts"> & { readonly number: bigint; readonly keyId: number } {
    const parsed = "text" in value ? this.#format?.parse(value.text) : undefined;
    const id = "id" in value ? value.id : (parsed?.id ?? 0n);
    const field = "id" in value ? "id" : "text";
    const { number, keyId } = this.#ids?.reveal(id, field) ?? { number: id, keyId: 0 };
    return { number, keyId, period: parsed?.period ?? "", parts: parsed?.parts ?? [] };
  }
}

/**
 * The keys of a tag that are here.
 *
 * INVARIANT: the number of a key means the same key on every server and for ever. The tag's record has the check of every
 * key it ever had, and a server whose key has another one issues nothing, since its ids could be those of other numbers.
 */
function keysOf(
  tag: string,
  { keyId, keys }: Unguessable,
  ports: TextPorts,
): [number, KeyedPermutation][] {
  const found: [number, KeyedPermutation][] = [];
  for (const { keyId: each, check } of keys) {
    const key = ports.keys.get(each);
    if (key === undefined) continue;
    if (key.check !== check) throw keyDiffers(tag, each);
    found.push([each, key.permutationOf(tag)]);
  }
  if (!found.some(([each]) => each === keyId)) throw keyUnknown(keyId);
  return found;
}

function keyDiffers(tag: string, keyId: number): IdmintError {
  return new IdmintError(
    "KEY_UNKNOWN",
    `key ${keyId} of unguessable.keys is not the key that tag "${tag}" has used under this number`,
    { metadata: { tag, key_id: String(keyId) } },
  );
}

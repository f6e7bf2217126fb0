import { countOf, type FieldViolation, type Segment, slice } from "@idmint/core";

/** Longest release token anybody gets; longer ones are not worth looking up. */
const MAX_TOKEN_LENGTH = 64;

/** What a token stands for: an answer of AllocateSegment. */
interface Released {
  readonly token: string;
  readonly tag: string;
  readonly ids: ReleasableIds;
}

/** Ids of an answer, and the epoch and the buffer's generation that they were taken under. */
export interface ReleasableIds {
  readonly segments: readonly Segment[];
  readonly epoch: bigint;
  readonly generation: symbol;
}

/**
 * The answers of AllocateSegment whose unused end may still come back: at most so many, in cells that are filled in turn. A
 * token begins with the number of its cell, so nothing is searched; the rest of it is random, since whoever guessed a token could
 * give back ids that somebody else issues.
 *
 * INVARIANT: a token is forgotten before its ids are given back, so no id comes back twice. A token that was pushed out,
 * used, or made by another server is unknown, and its ids are a gap.
 */
export class ReleaseTokens {
  readonly #cells: (Released | undefined)[] = [];
  readonly #limit: number;
  readonly #random: () => string;
  #next = 0;

  /** `random` makes a text that nobody can guess. */
  constructor(limit: number, random: () => string) {
    this.#limit = limit;
    this.#random = random;
  }

  /** Makes the token of an answer, in the place of the oldest. */
  make(tag: string, ids: ReleasableIds): string {
    const cell = this.#next;
    this.#next = cell + 1 === this.#limit ? 0 : cell + 1;
    const token = `${cell}.${this.#random()}`;
    this.#cells[cell] = { token, tag, ids };
    return token;
  }

  /** How many ids the token's answer had; undefined when the token is unknown or another tag's. */
  countOf(token: string, tag: string): number | undefined {
    const released = this.#find(token, tag);
    return released === undefined ? undefined : countOf(released.ids.segments);
  }

  /**
   * Uses the token up and answers the last `unusedCount` ids of its answer; undefined when it is unknown or another
   * tag's. `unusedCount` is at most `countOf`.
   */
  use(token: string, tag: string, unusedCount: number): ReleasableIds | undefined {
    const released = this.#find(token, tag);
    if (released === undefined) return undefined;
    this.#cells[cellOf(token)] = undefined;
    return { ...released.ids, segments: lastIds(released.ids.segments, unusedCount) };
  }

  #find(token: string, tag: string): Released | undefined {
    const released = this.#cells[cellOf(token)];
    return released?.token === token && released.tag === tag ? released : undefined;
  }
}

/** Not a cell when the token is not one of ours; then nothing is found. */
function cellOf(token: string): number {
  return Number.parseInt(token, 10);
}

/** The last `count` ids of an answer, in its order. */
function lastIds(segments: readonly Segment[], count: number): readonly Segment[] {
  const last: Segment[] = [];
  let rest = count;
  for (const segment of segments.toReversed()) {
    if (rest === 0) break;
    const part = Math.min(rest, segment.count);
    last.unshift(slice(segment, segment.count - part, part));
    rest -= part;
  }
  if (rest > 0) throw new RangeError(`${count} of ${count - rest} ids`);
  return last;
}

/** What is wrong with a token, or undefined. */
export function tokenViolation(token: string): FieldViolation | undefined {
  const field = "release_token";
  if (token === "") {
    const description = "is required: the release_token of an AllocateSegment answer";
    return { field, description, reason: "FIELD_REQUIRED" };
  }
  if (token.length <= MAX_TOKEN_LENGTH) return undefined;
  const description = `must be at most ${MAX_TOKEN_LENGTH} characters`;
  return { field, description, reason: "VALUE_OUT_OF_RANGE" };
}

import { countOf, type Segment, slice } from "@idmint/core";

/** What a token stands for: an answer of AllocateSegment. */
interface Released {
  readonly tag: string;
  readonly epoch: bigint;
  readonly segments: readonly Segment[];
  readonly count: number;
}

/**
 * The answers of AllocateSegment whose unused end may still come back.
 *
 * INVARIANT: a token is forgotten before its ids are given back, so no id comes back twice. A token that was pushed out,
 * used, or made by another server is unknown, and its ids are a gap.
 */
export class ReleaseTokens {
  readonly #tokens = new Map<string, Released>();
  readonly #limit: number;
  readonly #random: () => string;

  /** `random` makes a token that nobody can guess. */
  constructor(limit: number, random: () => string) {
    this.#limit = limit;
    this.#random = random;
  }

  /** Makes the token of an answer; the oldest is forgotten when there are too many. */
  make(tag: string, epoch: bigint, segments: readonly Segment[]): string {
    const token = this.#random();
    this.#tokens.set(token, { tag, epoch, segments, count: countOf(segments) });
    if (this.#tokens.size > this.#limit) {
      const [oldest] = this.#tokens.keys();
      if (oldest !== undefined) this.#tokens.delete(oldest);
    }
    return token;
  }

  /** How many ids the token's answer had; undefined when the token is unknown or another tag's. */
  countOf(token: string, tag: string): number | undefined {
    const released = this.#tokens.get(token);
    return released?.tag === tag ? released.count : undefined;
  }

  /**
   * Uses the token up and answers the last `unusedCount` ids of its answer; undefined when it is unknown or another
   * tag's. `unusedCount` is at most `countOf`.
   */
  use(
    token: string,
    tag: string,
    unusedCount: number,
  ): { readonly epoch: bigint; readonly segments: readonly Segment[] } | undefined {
    const released = this.#tokens.get(token);
    if (released === undefined || released.tag !== tag) return undefined;
    this.#tokens.delete(token);
    return { epoch: released.epoch, segments: lastIds(released.segments, unusedCount) };
  }
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

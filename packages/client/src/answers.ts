import { IdmintError, SeenRanges, type Segment, segmentOf } from "@idmint/core";
import type { Segment as WireSegment } from "@idmint/proto";

/** Where an answer came from. */
interface Origin {
  readonly tag: string;
  /** Address of the server. */
  readonly server: string;
}

/** The segments of an answer, checked one by one. Throws SEGMENT_INVALID for a malformed one. */
export function segmentsOf(segments: readonly WireSegment[], origin: Origin): readonly Segment[] {
  try {
    return segments.map(({ base, count, increment }) => segmentOf(base, count, increment));
  } catch (cause) {
    throw invalidAnswer(origin, `answered a malformed segment of tag "${origin.tag}"`, { cause });
  }
}

/**
 * Decides which answers of servers about one tag are believed.
 *
 * INVARIANT: no id is believed twice. The segments of an answer are disjoint; they have no id in common with what is held,
 * nor with the last 1,000 ranges that came in. Sound servers never answer an id twice, so such an answer shows that
 * something is wrong with the servers or their store, and another try might hide it.
 */
export class AnswerCheck {
  readonly #tag: string;
  readonly #heldIdOf: (segment: Segment) => bigint | undefined;
  readonly #seen: SeenRanges = new SeenRanges();

  /** `heldIdOf` answers an id that the segment shares with what is held. */
  constructor(tag: string, heldIdOf: (segment: Segment) => bigint | undefined = () => undefined) {
    this.#tag = tag;
    this.#heldIdOf = heldIdOf;
  }

  /** Takes note of an answer. Throws SEGMENT_INVALID for ids that came in before. */
  assertNew(segments: readonly Segment[], server: string): void {
    let id: bigint | undefined;
    for (const segment of segments) id ??= this.#heldIdOf(segment);
    id ??= this.#seen.admit(segments);
    if (id === undefined) return;
    const tag = this.#tag;
    const text = `answered id ${id} of tag "${tag}", which this client had received before`;
    throw invalidAnswer({ tag, server }, text, { metadata: { id: String(id) } });
  }

  /** The same for an answer of AllocateSegment, whose segments are ascending besides. */
  assertBlock(segments: readonly Segment[], server: string): void {
    this.#assertAscending(segments, server);
    this.assertNew(segments, server);
  }

  #assertAscending(segments: readonly Segment[], server: string): void {
    const tag = this.#tag;
    for (const [at, { base }] of segments.entries()) {
      const before = segments[at - 1];
      if (before === undefined || base >= before.base) continue;
      throw invalidAnswer(
        { tag, server },
        `answered segments of tag "${tag}" that are not ascending`,
      );
    }
  }
}

/** A SEGMENT_INVALID: the server did what is told. */
export function invalidAnswer(
  { tag, server }: Origin,
  what: string,
  { metadata = {}, cause }: { metadata?: Record<string, string>; cause?: unknown } = {},
): IdmintError {
  const text = `${server} ${what}; nothing of the answer is used. Look at that server and its store before you go on`;
  return new IdmintError("SEGMENT_INVALID", text, {
    metadata: { tag, server, ...metadata },
    cause,
  });
}

/**
 * This client was given ids that the store knows nothing of. Others are granted the same, and lower ones would be out of
 * order.
 */
export function lostBelow(tag: string, after: bigint, cause?: IdmintError): IdmintError {
  const detail = `this client was given ids up to ${after}, and the store knows of none so high: it went back, and the gap of its accept was too small`;
  const text = `tag "${tag}": ${detail}; raise the tag with: idmint tag advance ${tag} --floor ${after}`;
  return new IdmintError("STORE_EPOCH_CHANGED", text, { metadata: { tag, detail }, cause });
}

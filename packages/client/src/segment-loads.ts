import {
  IdmintError,
  type Load,
  type LoadRequest,
  millisecondsOf,
  type SegmentBuffer,
} from "@idmint/core";
import { type AllocateSegmentResponse, Order } from "@idmint/proto";
import { AnswerCheck, lostBelow, segmentsOf } from "./answers.ts";
import type { Answered } from "./servers/endpoints.ts";
import type { Route } from "./servers/fleet.ts";
import type { Receipt, TagContext } from "./tag-context.ts";

/** A tag, and its way through the servers. */
interface Routed {
  readonly tag: string;
  readonly route: Route;
}

/**
 * Loads the segments of one tag: asks the servers, judges their answers, and tells the buffer what they say of the tag.
 *
 * ORDER. Every load carries `after` (the highest id of anything accepted here) until an answer says that the tag is
 * UNORDERED; servers ignore it for such tags. At most one load is in flight, and the buffer refuses an answer that is
 * not above all earlier ones. So a PER_CLIENT tag is in order from its first id on, whichever servers answer.
 */
export class SegmentLoads {
  readonly #tag: string;
  readonly #route: Route;
  readonly #context: TagContext;
  readonly #buffer: SegmentBuffer<Receipt>;
  readonly #answers: AnswerCheck;
  #ordered = true;
  /** Most ids that the servers hand out in one answer, as far as is known. A larger `take` needs several answers. */
  #maxCount = Infinity;

  /** `buffer`: takes tags to be ordered, until it is told. */
  constructor({ tag, route }: Routed, context: TagContext, buffer: SegmentBuffer<Receipt>) {
    this.#tag = tag;
    this.#route = route;
    this.#context = context;
    this.#buffer = buffer;
    this.#answers = new AnswerCheck(tag, (segment) => buffer.heldIdOf(segment));
  }

  /** One load: see `Endpoints.allocate`. */
  load({ count, after }: LoadRequest): Promise<Load<Receipt>> {
    const { endpoints, worker } = this.#context;
    const request = {
      tag: this.#tag,
      count: Math.min(count, this.#maxCount),
      after,
      instance: worker.instance,
    };
    return endpoints
      .allocate(this.#route, request, (answered) => this.#accept(answered))
      .catch((thrown: unknown) => {
        const error = IdmintError.from(thrown);
        // No caller of this SDK has written that field.
        const isAfter = error.violations.some(({ field }) => field === "after");
        throw isAfter ? lostBelow(this.#tag, after, error) : error;
      });
  }

  /** An answer as a load. Throws a retryable error for one that may not be used; another server may know better. */
  #accept({ answer, endpoint, sentAtMs }: Answered<AllocateSegmentResponse>): Load<Receipt> {
    const { epoch, releaseToken } = answer;
    if (epoch < this.#buffer.epoch) {
      throw this.#unusable(`a server that knows epoch ${epoch} only, of ${this.#buffer.epoch}`);
    }
    // Whatever becomes of its ids, the answer tells that older ones are not to be issued any more.
    this.#buffer.observeEpoch(epoch);
    // Counted from the sending, so that it ends no later than the server reckons, however slow the way back was.
    const ageMs = this.#context.clock.now() - sentAtMs;
    const maxAgeMs = Math.min(this.#context.maxAgeMs, millisecondsOf(answer.maxAge) ?? Infinity);
    if (ageMs >= maxAgeMs)
      throw this.#unusable(`a server after ${Math.round(ageMs)} ms, past max_age`);
    const segments = segmentsOf(answer.segments, { tag: this.#tag, server: endpoint });
    this.#answers.assertBlock(segments, endpoint);
    this.#learn(answer);
    const expiresAt = sentAtMs + maxAgeMs;
    return { segments, epoch, receipt: { releaseToken, endpoint }, expiresAt };
  }

  #unusable(from: string): IdmintError {
    const tag = this.#tag;
    const text = `tag "${tag}" got an answer from ${from}; the SDK does not use it`;
    return new IdmintError("SEGMENT_NOT_READY", text, { metadata: { tag } });
  }

  /** What the answers tell of the tag and the servers: its order, and the largest answer to ask for. */
  #learn({ order, maxCount: told }: AllocateSegmentResponse): void {
    const ordered = order !== Order.UNORDERED;
    const maxCount = told > 0 ? told : Infinity;
    if (ordered === this.#ordered && maxCount === this.#maxCount) return;
    this.#ordered = ordered;
    this.#route.isOrdered = ordered;
    this.#maxCount = maxCount;
    const { min, max, ...buffer } = this.#context.buffer;
    this.#buffer.update({
      ...buffer,
      min: Math.min(min, maxCount),
      max: Math.min(max, maxCount),
      ordered,
    });
  }
}

import {
  assertNoViolations,
  countOf,
  countViolation,
  IdmintError,
  idsOf,
  instanceViolation,
  invalidField,
  type Period,
  type Segment,
  segmentOf,
  tagNameViolation,
} from "@idmint/core";
import { type Order, specOf } from "@idmint/core/kinds";
import type { Patience } from "../call.ts";
import type { Counters } from "../counters.ts";
import type { TakenIds } from "../kinds/source.ts";
import type { Ledger, LedgerClient } from "../ledger.ts";
import type { Directory } from "./directory.ts";
import type { Entry, SegmentEntry, SourceEntry } from "./entries.ts";
import { type ReleasableIds, type ReleaseTokens, tokenViolation } from "./release-tokens.ts";
import { TagText } from "./tag-text.ts";
import { wrongKind } from "./wrong-kind.ts";

export interface IdLimits {
  readonly countAsList: number;
  readonly countAsSegments: number;
}

export interface OneId {
  /** 0 for tags whose ids are text. */
  readonly id: bigint;
  /** Empty for tags whose ids are numbers. */
  readonly text: string;
  readonly epoch: bigint;
  /** Undefined for tags without periods. */
  readonly period: Period | undefined;
}

export interface ManyIds {
  readonly segments: readonly Segment[];
  readonly ids: readonly bigint[];
  /** Instead of both, for tags whose ids are text. */
  readonly texts: readonly string[];
  readonly epoch: bigint;
  /** Period all of them belong to; undefined for tags without periods. */
  readonly period: Period | undefined;
}

interface ManyRequest {
  readonly tag: string;
  readonly count: number;
  readonly asList: boolean;
  readonly textsAnyway?: boolean;
}

interface AllocationRequest {
  readonly tag: string;
  readonly count: number;
  readonly after: bigint;
  /** What the client calls itself; empty: nothing. */
  readonly instance?: string;
}

export interface Allocation {
  readonly segments: readonly Segment[];
  readonly epoch: bigint;
  /** Empty when nothing of it can be given back. */
  readonly releaseToken: string;
  readonly maxAgeMs: number;
  readonly order: Order;
  /** Most ids that one answer holds. */
  readonly maxCount: number;
}

/**
 * Mints ids. Warm calls (a tag of kind segment that is known, enough ids in memory) answer at once, without a promise.
 *
 * INVARIANT: the epoch of an answer is the one its ids were issued under. Sources say it; of a buffer it is read in the
 * turn in which the ids were taken, and the directory changes epochs in turns of its own.
 */
export class IdService {
  readonly #directory: Directory;
  readonly #tokens: ReleaseTokens;
  readonly #limits: IdLimits;
  readonly #ledger: Pick<Ledger, "allocated" | "released"> | undefined;
  readonly #counters: Counters;

  constructor(ports: {
    directory: Directory;
    tokens: ReleaseTokens;
    limits: IdLimits;
    ledger: Pick<Ledger, "allocated" | "released"> | undefined;
    counters: Counters;
  }) {
    this.#directory = ports.directory;
    this.#tokens = ports.tokens;
    this.#limits = ports.limits;
    this.#ledger = ports.ledger;
    this.#counters = ports.counters;
  }

  /** One id; made of `name` for kinds whose ids are, and for no others. */
  generateId(tag: string, call: Patience, name = ""): OneId | Promise<OneId> {
    const entry = this.#directory.get(tag);
    if (entry === undefined) {
      // No tag has a name that is none, so nobody has to wait for this refusal.
      assertNoViolations(tagNameViolation("tag", tag));
      return this.#generateUnknown(tag, call, name);
    }
    const { buffer } = entry;
    if (buffer === undefined) return this.#oneOfSource(entry, call, name);
    if (name !== "") throw withoutNames();
    assertWritable(entry);
    const id = buffer.next(call);
    if (typeof id !== "bigint") return this.#oneLater(entry, id);
    return this.#one(entry, id, buffer.epoch, undefined);
  }

  /**
   * Exactly `count` ids, as segments or one by one; all or none. Ids that are text are one by one in either case, and only
   * for callers that asked for that, unless `textsAnyway`.
   */
  generateIds(request: ManyRequest, call: Patience): ManyIds | Promise<ManyIds> {
    const { tag, count, asList } = request;
    const { countAsList, countAsSegments } = this.#limits;
    assertNoViolations(
      tagNameViolation("tag", tag),
      asList
        ? countViolation("count", count, countAsList, "ask without as_list for more")
        : countViolation("count", count, countAsSegments, "ask several times for more"),
    );
    const entry = this.#directory.get(tag);
    if (entry === undefined) return this.#manyUnknown(request, call);
    return this.#many(entry, request, call);
  }

  /**
   * A block of `count` ids for a caller that issues them itself; fewer only at the tag's end. Refuses tags that are not
   * of kind segment with WRONG_KIND. `principal`: who the caller was proved to be; empty: nobody.
   */
  allocateSegment(
    request: AllocationRequest,
    call: Patience,
    principal = "",
  ): Allocation | Promise<Allocation> {
    const { tag, count, after, instance = "" } = request;
    assertNoViolations(
      instance === "" ? undefined : instanceViolation("instance", instance),
      tagNameViolation("tag", tag),
      countViolation("count", count, this.#limits.countAsSegments, "ask several times for more"),
      after < 0n
        ? { field: "after", description: "must be at least 0", reason: "VALUE_OUT_OF_RANGE" }
        : undefined,
    );
    const entry = this.#directory.get(tag);
    const client = { instance, principal };
    if (entry === undefined) return this.#allocateUnknown(request, call, client);
    return this.#allocate(entry, request, call, client);
  }

  /**
   * Takes back the last `unusedCount` ids of an allocation. Answers how many: 0 when the token is unknown, used, another
   * tag's or of ids that may not be issued any more, and then they are a gap. With a ledger they are handed out again only once that says so.
   */
  releaseSegment(request: {
    readonly tag: string;
    readonly releaseToken: string;
    readonly unusedCount: number;
  }): number | Promise<number> {
    const { tag, releaseToken, unusedCount } = request;
    const count = this.#tokens.countOf(releaseToken, tag);
    assertNoViolations(
      tagNameViolation("tag", tag),
      tokenViolation(releaseToken),
      countViolation(
        "unused_count",
        unusedCount,
        count ?? this.#limits.countAsSegments,
        "it counts ids of one answer",
      ),
    );
    const released = this.#tokens.use(releaseToken, tag, unusedCount);
    // A token that is not known stands for nothing: its ids were never lost here.
    if (released === undefined) return 0;
    if (this.#ledger === undefined) return this.#putBack(tag, released, unusedCount, true);
    return this.#ledger
      .released(tag, released.segments, released.epoch)
      .then((isNoted) => this.#putBack(tag, released, unusedCount, isNoted));
  }

  /** Ids that no client has any more. Answers how many are handed out again; the others are waste. */
  #putBack(
    tag: string,
    { segments, generation }: ReleasableIds,
    count: number,
    isNoted: boolean,
  ): number {
    const entry = this.#directory.get(tag);
    const isFit = entry?.buffer !== undefined && entry.rules.order === "UNORDERED";
    const accepted = isFit && isNoted ? entry.buffer.putBack(segments, generation) : 0;
    this.#counters.issuedIds -= accepted;
    this.#counters.returnedIds += accepted;
    this.#counters.wastedIds += count - accepted;
    // failpoint: segment-returned
    return accepted;
  }

  async #generateUnknown(tag: string, call: Patience, name: string): Promise<OneId> {
    const entry = await this.#directory.find(tag, call);
    if (entry.buffer === undefined) return this.#oneOfSource(entry, call, name);
    if (name !== "") throw withoutNames();
    assertWritable(entry);
    return this.#oneLater(entry, entry.buffer.next(call));
  }

  async #oneLater(entry: SegmentEntry, waited: bigint | Promise<bigint>): Promise<OneId> {
    const id = await waited;
    return this.#one(entry, id, entry.buffer.epoch, undefined);
  }

  async #oneOfSource(entry: SourceEntry, call: Patience, name: string): Promise<OneId> {
    assertWritable(entry);
    if (name !== "" && specOf(entry.rules.kind).ids !== "text") throw withoutNames();
    const { segments, texts, epoch, period } = await entry.source.take(1, call, name);
    const [text] = texts ?? [];
    if (text !== undefined) {
      this.#count(entry, 1);
      return { id: 0n, text, epoch, period };
    }
    const [first] = segments;
    if (first === undefined) throw new IdmintError("INTERNAL", "an answer without an id");
    return this.#one(entry, first.base, epoch, period);
  }

  #one(entry: Entry, id: bigint, epoch: bigint, period: Period | undefined): OneId {
    if (entry.text === undefined) {
      this.#count(entry, 1);
      return { id, text: "", epoch, period };
    }
    const text = assertWritable(entry);
    text?.assertCovers(epoch);
    this.#count(entry, 1);
    return { epoch, period, ...(text?.write(id, period) ?? { id, text: "" }) };
  }

  async #manyUnknown(request: ManyRequest, call: Patience): Promise<ManyIds> {
    return this.#many(await this.#directory.find(request.tag, call), request, call);
  }

  #many(entry: Entry, request: ManyRequest, call: Patience): ManyIds | Promise<ManyIds> {
    const { count, asList } = request;
    assertWritable(entry);
    this.#assertAllowed(entry, request);
    if (entry.buffer === undefined) return this.#manyOfSource(entry, request, call);
    const segments = entry.buffer.take(count, call);
    return segments instanceof Promise
      ? this.#manyLater(entry, asList, segments)
      : this.#manyOfBuffer(entry, asList, segments);
  }

  /** Refuses what the tag does not allow, before any ids are taken. */
  #assertAllowed(entry: Entry, { count, asList, textsAnyway = false }: ManyRequest): void {
    const isText = writesText(entry);
    const most = Math.min(mostAtOnce(entry), isText ? this.#limits.countAsList : Infinity);
    assertNoViolations(
      countViolation("count", count, most, "ask several times for more"),
      asList || textsAnyway || !isText
        ? undefined
        : {
            field: "as_list",
            description: "must be true: the ids of this tag are text",
            reason: "FIELD_CONFLICT",
          },
    );
  }

  async #manyLater(
    entry: SegmentEntry,
    asList: boolean,
    waited: Promise<readonly Segment[]>,
  ): Promise<ManyIds> {
    return this.#manyOfBuffer(entry, asList, await waited);
  }

  #manyOfBuffer(entry: SegmentEntry, asList: boolean, segments: readonly Segment[]): ManyIds {
    this.#count(entry, countOf(segments));
    // failpoint: ids-taken
    return manyIds(entry, asList, { segments, epoch: entry.buffer.epoch, period: undefined });
  }

  async #manyOfSource(
    entry: SourceEntry,
    { count, asList }: ManyRequest,
    call: Patience,
  ): Promise<ManyIds> {
    const taken = await entry.source.take(count, call);
    this.#count(entry, count);
    return manyIds(entry, asList, taken);
  }

  async #allocateUnknown(
    request: AllocationRequest,
    call: Patience,
    client: LedgerClient,
  ): Promise<Allocation> {
    return this.#allocate(await this.#directory.find(request.tag, call), request, call, client);
  }

  #allocate(
    entry: Entry,
    { count, after }: AllocationRequest,
    call: Patience,
    client: LedgerClient,
  ): Allocation | Promise<Allocation> {
    // Ids that are written by a format or a key are not the numbers that segments hold.
    if (assertWritable(entry) !== undefined || entry.buffer === undefined) {
      // Who asks for a segment first, and then makes ids without asking, hears of a pause or a stop by it.
      throw this.#directory.refusalOf(entry) ?? wrongKind(entry, this.#limits.countAsList);
    }
    // Other orders promise nothing about neighbouring answers, so a bound would only cost them loads.
    const bound = entry.rules.order === "PER_CLIENT" ? after : 0n;
    // Before the ids are taken: what ends it while they are on their way then ends their return too.
    const { generation } = entry.buffer;
    const segments = entry.buffer.take(count, call, bound, true);
    return segments instanceof Promise
      ? segments.then((waited) => this.#allocation(entry, waited, generation, client))
      : this.#allocation(entry, segments, generation, client);
  }

  #count(entry: Entry, ids: number): void {
    this.#counters.issuedIds += ids;
    entry.issued += ids;
  }

  #allocation(
    entry: SegmentEntry,
    segments: readonly Segment[],
    generation: symbol,
    client: LedgerClient,
  ): Allocation {
    this.#count(entry, countOf(segments));
    const { order, kind } = entry.rules;
    const { epoch } = entry.buffer;
    this.#ledger?.allocated(entry.name, segments, epoch, client);
    // Ids that come back are issued after higher ones, which only unordered tags allow.
    const releaseToken =
      order === "UNORDERED" ? this.#tokens.make(entry.name, { segments, epoch, generation }) : "";
    const maxCount = this.#limits.countAsSegments;
    // failpoint: segment-taken
    return { segments, epoch, releaseToken, maxAgeMs: kind.maxAgeMs, order, maxCount };
  }
}

/** How the ids of an entry are written, where they are; throws why they cannot be. */
function assertWritable({ text }: Entry): TagText | undefined {
  if (text instanceof IdmintError) throw text;
  return text;
}

/** Whether the ids of an entry are text, and no numbers. */
function writesText({ text, rules }: Entry): boolean {
  return specOf(rules.kind).ids === "text" || (text instanceof TagText && text.isText);
}

function mostAtOnce({ text }: Entry): number {
  return text instanceof TagText ? text.maxCount : Infinity;
}

function manyIds(entry: Entry, asList: boolean, taken: TakenIds): ManyIds {
  const { segments, texts, epoch, period } = taken;
  const none = { segments: [], ids: [], texts: [], epoch, period };
  if (texts !== undefined) return { ...none, texts };
  const writer = assertWritable(entry);
  if (writer === undefined) {
    return asList ? { ...none, ids: [...idsOf(segments)] } : { ...none, segments };
  }
  writer.assertCovers(epoch);
  const written = [...idsOf(segments)].map((id) => writer.write(id, period));
  if (writer.isText) return { ...none, texts: written.map(({ text }) => text) };
  const ids = written.map(({ id }) => id);
  return asList ? { ...none, ids } : { ...none, segments: ids.map((id) => segmentOf(id, 1)) };
}

function withoutNames(): IdmintError {
  return invalidField("name", "must be empty: the ids of this tag have no names", "FIELD_CONFLICT");
}

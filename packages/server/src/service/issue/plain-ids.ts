import { IdmintError, type Segment } from "@idmint/core";
import { comesFrom, specOf } from "@idmint/core/kinds";
import { periodsOf } from "@idmint/core/server";
import type { Patience } from "../call.ts";
import type { Directory } from "./directory.ts";
import type { Entry } from "./entries.ts";
import type { IdService, ManyIds, OneId } from "./ids.ts";
import { TagText } from "./tag-text.ts";

/** A segment for a caller that keeps it until it is used up. */
export interface KeptSegment {
  readonly segment: Segment;
  readonly epoch: bigint;
}

/**
 * Ids for callers that are told bare numbers: the doors that answer as Leaf and Tinyid do.
 *
 * INVARIANTS
 * 1. A bare number is the whole id. Tags whose ids are text, or are unique only together with a period, are refused before an
 *    id is taken.
 * 2. Segments that nobody takes back are handed out only of tags that say so (`tinyid_step`), so that `effective_time` knows
 *    of them. None of them is of a tag that promises more than uniqueness: these callers have several segments in flight,
 *    of several servers, and use them in any order.
 */
export class PlainIds {
  readonly #directory: Directory;
  readonly #ids: IdService;

  constructor(ports: { readonly directory: Directory; readonly ids: IdService }) {
    this.#directory = ports.directory;
    this.#ids = ports.ids;
  }

  /** One number. `kind`: of a tag of no other kind. */
  one(tag: string, call: Patience, kind?: "snowflake"): OneId | Promise<OneId> {
    const take = (entry: Entry): OneId | Promise<OneId> => {
      assertPlain(entry);
      if (kind !== undefined && entry.rules.kind.kind !== kind) throw otherKind(entry, kind);
      return this.#ids.generateId(tag, call);
    };
    const entry = this.#directory.get(tag);
    return entry === undefined ? this.#directory.find(tag, call).then(take) : take(entry);
  }

  /** Exactly `count` numbers, one by one. */
  many(tag: string, count: number, call: Patience): ManyIds | Promise<ManyIds> {
    const take = (entry: Entry): ManyIds | Promise<ManyIds> => {
      assertPlain(entry);
      return this.#ids.generateIds({ tag, count, asList: true }, call);
    };
    const entry = this.#directory.get(tag);
    return entry === undefined ? this.#directory.find(tag, call).then(take) : take(entry);
  }

  /** How many ids a segment of the tag has; 0: it hands out none. Undefined: the tag is not known here yet. */
  stepOf(tag: string): number | undefined {
    const entry = this.#directory.get(tag);
    return entry === undefined ? undefined : stepOf(entry);
  }

  /** The same, and asks the store for a tag that is not known. */
  async findStep(tag: string, call: Patience): Promise<number> {
    return stepOf(await this.#directory.find(tag, call));
  }

  /** One segment of a tag that is known, of as many ids as the tag says, or fewer where its numbers are not all in a row. */
  segment(
    tag: string,
    call: Patience,
    client: { readonly instance: string; readonly principal: string },
  ): KeptSegment | Promise<KeptSegment> {
    const entry = this.#directory.get(tag);
    if (entry === undefined)
      return this.#directory.find(tag, call).then(() => this.segment(tag, call, client));
    const count = stepOf(entry);
    if (count === 0) throw noSegments(entry);
    const { instance, principal } = client;
    const answer = this.#ids.allocateSegment({ tag, count, after: 0n, instance }, call, principal);
    const one = (all: Awaited<typeof answer>): KeptSegment => {
      const { head, rest } = headOf(all.segments);
      if (rest > 0) this.#release(tag, all.releaseToken, rest);
      return { segment: head, epoch: all.epoch };
    };
    return answer instanceof Promise ? answer.then(one) : one(answer);
  }

  /** What the caller cannot be told of goes to the next one; if that fails, it is a gap. */
  #release(tag: string, releaseToken: string, unusedCount: number): void {
    const release = async (): Promise<number> =>
      this.#ids.releaseSegment({ tag, releaseToken, unusedCount });
    void release().catch(() => undefined);
  }
}

/** The first of several segments, with those that go on where it ends; and how many ids are left. */
export function headOf(segments: readonly Segment[]): {
  readonly head: Segment;
  readonly rest: number;
} {
  const [first, ...others] = segments;
  if (first === undefined) throw new IdmintError("INTERNAL", "an answer without an id");
  let head = first;
  let rest = 0;
  for (const next of others) {
    const { base, increment, count } = head;
    const isNext = rest === 0 && next.increment === increment;
    if (isNext && next.base === base + BigInt(increment) * BigInt(count)) {
      head = { base, increment, count: count + next.count };
    } else rest += next.count;
  }
  return { head, rest };
}

function stepOf({ rules, text }: Entry): number {
  const { kind, order } = rules;
  const isFree = order === "UNORDERED" && text === undefined;
  return isFree && comesFrom(kind, "segments") ? (kind.tinyidStep ?? 0) : 0;
}

function assertPlain({ name, rules: { kind }, text }: Entry): void {
  const hasPeriods = periodsOf(kind) !== undefined;
  const isText = specOf(kind).ids === "text" || (text instanceof TagText && text.isText);
  if (!hasPeriods && !isText) return;
  const why = hasPeriods ? "are unique only together with their period" : "are text";
  const told = `ids of tag "${name}" ${why}, and this path answers bare numbers; call GenerateId`;
  throw new IdmintError("WRONG_KIND", told, { metadata: { tag: name, kind: kind.kind } });
}

function otherKind({ name, rules: { kind } }: Entry, wanted: string): IdmintError {
  const text = `tag "${name}" is of kind ${kind.kind}, and this path is for kind ${wanted}`;
  return new IdmintError("WRONG_KIND", text, { metadata: { tag: name, kind: kind.kind } });
}

function noSegments({ name, rules: { kind, order }, text }: Entry): IdmintError {
  const metadata = { tag: name, kind: kind.kind };
  const isFit = comesFrom(kind, "segments") && order === "UNORDERED" && text === undefined;
  const why = isFit
    ? `tag "${name}" hands out no segments to Tinyid's clients, which keep them for ever; an operator allows it with idmint tag update ${name} --tinyid-step 100000`
    : `tag "${name}" hands out no segments to Tinyid's clients: only tags of kind segment without an order, a format and unguessable ids do; call nextId instead`;
  return new IdmintError("WRONG_KIND", why, { metadata });
}

import { type Call, IdmintError, periodText, type Segment } from "@idmint/core";
import type { PeriodId } from "../api.ts";
import { numberOf } from "../calls.ts";
import type { TagContext } from "../tag-context.ts";
import type { KindFacts, IdSource, IdSourceRequest } from "./id-source.ts";
import {
  hasNoNames,
  hasNoPeriods,
  idsAreText,
  needsPeriod,
  notInMemory,
  notTaken,
} from "./refusals.ts";
import { UncachedIds } from "./uncached-ids.ts";

/** The ids of a tag that servers mint request by request. Refuses calls that the kind cannot answer. */
export class ServedIds implements IdSource {
  readonly kind: string;
  readonly #tag: string;
  readonly #facts: KindFacts;
  readonly #uncached: UncachedIds;

  constructor({ tag, facts, onDoubt }: IdSourceRequest, context: TagContext) {
    this.kind = facts.kind;
    this.#tag = tag;
    this.#facts = facts;
    this.#uncached = new UncachedIds({ tag, ...facts, onDoubt }, context);
  }

  now(): bigint | undefined {
    return undefined;
  }

  async next(call: Call): Promise<bigint> {
    this.#assertNumbers();
    const { kind } = this;
    // Known before an id is issued for it.
    if (this.#uncached.hasPeriods === true) throw needsPeriod(this.#tag, kind);
    const { id, period } = await this.#uncached.next(call);
    if (period === undefined) return id;
    throw needsPeriod(this.#tag, kind, { period: period.name, id: String(id) });
  }

  async nextText(call: Call, name: string | undefined): Promise<string> {
    if (name !== undefined) throw hasNoNames(this.#tag);
    if (!this.#facts.isText) return String(await this.next(call));
    const [text] = (await this.#uncached.take(1, call)).texts;
    if (text === undefined) throw new IdmintError("INTERNAL", "an answer without an id");
    return text;
  }

  async nextNumber(call: Call): Promise<number> {
    return numberOf(this.#tag, await this.next(call));
  }

  async nextPeriodId(call: Call): Promise<PeriodId> {
    this.#assertNumbers();
    const { kind } = this;
    if (this.#uncached.hasPeriods === false) throw hasNoPeriods(this.#tag, kind);
    const { id, period } = await this.#uncached.next(call);
    if (period === undefined) throw hasNoPeriods(this.#tag, kind, { id: String(id) });
    const endsAt = new Date(period.endsAtMs);
    return { period: period.name, id, text: periodText(period.name, id), endsAt };
  }

  async take(count: number, call: Call): Promise<readonly Segment[]> {
    this.#assertNumbers();
    if (this.#uncached.isStrict) throw notTaken(this.#tag, this.kind);
    return (await this.#uncached.take(count, call)).segments;
  }

  async warm(): Promise<void> {
    throw notInMemory(this.#tag, this.kind);
  }

  nextSync(): bigint {
    throw notInMemory(this.#tag, this.kind);
  }

  nextTextSync(): string {
    throw notInMemory(this.#tag, this.kind);
  }

  nextNumberSync(): number {
    throw notInMemory(this.#tag, this.kind);
  }

  idleMs(): number {
    return this.#uncached.idleMs;
  }

  /** It remembers the last answer, so it goes on if the tag is still of the same kind. */
  resume(facts: KindFacts): boolean {
    const { kind, isText, maxCount } = this.#facts;
    if (facts.kind !== kind || facts.isText !== isText || facts.maxCount !== maxCount) return false;
    this.#uncached.confirm();
    return true;
  }

  forget(): void {
    // Nothing is held, and waiting calls still get their answers.
  }

  expire(): void {
    // Every id is asked for.
  }

  async close(error: IdmintError): Promise<void> {
    this.#uncached.close(error);
  }

  #assertNumbers(): void {
    if (this.#facts.isText) throw idsAreText(this.#tag, this.kind);
  }
}

// Random walks that compare a store with the one in memory, which has none of the code of the stores.
import { IdmintError, MAX_ID } from "@idmint/core";
import {
  type AuditNote,
  type EndedPeriod,
  type GiveBackRequest,
  type Grant,
  type GrantRequest,
  periodsOf,
  type Raised,
  type RaiseRequest,
  type Store,
  type Tag,
  type TagSettings,
} from "@idmint/core/server";
import fc from "fast-check";
import { expect } from "vitest";
import { MemoryDatabase } from "../memory/database.ts";
import { MemoryStore } from "../memory/store.ts";
import { auditOf, noteOf } from "./suite-audit.ts";
import {
  assertDisjoint,
  noonZone,
  redisSequenceOf,
  sequenceOf,
  settingsOf,
  type StoreHarness,
} from "./suite.ts";
import type { Again } from "../workers/walk.ts";
import { type Of, type Settings, step, type Step } from "./walk-steps.ts";

export { walkRegistry } from "../workers/walk.ts";

const DAY_MS = 86_400_000;
/** How many days the walks' sequences keep what has ended. */
const KEEP_DAYS = 3.5;
const NAMES = ["a", "b", "c"];
/** Above all epochs that a walk counts up to; an accept takes one of its clock's seconds. */
const LEAST_ACCEPTED_EPOCH = 1_000_000n;

/** Walks a store and one in memory side by side; fails at the first difference, with the steps that lead there. */
export async function walkStore(
  makeStore: () => Promise<StoreHarness>,
  options: { readonly runs: number; readonly steps: number; readonly again?: Again },
): Promise<void> {
  const { runs, steps, again } = options;
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: steps, size: "max" }),
      async (path) => {
        const harness = await makeStore();
        const walk = new Walk(harness, await Promise.all([0, 1, 2].map(() => harness.open())));
        try {
          for (const next of path) await walk.take(next);
          await walk.compareAll();
        } finally {
          await walk.end();
        }
      },
    ),
    // Shrinking takes many times longer than a test may. Whoever repeats a failure has the time.
    { numRuns: runs, endOnFailure: again === undefined, ...again },
  );
}

class Walk {
  readonly #model = new MemoryDatabase();
  readonly #memory: Store = new MemoryStore({ database: this.#model });
  readonly #harness: StoreHarness;
  readonly #handles: Store[];
  readonly #zone = noonZone();
  /** What ended before this time may be forgotten already, though the clock has gone back since. Nobody promises when it is. */
  #forgotten = 0;
  readonly #grants: GiveBackRequest[] = [];
  #notes = 0;
  #issued: { tag: string; day: number | undefined; from: bigint; to: bigint }[] = [];

  constructor(harness: StoreHarness, handles: Store[]) {
    this.#harness = harness;
    this.#handles = handles;
  }

  async take(next: Step): Promise<void> {
    const by = noteOf(`n${this.#notes++}`);
    const store = this.#handles[next.handle] as Store;
    const both = async (work: (one: Store) => Promise<unknown>): Promise<void> => {
      const expected = await outcome(work(this.#memory));
      expect(await outcome(work(store))).toEqual(expected);
    };
    switch (next.do) {
      case "grant":
        return this.#grant(
          store,
          next.requests.map((r) => this.#requestOf(r)),
        );
      case "raise":
        return this.#raise(store, next);
      case "shift":
        await this.#harness.shiftPeriods(next.days);
        this.#forgotten = Math.max(this.#forgotten, Date.now() - KEEP_DAYS * DAY_MS);
        this.#forgotten += next.days * DAY_MS;
        // Ids of different days are different, and the walk tells days by their distance from today.
        for (const issued of this.#issued) if (issued.day !== undefined) issued.day += next.days;
        return this.#model.shiftPeriods(next.days);
      case "giveBack":
        return this.#giveBack(store, next);
      case "create": {
        const wanted = this.#settingsOf(next.name, next.settings);
        return both(async (one) => told(await one.createTag(wanted, { by })));
      }
      case "update": {
        const { name, description, ...settings } = this.#settingsOf(next.name, next.settings);
        const expected = this.#revisionOf(name, next.revision);
        const change = { description, settings };
        return both(async (one) => told(await one.updateTag(name, change, expected, { by })));
      }
      case "advance": {
        const { name, maxRaise, validateOnly } = next;
        const floor = (this.#row(name)?.floor ?? 5n) + next.by;
        const advance = { maxRaise, validateOnly, expectedRevision: undefined, by };
        if (floor < 1n || floor > MAX_ID) return;
        return both(async (one) => (await one.advanceTag(name, floor, advance)).raised);
      }
      case "setState": {
        const { name, state } = next;
        const expected = this.#revisionOf(name, next.revision);
        return both(async (one) => told(await one.setTagState(name, state, expected, { by })));
      }
      case "accept":
        return this.#accept(both, next, by);
      case "goBack": {
        const { name, day } = next;
        const period = { start: this.#startOf(day), floor: this.#boundOf(name, day, next.bound) };
        const options = { expectedRevision: undefined, by };
        return both(async (one) => (await one.returnToPeriod(name, period, options)).returned);
      }
      case "reopen":
        await store.close();
        this.#handles[next.handle] = await this.#harness.open();
    }
  }

  async #accept(
    both: (work: (one: Store) => Promise<unknown>) => Promise<void>,
    { gap, claims: wanted }: Of<"accept">,
    by: AuditNote,
  ): Promise<void> {
    const nonce = by.id;
    // Of names that the store does not know the suite tries what becomes.
    const known = wanted.flatMap(({ name, day, last }) => {
      const row = this.#row(name);
      if (row === undefined) return [];
      return [{ tag: name, period: periodsOf(row.kind) ? this.#startOf(day) : "", last }];
    });
    const claims = [...new Map(known.map((one) => [`${one.tag} ${one.period}`, one])).values()];
    const claimant = { id: "n", instance: "n", address: "", sinceMs: 1, isWhole: true };
    const said = { nonce, claimant, claims, page: 0, isLast: true };
    await both(async (one) => (await one.askForClaims(nonce, 60_000)).outcome);
    await both((one) => one.claim(said));
    const asked = { nonce, isTrusted: true };
    await both(async (one) => (await one.accept(gap, undefined, by, undefined, asked)).tags);
  }

  async #grant(store: Store, requests: readonly GrantRequest[]): Promise<void> {
    const expected = await this.#memory.grant(requests);
    const grants = await store.grant(requests);
    expect(grants.map(toldAnswer)).toEqual(expected.map(toldAnswer));
    for (const grant of grants) {
      if (grant.outcome !== "granted") continue;
      const { tag, base, version } = grant;
      const to = base + BigInt(grant.count) - 1n;
      this.#grants.unshift({ tag, from: base, to, version });
      const day = grant.period === undefined ? undefined : this.#dayOf(grant.period.start);
      this.#issued.push({ tag, day, from: base, to });
    }
  }

  async #raise(
    store: Store,
    { tag, by, atLeast, newGeneration, seen }: Of<"raise">,
  ): Promise<void> {
    const seenVersion = this.#versionOf(tag, seen);
    const request: RaiseRequest = { tag, by, atLeast, newGeneration, seenVersion };
    const expected = await this.#memory.raise(request);
    const answer = await store.raise(request);
    expect(toldAnswer(answer)).toEqual(toldAnswer(expected));
    if (answer.outcome === "refused") return;
    const { before, floor } = answer;
    if (floor > before) this.#issued.push({ tag, day: undefined, from: before + 1n, to: floor });
  }

  #startOf(day: number): string {
    return new Date(Date.now() + this.#zone.offsetMs + day * DAY_MS).toISOString().slice(0, 10);
  }

  /** What an operator says of the last id of a day: nothing, the truth, or less than the store knows. */
  #boundOf(tag: string, day: number, which: string): bigint | undefined {
    const start = this.#startOf(day);
    const remembered = this.#row(tag)?.otherPeriods?.find((other) => other.start === start);
    const lastId = remembered?.lastId ?? 0n;
    const known = lastId < 0n ? 0n : lastId;
    if (which === "none") return undefined;
    if (which === "below" && known > 0n) return known - 1n;
    const its = this.#issued.filter((range) => range.tag === tag && range.day === day);
    return its.reduce((highest, { to }) => (to > highest ? to : highest), known);
  }

  /** Days from today, in the zone of the walk. */
  #dayOf(start: string): number {
    const today = Math.floor((Date.now() + this.#zone.offsetMs) / DAY_MS);
    return Date.parse(start) / DAY_MS - today;
  }

  /** Of one of the last grants all but the first `keep` ids, if there are more. */
  async #giveBack(store: Store, { which, keep, again }: Of<"giveBack">): Promise<void> {
    const grant = this.#grants[which];
    if (grant === undefined || grant.from + BigInt(keep) > grant.to) return;
    const request = { ...grant, from: grant.from + BigInt(keep) };
    for (let time = 0; time < (again ? 2 : 1); time++) {
      const expected = await this.#memory.giveBack([request]);
      expect(await store.giveBack([request])).toEqual(expected);
      if ((expected[0] ?? 0) > 0) this.#takeBack(request);
    }
  }

  #takeBack({ tag, from, to }: GiveBackRequest): void {
    this.#issued = this.#issued.flatMap((range) => {
      if (range.tag !== tag || range.to !== to || range.from > from) return [range];
      return range.from === from ? [] : [{ ...range, to: from - 1n }];
    });
  }

  #requestOf(wanted: Of<"grant">["requests"][number]): GrantRequest {
    const { tag, count } = wanted;
    const row = this.#row(tag);
    const floor = row?.floor ?? 0n;
    const above = floor === MAX_ID ? floor : floor + 1n;
    const after = { none: 0n, floor, above }[wanted.after] ?? 0n;
    const isSequence = (row?.kind.kind === "sequence") === (wanted.kind === "right");
    const kind = isSequence ? "sequence" : "segment";
    const minCount = isSequence || wanted.least === "all" ? count : 1;
    return { tag, kind, count, minCount, after, seenVersion: this.#versionOf(tag, wanted.seen) };
  }

  #settingsOf(tag: string, wanted: Settings): TagSettings {
    const { kind, description, order, ceiling, min } = wanted;
    const start = wanted.start > ceiling ? 1n : wanted.start;
    const common = { description, order, ceiling };
    if (kind === "redis") return redisSequenceOf(tag, common);
    if (kind === "sequence") return sequenceOf(tag, { ...common, start });
    if (kind === "segment") return settingsOf(tag, { ...common, start, min });
    const { timeZone } = this.#zone;
    const periods = { unit: "DAY", timeZone, keepForMs: KEEP_DAYS * DAY_MS } as const;
    return sequenceOf(tag, { ...common, periods });
  }

  #row(tag: string): Tag | undefined {
    return this.#model.rows.get(tag);
  }

  #versionOf(tag: string, which: string): bigint {
    const right = this.#row(tag)?.version ?? 0n;
    return { none: 0n, right, ahead: right + 1n }[which] ?? 0n;
  }

  #revisionOf(tag: string, which: string): bigint | undefined {
    const right = this.#row(tag)?.revision ?? 1n;
    return { none: undefined, right, wrong: right + 1_000n }[which];
  }

  /** Every row as it is in memory, by every way of reading, who changed them, and no id in two hands. */
  async compareAll(): Promise<void> {
    const all = { afterName: "", prefix: "", showDeleted: true, limit: 10 };
    const expected = (await this.#memory.listTags(all)).tags.map(told);
    for (const store of this.#handles) {
      expect(idsOf(await auditOf(store))).toEqual(idsOf(this.#model.audit));
      expect((await store.listTags(all)).tags.map(told)).toEqual(expected);
      const byName = await store.getTags(NAMES);
      expect(byName.toSorted(byNames).map(told)).toEqual(expected);
      const { changed, revision } = await store.changes({ since: 0n, watched: [], limit: 10 });
      expect(changed.toSorted(byNames).map(told)).toEqual(expected);
      expect(revision).toBe(this.#model.revision);
    }
    for (const tag of NAMES) {
      const query = { tag, before: "", limit: 100 };
      const [ended = [], model] = [
        await this.#handles[0]?.listPeriods(query),
        await this.#memory.listPeriods(query),
      ];
      const listed = (periods: readonly EndedPeriod[]): readonly object[] =>
        periods
          .filter(({ endedAtMs }) => endedAtMs >= this.#forgotten)
          .map(({ start, lastId }) => ({ start, lastId }));
      expect(listed(ended)).toEqual(listed(model));
      const issued = this.#issued.filter((range) => range.tag === tag);
      for (const day of new Set(issued.map((range) => range.day))) {
        assertDisjoint(issued.filter((range) => range.day === day));
      }
    }
  }

  async end(): Promise<void> {
    await Promise.all(this.#handles.map((store) => store.close()));
    await this.#harness.remove();
  }
}

/** A row without the times of its store. */
function told(tag: Tag): object {
  return withoutClock({ ...tag, createdAtMs: 0, updatedAtMs: 0 });
}

/** Two stores are accepted at different moments, so the epochs that they take of their clocks may differ. */
function withoutClock(of: object): object {
  const { epoch } = of as { readonly epoch?: bigint };
  return epoch === undefined || epoch < LEAST_ACCEPTED_EPOCH ? of : { ...of, epoch: "accepted" };
}

/** A refusal without its words. */
function toldAnswer(answer: Grant | Raised): object {
  if (answer.outcome !== "refused") return withoutClock(answer);
  return { tag: answer.tag, reason: answer.reason };
}

function byNames(a: Tag, b: Tag): number {
  return a.name < b.name ? -1 : 1;
}

function idsOf(events: readonly { readonly id: string }[]): readonly string[] {
  return events.map(({ id }) => id).toSorted();
}

/** What a call answered, or the reason it was refused with. */
async function outcome(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof IdmintError) return error.reason;
    throw error;
  }
}

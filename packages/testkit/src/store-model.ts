// A reference of what a store answers, in plain code, and random walks that compare a real store with it.
import { isDeepStrictEqual } from "node:util";
import { IdmintError, MAX_ID } from "@idmint/core";
import {
  type AuditNote,
  firstIdOf,
  type GiveBackRequest,
  type Grant,
  type GrantRequest,
  type RaiseRequest,
  type Store,
  type TagSettings,
  type TagState,
} from "@idmint/core/server";
import fc from "fast-check";
import { expect } from "vitest";
import { auditOf, noteOf } from "./store-suite-audit.ts";
import {
  assertDisjoint,
  noonZone,
  redisSequenceOf,
  sequenceOf,
  settingsOf,
  type StoreHarness,
} from "./store-suite.ts";
import type { Again } from "./worker-model.ts";

export { walkRegistry } from "./worker-model.ts";

interface ModelRow {
  settings: TagSettings;
  state: TagState;
  floor: bigint;
  version: bigint;
  /** How often the epoch was raised; the number itself jumps with an accept. */
  epochs: number;
  revision: bigint;
  generation: bigint;
  /** Days from today to the present period; undefined before the first one. */
  day: number | undefined;
  /** Periods that have ended, newest first, with how many days from now they did. */
  ended: { day: number; lastId: bigint; at: number }[];
  /** Last ids of other days that it knows; -1n stands for that day and all before it, which an accept forgot. */
  others: Map<number, bigint>;
}

/** What is claimed of a tag; the day counts for tags that begin anew each day. */
interface ModelClaim {
  readonly name: string;
  readonly day: number;
  readonly last: bigint;
}

const DAY_MS = 86_400_000;
/** How many days the walks' sequences keep what has ended. */
const KEEP_DAYS = 3.5;

/** Written on its own, after the words of the port, and with none of the code of the stores. */
export class StoreModel {
  readonly rows: Map<string, ModelRow> = new Map();
  revision = 0n;

  grant({ tag, kind, count, minCount, after, seenVersion }: GrantRequest): string {
    const row = this.rows.get(tag);
    if (seenVersion > (row?.version ?? 0n)) return "STORE_EPOCH_CHANGED";
    if (row === undefined || row.state === "DELETED") return "TAG_NOT_FOUND";
    if (row.settings.kind.kind !== kind || countsInRedis(row.settings)) return "WRONG_KIND";
    if (row.state === "PAUSED") return "TAG_PAUSED";
    const isOver = row.day !== undefined && row.day < 0;
    // A period that was begun before an operator went back goes on where it was left.
    const floor = isOver ? (row.others.get(0) ?? 0n) : row.floor;
    if (after > floor) return "AFTER_ABOVE_FLOOR";
    const left = row.settings.ceiling - floor;
    if (left < BigInt(minCount)) return "TAG_EXHAUSTED";
    beginDay(row);
    const taken = left < BigInt(count) ? left : BigInt(count);
    row.floor += taken;
    row.version += 1n;
    const day = row.day === undefined ? "" : ` day ${row.day}`;
    return `${row.floor - taken + 1n} + ${taken} v${row.version}${day}`;
  }

  raise({ tag, by, atLeast, newGeneration, seenVersion }: RaiseRequest): string {
    const row = this.rows.get(tag);
    if (seenVersion > (row?.version ?? 0n)) return "STORE_EPOCH_CHANGED";
    if (row === undefined || row.state === "DELETED") return "TAG_NOT_FOUND";
    if (!countsInRedis(row.settings)) return "WRONG_KIND";
    if (row.state === "PAUSED") return "TAG_PAUSED";
    const { ceiling } = row.settings;
    if (row.floor === ceiling) return "TAG_EXHAUSTED";
    const before = row.floor;
    for (const floor of [before + by, atLeast]) if (floor > row.floor) row.floor = floor;
    if (row.floor > ceiling) row.floor = ceiling;
    row.version += 1n;
    if (newGeneration) row.generation += 1n;
    return `${before} to ${row.floor} v${row.version} g${row.generation}`;
  }

  /** Whatever was told by the clock is so many days further from now. */
  shift(days: number): void {
    for (const row of this.rows.values()) {
      if (row.day !== undefined) row.day += days;
      row.others = new Map([...row.others].map(([day, lastId]) => [day + days, lastId]));
      row.ended = row.ended.map(({ day, lastId, at }) => ({
        day: day + days,
        lastId,
        at: at + days,
      }));
    }
  }

  listPeriods(tag: string): { day: number; lastId: bigint }[] {
    const row = this.rows.get(tag);
    if (row === undefined || !isDaily(row.settings)) return [];
    return row.ended
      .filter(({ at, day }) => at >= -KEEP_DAYS && day !== row.day)
      .toSorted((a, b) => b.day - a.day)
      .map(({ day, lastId }) => ({ day, lastId }));
  }

  giveBack({ tag, from, to, version }: GiveBackRequest): number {
    const row = this.rows.get(tag);
    if (row === undefined || row.state === "DELETED") return 0;
    if (row.settings.kind.kind !== "segment") return 0;
    if (row.floor !== to || row.version !== version) return 0;
    row.floor = from - 1n;
    row.version += 1n;
    return Number(to - from + 1n);
  }

  create(settings: TagSettings): string {
    const row = this.rows.get(settings.name);
    const first = firstIdOf(settings.kind) - 1n;
    if (row === undefined) {
      const none = { day: undefined, ended: [], others: new Map(), generation: 0n };
      const fresh = { state: "ACTIVE", floor: first, version: 0n, epochs: 0, ...none } as const;
      this.rows.set(settings.name, { settings, ...fresh, revision: this.#next() });
      return "ok";
    }
    if (row.state !== "DELETED")
      return isDeepStrictEqual(row.settings, settings) ? "ok" : "TAG_EXISTS";
    if (row.version > 0n && isDaily(row.settings) && !isDaily(settings)) return "INVALID_ARGUMENT";
    const floor = row.floor > first ? row.floor : first;
    if (floor > settings.ceiling) return "INVALID_ARGUMENT";
    row.generation += 1n;
    Object.assign(row, { settings, state: "ACTIVE", floor, version: row.version + 1n });
    row.epochs++;
    row.revision = this.#next();
    return "ok";
  }

  update(name: string, settings: TagSettings, expected: bigint | undefined): string {
    const row = this.rows.get(name);
    const refused = refusal(row, expected);
    if (row === undefined || refused !== "") return refused;
    const isFundamental =
      settings.order !== row.settings.order ||
      settings.ceiling !== row.settings.ceiling ||
      settings.kind.kind !== row.settings.kind.kind ||
      isDaily(settings) !== isDaily(row.settings) ||
      countsInRedis(settings) !== countsInRedis(row.settings) ||
      firstIdOf(settings.kind) !== firstIdOf(row.settings.kind);
    if (isFundamental && row.version > 0n) return "FIELD_IMMUTABLE";
    if (isDeepStrictEqual(row.settings, settings)) return "ok";
    row.settings = settings;
    if (row.version === 0n) row.floor = firstIdOf(settings.kind) - 1n;
    row.revision = this.#next();
    return "ok";
  }

  advance(name: string, floor: bigint, maxRaise: bigint, validateOnly: boolean): string {
    const row = this.rows.get(name);
    const refused = refusal(row, undefined);
    if (row === undefined || refused !== "") return refused;
    if (floor > row.settings.ceiling) return "INVALID_ARGUMENT";
    if (floor <= row.floor) return "false";
    if (floor - row.floor > maxRaise) return "RAISE_TOO_LARGE";
    if (validateOnly) return "true";
    row.floor = floor;
    if (countsInRedis(row.settings)) row.generation += 1n;
    row.version += 1n;
    row.epochs++;
    row.revision = this.#next();
    return "true";
  }

  /** Without a bound the model has to know where that day ended. */
  goBack(name: string, day: number, bound: bigint | undefined): string {
    const row = this.rows.get(name);
    const refused = refusal(row, undefined);
    if (row === undefined || refused !== "") return refused;
    if (!isDaily(row.settings)) return "WRONG_KIND";
    if (day === row.day) return "false";
    const forgotten = [...row.others].find(([, lastId]) => lastId < 0n)?.[0];
    const isForgotten = forgotten !== undefined && day <= forgotten;
    const known = isForgotten ? undefined : row.others.get(day);
    const floor = bound ?? known;
    const ahead = [...row.others.keys()].filter((other) => other > day).length;
    if (row.day === undefined || day > row.day || ahead >= 5) return "INVALID_ARGUMENT";
    // One forgotten day at a time: whatever is passed over would begin at 1 in its time.
    if (isForgotten && day < forgotten) return "INVALID_ARGUMENT";
    if (floor === undefined || floor < (known ?? 0n)) return "INVALID_ARGUMENT";
    if (floor > row.settings.ceiling) return "INVALID_ARGUMENT";
    if (isForgotten) {
      row.others.delete(forgotten);
      row.others.set(day - 1, -1n);
    }
    leaveDay(row, row.day);
    for (const other of [...row.others.keys()].toSorted((a, b) => b - a).slice(10)) {
      row.others.delete(other);
    }
    Object.assign(row, { day, floor, version: row.version + 1n, revision: this.#next() });
    row.epochs++;
    return "true";
  }

  setState(name: string, state: TagState, expected: bigint | undefined): string {
    const row = this.rows.get(name);
    const refused = refusal(row, expected);
    if (row === undefined || refused !== "") return refused;
    if (row.state === state) return "ok";
    row.state = state;
    row.epochs++;
    row.revision = this.#next();
    return "ok";
  }

  accept(gap: bigint, claims: readonly ModelClaim[] = []): string {
    for (const name of [...this.rows.keys()].toSorted()) {
      const row = this.rows.get(name);
      if (row === undefined) continue;
      beginDay(row);
      for (const claim of claims) if (claim.name === name) takeClaim(row, claim);
      for (const [day, lastId] of row.others) {
        const { ceiling } = row.settings;
        row.others.set(day, lastId + gap > ceiling ? ceiling : lastId + gap);
        if (day < (row.day ?? 0)) row.others.delete(day);
      }
      if (isDaily(row.settings)) row.others.set((row.day ?? 0) - 1, -1n);
      if (countsInRedis(row.settings)) row.generation += 1n;
      const left = row.settings.ceiling - row.floor;
      row.floor += gap < left ? gap : left;
      row.version += 1n;
      row.epochs++;
      row.revision = this.#next();
    }
    if (this.rows.size === 0) this.#next();
    return String(this.rows.size);
  }

  #next(): bigint {
    this.revision += 1n;
    return this.revision;
  }
}

function isDaily({ kind }: TagSettings): boolean {
  return kind.kind === "sequence" && kind.periods !== undefined;
}

function countsInRedis({ kind }: TagSettings): boolean {
  return kind.kind === "sequence" && kind.redis !== undefined;
}

function beginDay(row: ModelRow): void {
  if (!isDaily(row.settings)) return;
  if (row.day !== undefined && row.day < 0) {
    row.ended = row.ended.filter(({ at }) => at >= -KEEP_DAYS);
    leaveDay(row, row.day);
    row.floor = row.others.get(0) ?? 0n;
    row.day = 0;
    for (const day of [...row.others.keys()].toSorted((a, b) => b - a).slice(10)) {
      row.others.delete(day);
    }
  }
  row.day ??= 0;
}

/** What is claimed of the present day raises the floor, and of a day to come what that day begins above. */
function takeClaim(row: ModelRow, { day, last: claimed }: ModelClaim): void {
  const last = claimed < row.settings.ceiling ? claimed : row.settings.ceiling;
  const present = row.day ?? 0;
  if (!isDaily(row.settings) || day === present) {
    if (last > row.floor) row.floor = last;
  } else if (day > present && last > (row.others.get(day) ?? -2n)) {
    row.others.set(day, last);
  }
}

function leaveDay(row: ModelRow, left: number): void {
  row.others.set(left, row.floor);
  if (row.floor === 0n) return;
  row.ended = row.ended.filter(({ day }) => day !== left);
  row.ended.push({ day: left, lastId: row.floor, at: 0 });
}

function refusal(row: ModelRow | undefined, expected: bigint | undefined): string {
  if (row === undefined || row.state === "DELETED") return "TAG_NOT_FOUND";
  return expected !== undefined && expected !== row.revision ? "ETAG_MISMATCH" : "";
}

// One step of a walk. Numbers are small or near the ends, so that steps meet each other.
const name = fc.constantFrom("a", "b", "c");
const handle = fc.nat(2);
const count = fc.constantFrom(1, 2, 5, 40, 1_000_000_000);
const edge = fc.constantFrom(1n, 2n, 30n, 2n ** 53n - 50n, MAX_ID - 49n);
const revision = fc.constantFrom("none", "right", "wrong");
const settings = fc.record({
  kind: fc.constantFrom("segment", "segment", "sequence", "daily", "daily", "redis"),
  start: edge,
  ceiling: fc.constantFrom(100n, 2n ** 53n - 1n, MAX_ID),
  min: fc.constantFrom(1, 1_000),
  order: fc.constantFrom("UNORDERED" as const, "PER_CLIENT" as const),
  description: fc.constantFrom("", "x"),
});
type Settings = typeof settings extends fc.Arbitrary<infer T> ? T : never;
const request = fc.record({
  tag: name,
  count,
  kind: fc.constantFrom("right", "right", "right", "other"),
  least: fc.constantFrom("one", "all"),
  after: fc.constantFrom("none", "floor", "above"),
  seen: fc.constantFrom("none", "right", "ahead"),
});
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("grant" as const),
      handle,
      requests: fc.uniqueArray(request, { minLength: 1, maxLength: 3, selector: (r) => r.tag }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("giveBack" as const),
      handle,
      which: fc.nat(3),
      keep: fc.nat(3),
      again: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("raise" as const),
      handle,
      tag: name,
      by: fc.constantFrom(0n, 1n, 40n, MAX_ID),
      atLeast: fc.constantFrom(0n, 60n, 2n ** 53n, MAX_ID),
      newGeneration: fc.boolean(),
      seen: fc.constantFrom("none", "right", "ahead"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("shift" as const),
      handle,
      days: fc.constantFrom(-3, -1, -1, -1, 1, 2),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("create" as const), handle, name, settings }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("update" as const), handle, name, settings, revision }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      handle,
      name,
      by: fc.constantFrom(-1n, 0n, 1n, 20n, 2n ** 40n),
      maxRaise: fc.constantFrom(20n, MAX_ID),
      validateOnly: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("setState" as const),
      handle,
      name,
      state: fc.constantFrom<TagState>("ACTIVE", "ACTIVE", "PAUSED", "DELETED"),
      revision,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("accept" as const),
      handle,
      gap: fc.constantFrom(0n, 1n, 1_000n, MAX_ID),
      claims: fc.uniqueArray(
        fc.record({
          name,
          day: fc.constantFrom(-1, 0, 0, 0, 1),
          last: fc.constantFrom(1n, 30n, 70n, 2n ** 41n),
        }),
        { maxLength: 3, selector: (claim) => `${claim.name} ${claim.day}` },
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("goBack" as const),
      handle,
      name,
      day: fc.constantFrom(-3, -2, -1, 0, 0, 1),
      bound: fc.constantFrom("none", "none", "truth", "below"),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reopen" as const), handle }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Walks a store and the model side by side; fails at the first difference, with the steps that lead there. */
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
  readonly #model = new StoreModel();
  readonly #harness: StoreHarness;
  readonly #handles: Store[];
  readonly #zone = noonZone();
  readonly #grants: GiveBackRequest[] = [];
  #notes = 0;
  /** Names of the events that the audit trail must have, and of no others. */
  readonly #noted: string[] = [];
  #issued: { tag: string; day: number | undefined; from: bigint; to: bigint }[] = [];

  constructor(harness: StoreHarness, handles: Store[]) {
    this.#harness = harness;
    this.#handles = handles;
  }

  /** One step; a change that an operator made has one row in the audit trail, and what changed nothing has none. */
  async take(next: Step): Promise<void> {
    const by = noteOf(`n${this.#notes++}`);
    const { revision } = this.#model;
    await this.#take(next, by);
    if (this.#model.revision > revision || next.do === "accept") this.#noted.push(by.id);
  }

  async #take(next: Step, by: AuditNote): Promise<void> {
    const store = this.#handles[next.handle] as Store;
    switch (next.do) {
      case "grant":
        return this.#grant(
          store,
          next.requests.map((r) => this.#requestOf(r)),
        );
      case "raise": {
        const version = this.#model.rows.get(next.tag)?.version ?? 0n;
        const seenVersion = { none: 0n, right: version, ahead: version + 1n }[next.seen] ?? 0n;
        const { tag, by, atLeast, newGeneration } = next;
        return this.#raise(store, { tag, by, atLeast, newGeneration, seenVersion });
      }
      case "shift":
        await this.#harness.shiftPeriods(next.days);
        // Ids of different days are different, and the walk tells days by their distance from today.
        for (const issued of this.#issued) if (issued.day !== undefined) issued.day += next.days;
        return this.#model.shift(next.days);
      case "giveBack":
        return this.#giveBack(store, next.which, next.keep, next.again);
      case "create": {
        const wanted = this.#settingsOf(next.name, next.settings);
        return agree(outcome(store.createTag(wanted, { by })), this.#model.create(wanted));
      }
      case "update": {
        const { name, ...its } = this.#settingsOf(next.name, next.settings);
        const expected = this.#revisionOf(name, next.revision);
        const { description, ...rest } = its;
        const change = { description, settings: rest };
        const real = outcome(store.updateTag(name, change, expected, { by }));
        return agree(real, this.#model.update(name, { name, ...its }, expected));
      }
      case "advance": {
        const { name, maxRaise, validateOnly } = next;
        const floor = (this.#model.rows.get(name)?.floor ?? 5n) + next.by;
        const advance = { maxRaise, validateOnly, expectedRevision: undefined, by };
        if (floor < 1n || floor > MAX_ID) return;
        const real = store.advanceTag(name, floor, advance).then(({ raised }) => String(raised));
        return agree(outcome(real), this.#model.advance(name, floor, maxRaise, validateOnly));
      }
      case "setState": {
        const expected = this.#revisionOf(next.name, next.revision);
        const real = outcome(store.setTagState(next.name, next.state, expected, { by }));
        return agree(real, this.#model.setState(next.name, next.state, expected));
      }
      case "accept":
        return this.#accept(store, next.gap, next.claims, by);
      case "goBack": {
        const { name, day } = next;
        const bound = this.#boundOf(name, day, next.bound);
        const period = { start: this.#startOf(day), floor: bound };
        const back = store.returnToPeriod(name, period, { expectedRevision: undefined, by });
        const real = back.then(({ returned }) => String(returned));
        return agree(outcome(real), this.#model.goBack(name, day, bound));
      }
      case "reopen":
        await store.close();
        this.#handles[next.handle] = await this.#harness.open();
    }
  }

  async #accept(
    store: Store,
    gap: bigint,
    wanted: readonly ModelClaim[],
    by: AuditNote,
  ): Promise<void> {
    const nonce = by.id;
    // Of names that the store does not know the suite tries what becomes.
    const claims = wanted.filter((claim) => this.#model.rows.has(claim.name));
    expect(await store.askForClaims(nonce, 60_000)).toMatchObject({ outcome: "asked" });
    const claimant = { id: "n", instance: "n", address: "", sinceMs: 1, isWhole: true };
    const periodOf = ({ name, day }: ModelClaim): string => {
      const settings = this.#model.rows.get(name)?.settings;
      return settings === undefined || !isDaily(settings) ? "" : this.#startOf(day);
    };
    const byPeriod = claims.map((claim) => [`${claim.name} ${periodOf(claim)}`, claim] as const);
    const kept = [...new Map(byPeriod).values()];
    const page = kept.map((claim) => {
      return { tag: claim.name, period: periodOf(claim), last: claim.last };
    });
    const said = { nonce, claimant, claims: page, page: 0, isLast: true };
    expect(await store.claim(said)).toBe("heard");
    const asked = { nonce, isTrusted: true };
    const real = store.accept(gap, undefined, by, undefined, asked);
    const told = real.then(({ tags }) => String(tags));
    return agree(outcome(told), this.#model.accept(gap, kept));
  }

  async #grant(store: Store, requests: readonly GrantRequest[]): Promise<void> {
    const grants = await store.grant(requests);
    expect(grants.map((grant) => this.#text(grant))).toEqual(
      requests.map((request) => this.#model.grant(request)),
    );
    for (const grant of grants) {
      if (grant.outcome !== "granted") continue;
      const { tag, base, version } = grant;
      const to = base + BigInt(grant.count) - 1n;
      this.#grants.unshift({ tag, from: base, to, version });
      const day = grant.period === undefined ? undefined : this.#dayOf(grant.period.start);
      this.#issued.push({ tag, day, from: base, to });
    }
  }

  async #raise(store: Store, request: RaiseRequest): Promise<void> {
    const answer = await store.raise(request);
    const { tag } = request;
    if (answer.outcome === "refused") {
      expect(answer.reason).toBe(this.#model.raise(request));
      return;
    }
    const { before, floor, version, generation } = answer;
    expect(`${before} to ${floor} v${version} g${generation}`).toBe(this.#model.raise(request));
    if (floor > before) this.#issued.push({ tag, day: undefined, from: before + 1n, to: floor });
  }

  #text(grant: Grant): string {
    if (grant.outcome !== "granted") return grant.outcome === "refused" ? grant.reason : "locked";
    const day = grant.period === undefined ? "" : ` day ${this.#dayOf(grant.period.start)}`;
    return `${grant.base} + ${grant.count} v${grant.version}${day}`;
  }

  #startOf(day: number): string {
    return new Date(Date.now() + this.#zone.offsetMs + day * DAY_MS).toISOString().slice(0, 10);
  }

  /** What an operator says of the last id of a day: nothing, the truth, or less than the store knows. */
  #boundOf(tag: string, day: number, which: string): bigint | undefined {
    const remembered = this.#model.rows.get(tag)?.others.get(day) ?? 0n;
    const known = remembered < 0n ? 0n : remembered;
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
  async #giveBack(store: Store, which: number, keep: number, again: boolean): Promise<void> {
    const grant = this.#grants[which];
    if (grant === undefined || grant.from + BigInt(keep) > grant.to) return;
    const request = { ...grant, from: grant.from + BigInt(keep) };
    for (let time = 0; time < (again ? 2 : 1); time++) {
      const [real] = await store.giveBack([request]);
      const expected = this.#model.giveBack(request);
      expect(real).toBe(expected);
      if (expected > 0) this.#takeBack(request);
    }
  }

  #takeBack({ tag, from, to }: GiveBackRequest): void {
    this.#issued = this.#issued.flatMap((range) => {
      if (range.tag !== tag || range.to !== to || range.from > from) return [range];
      return range.from === from ? [] : [{ ...range, to: from - 1n }];
    });
  }

  #requestOf(wanted: {
    tag: string;
    kind: string;
    count: number;
    least: string;
    after: string;
    seen: string;
  }): GrantRequest {
    const row = this.#model.rows.get(wanted.tag);
    const floor = row?.floor ?? 0n;
    const version = row?.version ?? 0n;
    const after =
      { none: 0n, floor, above: floor === MAX_ID ? floor : floor + 1n }[wanted.after] ?? 0n;
    const seenVersion = { none: 0n, right: version, ahead: version + 1n }[wanted.seen] ?? 0n;
    const isSequence = (row?.settings.kind.kind === "sequence") === (wanted.kind === "right");
    const kind = isSequence ? "sequence" : "segment";
    const minCount = isSequence || wanted.least === "all" ? wanted.count : 1;
    return { tag: wanted.tag, kind, count: wanted.count, minCount, after, seenVersion };
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

  #revisionOf(tag: string, which: string): bigint | undefined {
    const right = this.#model.rows.get(tag)?.revision ?? 1n;
    return { none: undefined, right, wrong: right + 1_000n }[which];
  }

  /** Every row as the model has it, by every way of reading, and no id in two hands. */
  async compareAll(): Promise<void> {
    const names = ["a", "b", "c"];
    for (const store of this.#handles) {
      const told = (await auditOf(store)).map(({ id }) => id);
      expect(told.toSorted()).toEqual(this.#noted.toSorted());
      const listed = await store.listTags({
        afterName: "",
        prefix: "",
        showDeleted: true,
        limit: 10,
      });
      const byName = await store.getTags(names);
      expect(byName.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(listed);
      const { changed, revision } = await store.changes({ since: 0n, watched: [], limit: 10 });
      expect(changed.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(listed);
      expect(revision).toBe(this.#model.revision);
      const rows = listed.map(({ name, description, order, ceiling, kind, ...rest }) => ({
        settings: { name, description, order, ceiling, kind },
        state: rest.state,
        floor: rest.floor,
        version: rest.version,
        revision: rest.revision,
        generation: rest.generation,
        day: rest.periodStart === "" ? undefined : this.#dayOf(rest.periodStart),
      }));
      const model = listed.map(({ name }) => this.#expected(name));
      expect(listed).toHaveLength(this.#model.rows.size);
      expect(rows).toEqual(model);
      for (const { name, epoch } of listed) {
        expect(epoch).toBeGreaterThanOrEqual(BigInt(this.#model.rows.get(name)?.epochs ?? 0) + 1n);
      }
    }
    for (const tag of names) {
      const periods = await this.#handles[0]?.listPeriods({ tag, before: "", limit: 100 });
      const days = periods?.map(({ start, lastId }) => ({ day: this.#dayOf(start), lastId }));
      expect(days).toEqual(this.#model.listPeriods(tag));
      const issued = this.#issued.filter((range) => range.tag === tag);
      for (const day of new Set(issued.map((range) => range.day))) {
        assertDisjoint(issued.filter((range) => range.day === day));
      }
    }
  }

  #expected(tag: string): unknown {
    const row = this.#model.rows.get(tag);
    if (row === undefined) return undefined;
    const { settings, state, floor, version, revision, generation, day } = row;
    return { settings, state, floor, version, revision, generation, day };
  }

  async end(): Promise<void> {
    await Promise.all(this.#handles.map((store) => store.close()));
    await this.#harness.remove();
  }
}

/** "ok", an answer of text, or the reason of the refusal. */
async function outcome(work: Promise<unknown>): Promise<string> {
  try {
    const value = await work;
    return typeof value === "string" ? value : "ok";
  } catch (error) {
    if (error instanceof IdmintError) return error.reason;
    throw error;
  }
}

async function agree(real: Promise<string>, model: string): Promise<void> {
  expect(await real).toBe(model);
}

// A reference of what a store answers, in a page of plain code, and random walks that compare a real store with it.
import { isDeepStrictEqual } from "node:util";
import {
  type Grant,
  type GrantRequest,
  type GiveBackRequest,
  IdmintError,
  MAX_ID,
  type Store,
  type TagSettings,
  type TagState,
} from "@idmint/core";
import fc from "fast-check";
import { expect } from "vitest";
import { assertDisjoint, settingsOf, type OpenStore, type StoreHarness } from "./store-suite.ts";

interface ModelRow {
  settings: TagSettings;
  state: TagState;
  floor: bigint;
  version: bigint;
  /** How often the epoch was raised; the number itself jumps with an accept. */
  epochs: number;
  revision: bigint;
}

/** Written on its own, after the words of the port, and with none of the code of the stores. */
export class StoreModel {
  readonly rows: Map<string, ModelRow> = new Map();
  revision = 0n;

  grant({ tag, count, minCount, after, seenVersion }: GrantRequest): string {
    const row = this.rows.get(tag);
    if (seenVersion > (row?.version ?? 0n)) return "STORE_EPOCH_CHANGED";
    if (row === undefined || row.state === "DELETED") return "TAG_NOT_FOUND";
    if (row.state === "PAUSED") return "TAG_PAUSED";
    if (after > row.floor) return "AFTER_ABOVE_FLOOR";
    const left = row.settings.ceiling - row.floor;
    if (left < BigInt(minCount)) return "TAG_EXHAUSTED";
    const taken = left < BigInt(count) ? left : BigInt(count);
    row.floor += taken;
    row.version += 1n;
    return `${row.floor - taken + 1n} + ${taken} v${row.version}`;
  }

  giveBack({ tag, from, to, version }: GiveBackRequest): number {
    const row = this.rows.get(tag);
    if (row === undefined || row.state === "DELETED") return 0;
    if (row.floor !== to || row.version !== version) return 0;
    row.floor = from - 1n;
    row.version += 1n;
    return Number(to - from + 1n);
  }

  create(settings: TagSettings): string {
    const row = this.rows.get(settings.name);
    const first = settings.kind.start - 1n;
    if (row === undefined) {
      const fresh = { state: "ACTIVE", floor: first, version: 0n, epochs: 0 } as const;
      this.rows.set(settings.name, { settings, ...fresh, revision: this.#next() });
      return "ok";
    }
    if (row.state !== "DELETED")
      return isDeepStrictEqual(row.settings, settings) ? "ok" : "TAG_EXISTS";
    const floor = row.floor > first ? row.floor : first;
    if (floor > settings.ceiling) return "INVALID_ARGUMENT";
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
      settings.kind.start !== row.settings.kind.start;
    if (isFundamental && row.version > 0n) return "FIELD_IMMUTABLE";
    if (isDeepStrictEqual(row.settings, settings)) return "ok";
    row.settings = settings;
    if (row.version === 0n) row.floor = settings.kind.start - 1n;
    row.revision = this.#next();
    return "ok";
  }

  advance(name: string, floor: bigint, maxRaise: bigint, validateOnly: boolean): string {
    const row = this.rows.get(name);
    const refused = refusal(row, undefined);
    if (row === undefined || refused !== "") return refused;
    if (floor > row.settings.ceiling) return "INVALID_ARGUMENT";
    if (floor <= row.floor) return "false";
    if (floor - row.floor > maxRaise) return "INVALID_ARGUMENT";
    if (validateOnly) return "true";
    row.floor = floor;
    row.version += 1n;
    row.epochs++;
    row.revision = this.#next();
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

  accept(gap: bigint): string {
    for (const name of [...this.rows.keys()].toSorted()) {
      const row = this.rows.get(name);
      if (row === undefined) continue;
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
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reopen" as const), handle }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Walks a store and the model side by side; fails at the first difference, with the steps that lead there. */
export async function walkStore(
  makeStore: () => Promise<StoreHarness>,
  options: { readonly runs: number; readonly steps: number; readonly seed?: number },
): Promise<void> {
  const { runs, steps, seed } = options;
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
    { numRuns: runs, ...(seed === undefined ? {} : { seed }) },
  );
}

class Walk {
  readonly #model = new StoreModel();
  readonly #harness: StoreHarness;
  readonly #handles: OpenStore[];
  readonly #grants: GiveBackRequest[] = [];
  #issued: { tag: string; from: bigint; to: bigint }[] = [];

  constructor(harness: StoreHarness, handles: OpenStore[]) {
    this.#harness = harness;
    this.#handles = handles;
  }

  async take(next: Step): Promise<void> {
    const store = this.#handles[next.handle] as OpenStore;
    switch (next.do) {
      case "grant":
        return this.#grant(
          store,
          next.requests.map((r) => this.#requestOf(r)),
        );
      case "giveBack":
        return this.#giveBack(store, next.which, next.keep, next.again);
      case "create": {
        const wanted = this.#settingsOf(next.name, next.settings);
        return agree(outcome(store.createTag(wanted)), this.#model.create(wanted));
      }
      case "update": {
        const { name, ...its } = this.#settingsOf(next.name, next.settings);
        const expected = this.#revisionOf(name, next.revision);
        const { description, ...rest } = its;
        const change = { description, settings: rest, onlyIfUnissued: false };
        const real = outcome(store.updateTag(name, change, expected));
        return agree(real, this.#model.update(name, { name, ...its }, expected));
      }
      case "advance": {
        const { name, maxRaise, validateOnly } = next;
        const floor = (this.#model.rows.get(name)?.floor ?? 5n) + next.by;
        const advance = { maxRaise, validateOnly, expectedRevision: undefined };
        if (floor < 1n || floor > MAX_ID) return;
        const real = store.advanceTag(name, floor, advance).then(({ raised }) => String(raised));
        return agree(outcome(real), this.#model.advance(name, floor, maxRaise, validateOnly));
      }
      case "setState": {
        const expected = this.#revisionOf(next.name, next.revision);
        const real = outcome(store.setTagState(next.name, next.state, expected));
        return agree(real, this.#model.setState(next.name, next.state, expected));
      }
      case "accept": {
        const real = store.accept(next.gap).then(({ tags }) => String(tags));
        return agree(outcome(real), this.#model.accept(next.gap));
      }
      case "reopen":
        await store.close();
        this.#handles[next.handle] = await this.#harness.open();
    }
  }

  async #grant(store: Store, requests: readonly GrantRequest[]): Promise<void> {
    const grants = await store.grant(requests);
    expect(grants.map(text)).toEqual(requests.map((request) => this.#model.grant(request)));
    for (const grant of grants) {
      if (grant.outcome !== "granted") continue;
      const { tag, base, version } = grant;
      const to = base + BigInt(grant.count) - 1n;
      this.#grants.unshift({ tag, from: base, to, version });
      this.#issued.push({ tag, from: base, to });
    }
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
      return range.from === from ? [] : [{ tag, from: range.from, to: from - 1n }];
    });
  }

  #requestOf(wanted: {
    tag: string;
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
    const minCount = wanted.least === "all" ? wanted.count : 1;
    return { tag: wanted.tag, count: wanted.count, minCount, after, seenVersion };
  }

  #settingsOf(tag: string, wanted: Settings): TagSettings {
    const start = wanted.start > wanted.ceiling ? 1n : wanted.start;
    return settingsOf(tag, { ...wanted, start });
  }

  #revisionOf(tag: string, which: string): bigint | undefined {
    const right = this.#model.rows.get(tag)?.revision ?? 1n;
    return { none: undefined, right, wrong: right + 1_000n }[which];
  }

  /** Every row as the model has it, by every way of reading, and no id in two hands. */
  async compareAll(): Promise<void> {
    const names = ["a", "b", "c"];
    for (const store of this.#handles) {
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
      }));
      const model = listed.map(({ name }) => this.#expected(name));
      expect(listed).toHaveLength(this.#model.rows.size);
      expect(rows).toEqual(model);
      for (const { name, epoch } of listed) {
        expect(epoch).toBeGreaterThanOrEqual(BigInt(this.#model.rows.get(name)?.epochs ?? 0) + 1n);
      }
    }
    for (const tag of names) assertDisjoint(this.#issued.filter((range) => range.tag === tag));
  }

  #expected(tag: string): unknown {
    const row = this.#model.rows.get(tag);
    if (row === undefined) return undefined;
    const { settings, state, floor, version, revision } = row;
    return { settings, state, floor, version, revision };
  }

  async end(): Promise<void> {
    await Promise.all(this.#handles.map((store) => store.close()));
    await this.#harness.remove();
  }
}

function text(grant: Grant): string {
  if (grant.outcome === "refused") return grant.reason;
  return `${grant.base} + ${grant.count} v${grant.version}`;
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

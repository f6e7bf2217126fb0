// What a buffer holds, against plain lists of ids: whatever is taken, dropped and put in between, each id is issued once.
import fc from "fast-check";
import { expect, test } from "vitest";
import type {
  BufferOptions,
  BufferState,
  Effect,
  HeldLoad,
} from "../../src/segment/buffer-types.ts";
import {
  createBufferState,
  dropLoads,
  enterFirstLoad,
  hasNext,
  heldCount,
  heldIdOf,
  issuedTotal,
  peekId,
  prefetchMark,
  readyCount,
  setLimits,
  take,
  takeUnused,
  takeWarm,
} from "../../src/segment/cursor.ts";
import { countOf, idsOf, type Segment, segmentOf } from "../../src/segment/segment.ts";
import { IdmintError } from "../../src/errors.ts";

const OPTIONS: BufferOptions = {
  min: 100,
  max: 1_000,
  holdForMs: 60_000,
  prefetchShare: 0.1,
  maxWaiters: 5_000,
  ordered: false,
};
const LOADING = {
  phase: "loading",
  token: 1,
  startedAt: 0,
  failures: 0,
  error: undefined,
} as const;

function load(
  segments: readonly Segment[],
  more: Partial<HeldLoad<string>> = {},
): HeldLoad<string> {
  const grant = { receipt: `r${segments[0]?.base}` };
  const count = countOf(segments);
  return { segments, count, grant, arrivedAt: 0, expiresAt: Infinity, ...more };
}

function holding(
  loads: readonly HeldLoad<string>[],
  more: Partial<BufferState<string>> = {},
): BufferState<string> {
  const state = { ...createBufferState<string>("t", OPTIONS), loads, ...more };
  enterFirstLoad(state);
  // A load that comes first ends a burst; here the burst came after it.
  state.stride = more.stride ?? state.stride;
  setLimits(state);
  return state;
}

test("a buffer begins with nothing held, nothing issued and no warm id", () => {
  const state = createBufferState<string>("t", OPTIONS);
  const positions = { index: 0, offset: 0, base: 0n, baseNumber: 0, increment: 1, stride: -6 };
  const counts = { issuedBefore: 0, usedBefore: 0, lookedAt: 0, lookedFrom: 0, nextToken: 1 };
  const bounds = { epoch: 0n, highest: 0n, limit: 0, numberLimit: 0, size: 100, keepReady: false };
  expect(state).toMatchObject({ ...positions, ...counts, ...bounds });
  expect([readyCount(state), heldCount(state), issuedTotal(state)]).toEqual([0, 0, 0]);
  expect([peekId(state), takeWarm(state), take(state, 0), take(state, 1)]).toEqual(
    Array.from({ length: 4 }, () => undefined),
  );
});

/** Segments that have no id in common, in an order of their own. */
const segments = fc
  .array(
    fc.record({ count: fc.integer({ min: 1, max: 9 }), increment: fc.constantFrom(1, 1, 3) }),
    {
      minLength: 1,
      maxLength: 8,
    },
  )
  .chain((list) => {
    const placed = list.map(({ count, increment }, at) =>
      segmentOf(BigInt(at) * 1_000n, count, increment),
    );
    return fc.shuffledSubarray(placed, { minLength: placed.length });
  });

const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("warm" as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("take" as const), count: fc.nat(12) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("drop" as const), places: fc.array(fc.nat(3)) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("unused" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("load" as const),
      segments: fc.array(fc.nat(7), { minLength: 1, maxLength: 3 }),
      isPutBack: fc.boolean(),
    }),
  },
);

const order = (a: bigint, b: bigint): number => Number(a - b);

/** A buffer, and for each load that it holds the ids that are left of it. */
class Walk {
  readonly state = createBufferState<string>("t", { ...OPTIONS, prefetchShare: 1 });
  left: { readonly load: HeldLoad<string>; ids: bigint[] }[] = [];
  issued = 0;
  readonly #spare: Segment[];

  constructor(spare: readonly Segment[]) {
    this.#spare = [...spare];
  }

  run(step: typeof action extends fc.Arbitrary<infer T> ? T : never): void {
    const { state } = this;
    const ids = this.left.flatMap((one) => one.ids);
    switch (step.do) {
      case "warm": {
        const id = takeWarm(state);
        if (id !== undefined) this.#issue([id], ids);
        break;
      }
      case "take": {
        const taken = take(state, step.count);
        setLimits(state);
        if (ids.length < Math.max(step.count, 1)) expect(taken).toBeUndefined();
        else this.#issue([...idsOf(taken ?? [])], ids, step.count);
        break;
      }
      case "drop": {
        const bad = new Set(step.places.map((place) => state.loads[place]));
        const effects: Effect[] = [];
        dropLoads(state, (one) => bad.has(one), "dropped", effects);
        const lost = this.left.filter((one) => bad.has(one.load));
        this.left = this.left.filter((one) => !bad.has(one.load));
        const count = lost.flatMap((one) => one.ids).length;
        expect(effects).toEqual(
          lost.length === 0 ? [] : [{ type: "wasted", count, cause: "dropped" }],
        );
        break;
      }
      case "unused": {
        const unused = takeUnused(state).map(({ receipt, segments: its }) => ({
          receipt,
          ids: [...idsOf(its)],
        }));
        const granted = this.left.filter((one) => one.load.grant !== undefined);
        expect(unused).toEqual(
          granted.map((one) => ({ receipt: one.load.grant?.receipt, ids: one.ids })),
        );
        this.left = [];
        break;
      }
      case "load": {
        const its = this.#spare.splice(0, step.segments.length);
        if (its.length === 0) return;
        const held = load(its, step.isPutBack ? { grant: undefined } : {});
        state.loads = [...state.loads, held];
        if (state.loads.length === 1) enterFirstLoad(state);
        setLimits(state);
        this.left.push({ load: held, ids: [...idsOf(its)] });
      }
    }
    this.check();
  }

  /** These are the first ones of what was left; one answer has them in their order. */
  #issue(taken: readonly bigint[], left: readonly bigint[], count = 1): void {
    const first = left.slice(0, count);
    expect([...taken].toSorted(order)).toEqual(first.toSorted(order));
    this.issued += count;
    for (const one of this.left) one.ids = one.ids.filter((id) => !first.includes(id));
    this.left = this.left.filter((one) => one.ids.length > 0);
  }

  check(): void {
    const { state } = this;
    const ids = this.left.flatMap((one) => one.ids);
    const head = this.left[0]?.load;
    expect(state.loads).toEqual(this.left.map((one) => one.load));
    expect(peekId(state)).toBe(ids[0]);
    expect(readyCount(state)).toBe(ids.length);
    expect(issuedTotal(state)).toBe(this.issued);
    const used = head === undefined ? 0 : head.count - (this.left[0]?.ids.length ?? 0);
    expect(state.usedBefore + state.offset).toBe(used);
    for (const { load: held } of this.left) {
      for (const segment of held.segments) expect(heldIdOf(state, segment)).toBe(segment.base);
    }
    expect(heldIdOf(state, segmentOf(900_000n, 10))).toBeUndefined();
    const last = this.left.at(-1)?.load;
    expect(hasNext(state)).toBe(this.left.length > 1 && last?.grant !== undefined);
  }
}

test("whatever is taken and dropped, an id is issued once, and all that are left are known", () => {
  fc.assert(
    fc.property(segments, fc.array(action, { maxLength: 25 }), (spare, steps) => {
      const walk = new Walk(spare);
      for (const step of steps) walk.run(step);
    }),
    { numRuns: 1_000 },
  );
});

test("one answer has its ids in their order, also where some were put back behind higher ones", () => {
  const back = load([segmentOf(5n, 2)], { grant: undefined });
  const state = holding([load([segmentOf(20n, 2)]), back, load([segmentOf(30n, 9)])]);
  expect([...idsOf(take(state, 6) ?? [])]).toEqual([5n, 6n, 20n, 21n, 30n, 31n]);
});

const HUNDRED = [segmentOf(1n, 5), segmentOf(11n, 95)];

test("warm ids end before the one that starts the next load, which is the tenth of a hundred", () => {
  expect(prefetchMark(holding([load(HUNDRED)]))).toBe(10);
  expect(prefetchMark(holding([load([segmentOf(1n, 101)])]))).toBe(11);
  expect(prefetchMark(holding([load([segmentOf(1n, 3)])]))).toBe(1);
  const state = holding([load([segmentOf(1n, 100)])]);
  expect([state.limit, state.numberLimit]).toEqual([9, 9]);
  take(state, 4);
  setLimits(state);
  expect(state.limit).toBe(9);
  const late = holding([load([segmentOf(1n, 20), segmentOf(31n, 80)])]);
  take(late, 20);
  setLimits(late);
  expect(takeWarm(late)).toBeUndefined();
});

test("warm ids end before the last of a segment, where the cursor goes on to the next one", () => {
  const state = holding([load(HUNDRED)]);
  expect(state.limit).toBe(4);
  take(state, 5);
  setLimits(state);
  // Four more, and then the tenth.
  expect([state.limit, state.base]).toEqual([4, 11n]);
});

test("where the next load is there or on its way, warm ids go to the end of the segment", () => {
  const one = load([segmentOf(1n, 100)]);
  expect(holding([one], { loading: LOADING }).limit).toBe(99);
  expect(holding([one, load([segmentOf(201n, 9)])]).limit).toBe(99);
  const back = load([segmentOf(201n, 9)], { grant: undefined });
  expect(holding([one, back]).limit).toBe(9);
});

test("a burst ends with its load, since ids of the next one may expire sooner", () => {
  const next = load([segmentOf(2n, 100)], { expiresAt: 1_000 });
  const state = holding([load([segmentOf(1n, 1)]), next], { loading: LOADING, stride: 8 });
  take(state, 1);
  setLimits(state);
  expect([peekId(state), takeWarm(state), state.stride]).toEqual([2n, undefined, 1]);
});

test("of a load that expires, warm ids go as far as the clock need not be looked at", () => {
  const more = { loading: LOADING, stride: 8 };
  const one = load([segmentOf(1n, 100)], { expiresAt: 1_000 });
  const state = holding([one], more);
  expect(state.limit).toBe(8);
  expect(holding([load([segmentOf(1n, 100)])], more).limit).toBe(99);
  // The clock was looked at after three ids.
  take(state, 3);
  state.lookedFrom = 3;
  setLimits(state);
  expect(state.limit).toBe(11);
  // Ids of an earlier segment count.
  const later = holding([one], { ...more, issuedBefore: 50, lookedFrom: 44 });
  expect(later.limit).toBe(2);
  expect(takeWarm(holding([one], { ...more, issuedBefore: 50, lookedFrom: 42 }))).toBeUndefined();
});

test("a buffer that is fenced, or has none left, has no warm id", () => {
  const fenced = new IdmintError("TAG_PAUSED", "paused");
  const state = holding([load(HUNDRED)], { loading: LOADING });
  state.fenced = fenced;
  setLimits(state);
  expect([state.limit, state.numberLimit]).toEqual([0, 0]);
  const used = holding([load(HUNDRED)], { loading: LOADING });
  expect(used.numberLimit).toBe(4);
  take(used, 100);
  setLimits(used);
  expect([used.limit, used.numberLimit, used.base, used.increment]).toEqual([0, 0, 0n, 1]);
});

test.each([
  [2n ** 53n - 101n, 100, 1, 99],
  [2n ** 53n - 100n, 100, 1, 99],
  // The last one is 2^53.
  [2n ** 53n - 99n, 100, 1, 99],
  [2n ** 53n - 98n, 100, 1, 98],
  [2n ** 53n - 1n, 100, 1, 1],
  [2n ** 53n, 100, 1, 0],
  [2n ** 53n, 100, 3, 0],
  [2n ** 53n - 7n, 100, 3, 3],
  [2n ** 53n - 8n, 100, 3, 3],
  [2n ** 53n - 6n, 100, 3, 2],
] as const)(
  "from %s, of %s ids %s apart, %s are warm as numbers",
  (base, count, increment, warm) => {
    const state = holding([load([segmentOf(base, count, increment)])], { loading: LOADING });
    expect([state.limit, state.numberLimit]).toEqual([count - 1, warm]);
    expect([state.base, state.baseNumber, state.increment]).toEqual([
      base,
      Number(base),
      increment,
    ]);
  },
);

test("warm ids are an increment apart", () => {
  const state = holding([load([segmentOf(7n, 50, 3)])], { loading: LOADING });
  expect([takeWarm(state), takeWarm(state), takeWarm(state)]).toEqual([7n, 10n, 13n]);
  const two = holding([load([segmentOf(7n, 50, 2)])], { loading: LOADING });
  expect([takeWarm(two), takeWarm(two)]).toEqual([7n, 9n]);
});

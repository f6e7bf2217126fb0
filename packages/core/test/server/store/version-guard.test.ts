import {
  type HighestGranted,
  type KeptTag,
  lostTag,
  type RowFloor,
  VersionGuard,
} from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";

const at = (version: bigint, epoch = 1n) => ({ version, epoch });

test("the version guard takes answers that overtake each other for what they are", () => {
  const guard = new VersionGuard();
  const [first, second] = [guard.seen("t"), guard.seen("t")];
  expect(guard.admitGrant("t", second, at(2n))).toBe(true);
  expect(guard.admitGrant("t", first, at(1n))).toBe(true);
  expect(guard.seen("t")).toBe(2n);
});

test("the version guard refuses a grant whose version is not above what had been seen", () => {
  const guard = new VersionGuard();
  guard.observe("t", at(7n));
  expect(guard.admitGrant("t", guard.seen("t"), at(7n))).toBe(false);
  expect(guard.admitGrant("t", guard.seen("t"), at(3n))).toBe(false);
  expect(guard.admitGrant("t", guard.seen("t"), at(8n))).toBe(true);
  guard.startHistory();
  expect(guard.admitGrant("t", guard.seen("t"), at(1n, 2n))).toBe(true);
});

test("the version guard remembers a grant of a history that was heard of only later", () => {
  const guard = new VersionGuard();
  guard.observe("t", at(7n));
  expect(guard.admitGrant("t", guard.seen("t"), at(8n, 2n))).toBe(true);
  guard.startHistory();
  // The row went back below that grant, and what it grants now was granted before.
  expect(guard.admitGrant("t", guard.seen("t"), at(8n, 2n))).toBe(false);
  expect(guard.seen("t")).toBe(8n);
  expect(guard.admitGrant("t", guard.seen("t"), at(9n, 2n))).toBe(true);
});

test("the version guard holds a row of a history that was heard of only later to what it had granted", () => {
  const guard = new VersionGuard();
  guard.observe("t", at(8n, 2n));
  guard.startHistory();
  guard.observe("t", at(5n, 2n));
  expect(guard.seen("t")).toBe(8n);
  guard.startHistory();
  guard.observe("t", at(5n, 3n));
  expect(guard.seen("t")).toBe(5n);
});

const ids = (first: bigint, count: number, epoch = 1n, period = "") => {
  return { first, last: first + BigInt(count) - 1n, epoch, period };
};

test("the version guard refuses ids granted here before, though the version has risen again", () => {
  const guard = new VersionGuard();
  expect(guard.admitIds("t", ids(6n, 20))).toBe("new");
  expect(guard.admitIds("t", ids(25n, 5))).toBe("again");
  expect(guard.admitIds("t", ids(26n, 5))).toBe("new");
  guard.startHistory();
  expect(guard.admitIds("t", ids(30n, 5))).toBe("again");
});

test("the version guard refuses ids granted here before an accept, whatever their epoch", () => {
  const guard = new VersionGuard();
  expect(guard.admitIds("t", ids(1n, 100, 5n))).toBe("new");
  guard.startHistory();
  expect(guard.admitIds("t", ids(100n, 5, 9n))).toBe("below");
  expect(guard.admitIds("t", ids(11n, 5, 4n))).toBe("below");
  expect(guard.highest("t", "")).toEqual({ period: "", epoch: 5n, last: 100n });
  expect(guard.admitIds("t", ids(101n, 5, 10n))).toBe("new");
});

test("the version guard compares ids within their period, also when one comes again", () => {
  const guard = new VersionGuard();
  expect(guard.admitIds("t", ids(1n, 100, 1n, "2026-01-01"))).toBe("new");
  expect(guard.admitIds("t", ids(1n, 5, 1n, "2026-01-02"))).toBe("new");
  expect(guard.admitIds("t", ids(5n, 5, 1n, "2026-01-02"))).toBe("again");
  expect(guard.admitIds("t", ids(100n, 5, 2n, "2026-01-01"))).toBe("below");
  expect(guard.admitIds("t", ids(101n, 5, 2n, "2026-01-01"))).toBe("new");
  expect(guard.admitIds("t", ids(5n, 1, 2n, "2026-01-02"))).toBe("below");
  expect(guard.highest("t", "2026-01-01")?.last).toBe(105n);
  expect(guard.highest("t", "2026-01-02")?.last).toBe(5n);
  expect(guard.highest("t", "2026-01-03")).toBeUndefined();
});

test("the version guard lets ids that were given back be granted again, and no others", () => {
  const guard = new VersionGuard();
  expect(guard.admitIds("t", ids(1n, 10))).toBe("new");
  guard.giveBack("t", { from: 4n, to: 10n });
  guard.giveBack("t", { from: 8n, to: 10n });
  expect(guard.admitIds("t", ids(3n, 5))).toBe("again");
  expect(guard.admitIds("t", ids(4n, 5))).toBe("new");
});

test("of ids below those that were given back, the version guard holds only its own for granted", () => {
  const guard = new VersionGuard();
  guard.admitIds("t", ids(21n, 5));
  // Others have 26 to 40, and give some of them back later on.
  guard.admitIds("t", ids(41n, 5));
  guard.giveBack("t", { from: 41n, to: 45n });
  expect(guard.highest("t", "")?.last).toBe(25n);
  expect(guard.admitIds("t", ids(39n, 5))).toBe("new");
  expect(guard.admitIds("t", ids(44n, 5))).toBe("new");
  guard.giveBack("t", { from: 43n, to: 48n });
  expect(guard.highest("t", "")?.last).toBe(42n);
  guard.giveBack("t", { from: 39n, to: 42n });
  expect(guard.highest("t", "")?.last).toBe(25n);
  expect(guard.admitIds("t", ids(25n, 5))).toBe("again");
  // Of a run that an earlier life began, the beginning is not known.
  expect(guard.admitIds("t", ids(26n, 5))).toBe("new");
  guard.giveBack("t", { from: 26n, to: 30n });
  expect(guard.highest("t", "")?.last).toBe(25n);
  guard.admitIds("first", ids(7n, 3));
  guard.giveBack("first", { from: 7n, to: 9n });
  expect([...guard.claims()]).toEqual([{ tag: "t", period: "", last: 25n }]);
});

test("ids below a run that are given back with it are granted again", () => {
  const guard = new VersionGuard();
  guard.admitIds("t", ids(1n, 1));
  guard.admitIds("t", ids(1n, 1, 1n, "2026-01-01"));
  // What was granted of another period in between ends the run of before, not what is held of it.
  guard.admitIds("t", ids(2n, 2));
  guard.giveBack("t", { from: 1n, to: 3n });
  expect(guard.admitIds("t", ids(1n, 1))).toBe("new");
});

test("the version guard's watch goes round all tags", () => {
  const guard = new VersionGuard();
  for (let i = 0; i < 25; i++) guard.observe(`t${i}`, at(BigInt(i + 1)));
  const cursor = { after: 0 };
  const seen = new Set<string>();
  for (let round = 0; round < 3; round++)
    for (const { tag } of guard.watch(10, cursor)) seen.add(tag);
  expect(seen.size).toBe(25);
});

test("the version guard tells of a tag that it never saw that nothing is known", () => {
  const guard = new VersionGuard();
  expect(guard.seen("t")).toBe(0n);
  expect(guard.highest("t", "")).toBeUndefined();
  guard.giveBack("t", { from: 1n, to: 1n });
  expect([guard.grantedTags(), [...guard.claims()]]).toEqual([[], []]);
  const cursor = { after: 0 };
  expect([...guard.watch(10, cursor)]).toEqual([]);
  // And goes on from there once there is one.
  guard.observe("t", at(1n));
  for (let round = 0; round < 2; round++)
    expect([...guard.watch(10, cursor)].map(({ tag }) => tag)).toEqual(["t"]);
});

test("the version guard claims what was granted here and not given back, of eight periods before the present one", () => {
  const guard = new VersionGuard();
  guard.observe("seen only", at(3n));
  guard.giveBack("seen only", { from: 1n, to: 1n });
  expect(guard.highest("seen only", "")).toBeUndefined();
  guard.admitIds("given back", ids(1n, 5));
  // Ids that do not reach to the highest one are not given back.
  guard.giveBack("given back", { from: 2n, to: 4n });
  guard.giveBack("given back", { from: 6n, to: 7n });
  expect(guard.highest("given back", "")?.last).toBe(5n);
  guard.giveBack("given back", { from: 2n, to: 5n });
  expect([...guard.claims()]).toEqual([{ tag: "given back", period: "", last: 1n }]);
  guard.giveBack("given back", { from: 1n, to: 1n });
  const days = Array.from({ length: 10 }, (_, i) => `2026-01-${10 + i}`);
  for (const [at, day] of days.entries()) guard.admitIds("t", ids(1n, at + 1, 1n, day));
  const claims = days.map((period, at) => ({ tag: "t", period, last: BigInt(at + 1) }));
  expect([...guard.claims()]).toEqual(claims.slice(1).toReversed());
  expect(guard.highest("t", "2026-01-10")).toBeUndefined();
  expect(guard.highest("t", "2026-01-11")?.last).toBe(2n);
  expect(guard.grantedTags()).toEqual(["given back", "t"]);
});

const { kind: SEGMENT } = lostTag("any", [], false, 0);
const rowOf = (floor: bigint, periodStart = "", name = "t"): RowFloor => {
  return { name, kind: SEGMENT, floor, periodStart, version: 1n };
};

test("the version guard claims floors that it saw, for ids that others were granted and may not claim", () => {
  const guard = new VersionGuard();
  // Of tags that this server was never asked for it remembers nothing, however many a store has.
  guard.observeFloor(rowOf(7n));
  expect([...guard.claims()]).toEqual([]);
  guard.observe("t", at(1n));
  guard.observeFloor({ ...rowOf(7n), version: 0n });
  guard.observeFloor({
    ...rowOf(7n),
    kind: { kind: "object_id", variant: "CLASSIC" },
  });
  expect([...guard.claims()]).toEqual([]);
  for (const floor of [70n, 50n]) guard.observeFloor(rowOf(floor));
  expect([...guard.claims()]).toEqual([{ tag: "t", period: "", last: 70n }]);
  guard.admitIds("t", ids(71n, 5));
  expect([...guard.claims()]).toEqual([{ tag: "t", period: "", last: 75n }]);
  // An accept ends what was seen of versions, not what was seen to be gone.
  guard.startHistory();
  guard.observeFloor(rowOf(60n));
  guard.observeFloor(rowOf(90n));
  expect([...guard.claims()]).toEqual([{ tag: "t", period: "", last: 90n }]);
});

interface Told {
  readonly isGrant: boolean;
  readonly period: string;
  readonly last: bigint;
}

/** What a guard claims that was told of grants and floors, and what it was told. */
function claimsAfter(all: readonly Told[]) {
  const guard = new VersionGuard();
  guard.observe("t", at(1n));
  const wanted = new Map<string, bigint>();
  let seen = { period: "", last: 0n };
  for (const { isGrant, period, last } of all) {
    if (isGrant) {
      if (guard.admitIds("t", ids(last, 1, 1n, period)) === "new") wanted.set(period, last);
    } else {
      guard.observeFloor(rowOf(last, period));
      const before = seen.period === period ? seen.last : 0n;
      seen = { period, last: last > before ? last : before };
    }
  }
  if (seen.last > (wanted.get(seen.period) ?? 0n)) wanted.set(seen.period, seen.last);
  return { claims: [...guard.claims()].map(({ period, last }) => [period, last] as const), wanted };
}

test("the version guard claims of each period once, all that it was granted or saw", () => {
  const period = fc.constantFrom("2026-01-01", "2026-01-02");
  const told = fc.record({ isGrant: fc.boolean(), period, last: fc.bigInt(1n, 99n) });
  fc.assert(
    fc.property(fc.array(told), (all) => {
      const { claims, wanted } = claimsAfter(all);
      expect(new Map(claims)).toEqual(wanted);
      expect(claims).toHaveLength(wanted.size);
    }),
  );
});

test("the version guard keeps a period once, the one that was left last in front", () => {
  const guard = new VersionGuard();
  for (const [day, first] of [
    ["a", 1n],
    ["b", 1n],
    ["a", 2n],
    ["b", 2n],
    ["a", 3n],
  ] as const)
    expect(guard.admitIds("t", ids(first, 1, 1n, day))).toBe("new");
  expect([...guard.claims()].map(({ period, last }) => [period, last])).toEqual([
    ["a", 3n],
    ["b", 2n],
  ]);
});

test("the version guard's watch tells of each tag in turn what was seen and granted", () => {
  const guard = new VersionGuard();
  guard.admitIds("never seen", ids(1n, 1));
  for (const tag of ["a", "b", "c"]) guard.observe(tag, at(2n));
  guard.admitIds("b", ids(1n, 5));
  const cursor = { after: 0 };
  const round = (limit: number) => [...guard.watch(limit, cursor)].map(({ tag }) => tag);
  expect([round(2), cursor.after]).toEqual([["a"], 2]);
  expect([...guard.watch(1, cursor)]).toEqual([
    { tag: "b", version: 2n, granted: { period: "", epoch: 1n, last: 5n } },
  ]);
  // Over the end, in the order of the tags.
  expect([round(3), cursor.after]).toEqual([["a", "c"], 2]);
  expect([round(9), cursor.after]).toEqual([["a", "b", "c"], 2]);
});

const HISTORY = "history-1";

/** A guard that goes on with what an earlier life was granted of a tag, and what it tells its keeper. */
function resumed(kept: Partial<KeptTag> = {}): { guard: VersionGuard; told: unknown[] } {
  const guard = new VersionGuard();
  const told: unknown[] = [];
  const tag = { tag: "a", granted: granted(20n), others: [], version: 7n, ...kept };
  guard.resume(HISTORY, [tag], { granted: (...what) => void told.push(what) });
  return { guard, told };
}

function granted(last: bigint, period = "", epoch = 1n): HighestGranted {
  return { period, epoch, last };
}

test("the version guard keeps over a restart what was granted, of all periods", () => {
  const others = [granted(9n, "2026-01-01")];
  const now = granted(20n, "2026-01-02");
  const { guard } = resumed({ granted: now, others });
  expect([...guard.kept()]).toEqual([{ tag: "a", granted: now, others, version: 7n }]);
  expect([...guard.claims()].map(({ last }) => last)).toEqual([20n, 9n]);
  const one = { epoch: 2n, first: 20n, last: 30n, period: "2026-01-02" };
  expect(guard.admitIds("a", one)).toBe("below");
  expect(guard.admitIds("a", { ...one, epoch: 1n })).toBe("again");
  guard.observe("b", { version: 3n, epoch: 1n });
  // Of a tag that nothing was granted of there is nothing to keep.
  expect([...guard.kept()].map(({ tag }) => tag)).toEqual(["a"]);
});

test("the version guard keeps no other periods where there are none", () => {
  const { guard } = resumed();
  expect([...guard.watch(10, { after: 0 })]).toEqual([]);
  guard.entered(HISTORY);
  expect([...guard.kept()]).toEqual([{ tag: "a", granted: granted(20n), others: [], version: 7n }]);
  expect(guard.admitIds("a", { epoch: 1n, first: 21n, last: 30n, period: "p" })).toBe("new");
  expect([...guard.kept()][0]?.others).toEqual([granted(20n)]);
});

test("the version guard holds the store to a version that an earlier life saw, in the same history", () => {
  const { guard } = resumed();
  expect(guard.seen("a")).toBe(0n);
  guard.entered(HISTORY);
  expect(guard.seen("a")).toBe(7n);
  expect([...guard.watch(10, { after: 0 })]).toEqual([
    { tag: "a", version: 7n, granted: granted(20n) },
  ]);
  // It is taken once.
  guard.startHistory();
  guard.entered(HISTORY);
  expect(guard.seen("a")).toBe(0n);
});

test("the version guard holds another history to it only for answers of the same epoch", () => {
  const { guard } = resumed();
  guard.entered("history-2");
  expect(guard.seen("a")).toBe(0n);
  expect(guard.admitGrant("a", 0n, { version: 7n, epoch: 1n })).toBe(false);
  expect(resumedElsewhere().admitGrant("a", 0n, { version: 1n, epoch: 2n })).toBe(true);
});

function resumedElsewhere(): VersionGuard {
  const { guard } = resumed();
  guard.entered("history-2");
  return guard;
}

test("the version guard takes a version of 0 for none that was seen", () => {
  const { guard, told } = resumed({ version: 0n });
  guard.entered(HISTORY);
  expect([...guard.watch(10, { after: 0 })]).toEqual([]);
  expect([...guard.kept()][0]?.version).toBe(0n);
  guard.giveBack("a", { from: 16n, to: 20n });
  expect(told).toEqual([["a", granted(15n), 0n]]);
  const lowest = resumed({ version: 1n }).guard;
  lowest.entered(HISTORY);
  expect(lowest.seen("a")).toBe(1n);
});

test("the version guard tells its keeper of grants before they are used, and of ids that go back", () => {
  const { guard, told } = resumed();
  expect(guard.admitIds("a", { epoch: 1n, first: 21n, last: 30n, period: "" })).toBe("new");
  guard.entered(HISTORY);
  guard.observe("a", { version: 8n, epoch: 1n });
  expect(guard.admitIds("a", { epoch: 1n, first: 31n, last: 40n, period: "" })).toBe("new");
  expect(guard.giveBack("a", { from: 36n, to: 40n })).toBe(true);
  // Ids below others that were granted since stay granted.
  expect(guard.giveBack("a", { from: 31n, to: 33n })).toBe(true);
  expect(guard.giveBack("never", { from: 1n, to: 3n })).toBe(true);
  expect(told).toEqual([
    ["a", granted(30n), 0n],
    ["a", granted(40n), 8n],
    ["a", granted(35n), 8n],
  ]);
});

test("the version guard lets no ids go back that its keeper cannot keep", () => {
  const guard = new VersionGuard();
  let isFull = false;
  guard.resume(HISTORY, [], {
    granted: () => {
      if (isFull) throw new Error("the disk is full");
    },
  });
  expect(guard.admitIds("a", { epoch: 1n, first: 1n, last: 10n, period: "" })).toBe("new");
  isFull = true;
  expect(guard.giveBack("a", { from: 6n, to: 10n })).toBe(false);
  expect(guard.highest("a", "")).toEqual(granted(10n));
  isFull = false;
  expect(guard.giveBack("a", { from: 6n, to: 10n })).toBe(true);
  expect(guard.highest("a", "")).toEqual(granted(5n));
});

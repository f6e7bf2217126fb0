import { MAX_ID } from "@idmint/core";
import { acceptAsking, type ClaimsAnswer, MAX_CLAIMS, type Store } from "@idmint/core/server";
import { expect } from "vitest";
import { ask, askCases, askedIn, claimantOf, of, say, tagOf, take } from "./suite-asks.ts";
import {
  noonZone,
  codeOf,
  dayOf,
  granted,
  grantedOf,
  NO_CHECK,
  reasonOf,
  sequenceOf,
  settingsOf,
  type StoreHarness,
  type Suite,
} from "./support.ts";
import { snowflakeOf } from "../workers/support.ts";

/** A sequence that begins anew each day. */
function daily(name: string) {
  const { timeZone } = noonZone();
  return sequenceOf(name, { periods: { unit: "DAY", timeZone, keepForMs: 86_400_000 } });
}

function flake(name: string) {
  return snowflakeOf(name, { place: { registry: "STORE" } });
}

/** Registers what a store must do of claims. */
export function claimCases(suite: Suite): void {
  askCases(suite);
  takeCases(suite);
  madeAgainCases(suite);
  periodCases(suite);
  madeSequenceCases(suite);
  manyCases(suite);
}

function takeCases(suite: Suite): void {
  suite("an accept raises floors to what was claimed, and adds the gap", async (store, open) => {
    const other = await open();
    for (const name of ["a", "b", "c"]) await store.createTag(settingsOf(name));
    await granted(store, "b", { count: 50 });
    await ask(store, "x");
    await say(store, "x", [of("a", 7n), of("b", 40n)]);
    await say(other, "x", [of("a", 1_000n), of("b", 30n)], { claimant: claimantOf("n2") });
    await say(store, "x", [of("a", 900n)], { claimant: claimantOf("n3") });
    const { tags, claims } = await take(store, "x", 5n);
    expect(tags).toBe(3);
    expect(claims).toMatchObject({ raised: 1, most: { tag: "a", by: 1_000n }, lost: 0 });
    const floors = (await store.getTags(["a", "b", "c"])).map(({ name, floor }) => [name, floor]);
    expect(new Map(floors as [string, bigint][])).toEqual(
      new Map([
        ["a", 1_005n],
        ["b", 55n],
        ["c", 5n],
      ]),
    );
    expect((await granted(other, "a")).base).toBe(1_006n);
    // They were taken once.
    expect(await askedIn(store)).toEqual([undefined]);
    expect(await reasonOf(take(store, "x"))).toBe("STORE_UNAVAILABLE");
    await ask(store, "y");
    expect((await take(store, "y")).claims).toMatchObject({ raised: 0, claimants: [] });
  });

  suite(
    "what was claimed without an ask, or for another one, counts for nothing",
    async (store) => {
      await store.createTag(settingsOf("t"));
      expect(await say(store, "a", [of("t", 90n)])).toBe("not-asked");
      await ask(store, "b");
      expect(await say(store, "a", [of("t", 90n)])).toBe("not-asked");
      expect(await reasonOf(take(store, "a"))).toBe("STORE_UNAVAILABLE");
      expect((await take(store, "b")).claims).toMatchObject({ raised: 0, claimants: [] });
      expect((await tagOf(store, "t")).floor).toBe(0n);
      // An accept that asks nobody takes nothing.
      await ask(store, "c");
      await say(store, "c", [of("t", 90n)]);
      expect((await store.accept(0n)).claims).toBe(undefined);
      expect((await tagOf(store, "t")).floor).toBe(0n);
    },
  );

  suite("a claim that reaches the end of a tag is taken only when it is trusted", async (store) => {
    await store.createTag(settingsOf("t", { ceiling: 100n }));
    const { epoch } = await tagOf(store, "t");
    await ask(store, "a");
    await say(store, "a", [of("t", 100n)]);
    expect(await codeOf(take(store, "a"))).toBe("INVALID_ARGUMENT");
    expect(await tagOf(store, "t")).toMatchObject({ floor: 0n, epoch });
    // Of several databases some may have been accepted, so servers are asked again.
    await store.withdrawAsk("a");
    await ask(store, "b");
    await say(store, "b", [of("t", 100n)]);
    await take(store, "b", 0n, true);
    expect((await tagOf(store, "t")).floor).toBe(100n);
    // A tag that had ended has no floor below a claim.
    await ask(store, "c");
    await say(store, "c", [of("t", 100n)]);
    expect((await take(store, "c")).claims).toMatchObject({ raised: 0 });
  });

  suite("a name that the store has lost begins above what was claimed of it", async (store) => {
    await ask(store, "a");
    await say(store, "a", [of("gone", 500n), of("daily", 9n, "2026-03-01")]);
    const { claims } = await take(store, "a", 10n);
    expect(claims).toMatchObject({ raised: 0, lost: 2 });
    expect(await tagOf(store, "gone")).toMatchObject({ state: "DELETED", floor: 510n });
    const made = await store.createTag(settingsOf("gone"));
    expect(made.version).toBeGreaterThan(0n);
    expect((await granted(store, "gone")).base).toBe(511n);
    await store.createTag(daily("daily"));
    expect((await grantedOf(store, "daily")).base).toBe(20n);
  });
}

/** Of ten new tags: each database of a spread store has epochs of its own. */
async function lowestEpochOfNew(store: Store, name: string): Promise<bigint> {
  let lowest: bigint | undefined;
  for (let at = 0; at < 10; at++) {
    const { epoch } = await store.createTag(settingsOf(`${name} ${at}`));
    if (lowest === undefined || epoch < lowest) lowest = epoch;
  }
  return lowest ?? 0n;
}

function madeAgainCases(suite: Suite): void {
  suite(
    "a tag that is made after an accept is of an epoch that no history of before had",
    async (store) => {
      const before = await lowestEpochOfNew(store, "t");
      await store.accept(0n);
      const made = await lowestEpochOfNew(store, "later");
      expect(made).toBeGreaterThan(before);
      await store.accept(0n);
      // Within the same second too.
      expect(await lowestEpochOfNew(store, "later still")).toBeGreaterThan(made);
      // Workers of a tag that was lost may have time left, as those of a tag that is there.
      const { floor } = await store.createTag(flake("kept"));
      await store.accept(0n);
      const { floor: least } = await tagOf(store, "kept");
      const lost = await store.createTag(flake("lost"));
      expect(lost.floor).toBeGreaterThan(floor);
      // That of a tag that is there was ahead of the clock, and is 13 s further now.
      expect(lost.floor).toBeGreaterThan(least - (15_000n << 18n));
    },
  );
}

function periodCases(suite: Suite): void {
  suite("a claim counts for its period", async (store, _open, harness) => {
    await store.createTag(daily("d"));
    const { period } = await grantedOf(store, "d", 10);
    const today = period?.start ?? "";
    await ask(store, "a");
    await say(store, "a", [of("d", 99n, "2001-01-01"), of("d", 30n, today)]);
    expect((await take(store, "a", 1n)).claims).toMatchObject({ raised: 1, most: { by: 20n } });
    expect(await tagOf(store, "d")).toMatchObject({ periodStart: today, floor: 31n });
    // The store is from yesterday, and servers were granted ids of today.
    await harness.shiftPeriods(-1);
    await ask(store, "b");
    await say(store, "b", [of("d", 44n, today)]);
    await take(store, "b", 1n);
    expect(await tagOf(store, "d")).toMatchObject({ periodStart: today, floor: 45n });
  });

  suite(
    "a claim of a period that an operator went back from is kept for it",
    async (store, _open, harness) => {
      await store.createTag(daily("d"));
      const { period } = await grantedOf(store, "d", 10);
      const today = period?.start ?? "";
      // The clock had been a day ahead.
      await harness.shiftPeriods(1);
      const [ahead] = await store.getTags(["d"]);
      const tomorrow = ahead?.periodStart ?? "";
      expect(tomorrow > today).toBe(true);
      await store.returnToPeriod("d", { start: today, floor: 5n }, { expectedRevision: NO_CHECK });
      await ask(store, "a");
      await say(store, "a", [of("d", 50n, tomorrow)]);
      await take(store, "a", 2n);
      const tag = await tagOf(store, "d");
      expect(tag).toMatchObject({ periodStart: today, floor: 7n });
      expect(tag.otherPeriods?.find(({ start }) => start === tomorrow)?.lastId).toBe(52n);
    },
  );
}

/** Whether a sequence that is made over a deleted row begins in the period after the present one, above 50, and the next one at 1. */
async function beginsTomorrow(store: Store, harness: StoreHarness, name: string): Promise<void> {
  await store.createTag(daily(name));
  const { base, period } = await grantedOf(store, name);
  expect({ base, start: period?.start }).toEqual({ base: 53n, start: tomorrow() });
  expect(period?.doubt).toBe("AHEAD");
  // When its time comes it goes on, and days after it begin at 1.
  await harness.shiftPeriods(-1);
  expect((await grantedOf(store, name)).base).toBe(54n);
  await harness.shiftPeriods(-1);
  expect((await grantedOf(store, name)).base).toBe(1n);
}

function tomorrow(): string {
  return dayOf(Date.now() + noonZone().offsetMs + 86_400_000);
}

function madeSequenceCases(suite: Suite): void {
  suite(
    "a sequence that the store has lost begins in no period before the latest that was claimed",
    async (store, _open, harness) => {
      await ask(store, "a");
      const today = dayOf(Date.now() + noonZone().offsetMs);
      await say(store, "a", [of("d", 50n, today), of("d", 7n, tomorrow())]);
      await take(store, "a", 2n);
      await beginsTomorrow(store, harness, "d");
    },
  );

  suite(
    "nor does one that is made where the store has a tag of another kind",
    async (store, _open, harness) => {
      await store.createTag(settingsOf("d"));
      await ask(store, "a");
      await say(store, "a", [of("d", 50n, tomorrow())]);
      await take(store, "a", 2n);
      await store.setTagState("d", "DELETED", NO_CHECK);
      await beginsTomorrow(store, harness, "d");
    },
  );
}

function manyCases(suite: Suite): void {
  suite("claims of many tags come in pages, from several servers at once", async (store, open) => {
    const names = Array.from({ length: MAX_CLAIMS + 200 }, (_, at) => `t${at}`);
    await Promise.all(names.slice(0, 3).map((name) => store.createTag(settingsOf(name))));
    await ask(store, "a");
    const speak = async (id: string, plus: bigint) => {
      const handle = await open();
      const claimant = claimantOf(id);
      const all = names.map((name, at) => of(name, BigInt(at) + plus));
      const pages = [all.slice(0, MAX_CLAIMS), all.slice(MAX_CLAIMS)];
      for (const [page, claims] of pages.entries()) {
        const isLast = page === pages.length - 1;
        expect(await say(handle, "a", claims, { claimant, page, isLast })).toBe("heard");
      }
    };
    const work = [speak("n1", 5n), speak("n2", 9n), speak("n3", 2n)];
    // Operators change tags meanwhile.
    for (const name of names.slice(0, 3)) {
      await store.setTagState(name, "PAUSED", NO_CHECK);
      await store.setTagState(name, "ACTIVE", NO_CHECK);
    }
    await Promise.all(work);
    const { claims } = await take(store, "a");
    expect(claims).toMatchObject({ raised: 3, lost: names.length - 3 });
    expect((await granted(store, "t2")).base).toBe(12n);
    expect(await tagOf(store, `t${MAX_CLAIMS + 100}`)).toMatchObject({
      floor: BigInt(MAX_CLAIMS) + 109n,
    });
  });

  suite("an accept takes what is said while it waits", async (store, open) => {
    const other = await open();
    await store.createTag(settingsOf("t"));
    const times = { leastMs: 50, mostMs: 5_000, longestMs: 10_000, pauseMs: 1_000 };
    const clock = { now: () => performance.now() };
    const timers = {
      after: (ms: number, run: () => void) => {
        const timer = setTimeout(run, ms);
        return () => clearTimeout(timer);
      },
    };
    const accepting = acceptAsking({ store, clock, timers, nonce: "a", times }, { gap: 1n });
    let answer: ClaimsAnswer = "not-asked";
    const startedAt = performance.now();
    while (answer !== "heard" && performance.now() - startedAt < 5_000) {
      answer = await other.claim({
        nonce: "a",
        claimant: claimantOf("n1"),
        claims: [of("t", MAX_ID - 5n)],
        page: 0,
        isLast: true,
      });
    }
    const report = await accepting;
    expect(report).toMatchObject({ tags: 1, claims: { raised: 1, lost: 0 } });
    expect(report.claims.servers).toMatchObject([{ id: "n1", told: "all" }]);
    expect((await tagOf(store, "t")).floor).toBe(MAX_ID - 4n);
  });
}

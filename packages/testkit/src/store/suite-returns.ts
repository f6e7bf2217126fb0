// The way back of a sequence whose period a clock that had jumped began.
import type { Granted } from "@idmint/core/server";
import { expect } from "vitest";
import {
  DAY_MS,
  daily,
  dayOf,
  ended,
  grantedOf,
  NO_CHECK,
  reasonOf,
  sequenceOf,
  type Suite,
} from "./support.ts";

/** The first day so many days from a period that was granted. */
function daysFrom({ period }: Granted, days: number): string {
  return dayOf(Date.parse(period?.start ?? "") + days * DAY_MS);
}

const ANY_ETAG = { expectedRevision: undefined };

/** What becomes of a tag whose period a clock that had jumped began, and of the operator's way back from it. */
export function returnCases(suite: Suite): void {
  suite(
    "a tag goes back from a period ahead of the clock, above what the earlier one gave",
    async (store, _open, harness) => {
      await store.createTag(sequenceOf("t", { periods: daily() }));
      const first = await grantedOf(store, "t", 3);
      // The clock was two days ahead for one grant, and is right again.
      await harness.shiftPeriods(-2);
      await grantedOf(store, "t", 5);
      await harness.shiftPeriods(2);
      const ahead = await grantedOf(store, "t");
      expect(ahead).toMatchObject({
        base: 6n,
        period: { doubt: "AHEAD", start: daysFrom(first, 2) },
      });
      const period = { start: daysFrom(first, 0), floor: undefined };
      const would = await store.returnToPeriod("t", period, { ...ANY_ETAG, validateOnly: true });
      expect(would).toMatchObject({ returned: true, tag: { floor: 3n } });
      expect(await grantedOf(store, "t")).toMatchObject({ base: 7n, epoch: 1n });
      const back = await store.returnToPeriod("t", period, ANY_ETAG);
      expect(back).toMatchObject({
        returned: true,
        tag: { floor: 3n, periodStart: period.start, version: 5n, epoch: 2n },
      });
      expect(await store.returnToPeriod("t", period, ANY_ETAG)).toEqual({
        ...back,
        returned: false,
      });
      const next = await grantedOf(store, "t", 2);
      expect(next).toMatchObject({ base: 4n, epoch: 2n, period: { start: period.start } });
      expect(next.period?.doubt).toBeUndefined();
      expect((await ended(store)).map(({ start, lastId }) => [start, lastId])).toEqual([
        [daysFrom(first, 2), 7n],
      ]);
      expect((await store.changes({ since: 0n, watched: [], limit: 5 })).changed).toMatchObject([
        { name: "t", epoch: 2n },
      ]);
    },
  );

  suite(
    "a period that was left goes on above its own ids when its time comes",
    async (store, _open, harness) => {
      await store.createTag(sequenceOf("t", { periods: daily() }));
      const first = await grantedOf(store, "t", 3);
      await harness.shiftPeriods(-2);
      await grantedOf(store, "t", 5);
      await harness.shiftPeriods(2);
      await store.returnToPeriod("t", { start: daysFrom(first, 0), floor: undefined }, ANY_ETAG);
      await harness.shiftPeriods(-1);
      // The day between is one like any other.
      expect((await grantedOf(store, "t")).base).toBe(1n);
      await harness.shiftPeriods(-1);
      expect((await grantedOf(store, "t", 2)).base).toBe(6n);
      await harness.shiftPeriods(-1);
      expect((await grantedOf(store, "t")).base).toBe(1n);
      expect((await ended(store)).map(({ lastId }) => lastId)).toEqual([7n, 1n, 3n]);
    },
  );

  suite(
    "a period that is not known is gone back to only with a bound",
    async (store, _open, harness) => {
      await store.createTag(sequenceOf("t", { ceiling: 100n, periods: daily() }));
      const first = await grantedOf(store, "t", 3);
      await harness.shiftPeriods(3);
      const to = async (start: string, floor?: bigint): Promise<unknown> =>
        store.returnToPeriod("t", { start, floor }, ANY_ETAG);
      const today = daysFrom(first, 0);
      for (const [start, floor, field] of [
        [today, undefined, "floor"],
        [today, -1n, "floor"],
        [today, 101n, "floor"],
        [daysFrom(first, 4), 0n, "period"],
        ["2026-02-30", 0n, "period"],
        ["yesterday", 0n, "period"],
        ["", 0n, "period"],
      ] as const) {
        await expect(to(start, floor), start).rejects.toMatchObject({
          reason: "INVALID_ARGUMENT",
          violations: [expect.objectContaining({ field })],
        });
      }
      await to(today, 40n);
      expect((await grantedOf(store, "t")).base).toBe(41n);
    },
  );

  suite(
    "a bound below what the period is known to have given is refused",
    async (store, _open, harness) => {
      await store.createTag(sequenceOf("t", { periods: daily() }));
      const first = await grantedOf(store, "t", 3);
      await harness.shiftPeriods(-1);
      await grantedOf(store, "t", 5);
      const start = daysFrom(first, -1);
      expect(await reasonOf(store.returnToPeriod("t", { start, floor: 2n }, ANY_ETAG))).toBe(
        "INVALID_ARGUMENT",
      );
      await store.returnToPeriod("t", { start, floor: 9n }, ANY_ETAG);
      // The clock is in the later one, which begins again at once, above its own ids.
      expect((await grantedOf(store, "t")).base).toBe(6n);
      expect((await ended(store)).map(({ lastId }) => lastId)).toEqual([9n]);
    },
  );

  suite("only a first day of the unit is gone back to", async (store) => {
    const periods = { ...daily(), unit: "MONTH" as const };
    await store.createTag(sequenceOf("t", { periods }));
    await grantedOf(store, "t");
    const to = async (start: string): Promise<unknown> =>
      store.returnToPeriod("t", { start, floor: 5n }, ANY_ETAG);
    expect(await reasonOf(to("2020-02-02"))).toBe("INVALID_ARGUMENT");
    await to("2020-02-01");
  });

  suite(
    "only an earlier period of a sequence is gone back to, by who read it last",
    async (store) => {
      await store.createTag(sequenceOf("t", { periods: daily() }));
      await store.createTag(sequenceOf("plain"));
      const first = await grantedOf(store, "t");
      const period = { start: daysFrom(first, -1), floor: 0n };
      expect(await reasonOf(store.returnToPeriod("plain", period, ANY_ETAG))).toBe("WRONG_KIND");
      expect(await reasonOf(store.returnToPeriod("none", period, ANY_ETAG))).toBe("TAG_NOT_FOUND");
      const stale = store.returnToPeriod("t", period, { expectedRevision: 99n });
      expect(await reasonOf(stale)).toBe("ETAG_MISMATCH");
    },
  );

  suite("a tag goes back from five periods, and no more", async (store) => {
    await store.createTag(sequenceOf("t", { periods: daily() }));
    const first = await grantedOf(store, "t");
    for (let ago = 1; ago <= 5; ago++) {
      await store.returnToPeriod("t", { start: daysFrom(first, -ago), floor: 0n }, ANY_ETAG);
    }
    const sixth = store.returnToPeriod("t", { start: daysFrom(first, -6), floor: 0n }, ANY_ETAG);
    expect(await reasonOf(sixth)).toBe("INVALID_ARGUMENT");
    expect((await grantedOf(store, "t")).base).toBe(2n);
  });

  suite(
    "after an accept earlier periods are not known, and later ones begin above the gap",
    async (store, _open, harness) => {
      await store.createTag(sequenceOf("t", { periods: daily() }));
      const first = await grantedOf(store, "t", 3);
      await harness.shiftPeriods(-2);
      await grantedOf(store, "t", 5);
      await harness.shiftPeriods(2);
      const start = daysFrom(first, 0);
      await store.returnToPeriod("t", { start, floor: undefined }, ANY_ETAG);
      await store.accept(10n);
      await harness.shiftPeriods(-2);
      expect((await grantedOf(store, "t")).base).toBe(16n);
      const back = daysFrom(first, -2);
      await store.accept(0n);
      expect(
        await reasonOf(store.returnToPeriod("t", { start: back, floor: undefined }, ANY_ETAG)),
      ).toBe("INVALID_ARGUMENT");
    },
  );

  suite(
    "a period that an accept forgot does not begin again at 1 after the tag went back over it",
    async (store, _open, harness) => {
      await store.createTag(sequenceOf("t", { periods: daily() }));
      await grantedOf(store, "t", 3);
      await harness.shiftPeriods(-1);
      const next = await grantedOf(store, "t", 5);
      await store.accept(0n);
      const to = async (day: number, floor: bigint): Promise<unknown> =>
        store.returnToPeriod("t", { start: daysFrom(next, day), floor }, ANY_ETAG);
      expect(await reasonOf(to(-2, 0n))).toBe("INVALID_ARGUMENT");
      await to(-1, 3n);
      await to(-2, 0n);
      await harness.shiftPeriods(1);
      expect((await grantedOf(store, "t")).base).toBe(4n);
      await harness.shiftPeriods(-1);
      expect((await grantedOf(store, "t")).base).toBe(6n);
    },
  );

  suite(
    "what a deleted sequence knows of its periods stays with its name",
    async (store, _open, harness) => {
      await store.createTag(sequenceOf("t", { periods: daily() }));
      const first = await grantedOf(store, "t", 3);
      await harness.shiftPeriods(-1);
      await grantedOf(store, "t", 5);
      await store.setTagState("t", "DELETED", NO_CHECK);
      await store.createTag(sequenceOf("t", { periods: daily() }));
      const start = daysFrom(first, -1);
      const { tag } = await store.returnToPeriod("t", { start, floor: undefined }, ANY_ETAG);
      expect(tag.floor).toBe(3n);
      expect((await grantedOf(store, "t")).base).toBe(6n);
    },
  );
}

// Sequences that start again in every period.
import type { IdmintError } from "@idmint/core";
import type { Granted } from "@idmint/core/server";
import { expect } from "vitest";
import { returnCases } from "./suite-returns.ts";
import {
  DAY_MS,
  YEARS_MS,
  daily,
  dayOf,
  ended,
  noonZone,
  FREE,
  grantedOf,
  NO_CHECK,
  raiseOf,
  reasonOf,
  refusalOf,
  sequenceOf,
  type Suite,
} from "./support.ts";

export function periodCases(suite: Suite): void {
  suite(
    "a sequence with days is told its day, by the store's clock, and its end",
    async (store) => {
      const { offsetMs } = noonZone();
      await store.createTag(sequenceOf("t", { periods: daily() }));
      const start = dayOf(Date.now() + offsetMs);
      const endsAtMs = Date.parse(start) + DAY_MS - offsetMs;
      const period = { start, unit: "DAY", endsAtMs };
      expect(await grantedOf(store, "t", 3)).toMatchObject({ base: 1n, version: 1n, period });
      expect(await grantedOf(store, "t", 2)).toMatchObject({ base: 4n, version: 2n, period });
      const [row] = await store.getTags(["t"]);
      expect(row).toMatchObject({ periodStart: start, floor: 5n, epoch: 1n });
      expect(await ended(store)).toEqual([]);
    },
  );

  for (const [unit, firstDay, next] of [
    ["WEEK", (day: Date) => day.getUTCDate() - ((day.getUTCDay() + 6) % 7), 7],
    ["MONTH", () => 1, 31],
    ["YEAR", () => 1, 366],
  ] as const) {
    suite(
      `a sequence with periods of a ${unit.toLowerCase()} begins at its first day`,
      async (store) => {
        const { timeZone, offsetMs } = noonZone();
        await store.createTag(
          sequenceOf("t", { periods: { unit, timeZone, keepForMs: YEARS_MS } }),
        );
        const today = new Date(Date.now() + offsetMs);
        const month = unit === "YEAR" ? 0 : today.getUTCMonth();
        const first = Date.UTC(today.getUTCFullYear(), month, firstDay(today));
        const { period } = await grantedOf(store, "t");
        expect(period?.start).toBe(dayOf(first));
        // Some day before the longest period is over lies in the next one, and its first day is the end.
        const end = new Date((period?.endsAtMs ?? 0) + offsetMs);
        expect(end.getTime()).toBeGreaterThan(today.getTime());
        expect(end.getTime()).toBeLessThanOrEqual(first + next * DAY_MS);
        expect(end.getTime() % DAY_MS).toBe(0);
        if (unit === "WEEK") expect(end.getUTCDay()).toBe(1);
        else expect(end.getUTCDate()).toBe(1);
        if (unit === "YEAR") expect(end.getUTCMonth()).toBe(0);
      },
    );
  }

  suite("each zone has its own day", async (store) => {
    const zones = ["Pacific/Kiritimati", "Etc/GMT+12"];
    const starts: (string | undefined)[] = [];
    for (const timeZone of zones) {
      await store.createTag(
        sequenceOf(`t${zones.indexOf(timeZone)}`, { periods: { ...daily(), timeZone } }),
      );
    }
    for (const at of [0, 1]) starts.push((await grantedOf(store, `t${at}`)).period?.start);
    // 26 hours lie between them.
    expect(Date.parse(starts[0] ?? "") - Date.parse(starts[1] ?? "")).toBeGreaterThanOrEqual(
      DAY_MS,
    );
  });

  turnCases(suite);
  historyCases(suite);
  acceptCases(suite);
  concurrencyCases(suite);
  returnCases(suite);

  for (const timeZone of ["Mars/Phobos", "CET", "+08:00", "", "Etc/GMT+5:30", "Asia/Shanghai'"]) {
    suite(`a time zone ${timeZone} is refused when a tag is made or changed`, async (store) => {
      const periods = { ...daily(), timeZone };
      const make = store.createTag(sequenceOf("t", { periods }));
      const error = (await make.catch((thrown: unknown) => thrown)) as IdmintError;
      expect(error).toMatchObject({ reason: "INVALID_ARGUMENT" });
      expect(error.violations[0]?.field).toBe("tag.sequence.time_zone");
      await store.createTag(sequenceOf("t"));
      const { order, ceiling, kind } = sequenceOf("t", { periods });
      const change = { settings: { order, ceiling, kind } };
      expect(await reasonOf(store.updateTag("t", change, NO_CHECK))).toBe("INVALID_ARGUMENT");
    });
  }
}

function turnCases(suite: Suite): void {
  suite("a new day begins at 1 again, in the same grant", async (store, _open, harness) => {
    await store.createTag(sequenceOf("t", { periods: daily() }));
    const first = await grantedOf(store, "t", 3);
    await harness.shiftPeriods(-1);
    const beforeMs = Date.now();
    const second = await grantedOf(store, "t", 2);
    expect(second).toMatchObject({ base: 1n, version: 2n, epoch: 1n, period: first.period });
    const yesterday = dayOf(Date.parse(first.period?.start ?? "") - DAY_MS);
    const [last, ...others] = await ended(store);
    expect(others).toEqual([]);
    expect(last).toMatchObject({ start: yesterday, lastId: 3n });
    expect(Math.abs((last?.endedAtMs ?? 0) - beforeMs)).toBeLessThan(10_000);
    expect((await store.getTags(["t"]))[0]).toMatchObject({
      floor: 2n,
      periodStart: first.period?.start,
    });
  });

  suite("a clock that went back keeps the period and its end", async (store, _open, harness) => {
    await store.createTag(sequenceOf("t", { periods: daily() }));
    const first = await grantedOf(store, "t", 3);
    await harness.shiftPeriods(2);
    const start = dayOf(Date.parse(first.period?.start ?? "") + 2 * DAY_MS);
    const endsAtMs = (first.period?.endsAtMs ?? 0) + 2 * DAY_MS;
    const period = { start, unit: "DAY", endsAtMs };
    expect(await grantedOf(store, "t", 2)).toMatchObject({ base: 4n, period });
    expect(await ended(store)).toEqual([]);
    expect((await store.getTags(["t"]))[0]).toMatchObject({ floor: 5n, periodStart: start });
  });

  suite("a refused grant begins no period", async (store, _open, harness) => {
    await store.createTag(sequenceOf("t", { ceiling: 5n, periods: daily() }));
    await grantedOf(store, "t", 5);
    await harness.shiftPeriods(-1);
    const before = await store.getTags(["t"]);
    expect(await refusalOf(store, "t", 6)).toBe("TAG_EXHAUSTED");
    expect(await refusalOf(store, "t", 1, 9n)).toBe("STORE_EPOCH_CHANGED");
    expect(await store.getTags(["t"])).toEqual(before);
    expect(await ended(store)).toEqual([]);
  });

  suite("a period that is used up ends with the next one", async (store, _open, harness) => {
    await store.createTag(sequenceOf("t", { ceiling: 5n, periods: daily() }));
    await grantedOf(store, "t", 5);
    expect(await refusalOf(store, "t")).toBe("TAG_EXHAUSTED");
    await harness.shiftPeriods(-1);
    expect((await grantedOf(store, "t", 5)).base).toBe(1n);
    expect(await refusalOf(store, "t")).toBe("TAG_EXHAUSTED");
  });

  suite(
    "an operator raises the floor of the present period only",
    async (store, _open, harness) => {
      await store.createTag(sequenceOf("t", { periods: daily() }));
      await store.advanceTag("t", 10n, FREE);
      expect((await grantedOf(store, "t")).base).toBe(11n);
      await store.advanceTag("t", 20n, FREE);
      expect(await grantedOf(store, "t")).toMatchObject({ base: 21n, epoch: 3n });
      await harness.shiftPeriods(-1);
      expect((await grantedOf(store, "t")).base).toBe(1n);
      expect((await ended(store))[0]?.lastId).toBe(21n);
    },
  );
}

function historyCases(suite: Suite): void {
  suite("ended periods are listed newest first, page by page", async (store, _open, harness) => {
    await store.createTag(sequenceOf("t", { periods: daily() }));
    const { period } = await grantedOf(store, "t", 1);
    for (const count of [2, 3, 4, 5]) {
      await harness.shiftPeriods(-1);
      await grantedOf(store, "t", count);
    }
    const periods = await ended(store);
    expect(periods.map(({ lastId }) => lastId)).toEqual([4n, 3n, 2n, 1n]);
    const days = [1, 2, 3, 4].map((ago) => dayOf(Date.parse(period?.start ?? "") - ago * DAY_MS));
    expect(periods.map(({ start }) => start)).toEqual(days);
    expect(await ended(store, "", 2)).toEqual(periods.slice(0, 2));
    expect(await ended(store, days[1], 2)).toEqual(periods.slice(2));
    expect(await ended(store, days[3])).toEqual([]);
    expect(await store.listPeriods({ tag: "none", before: "", limit: 5 })).toEqual([]);
  });

  suite("a period that issued nothing is not remembered", async (store, _open, harness) => {
    await store.createTag(sequenceOf("t", { periods: daily() }));
    await store.accept(0n);
    expect((await store.getTags(["t"]))[0]).toMatchObject({ floor: 0n });
    await harness.shiftPeriods(-1);
    expect((await grantedOf(store, "t")).base).toBe(1n);
    expect(await ended(store)).toEqual([]);
  });

  suite("ended periods are forgotten after their time", async (store, _open, harness) => {
    const settings = sequenceOf("t", { periods: daily(3.5 * DAY_MS) });
    await store.createTag(settings);
    for (let day = 0; day < 7; day++) {
      await grantedOf(store, "t", day + 1);
      await harness.shiftPeriods(-1);
    }
    // The last one has not ended: nobody asked for an id since.
    expect((await ended(store)).map(({ lastId }) => lastId)).toEqual([6n, 5n, 4n]);
    await grantedOf(store, "t", 8);
    expect((await ended(store)).map(({ lastId }) => lastId)).toEqual([7n, 6n, 5n, 4n]);
    const kind = sequenceOf("t", { periods: daily() });
    await store.updateTag("t", { settings: kind }, NO_CHECK);
    // Those before are gone and not merely left out.
    expect((await ended(store)).map(({ lastId }) => lastId)).toEqual([7n, 6n, 5n, 4n]);
  });

  suite(
    "the periods of a deleted sequence go on with the next of its name",
    async (store, _open, harness) => {
      await store.createTag(sequenceOf("t", { periods: daily() }));
      await grantedOf(store, "t", 3);
      await store.setTagState("t", "DELETED", NO_CHECK);
      await harness.shiftPeriods(-1);
      await store.createTag(sequenceOf("t", { periods: daily() }));
      expect((await grantedOf(store, "t")).base).toBe(1n);
      expect((await ended(store)).map(({ lastId }) => lastId)).toEqual([3n]);
    },
  );
}

function acceptCases(suite: Suite): void {
  suite("accepting raises the floor of the present period", async (store) => {
    await store.createTag(sequenceOf("t", { periods: daily() }));
    await grantedOf(store, "t", 3);
    await store.accept(10n);
    expect((await grantedOf(store, "t")).base).toBe(14n);
    expect(await ended(store)).toEqual([]);
  });

  suite(
    "accepting begins the period that the lost history may have begun, above the gap",
    async (store, _open, harness) => {
      await store.createTag(sequenceOf("t", { periods: daily() }));
      await store.createTag(sequenceOf("fresh", { periods: daily() }));
      const { period } = await grantedOf(store, "t", 3);
      await harness.shiftPeriods(-1);
      await store.accept(10n);
      const [row] = await store.getTags(["t"]);
      expect(row).toMatchObject({ floor: 10n, periodStart: period?.start, version: 2n });
      expect(await grantedOf(store, "t")).toMatchObject({ base: 11n, period });
      expect((await ended(store)).map(({ lastId }) => lastId)).toEqual([3n]);
      expect(await grantedOf(store, "fresh")).toMatchObject({ base: 11n, period });
    },
  );

  suite("accepting keeps a period that is ahead of the clock", async (store, _open, harness) => {
    await store.createTag(sequenceOf("t", { ceiling: 8n, periods: daily() }));
    await grantedOf(store, "t", 3);
    await harness.shiftPeriods(2);
    await store.accept(100n);
    expect((await store.getTags(["t"]))[0]).toMatchObject({ floor: 8n });
    expect(await refusalOf(store, "t")).toBe("TAG_EXHAUSTED");
  });
}

function concurrencyCases(suite: Suite): void {
  suite(
    "when several handles meet a new day at once, it begins once, and the old one's last id is right",
    async (first, open, harness) => {
      const handles = [first, await open(), await open()];
      await first.createTag(sequenceOf("t", { periods: daily() }));
      const grants: Granted[] = [];
      for (let day = 0; day < 6; day++) {
        await Promise.all(
          handles.flatMap((handle, at) =>
            [0, 1].map(async (lane) => {
              for (let round = 0; round < 3; round++) {
                grants.push(await grantedOf(handle, "t", 1 + ((day + at + lane) % 4)));
              }
            }),
          ),
        );
        if (day < 5) await harness.shiftPeriods(-1);
      }
      // Versions tell the order: each grant follows the one before, or begins a day.
      const lastIds: bigint[] = [];
      let next = 1n;
      for (const { base, count } of grants.toSorted((a, b) => (a.version < b.version ? -1 : 1))) {
        if (base === 1n && next !== 1n) {
          lastIds.push(next - 1n);
          next = 1n;
        }
        expect(base).toBe(next);
        next = base + BigInt(count);
      }
      expect(lastIds).toHaveLength(5);
      expect((await ended(first)).map(({ lastId }) => lastId)).toEqual(lastIds.toReversed());
    },
  );

  suite("a tag with periods is not raised", async (store) => {
    await store.createTag(sequenceOf("t", { periods: daily() }));
    expect(await store.raise(raiseOf("t", { by: 1n }))).toMatchObject({ reason: "WRONG_KIND" });
  });
}

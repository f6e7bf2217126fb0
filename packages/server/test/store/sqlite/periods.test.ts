// Periods by a clock that the test moves.
import type { Store } from "@idmint/core/server";
import { grantedOf, reasonOf, sequenceOf, settingsOf } from "@idmint/testkit/store-suite";
import { expect, test, vi } from "vitest";
import { open as openSqlite } from "../../../src/store/sqlite/store.ts";
import { sqlInAnotherProcess } from "../children.ts";
import { type SqliteHarness, sqliteHarness } from "../harness.ts";

// Every handle starts a thread, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 30_000 });

const HOUR_MS = 3_600_000;

/** A wall clock for the threads of several handles. */
class MovedClock {
  readonly buffer = new SharedArrayBuffer(8);
  readonly #offset = new BigInt64Array(this.buffer);

  set(time: string): void {
    Atomics.store(this.#offset, 0, BigInt(Date.parse(time) - Date.now()));
  }
}

async function withClock(
  timeZone: string,
  work: (store: Store, clock: MovedClock, harness: SqliteHarness) => Promise<void>,
): Promise<void> {
  const harness = await sqliteHarness();
  const clock = new MovedClock();
  const store = await openSqlite(harness.config, undefined, clock.buffer);
  try {
    const periods = { unit: "DAY", timeZone, keepForMs: 10 * 24 * HOUR_MS } as const;
    await store.createTag(sequenceOf("t", { periods }));
    await work(store, clock, harness);
  } finally {
    await store.close();
    await harness.remove();
  }
}

/** What the next grant of one id says: its period, the id, and the period's end. */
async function next(store: Store): Promise<string> {
  const { period, base } = await grantedOf(store, "t");
  return `${period?.start} ${base} ${new Date(period?.endsAtMs ?? 0).toISOString()}`;
}

test("a day of 23 hours and one of 25 end at midnight", async () => {
  await withClock("America/New_York", async (store, clock) => {
    clock.set("2026-03-08T05:00:10Z");
    expect(await next(store)).toBe("2026-03-08 1 2026-03-09T04:00:00.000Z");
    clock.set("2026-03-09T03:59:30Z");
    expect(await next(store)).toBe("2026-03-08 2 2026-03-09T04:00:00.000Z");
    clock.set("2026-03-09T04:00:01Z");
    expect(await next(store)).toBe("2026-03-09 1 2026-03-10T04:00:00.000Z");
    clock.set("2026-11-01T04:00:01Z");
    expect(await next(store)).toBe("2026-11-01 1 2026-11-02T05:00:00.000Z");
    // One o'clock for the second time.
    clock.set("2026-11-01T06:30:00Z");
    expect(await next(store)).toBe("2026-11-01 2 2026-11-02T05:00:00.000Z");
    clock.set("2026-11-02T04:30:00Z");
    expect(await next(store)).toBe("2026-11-01 3 2026-11-02T05:00:00.000Z");
    clock.set("2026-11-02T05:00:01Z");
    expect(await next(store)).toBe("2026-11-02 1 2026-11-03T05:00:00.000Z");
  });
});

test("a midnight that is left out, and one that comes twice, begin one day each", async () => {
  await withClock("America/Havana", async (store, clock) => {
    clock.set("2026-03-08T04:59:30Z");
    expect(await next(store)).toBe("2026-03-07 1 2026-03-08T05:00:00.000Z");
    clock.set("2026-03-08T05:00:01Z");
    expect(await next(store)).toBe("2026-03-08 1 2026-03-09T04:00:00.000Z");
    clock.set("2026-11-01T04:30:00Z");
    expect(await next(store)).toBe("2026-11-01 1 2026-11-02T05:00:00.000Z");
    clock.set("2026-11-01T05:00:01Z");
    expect(await next(store)).toBe("2026-11-01 2 2026-11-02T05:00:00.000Z");
  });
});

test("a day that a zone left out is nobody's period", async () => {
  await withClock("Pacific/Apia", async (store, clock) => {
    clock.set("2011-12-30T09:59:30Z");
    expect(await next(store)).toBe("2011-12-29 1 2011-12-30T10:00:00.000Z");
    clock.set("2011-12-30T10:00:01Z");
    expect(await next(store)).toBe("2011-12-31 1 2011-12-31T10:00:00.000Z");
  });
});

test("a clock that goes back an hour after midnight keeps the new day, until the one after", async () => {
  await withClock("Asia/Shanghai", async (store, clock) => {
    clock.set("2026-11-20T15:59:00Z");
    expect(await next(store)).toBe("2026-11-20 1 2026-11-20T16:00:00.000Z");
    clock.set("2026-11-20T16:00:30Z");
    expect(await next(store)).toBe("2026-11-21 1 2026-11-21T16:00:00.000Z");
    clock.set("2026-11-20T15:00:30Z");
    expect(await next(store)).toBe("2026-11-21 2 2026-11-21T16:00:00.000Z");
    clock.set("2026-11-20T16:00:30Z");
    expect(await next(store)).toBe("2026-11-21 3 2026-11-21T16:00:00.000Z");
    clock.set("2026-11-21T16:00:30Z");
    expect(await next(store)).toBe("2026-11-22 1 2026-11-22T16:00:00.000Z");
    const periods = await store.listPeriods({ tag: "t", before: "", limit: 9 });
    expect(periods).toEqual([
      { start: "2026-11-21", lastId: 3n, endedAtMs: expect.any(Number) as number },
      { start: "2026-11-20", lastId: 1n, endedAtMs: expect.any(Number) as number },
    ]);
    const startedMs = (periods[0]?.endedAtMs ?? 0) - Date.parse("2026-11-21T16:00:30Z");
    expect(Math.abs(startedMs)).toBeLessThan(20_000);
  });
});

test("processes whose clocks differ are in the same day", async () => {
  await withClock("UTC", async (store, clock, harness) => {
    const later = new MovedClock();
    const other = await openSqlite(harness.config, undefined, later.buffer);
    clock.set("2026-11-20T23:59:00Z");
    later.set("2026-11-21T00:01:00Z");
    expect(await next(store)).toBe("2026-11-20 1 2026-11-21T00:00:00.000Z");
    expect(await next(other)).toBe("2026-11-21 1 2026-11-22T00:00:00.000Z");
    expect(await next(store)).toBe("2026-11-21 2 2026-11-22T00:00:00.000Z");
    expect(await next(other)).toBe("2026-11-21 3 2026-11-22T00:00:00.000Z");
    await other.close();
  });
});

test("an accept shortly before midnight begins the day that another clock may have begun", async () => {
  await withClock("UTC", async (store, clock) => {
    clock.set("2026-11-20T23:50:00Z");
    await next(store);
    await store.accept(10n);
    expect(await next(store)).toBe("2026-11-20 12 2026-11-21T00:00:00.000Z");
    clock.set("2026-11-20T23:56:00Z");
    await store.accept(10n);
    expect(await next(store)).toBe("2026-11-21 11 2026-11-22T00:00:00.000Z");
    clock.set("2026-11-21T00:00:30Z");
    expect(await next(store)).toBe("2026-11-21 12 2026-11-22T00:00:00.000Z");
  });
});

test("the times that a store tells are those of its clock", async () => {
  await withClock("UTC", async (store, clock) => {
    clock.set("2030-01-01T00:00:00Z");
    const tag = await store.createTag(settingsOf("new"));
    expect(new Date(tag.createdAtMs).getUTCFullYear()).toBe(2030);
    const { nowMs } = await store.changes({ since: 0n, watched: [], limit: 1 });
    expect(new Date(nowMs).getUTCFullYear()).toBe(2030);
  });
});

for (const [what, change] of [
  ["settings", "settings = replace(settings, 'DAY', 'HOUR')"],
  ["unit", "period_unit = 'YEAR'"],
  ["zone", "time_zone = 'Asia/Shanghai'"],
  ["time to keep", "keep_for_ms = 1"],
  ["place", "redis = 1"],
] as const) {
  test(`a row whose ${what} was changed by hand is refused`, async () => {
    await withClock("UTC", async (store, _clock, harness) => {
      sqlInAnotherProcess(harness.config.path, `UPDATE tag SET ${change}`);
      expect(await reasonOf(store.getTags(["t"]))).toBe("SCHEMA_MISMATCH");
    });
  });
}

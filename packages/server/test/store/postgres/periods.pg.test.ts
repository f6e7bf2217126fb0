// Periods as SQLite's side tells them and as PostgreSQL does: users who change the store must find the same ones.
import type { PeriodUnit } from "@idmint/core/kinds";
import { createTestDatabase, type TestDatabase } from "@idmint/testkit/postgres";
import fc from "fast-check";
import { Temporal } from "temporal-polyfill";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  periodAt as sqlPeriodAt,
  periodEnd as sqlPeriodEnd,
} from "../../../src/store/postgres/periods.ts";
import { periodAt, periodEnd } from "../../../src/store/shared/period.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => database.close());

interface Case {
  readonly unit: PeriodUnit;
  readonly timeZone: string;
  readonly atMs: number;
}

const UNITS: readonly PeriodUnit[] = ["DAY", "WEEK", "MONTH", "YEAR"];
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const FROM_MS = Date.UTC(1975, 0, 1);
// Up to the present: of what governments will decide the two know what their makers knew.
const TO_MS = Date.UTC(2025, 0, 1);

/** Zones of every kind of clock change that there is. */
const ZONES = [
  "Africa/Cairo",
  "Africa/Casablanca",
  "America/Asuncion",
  "America/Havana",
  "America/New_York",
  "America/Nuuk",
  "America/Sao_Paulo",
  "America/St_Johns",
  "Antarctica/Troll",
  "Asia/Amman",
  "Asia/Beirut",
  "Asia/Gaza",
  "Asia/Kathmandu",
  "Asia/Pyongyang",
  "Asia/Shanghai",
  "Asia/Tehran",
  "Atlantic/Azores",
  "Australia/Lord_Howe",
  "Etc/GMT+12",
  "Europe/Dublin",
  "Europe/London",
  "Pacific/Apia",
  "Pacific/Chatham",
  "Pacific/Kiritimati",
  "Pacific/Kwajalein",
  "UTC",
];

async function answersOf(cases: readonly Case[]): Promise<readonly string[]> {
  const values = cases.map(({ unit, timeZone, atMs }) => `('${unit}', '${timeZone}', ${atMs})`);
  const at = "to_timestamp(c.at_ms / 1000.0)";
  const start = sqlPeriodAt("c.unit", "c.zone", at);
  const rows = await database.query(`
    SELECT s.start || ' ' || ${sqlPeriodEnd("c.unit", "c.zone", "s.start")} AS answer
    FROM (VALUES ${values.join(",")}) AS c (unit, zone, at_ms),
    LATERAL (SELECT ${start} AS start) AS s`);
  return rows.map(({ answer }) => String(answer));
}

async function compare(cases: readonly Case[]): Promise<void> {
  const answers = await answersOf(cases);
  const expected = cases.map((one) => {
    const start = periodAt(one, one.atMs);
    return `${start} ${periodEnd(one, start)}`;
  });
  const differ = cases.flatMap((one, at) =>
    answers[at] === expected[at]
      ? []
      : [{ ...one, at: new Date(one.atMs).toISOString(), sql: answers[at], js: expected[at] }],
  );
  expect(differ).toEqual([]);
}

test("both tell the same periods around every clock change", async () => {
  for (const timeZone of ZONES) {
    const cases: Case[] = [];
    let at = Temporal.Instant.fromEpochMilliseconds(FROM_MS).toZonedDateTimeISO(timeZone);
    for (;;) {
      const change = at.getTimeZoneTransition("next");
      if (change === null || change.epochMilliseconds > TO_MS) break;
      at = change;
      for (const besideMs of [-DAY_MS, -HOUR_MS, -1, 0, 1, HOUR_MS, DAY_MS]) {
        const unit = UNITS[cases.length % 9] ?? "DAY";
        cases.push({ unit, timeZone, atMs: change.epochMilliseconds + besideMs });
      }
    }
    if (cases.length > 0) await compare(cases);
  }
});

test("both tell the same periods of any instant in any zone", async () => {
  const one = fc.record({
    unit: fc.constantFrom(...UNITS),
    timeZone: fc.constantFrom(...ZONES, ...Intl.supportedValuesOf("timeZone").filter(isPlace)),
    atMs: fc.integer({ min: FROM_MS, max: TO_MS }),
  });
  const many = fc.array(one, { minLength: 200, maxLength: 200 });
  await fc.assert(fc.asyncProperty(many, compare), { numRuns: 25 });
});

function isPlace(timeZone: string): boolean {
  return timeZone.includes("/");
}

test("the present and the next years are told alike", async () => {
  const thisYear = new Date().getUTCFullYear();
  const zones = ["Asia/Shanghai", "America/New_York", "America/Havana", "Europe/London", "UTC"];
  const cases = zones.flatMap((timeZone) =>
    Array.from({ length: 3 * 366 }, (_, day) => ({
      unit: UNITS[day % 4] ?? "DAY",
      timeZone,
      atMs: Date.UTC(thisYear, 0, 1 + day, day % 24, 59, 59, 999),
    })),
  );
  await compare(cases);
});

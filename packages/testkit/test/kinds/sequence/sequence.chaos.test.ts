// Strict order in real time, over servers that are killed and frozen while callers ask all of them.
import { setTimeout as pause } from "node:timers/promises";
import { PeriodUnit } from "@idmint/proto";
import { expect, test } from "vitest";
import { wallClockEnv } from "../../../src/faketime.ts";
import { answeredAfter, faultsOf, readHistory } from "../../../src/fleet/history.ts";
import { until } from "../../../src/fleet/until.ts";
import { EXPECTED } from "../../chaos.ts";
import { disturbServers } from "../../disturb.ts";
import { isLong, ownPostgres, seededRandom, startFleet } from "../../fleet-support.ts";

const SECONDS = isLong ? 60 : 10;
const TAG = "bills";
const ROUNDS = isLong ? 5 : 1;
/** About twelve years. */
const AHEAD_MS = 12 * 365 * 86_400_000;
/** Ids again within so long after the store is back. */
const RECOVERY_MS = 5_000;

test(
  "an id asked for after another was answered is larger, whichever servers are killed or frozen",
  { timeout: (4 * SECONDS + 120) * 1_000 },
  async () => {
    const postgres = await ownPostgres();
    const { url } = await postgres.createDatabase();
    const fleet = await startFleet({ servers: 3, storeUrl: url });
    const { seed, below } = seededRandom();
    await fleet.first.api.createSequence(TAG);
    const session = { kind: "id", perSecond: 40 } as const;
    const callers = await Promise.all(
      [0, 1, 2].map(() =>
        fleet.startCallers("history", {
          tag: TAG,
          activities: [
            session,
            session,
            session,
            { kind: "id", perSecond: 40, parallel: 8 },
            { kind: "segments", perSecond: 10, count: 7, parallel: 2 },
          ],
          deadlineMs: 1_000,
        }),
      ),
    );
    await Promise.all(callers.map((child) => child.waitForOutput("first answer")));
    // Shorter and longer than callers wait.
    const frozenMs = [300, 1_500] as const;
    const steps = await disturbServers(fleet, { forMs: SECONDS * 1_000, frozenMs, below });
    await until("all servers issue", () =>
      Promise.all(fleet.servers.map(({ api }) => api.id(TAG))),
    );
    const reports = await Promise.all(callers.map((child) => fleet.stopCallers(child)));
    const history = readHistory(fleet.records);
    const errors = reports.map((report) => report.errors);
    console.log(`seed ${seed}: ${steps.join("; ")}; ${history.length} answers`, errors);
    expect(faultsOf(history)).toEqual({ repeats: [], inversions: [] });
    expect(history.length).toBeGreaterThan(10 * SECONDS);
    const unexpected = errors.flatMap(Object.keys).filter((name) => !EXPECTED.has(name));
    expect(unexpected).toEqual([]);
    const { floor } = await fleet.first.api.getTag(TAG);
    for (const { last } of history) expect(last).toBeLessThanOrEqual(floor);
  },
);

test(
  "a store whose clock is years ahead for a while ends no date: no id twice, and ids again soon",
  { timeout: (ROUNDS * 30 + 120) * 1_000 },
  async () => {
    const postgres = await ownPostgres();
    const { url } = await postgres.createDatabase();
    const fleet = await startFleet({ servers: 3, storeUrl: url });
    await fleet.first.api.createSequence(TAG, { period: PeriodUnit.DAY, timeZone: "UTC" });
    const firstDay = today();
    const callers = await fleet.startCallers("history", {
      tag: TAG,
      activities: [
        { kind: "id", perSecond: 40, parallel: 8 },
        { kind: "segments", perSecond: 10, count: 7, parallel: 2 },
      ],
      deadlineMs: 1_000,
    });
    await callers.waitForOutput("first answer");
    const backAt: bigint[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const env of [wallClockEnv(AHEAD_MS), {}]) {
        await postgres.stop("fast");
        await postgres.start({ env });
        backAt.push(process.hrtime.bigint());
        await pause(RECOVERY_MS);
      }
    }
    const { errors } = await fleet.stopCallers(callers);
    const history = readHistory(fleet.records);
    const recoveredMs = backAt.map((moment) => Math.round(answeredAfter(history, moment)));
    console.log(`${history.length} answers, back after ${recoveredMs.join(", ")} ms`, errors);
    expect(faultsOf(history)).toEqual({ repeats: [], inversions: [] });
    for (const { period } of history) expect([firstDay, today()]).toContain(period);
    for (const ms of recoveredMs) expect(ms).toBeLessThan(RECOVERY_MS);
    expect(Object.keys(errors).filter((name) => !EXPECTED.has(name))).toEqual([]);
  },
);

function today(): string {
  return new Date().toISOString().slice(0, 10);
}

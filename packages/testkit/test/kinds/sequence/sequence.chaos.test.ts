// A daily sequence in a store whose clock is wrong for a while.
import { setTimeout as pause } from "node:timers/promises";
import { PeriodUnit } from "@idmint/proto";
import { expect, test } from "vitest";
import { wallClockEnv } from "../../../src/faketime.ts";
import { answeredAfter, faultsOf, readHistory } from "../../../src/fleet/history.ts";
import { EXPECTED } from "../../chaos.ts";
import { isLong, ownPostgres, startFleet } from "../../fleet-support.ts";

const TAG = "bills";
const ROUNDS = isLong ? 5 : 1;
/** About twelve years. */
const AHEAD_MS = 12 * 365 * 86_400_000;
/** Ids again within so long after the store is back. */
const RECOVERY_MS = 5_000;

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

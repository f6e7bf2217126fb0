// Strict order in real time, over servers that are killed and frozen while callers ask all of them.
import { expect, test } from "vitest";
import { faultsOf, readHistory } from "../src/fleet/history.ts";
import { until } from "../src/fleet/until.ts";
import { EXPECTED } from "./chaos.ts";
import { disturbServers } from "./disturb.ts";
import { isLong, ownPostgres, seededRandom, startFleet } from "./fleet-support.ts";

const SECONDS = isLong ? 60 : 10;
const TAG = "bills";

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

// Snowflakes of several servers that are killed and frozen: no worker id makes the same id twice, whoever has it.
import { setTimeout as pause } from "node:timers/promises";
import { decode, SNOWFLAKE_PRESETS, type SnowflakeLayout } from "@idmint/core";
import { IdmintError } from "@idmint/client";
import { expect, test } from "vitest";
import { judge } from "../../../src/fleet/uniqueness.ts";
import { until } from "../../../src/fleet/until.ts";
import { EXPECTED } from "../../chaos.ts";
import { disturbServers } from "../../disturb.ts";
import { isLong, ownPostgres, seededRandom, sqliteFile, startFleet } from "../../fleet-support.ts";

const SECONDS = isLong ? 60 : 7;
const TAG = "events";
const TTL_MS = 30_000;

test(
  "no snowflake is made twice, whichever servers are killed or frozen",
  { timeout: (4 * SECONDS + 120) * 1_000 },
  async () => {
    const postgres = await ownPostgres();
    const { url } = await postgres.createDatabase();
    const fleet = await startFleet({ servers: 3, storeUrl: url });
    const { seed, below } = seededRandom();
    await fleet.first.api.createSnowflake(TAG);
    const callers = await Promise.all(
      [0, 1].map(() =>
        fleet.startCallers("grpc", {
          tag: TAG,
          activities: [
            { kind: "id", perSecond: 100 },
            { kind: "id", perSecond: 100, parallel: 8 },
            { kind: "segments", perSecond: 20, count: 700, parallel: 2 },
          ],
          deadlineMs: 1_000,
        }),
      ),
    );
    await Promise.all(callers.map((child) => child.waitForOutput("first answer")));
    // Longer than time is reserved, and not.
    const frozenMs = [500, 4_000] as const;
    const steps = await disturbServers(fleet, { forMs: SECONDS * 1_000, frozenMs, below });
    await until("all servers issue", () =>
      Promise.all(fleet.servers.map(({ api }) => api.id(TAG))),
    );
    const reports = await Promise.all(callers.map((child) => fleet.stopCallers(child)));
    const { received, distinct, repeats } = judge(fleet.records);
    const errors = reports.map((report) => report.errors);
    console.log(`seed ${seed}: ${steps.join("; ")}; ${received} ids`, errors);
    expect(repeats).toEqual([]);
    expect(received).toBe(distinct);
    expect(received).toBeGreaterThan(200 * SECONDS);
    const unexpected = errors.flatMap(Object.keys).filter((name) => !EXPECTED.has(name));
    expect(unexpected).toEqual([]);
  },
);

test(
  "the only worker id goes from a killed server to another when its lease has ended, and no sooner",
  { timeout: 120_000 },
  async () => {
    const fleet = await startFleet({ servers: 2, storeUrl: `sqlite:${await sqliteFile()}` });
    const [one, two] = fleet.servers;
    if (one === undefined || two === undefined) throw new Error("two servers");
    const layout: SnowflakeLayout = { ...SNOWFLAKE_PRESETS["41-10-12"], workerBits: 0 };
    await one.api.createSnowflake("alone", { timeBits: 41, workerBits: 0, sequenceBits: 12 });
    const before = await one.api.id("alone");
    const reasonOf = async (): Promise<string> =>
      two.api.id("alone").then(
        (id) => String(id),
        (thrown: unknown) => (thrown instanceof IdmintError ? thrown.reason : String(thrown)),
      );
    expect(await reasonOf()).toBe("WORKER_IDS_EXHAUSTED");
    await one.kill();
    const killed = performance.now();
    let answer = "";
    await until(
      "the other server has the worker id",
      async () => {
        answer = await reasonOf();
        if (answer === "WORKER_IDS_EXHAUSTED") await pause(500);
        return /^\d+$/.test(answer);
      },
      { withinMs: 60_000 },
    );
    expect(performance.now() - killed).toBeGreaterThan(TTL_MS - 2_000);
    expect(decode(layout, BigInt(answer)).worker).toBe(0);
    expect(BigInt(answer)).toBeGreaterThan(before);
    // The one that was killed comes back, and has none any more.
    await one.start();
    const refused = await one.api.id("alone").catch((thrown: unknown) => thrown);
    expect(refused).toMatchObject({ reason: "WORKER_IDS_EXHAUSTED" });
  },
);

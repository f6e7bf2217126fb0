// A worker id whose holder is killed.
import { setTimeout as pause } from "node:timers/promises";
import { decode, SNOWFLAKE_PRESETS, type SnowflakeLayout } from "@idmint/core";
import { IdmintError } from "@idmint/client";
import { expect, test } from "vitest";
import { until } from "../../../src/fleet/until.ts";
import { sqliteFile, startFleet } from "../../fleet-support.ts";

const TTL_MS = 30_000;

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

// A store that does not answer: callers notice nothing while ids are in memory, and a clear refusal in time afterwards.
import { setTimeout as pause } from "node:timers/promises";
import { IdmintError } from "@idmint/client";
import { expect, test } from "vitest";
import type { Api } from "../src/fleet/api.ts";
import { judge } from "../src/fleet/uniqueness.ts";
import { until } from "../src/fleet/until.ts";
import { isLong, ownPostgres, startFleet } from "./fleet-support.ts";

const FREEZE_MS = isLong ? 20_000 : 5_000;
const CALLS_PER_SECOND = 500;
/** A refusal is sent this long before its caller's deadline. */
const MARGIN_MS = 50;

test(
  "with segments in memory no call fails while PostgreSQL is frozen",
  { timeout: FREEZE_MS + 60_000 },
  async () => {
    const postgres = await ownPostgres();
    const { url } = await postgres.createDatabase();
    const fleet = await startFleet({ servers: 1, storeUrl: url });
    // The prefetch falls due, and fails, in the middle of the freeze; the current segment outlasts it.
    const segment = (2 * CALLS_PER_SECOND * FREEZE_MS) / 1_000;
    const { api } = fleet.first;
    await api.createTag({ name: "orders", min: segment, max: segment });
    await api.id("orders");
    const callers = await fleet.startCallers("grpc", {
      tag: "orders",
      activities: [{ kind: "id", perSecond: CALLS_PER_SECOND, parallel: 100 }],
      deadlineMs: 1_000,
    });
    await callers.waitForOutput("first answer");
    const version = (await api.getTag("orders")).version;
    const start = performance.now();
    postgres.freeze();
    await pause(FREEZE_MS);
    expect(await api.isServing()).toBe(true);
    postgres.thaw();
    const frozenMs = performance.now() - start;
    await until(
      "the store grants again",
      async () => (await api.getTag("orders")).version > version,
      { withinMs: 10_000, everyMs: 100 },
    );
    const { errors, samples, answered } = await fleet.stopCallers(callers);
    const rate = Math.round(answered / (frozenMs / 1_000));
    console.log(`frozen for ${Math.round(frozenMs)} ms: ${answered} answers`, errors, samples);
    expect(errors).toEqual({});
    expect(rate).toBeGreaterThan(CALLS_PER_SECOND * 0.8);
    expect(judge(fleet.records).repeated).toBe(0);
  },
);

interface Refusal {
  readonly tookMs: number;
  readonly error: unknown;
}

async function refusal(api: Api, tag: string, deadlineMs: number): Promise<Refusal | undefined> {
  const start = performance.now();
  try {
    await api.id(tag, deadlineMs);
    return undefined;
  } catch (error) {
    return { tookMs: performance.now() - start, error };
  }
}

test("with nothing left callers are refused with RetryInfo before their deadline, and served within 2 s of the thaw", async () => {
  const postgres = await ownPostgres();
  const { url } = await postgres.createDatabase();
  const fleet = await startFleet({ servers: 1, storeUrl: url });
  const { api } = fleet.first;
  const tag = "orders";
  await api.createTag({ name: tag, min: 10, max: 10 });
  const issued = new Set<bigint>();
  const recoveries: number[] = [];
  for (const freezeMs of isLong ? [500, 2_000, 4_000, 8_000, 20_000] : [500, 2_000, 5_000]) {
    // Known to work, so that what is measured is this freeze alone.
    const healthy = await until("an id", () => api.id(tag), { withinMs: 5_000 });
    expect(issued.has(healthy)).toBe(false);
    issued.add(healthy);
    const start = performance.now();
    postgres.freeze();
    let isEmpty = false;
    while (!isEmpty || performance.now() - start < freezeMs) {
      const deadlineMs = 400;
      const refused = await refusal(api, tag, deadlineMs);
      if (refused === undefined) {
        expect(isEmpty).toBe(false);
        continue;
      }
      expectRefusal(refused, deadlineMs);
      // The first call that finds nothing begins the load it waits for, so it waits as long as it can.
      if (!isEmpty) expect(refused.tookMs).toBeGreaterThan(deadlineMs - MARGIN_MS - 50);
      isEmpty = true;
    }
    postgres.thaw();
    const thawed = performance.now();
    issued.add(await until("an id", () => api.id(tag, 300), { withinMs: 10_000, everyMs: 10 }));
    recoveries.push(Math.round(performance.now() - thawed));
  }
  console.log(`served again after the thaw, ms: ${recoveries.join(", ")}`);
  for (const recovery of recoveries) expect(recovery).toBeLessThanOrEqual(2_000);
});

/** UNAVAILABLE · SEGMENT_NOT_READY with RetryInfo, and never the deadline itself. */
function expectRefusal({ tookMs, error }: Refusal, deadlineMs: number): void {
  expect(error).toBeInstanceOf(IdmintError);
  expect(error).toMatchObject({ code: "UNAVAILABLE", reason: "SEGMENT_NOT_READY" });
  expect((error as IdmintError).retryAfterMs).toBeGreaterThan(0);
  expect(tookMs).toBeLessThan(deadlineMs);
}

// Snowflakes of real servers whose wall clocks are set while they run, and that are killed while their store is down.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { IdmintError } from "@idmint/client";
import { decode, SNOWFLAKE_PRESETS } from "@idmint/core";
import { ClockPolicy, GenerateIdsRequest } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { FakeWallClock } from "../../../src/faketime.ts";
import type { Fleet, FleetServer } from "../../../src/fleet/fleet.ts";
import { until } from "../../../src/fleet/until.ts";
import { isLong, ownPostgres, someOf, startFleet } from "../../fleet-support.ts";

const TAG = "flakes";
const HOUR_MS = 3_600_000;
const bits = { timeBits: 41, extensionBits: 2, workerBits: 8, sequenceBits: 12 };
const layout = { ...SNOWFLAKE_PRESETS["41-10-12"], ...bits };
/** Ids of one call; with so many the server makes as many as its layout allows. */
const COUNT = 1_000;
const PHASE_MS = 700;
/** Per phase, whatever that takes. */
const LONG_IDS = 700_000;

/** Takes ids one call after the other, and wants every one above all before it of its worker id and extension. */
class Minting {
  readonly #server: FleetServer;
  readonly #last = new Map<string, bigint>();
  ids = 0;

  constructor(server: FleetServer) {
    this.#server = server;
  }

  /** The reason why there were none, or undefined. */
  async once(count: number = COUNT): Promise<string | undefined> {
    const request = GenerateIdsRequest.fromPartial({ tag: TAG, count });
    try {
      const { segments } = await this.#server.api.generateIds(request, 800);
      for (const { base, increment, count: made } of segments) {
        this.#pass(base, base + BigInt(increment * (made - 1)));
        this.ids += made;
      }
      return undefined;
    } catch (thrown) {
      if (thrown instanceof IdmintError) return thrown.reason;
      throw thrown;
    }
  }

  /** For the time of a phase; answers how often each outcome was. */
  async phase(): Promise<ReadonlyMap<string, number>> {
    const outcomes = new Map<string, number>();
    const end = performance.now() + PHASE_MS;
    const enough = this.ids + (isLong ? LONG_IDS : 0);
    do {
      const outcome = (await this.once()) ?? "ids";
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    } while (performance.now() < end || (outcomes.has("ids") && this.ids < enough));
    return outcomes;
  }

  /** Until ids come again. */
  async untilIssuing(withinMs = 10_000): Promise<void> {
    await until("ids are made", async () => (await this.once()) === undefined, { withinMs });
  }

  #pass(first: bigint, last: bigint): void {
    const { worker, extension } = decode(layout, first);
    expect(decode(layout, last)).toMatchObject({ worker, extension });
    const key = `${worker}/${extension}`;
    const before = this.#last.get(key);
    if (before !== undefined) expect(first).toBeGreaterThan(before);
    this.#last.set(key, last);
  }

  /** Worker ids and extensions that ids were made with, as worker/extension. */
  get origins(): readonly string[] {
    return [...this.#last.keys()];
  }
}

async function flakesWithClock(clockPolicy: ClockPolicy): Promise<{
  readonly fleet: Fleet;
  readonly clock: FakeWallClock;
  readonly minting: Minting;
}> {
  const clock = new FakeWallClock(0);
  onTestFinished(() => clock[Symbol.dispose]());
  const postgres = await ownPostgres();
  const { url } = await postgres.createDatabase();
  const fleet = await startFleet({ servers: 1, storeUrl: url, envOf: [clock.env] });
  await fleet.first.api.createSnowflake(TAG, bits, { clockPolicy });
  const minting = new Minting(fleet.first);
  await minting.untilIssuing();
  return { fleet, clock, minting };
}

const POLICIES = [
  { policy: "REFUSE", clockPolicy: ClockPolicy.REFUSE, origins: ["0/0"] },
  { policy: "EXTENSION", clockPolicy: ClockPolicy.EXTENSION, origins: ["0/0", "0/1", "0/2"] },
  {
    policy: "BACKUP_WORKER",
    clockPolicy: ClockPolicy.BACKUP_WORKER,
    origins: ["0/0", "1/0", "2/0"],
  },
];

test.each(someOf(2, POLICIES))(
  "a clock that is set back and ahead repeats nothing, and does what $policy says",
  { timeout: isLong ? 300_000 : 120_000 },
  async ({ policy, clockPolicy, origins }) => {
    const { fleet, clock, minting } = await flakesWithClock(clockPolicy);
    const { api } = fleet.first;
    // So little that it is carried on from: nobody notices.
    for (const offsetMs of [0, -2, -5, -50, 0]) {
      clock.set(offsetMs);
      const outcomes = await minting.phase();
      expect([...outcomes.keys()], `${offsetMs} ms`).toEqual(["ids"]);
    }
    for (const offsetMs of [-10_000, -HOUR_MS]) {
      clock.set(offsetMs);
      if (policy === "REFUSE") {
        // What waited when the clock was set may still be served.
        await minting.once();
        const outcomes = await minting.phase();
        expect([...outcomes.keys()], `${offsetMs} ms`).toEqual(["CLOCK_MOVED_BACKWARDS"]);
        await until("it is out", async () => !(await api.isServing()));
      } else {
        await minting.untilIssuing();
        expect((await minting.phase()).has("ids"), `${offsetMs} ms`).toBe(true);
      }
      clock.set(0);
      await minting.untilIssuing();
      await until("it is back", () => api.isServing());
    }
    // Nobody else confirms this: it is not believed, so that the way back is none.
    clock.set(HOUR_MS);
    await minting.once();
    const ahead = await minting.phase();
    expect(ahead.has("ids")).toBe(false);
    await until("it is out", async () => !(await api.isServing()));
    expect(await minting.once()).toBe("CLOCK_NOT_CONFIRMED");
    clock.set(0);
    await minting.untilIssuing();
    expect([...(await minting.phase()).keys()]).toEqual(["ids"]);
    // Twice as fast, for four seconds.
    for (let offsetMs = 0; offsetMs < 4_000; offsetMs += 50) {
      clock.set(offsetMs);
      expect(await minting.once()).toBeUndefined();
      await pause(50);
    }
    clock.set(0);
    await minting.untilIssuing();
    await until("it is back", () => api.isServing());
    console.log(`${policy}: ${minting.ids} ids of ${minting.origins.join(" ")}`);
    expect(minting.origins.slice(0, 3)).toEqual(origins);
    if (isLong) expect(minting.ids).toBeGreaterThanOrEqual(4_000_000);
  },
);

async function cacheFile(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "idmint-clocks-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return path.join(folder, "leases");
}

test(
  "a server with a cache file is killed and started while its store is down, goes on, and ends with its minute",
  { timeout: 240_000 },
  async () => {
    const postgres = await ownPostgres();
    const { url } = await postgres.createDatabase();
    const env = { IDMINT_SNOWFLAKE_CACHE_FILE: await cacheFile() };
    const fleet = await startFleet({ servers: 1, storeUrl: url, envOf: [env] });
    const { first: server } = fleet;
    await server.api.createSnowflake(TAG, bits);
    const minting = new Minting(server);
    await minting.untilIssuing();
    await minting.phase();
    await postgres.stop("immediate");
    const stoppedAt = performance.now();
    for (let life = 0; life < 3; life++) {
      await server.kill();
      await server.start();
      await minting.untilIssuing();
      await minting.phase();
    }
    expect(minting.origins).toEqual(["0/0"]);
    if (isLong) {
      let reason: string | undefined;
      const refuses = async (): Promise<boolean> => (reason = await minting.once()) !== undefined;
      await until("the minute is over", refuses, { withinMs: 90_000, everyMs: 100 });
      expect(performance.now() - stoppedAt).toBeGreaterThan(50_000);
      expect(performance.now() - stoppedAt).toBeLessThan(75_000);
      expect(reason).toBe("SEGMENT_NOT_READY");
    }
    await postgres.start();
    await minting.untilIssuing(30_000);
    await until("the store is open", () => server.api.isServing());
    await server.api.createSnowflake("another", bits);
    await minting.phase();
    expect(minting.origins).toEqual(["0/0"]);
    console.log(`${minting.ids} ids in four lives`);
  },
);

test(
  "a server whose clock is behind what it reported starts refusing, and comes back when it has caught up",
  { timeout: 120_000 },
  async () => {
    const clock = new FakeWallClock(0);
    onTestFinished(() => clock[Symbol.dispose]());
    const postgres = await ownPostgres();
    const { url } = await postgres.createDatabase();
    const env = { ...clock.env, IDMINT_SNOWFLAKE_CACHE_FILE: await cacheFile() };
    const fleet = await startFleet({ servers: 1, storeUrl: url, envOf: [env] });
    const { first: server } = fleet;
    await server.api.createSnowflake(TAG, bits);
    const minting = new Minting(server);
    await minting.untilIssuing();
    await minting.phase();
    await server.kill();
    clock.set(-HOUR_MS);
    server.spawn();
    await until("it listens", () => server.listens, { withinMs: 30_000 });
    await until("it refuses", async () => (await minting.once()) === "CLOCK_MOVED_BACKWARDS");
    expect(await server.api.isServing()).toBe(false);
    expect(server.process.stderr).toContain('"why":"behind-report"');
    clock.set(0);
    await minting.untilIssuing();
    await until("it is back", () => server.api.isServing());
    await minting.phase();
    expect(minting.origins).toEqual(["0/0"]);
  },
);

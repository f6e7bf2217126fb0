// Crashes of servers, callers and the store at random: no id twice, gaps within two segments a crash, and everybody goes on.
// crash-points.chaos.test.ts has those of one server at each of its system calls.
import { linkSync, unlinkSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { createIdClient } from "@idmint/client";
import { expect, test } from "vitest";
import type { TestPostgres } from "../../src/postgres.ts";
import { RECORD_BYTES } from "../../src/fleet/record.ts";
import { judge } from "../../src/fleet/uniqueness.ts";
import { until } from "../../src/fleet/until.ts";
import { chaos, recordsSize, SDK_SEGMENT, SERVER_SEGMENT, type StoreFault } from "../chaos.ts";
import { isLong, ownPostgres, someTests, sqliteFile, startFleet } from "../fleet-support.ts";

const SECONDS = isLong ? 60 : 8;
const LINKED_MS = isLong ? 5_000 : 1_500;
// On a busy machine processes start slower than they are killed, and a second of the plan takes longer.
const TIMEOUT_MS = (3 * SECONDS + 90) * 1_000;

const storm = someTests(1, 2);

function postgresFaults(postgres: TestPostgres): readonly StoreFault[] {
  const stopMs = isLong ? 10_000 : 2_000;
  const freezeMs = isLong ? 5_000 : 1_500;
  return [
    {
      atSecond: Math.round(SECONDS * 0.15),
      name: "PostgreSQL is stopped and started again",
      unknownGrants: 1,
      run: async () => {
        await postgres.stop("fast");
        await pause(stopMs);
        await postgres.start();
      },
    },
    {
      atSecond: Math.round(SECONDS * 0.55),
      name: "PostgreSQL crashes (immediate) and is started again",
      unknownGrants: 1,
      run: async () => {
        await postgres.stop("immediate");
        await postgres.start();
      },
    },
    {
      atSecond: Math.round(SECONDS * 0.75),
      name: "PostgreSQL freezes and thaws",
      // What was sent into the frozen connections of a pool is granted when they thaw.
      unknownGrants: 4,
      run: async () => {
        postgres.freeze();
        await pause(freezeMs);
        postgres.thaw();
      },
    },
  ];
}

storm(
  "three servers on one PostgreSQL, killed at random with their callers and their store, issue no id twice",
  { timeout: TIMEOUT_MS },
  async () => {
    const postgres = await ownPostgres();
    const { url } = await postgres.createDatabase();
    const fleet = await startFleet({ servers: 3, storeUrl: url });
    await chaos(fleet, { tag: "orders", seconds: SECONDS, storeFaults: postgresFaults(postgres) });
  },
);

/** As a backup by hard links does, or somebody who means to move the file. */
function sqliteFaults(file: string): readonly StoreFault[] {
  return [
    {
      atSecond: Math.round(SECONDS * 0.4),
      name: "the SQLite file has a second name for a while",
      unknownGrants: 1,
      run: async () => {
        const other = `${file}.backup`;
        linkSync(file, other);
        await pause(LINKED_MS);
        unlinkSync(other);
      },
    },
  ];
}

storm(
  "three servers on one SQLite file, killed at random with their callers, issue no id twice",
  { timeout: TIMEOUT_MS },
  async () => {
    const file = await sqliteFile();
    const fleet = await startFleet({ servers: 3, storeUrl: `sqlite:${file}` });
    const storeFaults = sqliteFaults(file);
    await chaos(fleet, { tag: "orders", seconds: SECONDS, storeFaults });
  },
);

test("one crash of an SDK's process leaves a gap of at most two of its segments", async () => {
  const fleet = await startFleet({ servers: 1, storeUrl: `sqlite:${await sqliteFile()}` });
  const { first } = fleet;
  const tag = "orders";
  await first.api.createTag({ name: tag, min: SERVER_SEGMENT, max: SERVER_SEGMENT });
  const crashes = 3;
  for (let crash = 0; crash < crashes; crash++) {
    const child = await fleet.startCallers("sdk", {
      tag,
      activities: [{ kind: "next", perSecond: 200 }],
      min: SDK_SEGMENT,
      max: SDK_SEGMENT,
      deadlineMs: 2_000,
    });
    const some = 30 * RECORD_BYTES;
    await until("the SDK has received some ids", () => recordsSize(fleet, child) > some);
    await child.kill();
  }
  const verdict = judge(fleet.records);
  // All that lies below the next id was carved for some SDK.
  const holes = Number(await first.api.id(tag)) - 1 - verdict.distinct;
  console.log(`holes after ${crashes} crashes, of segments of ${SDK_SEGMENT}: ${holes}`);
  expect(verdict.repeated).toBe(0);
  expect(holes).toBeGreaterThan(0);
  expect(holes).toBeLessThanOrEqual(crashes * 2 * SDK_SEGMENT);
});

test("what an SDK gives back when it closes is issued again", async () => {
  const fleet = await startFleet({ servers: 1, storeUrl: `sqlite:${await sqliteFile()}` });
  const { api, address } = fleet.first;
  await api.createTag({ name: "orders", min: 1_000, max: 1_000 });
  const ids: bigint[] = [];
  for (let round = 0; round < 3; round++) {
    await using client = createIdClient({ address, min: 10, max: 10 });
    for (let at = 0; at < 13; at++) ids.push(await client.tag("orders").next());
  }
  // Together with the rest of the server's first segment they make it whole.
  const count = 1_000 - ids.length;
  ids.push(...(await api.generateIds({ tag: "orders", count, asList: true })).ids);
  const sorted = ids.toSorted((a, b) => Number(a - b));
  expect(sorted).toEqual(sorted.map((_, at) => BigInt(at + 1)));
});

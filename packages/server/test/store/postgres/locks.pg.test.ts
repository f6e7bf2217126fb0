// What becomes of grants while other sessions keep rows of the store locked.
import { setTimeout as pause } from "node:timers/promises";
import { type Granted, type Store, VersionGuard } from "@idmint/core/server";
import {
  assertDisjoint,
  reasonOf,
  sequenceOf,
  settingsOf,
  wish,
} from "@idmint/testkit/store-suite";
import type { TestDatabase } from "@idmint/testkit/postgres";
import pg from "pg";
import { expect, test } from "vitest";
import { createCounters } from "../../../src/service/counters.ts";
import { Grants } from "../../../src/service/upstream/grants.ts";
import { realSystem } from "../../../src/main/system.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { type PostgresHarness, postgresHarness } from "../harness.ts";

/** Keeps rows locked, as a person with psql would, until it is told to let go. */
async function lockRows(
  database: TestDatabase,
  names: readonly string[],
): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query("BEGIN");
  await client.query("SELECT FROM idmint.tag WHERE name = ANY ($1) FOR UPDATE", [names]);
  return async () => {
    await client.query("COMMIT");
    await client.end();
  };
}

/** How a server asks the store: with its queue, its guard and its limits. */
function serverOn(store: Store, storeConnections = 4) {
  const guard = new VersionGuard();
  const counters = createCounters();
  const wentBack: string[] = [];
  const { timers, afterTurn } = realSystem;
  const grants = new Grants({
    store,
    guard,
    timers,
    storeTimeoutMs: 5_000,
    storeConnections,
    counters,
    emit: () => undefined,
    afterTurn,
    onWentBack: (tag, detail) => wentBack.push(`${tag}: ${detail}`),
    onBelow: (tag) => wentBack.push(tag),
  });
  const ask = async (tag: string, kind: "segment" | "sequence" = "segment"): Promise<Granted> => {
    const { seenVersion: _, ...request } = wish(tag, {
      kind,
      count: 10,
      minCount: kind === "segment" ? 1 : 10,
    });
    return grants.request(request);
  };
  return { ask, counters, guard, wentBack };
}

async function withStore(
  work: (store: Store, harness: PostgresHarness) => Promise<void>,
): Promise<void> {
  const harness = await postgresHarness();
  const store = await harness.open();
  try {
    await work(store, harness);
  } finally {
    await store.close();
    await harness.remove();
  }
}

const COLD = Array.from({ length: 20 }, (_, at) => `cold-${String(at).padStart(2, "0")}`);

test("a row that an outsider locks keeps none of the tags of its batch waiting", async () => {
  await withStore(async (store, { database }) => {
    for (const tag of COLD) await store.createTag(settingsOf(tag));
    const { ask, counters, wentBack } = serverOn(store);
    const unlock = await lockRows(database, ["cold-07"]);
    const asked = COLD.map(async (tag) => ask(tag));
    const free = asked.filter((_, at) => at !== 7);
    // While the row is still locked.
    expect((await Promise.all(free)).map(({ base }) => base)).toEqual(free.map(() => 1n));
    await unlock();
    expect((await asked[7])?.base).toBe(1n);
    // The batch, and the one that was locked.
    expect(counters.grantCalls).toBe(2);
    expect(wentBack).toEqual([]);
  });
});

test("a tag that is known and locked is not taken for one that is gone", async () => {
  await withStore(async (store, { database }) => {
    for (const tag of ["a", "b", "gone"]) await store.createTag(settingsOf(tag));
    const { ask, guard, wentBack } = serverOn(store);
    await Promise.all(["a", "b", "gone"].map(async (tag) => ask(tag)));
    expect(guard.seen("a")).toBe(1n);
    const unlock = await lockRows(database, ["a"]);
    await database.query("DELETE FROM idmint.tag WHERE name = 'gone'");
    const [a, b, gone] = ["a", "b", "gone"].map(async (tag) => ask(tag));
    expect((await b)?.base).toBe(11n);
    await expect(gone).rejects.toMatchObject({ reason: "STORE_EPOCH_CHANGED" });
    expect(wentBack).toEqual([expect.stringContaining("gone")]);
    await unlock();
    expect(await a).toMatchObject({ base: 11n, version: 2n });
  });
});

test("rows that outsiders lock take half of the connections, and no more", async () => {
  await withStore(async (store, { database }) => {
    for (const tag of [...COLD, "free"]) await store.createTag(settingsOf(tag));
    const { ask } = serverOn(store, 2);
    const unlock = await lockRows(database, COLD);
    // One after the other, so that they do not make one batch.
    const asked: Promise<Granted>[] = [];
    for (const tag of COLD.slice(0, 6)) {
      asked.push(ask(tag));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    for (let round = 0; round < 5; round++)
      expect((await ask("free")).base).toBe(BigInt(round * 10 + 1));
    await unlock();
    expect((await Promise.all(asked)).map(({ base }) => base)).toEqual(asked.map(() => 1n));
  });
});

test("a row that stays locked fails its own grant, and leaves the connections as they are", async () => {
  const harness = await postgresHarness({ timeoutMs: 900, poolSize: 2 });
  const { database } = harness;
  const store = await harness.open();
  for (const tag of ["a", "b"]) await store.createTag(settingsOf(tag));
  const { ask } = serverOn(store, 2);
  await ask("b");
  const pids = async (): Promise<unknown> =>
    database.query(
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'idmint' ORDER BY pid",
    );
  const unlock = await lockRows(database, ["a"]);
  const locked = ask("a");
  await ask("b");
  const before = await pids();
  await expect(locked).rejects.toMatchObject({
    reason: "STORE_UNAVAILABLE",
    message: expect.stringContaining("lock") as string,
  });
  expect((await ask("b")).version).toBe(3n);
  expect(await pids()).toEqual(before);
  await unlock();
  expect((await ask("a")).base).toBe(1n);
  await store.close();
  await harness.remove();
});

test("two servers on one hot tag answer each request by one call, and none twice", async () => {
  await withStore(async (store, harness) => {
    const other = await harness.open();
    await store.createTag(sequenceOf("hot"));
    const servers = [serverOn(store), serverOn(other)];
    const ranges: { from: bigint; to: bigint }[] = [];
    const works = servers.map(async ({ ask }) => {
      for (let round = 0; round < 100; round++) {
        const { base, count } = await ask("hot", "sequence");
        ranges.push({ from: base, to: base + BigInt(count) - 1n });
      }
    });
    await Promise.all(works);
    assertDisjoint(ranges);
    // A call that finds the row locked by the other server waits for it: none is sent a second time.
    expect(servers.map(({ counters }) => counters.grantCalls)).toEqual([100, 100]);
    await other.close();
  });
});

test("waits that are too long together cost the connection no more than one that is", async () => {
  const harness = await postgresHarness({ timeoutMs: 1_200, poolSize: 1 });
  const store = await harness.open();
  await store.createTag(settingsOf("a"));
  await store.createTag(settingsOf("b"));
  const backends = async () =>
    harness.database.query(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'idmint' AND datname = current_database()",
    );
  const before = await backends();
  const [letA, letB] = [
    await lockRows(harness.database, ["a"]),
    await lockRows(harness.database, ["b"]),
  ];
  // Each lock may be waited for 800 ms, and all of them together 1,000.
  const granting = store.grant([wish("a"), wish("b")]).catch((error: unknown) => error);
  await pause(600);
  await letA();
  expect(await granting).toMatchObject({
    reason: "STORE_UNAVAILABLE",
    message: expect.stringContaining("took too long") as string,
  });
  await letB();
  expect(await store.grant([wish("a"), wish("b")])).toMatchObject([
    { outcome: "granted", base: 1n },
    { outcome: "granted", base: 1n },
  ]);
  expect(await backends()).toEqual(before);
  await store.close();
  await harness.remove();
});

test("an accept has a time of its own, also by the handle of a server", async () => {
  await withStore(async (operator, { config, database }) => {
    for (const tag of COLD) await operator.createTag(settingsOf(tag));
    const store = await openStore({ ...config, timeoutMs: 300 });
    const unlock = await lockRows(database, ["cold-07"]);
    const accepted = store.accept(1n);
    await pause(600);
    await unlock();
    expect(await accepted).toEqual({ tags: COLD.length });
    // It is the accept's alone.
    const lockAgain = await lockRows(database, ["cold-07"]);
    const raise = { maxRaise: 100n, expectedRevision: undefined };
    expect(await reasonOf(store.advanceTag("cold-07", 50n, raise))).toBe("STORE_UNAVAILABLE");
    await lockAgain();
    await store.close();
  });
});

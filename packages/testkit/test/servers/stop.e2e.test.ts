// SIGTERM: no call is lost, no id is wasted where it can be helped, and the process ends in time.
import { DatabaseSync } from "node:sqlite";
import { IdmintError } from "@idmint/client";
import { expect, test } from "vitest";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import { sqliteFile, startFleet } from "../fleet-support.ts";

/** What the product promises: drained, given back and ended. */
const STOP_LIMIT_MS = 5_000;

async function oneServer(file: string): Promise<Fleet> {
  return startFleet({ servers: 1, storeUrl: `sqlite:${file}` });
}

/** Holds up every grant of the store until it is disposed of. */
function lockStore(file: string): Disposable {
  const database = new DatabaseSync(file);
  database.exec("BEGIN IMMEDIATE");
  return {
    [Symbol.dispose]: () => {
      database.exec("ROLLBACK");
      database.close();
    },
  };
}

test("a server that was alone gives its unused ids back: the next start goes on without a gap", async () => {
  const fleet = await oneServer(await sqliteFile());
  const { first } = fleet;
  await first.api.createTag({ name: "orders", min: 1_000, max: 1_000 });
  const ids: bigint[] = [];
  // The third start ends in its second segment, with a third one in memory.
  for (const count of [5, 1, 1_500, 3]) {
    const answer = await first.api.generateIds({ tag: "orders", count, asList: true });
    ids.push(...answer.ids);
    const { code, tookMs } = await first.stop();
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(STOP_LIMIT_MS);
    console.log(`stopped after ${Math.round(tookMs)} ms`);
    await first.start();
  }
  expect(ids).toEqual(ids.map((_, at) => BigInt(at + 1)));
  expect((await first.api.getTag("orders")).floor).toBe(BigInt(ids.length));
});

test("a server that was not alone gives nothing back that lies below what others were granted", async () => {
  const fleet = await startFleet({ servers: 2, storeUrl: `sqlite:${await sqliteFile()}` });
  const [one, other] = fleet.servers as [FleetServer, FleetServer];
  await one.api.createTag({ name: "orders", min: 100, max: 100 });
  const ids: bigint[] = [];
  const draw = async ({ api }: FleetServer, count: number): Promise<void> => {
    ids.push(...(await api.generateIds({ tag: "orders", count, asList: true })).ids);
  };
  // Each in turn is the one whose segments the other's lie above, and comes back while the other goes on.
  for (let round = 0; round < 2; round++) {
    const [first, second] = round % 2 === 0 ? [one, other] : [other, one];
    await draw(first, 3);
    await draw(second, 130);
    expect((await first.stop()).code).toBe(0);
    await draw(second, 150);
    await first.start();
    await draw(first, 150);
  }
  expect(new Set(ids).size).toBe(ids.length);
});

test("a stopping server says NOT_SERVING, answers the call in flight, refuses new ones, and ends with 0", async () => {
  const file = await sqliteFile();
  const fleet = await oneServer(file);
  const { first } = fleet;
  const { api } = first;
  await api.createTag({ name: "orders", min: 10, max: 10 });
  // Known to the server, so that the call below waits for its grant alone.
  await api.getTag("orders");
  const lock = lockStore(file);
  let settled = false;
  const inFlight = api.id("orders", 10_000).finally(() => (settled = true));
  try {
    // The call has arrived when the server counts the tag among those in memory.
    const status = api.nodes.getNodeStatus.bind(api.nodes);
    await until(
      "the call is in flight",
      async () => (await api.send(status, {})).bufferedTags === 1,
    );
    first.process.signal("SIGTERM");
    await until("health says NOT_SERVING", async () => !(await api.isServing()), { everyMs: 5 });
    await expect(api.id("orders")).rejects.toMatchObject({
      code: "UNAVAILABLE",
      reason: "DRAINING",
      retryAfterMs: expect.any(Number) as number,
    });
    expect(settled).toBe(false);
  } finally {
    lock[Symbol.dispose]();
  }
  expect(await inFlight).toBe(1n);
  expect(await first.process.waitForEnd(STOP_LIMIT_MS)).toEqual({ code: 0, signal: null });
  await first.start();
  const next = await api.id("orders");
  expect(next).toBeGreaterThan(1n);
  // A grant that was in flight when the rest was given back is a gap.
  expect(next).toBeLessThanOrEqual(21n);
});

test("a second signal ends a stopping server at once, and repeats nothing", async () => {
  const file = await sqliteFile();
  const fleet = await oneServer(file);
  const { first } = fleet;
  const { api } = first;
  await api.createTag({ name: "orders", min: 10, max: 10 });
  const before = await api.id("orders");
  await api.createTag({ name: "waiting" });
  const lock = lockStore(file);
  try {
    const inFlight = api.id("waiting", 20_000).catch((thrown: unknown) => thrown);
    const status = api.nodes.getNodeStatus.bind(api.nodes);
    await until(
      "the call is in flight",
      async () => (await api.send(status, {})).bufferedTags === 2,
    );
    first.process.signal("SIGTERM");
    await until("health says NOT_SERVING", async () => !(await api.isServing()), { everyMs: 5 });
    const start = performance.now();
    first.process.signal("SIGTERM");
    const { code } = await first.process.waitForEnd(1_000);
    console.log(`forced after ${Math.round(performance.now() - start)} ms`);
    expect(code).not.toBe(0);
    expect(await inFlight).toBeInstanceOf(IdmintError);
    expect(await inFlight).toMatchObject({ code: "UNAVAILABLE" });
  } finally {
    lock[Symbol.dispose]();
  }
  await first.start();
  expect(await api.id("orders")).toBeGreaterThan(before);
});

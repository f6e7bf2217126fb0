import { IdmintError } from "@idmint/core";
import { Order } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { createIdClient, type IdClientEvent, type IdClientOptions } from "../src/index.ts";
import { startFleet } from "./fake-fleet.ts";
import { pause, reasonOf, thrown, until } from "./support.ts";

async function setUp(options: Partial<IdClientOptions> = {}) {
  const { store, servers } = await startFleet(1, onTestFinished);
  const server = servers[0]!;
  const events: IdClientEvent[] = [];
  const client = createIdClient({
    address: server.address,
    min: 10,
    max: 10,
    onEvent: (event) => events.push(event),
    ...options,
  });
  onTestFinished(async () => {
    await client.close();
  });
  return { store, server, client, events };
}

test("close gives back what each load has left, once, from its end", async () => {
  const { store, server, client, events } = await setUp();
  store.add("orders");
  const tag = client.tag("orders");
  for (let i = 0; i < 4; i++) await tag.next();
  // The prefetch at a tenth brings a second load.
  await until(() => events.filter((event) => event.type === "loaded").length === 2);
  await Promise.all([client.close(), client.close()]);
  await client.close();
  const released = server.released.map(({ releaseToken, unusedCount }) => ({
    load: releaseToken.split("/").at(-1),
    unusedCount,
  }));
  expect(released.toSorted((a, b) => Number(a.load) - Number(b.load))).toEqual([
    { load: "1", unusedCount: 6 },
    { load: "11", unusedCount: 10 },
  ]);
  const outcomes = events.filter((event) => event.type === "released");
  expect(outcomes.reduce((sum, event) => sum + event.reclaimedCount, 0)).toBe(16);
});

test("await using closes at the end of the block", async () => {
  const { store, server } = await setUp();
  store.add("orders");
  {
    await using client = createIdClient({ address: server.address, min: 10, max: 10 });
    expect(await client.tag("orders").next()).toBe(1n);
  }
  expect(server.released.length).toBeGreaterThan(0);
});

test("nothing is given back for a PER_CLIENT tag, nor for a client that was never used", async () => {
  const { store, server, client } = await setUp();
  store.add("ordered", { order: Order.PER_CLIENT });
  await client.tag("ordered").next();
  client.tag("unused");
  await client.close();
  expect(server.released).toEqual([]);
});

test("after close every call is refused with CLIENT_CLOSED, also those that waited", async () => {
  const { store, server, client } = await setUp();
  store.add("warm");
  store.add("cold");
  const warm = client.tag("warm");
  await warm.next();
  server.verdict = () => ({ kind: "hang" });
  const cold = client.tag("cold");
  const waiting = [reasonOf(cold.next()), reasonOf(cold.take(3)), reasonOf(cold.warm())];
  await until(() => server.allocated.some(({ tag }) => tag === "cold"));
  await client.close();
  expect(await Promise.all(waiting)).toEqual(Array(3).fill("CLIENT_CLOSED"));
  for (const tag of [warm, cold]) {
    expect(await reasonOf(tag.next())).toBe("CLIENT_CLOSED");
    expect(await reasonOf(tag.nextString())).toBe("CLIENT_CLOSED");
    expect(await reasonOf(tag.nextNumber())).toBe("CLIENT_CLOSED");
    expect(await reasonOf(tag.take(1))).toBe("CLIENT_CLOSED");
    expect(await reasonOf(tag.warm())).toBe("CLIENT_CLOSED");
    expect(thrown(() => tag.nextSync()).reason).toBe("CLIENT_CLOSED");
    expect(thrown(() => tag.nextNumberSync()).reason).toBe("CLIENT_CLOSED");
    expect(thrown(() => tag.nextStringSync()).reason).toBe("CLIENT_CLOSED");
  }
  expect(thrown(() => client.tag("other")).reason).toBe("CLIENT_CLOSED");
});

test("a release is never sent again, whatever becomes of it, and close ends within its bound", async () => {
  const { store, server, client, events } = await setUp();
  store.add("a");
  store.add("b");
  await client.tag("a").next();
  await client.tag("b").next();
  await pause(20);
  let calls = 0;
  server.releaseVerdict = () =>
    calls++ === 0
      ? { kind: "fail", error: new IdmintError("STORE_UNAVAILABLE", "not now") }
      : { kind: "hang" };
  const start = performance.now();
  await client.close();
  expect(performance.now() - start).toBeLessThan(2_500);
  const tokens = server.released.map(({ releaseToken }) => releaseToken);
  expect(new Set(tokens).size).toBe(tokens.length);
  expect(events.filter((event) => event.type === "release-failed").length).toBe(tokens.length);
});

test("close goes through when the server is gone", async () => {
  const { store, server, client } = await setUp();
  store.add("orders");
  await client.tag("orders").next();
  server.kill();
  const start = performance.now();
  await client.close();
  expect(performance.now() - start).toBeLessThan(2_500);
});

test("a listener that throws breaks nothing", async () => {
  const { store, client } = await setUp({
    onEvent: () => {
      throw new Error("of the listener");
    },
  });
  store.add("orders");
  for (let i = 1n; i <= 30n; i++) expect(await client.tag("orders").next()).toBe(i);
  await client.close();
});

import { Order } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { createIdClient, type IdClient, type IdClientOptions, idsOf } from "../src/index.ts";
import { type FakeServer, type FakeStore, startFleet } from "./fake-fleet.ts";
import { pause, reasonOf, refusal, thrown, until } from "./support.ts";

async function oneServer(
  options: Partial<IdClientOptions> = {},
): Promise<{ store: FakeStore; server: FakeServer; client: IdClient }> {
  const { store, servers } = await startFleet(1, onTestFinished);
  const server = servers[0]!;
  const client = createIdClient({ address: server.address, ...options });
  onTestFinished(async () => {
    await client.close();
  });
  return { store, server, client };
}

test("ids come as bigint, string and number, awaited and at once, each only once", async () => {
  const { store, client } = await oneServer();
  store.add("orders");
  const tag = client.tag("orders");
  expect(await tag.next()).toBe(1n);
  expect(await tag.nextString()).toBe("2");
  expect(await tag.nextNumber()).toBe(3);
  expect(tag.nextSync()).toBe(4n);
  expect(tag.nextStringSync()).toBe("5");
  expect(tag.nextNumberSync()).toBe(6);
});

test("a tag is one object per name, and a bad name is refused before anything is sent", async () => {
  const { server, client } = await oneServer();
  expect(client.tag("orders")).toBe(client.tag("orders"));
  for (const name of ["", "-x", "a b", "ä", "x".repeat(129)]) {
    const error = thrown(() => client.tag(name));
    expect(error.reason).toBe(name === "" ? "FIELD_REQUIRED" : "INVALID_NAME");
    expect(error.violations[0]?.field).toBe("tag");
  }
  expect(server.allocated).toEqual([]);
});

test("callers without types are told what is wrong", async () => {
  const { server, client } = await oneServer();
  const name: unknown = undefined;
  expect(thrown(() => client.tag(name as string)).violations[0]?.field).toBe("tag");
  const signal: unknown = new AbortController();
  const call = client.tag("orders").next({ signal: signal as AbortSignal });
  const error = await refusal(call);
  expect([error.reason, error.violations[0]?.field]).toEqual(["INVALID_ARGUMENT", "signal"]);
  expect(server.allocated).toEqual([]);
});

test("a client refuses more tags than maxTags", async () => {
  const { client } = await oneServer({ maxTags: 2 });
  client.tag("a");
  client.tag("b");
  expect(client.tag("a").name).toBe("a");
  expect(thrown(() => client.tag("c")).reason).toBe("OVERLOADED");
});

test("ten thousand ids cost a hundred calls at most, and the next segment is there before it is needed", async () => {
  const { store, server, client } = await oneServer();
  store.add("orders");
  const tag = client.tag("orders");
  const seen = new Set<bigint>();
  for (let i = 0; i < 10_000; i++) seen.add(await tag.next());
  expect(seen.size).toBe(10_000);
  expect(server.allocated.length).toBeLessThanOrEqual(101);
});

test("a thousand first calls at once share loads and all get an id", async () => {
  const { store, server, client } = await oneServer({ min: 10 });
  store.add("orders");
  const tag = client.tag("orders");
  const ids = await Promise.all(Array.from({ length: 1_000 }, () => tag.next()));
  expect(new Set(ids).size).toBe(1_000);
  expect(server.allocated.length).toBeLessThan(10);
});

test("no load asks a server for more than it hands out in one answer", async () => {
  const { store, server, client } = await oneServer();
  server.maxCount = 150;
  store.add("orders");
  const tag = client.tag("orders");
  const seen = new Set<bigint>();
  for (let i = 0; i < 3_000; i++) seen.add(await tag.next());
  for (const id of idsOf(await tag.take(2_000))) seen.add(id);
  expect(seen.size).toBe(5_000);
});

test("take answers ranges, also more than a load holds, and never more or fewer", async () => {
  const { store, client } = await oneServer({ max: 1_000 });
  store.add("orders");
  const tag = client.tag("orders");
  expect(await tag.next()).toBe(1n);
  const segments = await tag.take(5_000);
  const ids = [...idsOf(segments)];
  expect(ids.length).toBe(5_000);
  expect(new Set(ids).size).toBe(5_000);
  expect(ids).not.toContain(1n);
  expect(ids).not.toContain(await tag.next());
});

test("bad counts and call options are refused with their field", async () => {
  const { store, server, client } = await oneServer();
  store.add("orders");
  const tag = client.tag("orders");
  for (const count of [0, -1, 1.5, Number.NaN, 1_000_000_001]) {
    expect((await refusal(tag.take(count))).violations[0]?.field).toBe("count");
  }
  for (const deadlineMs of [0, -1, Number.NaN, Infinity, 3_600_001]) {
    expect((await refusal(tag.next({ deadlineMs }))).violations[0]?.field).toBe("deadlineMs");
  }
  expect(server.allocated).toEqual([]);
});

test("iteration goes on as long as it is asked, and ends with the tag's error", async () => {
  const { store, client } = await oneServer();
  store.add("short", { ceiling: 150n });
  const ids: bigint[] = [];
  const iterate = async (): Promise<void> => {
    for await (const id of client.tag("short")) ids.push(id);
  };
  expect(await reasonOf(iterate())).toBe("TAG_EXHAUSTED");
  expect(ids).toEqual(Array.from({ length: 150 }, (_, i) => BigInt(i + 1)));
});

test("a cold tag refuses synchronous calls and starts to load; warm waits for ids without taking one", async () => {
  const { store, client } = await oneServer();
  store.add("orders");
  const tag = client.tag("orders");
  const cold = thrown(() => tag.nextSync());
  expect(cold.reason).toBe("SEGMENT_NOT_READY");
  expect(cold.message).toContain("synchronous calls do not wait; await tag.warm() first");
  expect(cold.retryAfterMs).toBeGreaterThan(0);
  expect(thrown(() => tag.nextNumberSync()).reason).toBe("SEGMENT_NOT_READY");
  await tag.warm();
  expect(tag.nextSync()).toBe(1n);
  await tag.warm();
  expect(tag.nextNumberSync()).toBe(2);
});

test("a cold synchronous call says why when waiting does not help", async () => {
  const { client, store } = await oneServer();
  const tag = client.tag("nobody");
  expect(thrown(() => tag.nextSync()).reason).toBe("SEGMENT_NOT_READY");
  await until(() => thrown(() => tag.nextSync()).reason === "TAG_NOT_FOUND");
  store.add("nobody");
  await pause(150);
  expect(thrown(() => tag.nextSync()).reason).toBe("TAG_NOT_FOUND");
  await tag.warm();
  expect(tag.nextSync()).toBe(1n);
});

test("ids past 2^53 − 1 are exact as bigint and string, and refused as numbers without loss", async () => {
  const { store, client } = await oneServer();
  store.add("big", { floor: 2n ** 53n - 3n });
  const tag = client.tag("big");
  expect(await tag.nextNumber()).toBe(Number.MAX_SAFE_INTEGER - 1);
  expect(tag.nextNumberSync()).toBe(Number.MAX_SAFE_INTEGER);
  expect(thrown(() => tag.nextNumberSync()).reason).toBe("UNSAFE_INTEGER");
  expect(thrown(() => tag.nextNumberSync()).reason).toBe("UNSAFE_INTEGER");
  // The synchronous call issued nothing; the awaited one names the id it cannot hold.
  expect(tag.nextSync()).toBe(2n ** 53n);
  const error = await refusal(tag.nextNumber());
  expect(error.reason).toBe("UNSAFE_INTEGER");
  expect(error.metadata).toEqual({ tag: "big", id: String(2n ** 53n + 1n) });
  expect(await tag.nextString()).toBe("9007199254740994");
});

test("ids end exactly at 2^63 − 1", async () => {
  const { store, client } = await oneServer();
  store.add("end", { floor: 2n ** 63n - 51n });
  const tag = client.tag("end");
  for (let i = 0n; i < 50n; i++) expect(await tag.next()).toBe(2n ** 63n - 50n + i);
  const error = await refusal(tag.next());
  expect([error.reason, error.code, error.retryable]).toEqual([
    "TAG_EXHAUSTED",
    "OUT_OF_RANGE",
    false,
  ]);
});

test("unknown tags are refused by every method", async () => {
  const { client } = await oneServer();
  const tag = client.tag("nobody");
  expect(await reasonOf(tag.next())).toBe("TAG_NOT_FOUND");
  expect(await reasonOf(tag.nextString())).toBe("TAG_NOT_FOUND");
  expect(await reasonOf(tag.nextNumber())).toBe("TAG_NOT_FOUND");
  expect(await reasonOf(tag.take(3))).toBe("TAG_NOT_FOUND");
  expect(await reasonOf(tag.warm())).toBe("TAG_NOT_FOUND");
  const iterator = tag[Symbol.asyncIterator]();
  expect(await reasonOf(iterator.next())).toBe("TAG_NOT_FOUND");
});

/** What ends before a timer that was set before it; also on a busy machine, timers fire in the order of their times. */
async function before<T>(timer: Promise<void>, work: Promise<T>): Promise<T> {
  const late = timer.then(() => {
    throw new Error("too late");
  });
  return Promise.race([work, late]);
}

test("a call waits no longer than its deadline, whatever the server does", async () => {
  const { store, server, client } = await oneServer();
  store.add("orders");
  server.verdict = () => ({ kind: "hang" });
  const start = performance.now();
  const timer = pause(300);
  const error = await before(timer, refusal(client.tag("orders").next({ deadlineMs: 300 })));
  expect(error.reason).toBe("SEGMENT_NOT_READY");
  expect(error.retryAfterMs).toBeGreaterThan(0);
  expect(performance.now() - start).toBeGreaterThan(200);
  await timer;
});

test("the client's own deadline holds for calls without options", async () => {
  const { store, server, client } = await oneServer({ deadlineMs: 200 });
  store.add("orders");
  server.verdict = () => ({ kind: "hang" });
  const tag = client.tag("orders");
  const timer = pause(200);
  const both = Promise.all([reasonOf(tag.next()), reasonOf(tag.take(7))]);
  expect(await before(timer, both)).toEqual(["SEGMENT_NOT_READY", "SEGMENT_NOT_READY"]);
  await timer;
});

test("an AbortSignal ends the wait of its call, and of no other", async () => {
  const { store, server, client } = await oneServer();
  store.add("orders");
  server.verdict = () => ({ kind: "delay", ms: 150 });
  const tag = client.tag("orders");
  const controller = new AbortController();
  const given = tag.next({ signal: controller.signal });
  const other = tag.next();
  controller.abort();
  expect(await reasonOf(given)).toBe("CALL_CANCELLED");
  expect(await other).toBe(1n);
  expect(await reasonOf(tag.next({ signal: controller.signal }))).toBe("CALL_CANCELLED");
});

test("more waiting calls than maxWaiters are refused at once", async () => {
  const { store, server, client } = await oneServer({ maxWaiters: 3 });
  store.add("orders");
  server.verdict = () => ({ kind: "delay", ms: 100 });
  const tag = client.tag("orders");
  const waiting = [tag.next(), tag.next(), tag.next()];
  expect(await reasonOf(tag.next())).toBe("OVERLOADED");
  expect(await Promise.all(waiting)).toEqual([1n, 2n, 3n]);
});

test("ids are issued from memory while the server is away, and fetched again when it is back", async () => {
  const { store, server, client } = await oneServer({ min: 500 });
  store.add("orders");
  const tag = client.tag("orders");
  const seen = new Set<bigint>([await tag.next()]);
  await until(() => server.allocated.length >= 1);
  server.kill();
  for (let i = 0; i < 400; i++) seen.add(await tag.next());
  await server.start();
  for (let i = 0; i < 1_000; i++) seen.add(await tag.next({ deadlineMs: 4_000 }));
  expect(seen.size).toBe(1_401);
});

test("errors name the field, and carry the server's details", async () => {
  const { store, server, client } = await oneServer();
  store.add("orders");
  const { IdmintError } = await import("../src/index.ts");
  server.verdict = () => ({
    kind: "fail",
    error: new IdmintError("INVALID_ARGUMENT", "count must be at most 5", {
      violations: [{ field: "count", description: "must be at most 5" }],
      metadata: { limit: "5" },
      retryAfterMs: 1_250,
    }),
  });
  const error = await refusal(client.tag("orders").next());
  expect(error.code).toBe("INVALID_ARGUMENT");
  expect(error.message).toBe("INVALID_ARGUMENT: count must be at most 5");
  expect(error.violations).toEqual([{ field: "count", description: "must be at most 5" }]);
  expect(error.metadata).toEqual({ limit: "5" });
  expect(error.retryAfterMs).toBe(1_250);
});

test("a PER_CLIENT tag sends after, an UNORDERED one does not once it is known", async () => {
  const { store, server, client } = await oneServer({ min: 10 });
  store.add("unordered");
  store.add("ordered", { order: Order.PER_CLIENT });
  for (const name of ["unordered", "ordered"]) {
    for (let i = 0; i < 100; i++) await client.tag(name).next();
  }
  const aftersOf = (name: string): bigint[] =>
    server.allocated.filter(({ tag }) => tag === name).map(({ after }) => after);
  expect(new Set(aftersOf("unordered"))).toEqual(new Set([0n]));
  const afters = aftersOf("ordered");
  expect(afters[0]).toBe(0n);
  expect(afters.slice(1).every((after) => after > 0n)).toBe(true);
  expect(afters).toEqual(afters.toSorted((a, b) => Number(a - b)));
});

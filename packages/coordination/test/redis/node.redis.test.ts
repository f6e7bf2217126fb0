import { inspect } from "node:util";
import { RedisServer, sharedRedisUrl } from "@idmint/testkit/redis";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { createElection, createLocks } from "../../src/index.ts";
import { createQueue } from "../../src/queue/queue.ts";
import { RedisNode } from "../../src/redis/node.ts";
import { defineScript } from "../../src/redis/script.ts";
import { failure, sleep, until } from "../support.ts";

const url = await sharedRedisUrl();
const limits = { timeoutMs: 2_000 };

async function ping(node: RedisNode, timeoutMs = 2_000): Promise<string> {
  return node.run("a ping", (redis) => redis.ping(), { timeoutMs });
}

test("no error shows a password", async () => {
  await using server = await RedisServer.start({ settings: { requirepass: "right" } });
  const { port } = server;
  for (const source of [
    `redis://:s3cret@127.0.0.1:${port}`,
    { host: "127.0.0.1", port, password: "s3cret" },
    { host: "127.0.0.1", port, username: "somebody", password: "s3cret" },
    { host: "127.0.0.1", port, password: "s3cret", protocol: 2 as const },
  ]) {
    await using node = new RedisNode(source);
    expect(node.name).toBe(`127.0.0.1:${port}`);
    const first = await failure(ping(node));
    const second = await failure(ping(node));
    expect(first.reason).toBe("NODE_UNAVAILABLE");
    expect(inspect([first, second], { depth: 20, showHidden: true })).not.toContain("s3cret");
    for (const { message } of [first, second]) expect(message).toContain("(WRONGPASS");
  }
  await using none = new RedisNode(`redis://127.0.0.1:${port}`);
  expect((await failure(ping(none))).message).toContain("(NOAUTH");
  await using nobody = new RedisNode("redis://127.0.0.1:1");
  expect((await failure(ping(nobody))).message).toContain("(connect ECONNREFUSED 127.0.0.1:1)");
  await using good = new RedisNode(`redis://:right@127.0.0.1:${port}`);
  expect(await ping(good)).toBe("PONG");
  for (const bad of ["redis://:s3cret@host:port", "http://a:s3cret@host", "s3cret"]) {
    let thrown: unknown;
    try {
      void new RedisNode(bad);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ reason: "INVALID_ARGUMENT", metadata: { field: "url" } });
    expect(inspect(thrown, { depth: 20, showHidden: true })).not.toContain("s3cret");
  }
});

test("a caller's connection must send nothing later or twice, and stays the caller's", async () => {
  const wrong = new Redis(url);
  expect(() => new RedisNode(wrong)).toThrow("redis.options.enableOfflineQueue must be false");
  wrong.disconnect();
  const own = new Redis(url, { enableOfflineQueue: false, autoResendUnfulfilledCommands: false });
  const node = new RedisNode(own);
  expect(await ping(node)).toBe("PONG");
  await node.close();
  expect(await failure(ping(node))).toMatchObject({ reason: "CLOSED" });
  expect(await own.ping()).toBe("PONG");
  own.disconnect();
});

test("a command that Redis did not answer in time is never sent again", async () => {
  await using server = await RedisServer.start();
  await using node = new RedisNode(server.url);
  await ping(node);
  server.pause();
  const late = failure(node.run("counting", (redis) => redis.incr("n"), { timeoutMs: 100 }));
  const broken = failure(node.run("counting", (redis) => redis.incr("n"), { timeoutMs: 60_000 }));
  expect(await late).toMatchObject({ reason: "NODE_UNAVAILABLE" });
  expect((await late).message).toContain("may have been done");
  await server.kill();
  expect(await broken).toMatchObject({ reason: "NODE_UNAVAILABLE" });
  await server.start();
  await until("it is connected again", () => node.isReady);
  await sleep(50);
  expect(await server.command("GET", "n")).toBeNull();
});

test("without a connection a call fails at once, and says why", async () => {
  await using server = await RedisServer.start();
  const { port } = server;
  await server.kill();
  await using node = new RedisNode({ host: "127.0.0.1", port });
  const start = performance.now();
  const error = await failure(ping(node));
  expect(error).toMatchObject({ reason: "NODE_UNAVAILABLE", code: "UNAVAILABLE", retryable: true });
  expect(String(error.cause)).toContain("ECONNREFUSED");
  expect(performance.now() - start).toBeLessThan(1_000);
});

test("more than a thousand commands at once are refused", async () => {
  await using node = new RedisNode(url);
  await ping(node);
  const calls = Array.from({ length: 1_005 }, () => ping(node).catch((error: unknown) => error));
  const answers = await Promise.all(calls);
  expect(answers.filter((answer) => answer === "PONG")).toHaveLength(1_000);
  expect(answers.at(-1)).toMatchObject({ reason: "OVERLOADED", code: "RESOURCE_EXHAUSTED" });
  expect(await ping(node)).toBe("PONG");
});

test("a call can be cancelled, also before it begins", async () => {
  await using server = await RedisServer.start();
  await using node = new RedisNode(server.url);
  await ping(node);
  server.pause();
  const signal = AbortSignal.timeout(50);
  const call = failure(node.run("a ping", (redis) => redis.ping(), { ...limits, signal }));
  expect(await call).toMatchObject({ reason: "CALL_CANCELLED" });
  const again = failure(node.run("a ping", (redis) => redis.ping(), { ...limits, signal }));
  expect(await again).toMatchObject({ reason: "CALL_CANCELLED" });
});

test("numbers past 2^53 come whole, and an error answer of Redis is told apart", async () => {
  await using node = new RedisNode(url);
  const big = defineScript("redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])");
  const values = { keys: ["test-big"], args: ["9223372036854775806"] };
  expect(await node.script("a script", big, values, limits)).toBe("9223372036854775806");
  const more = await node.run("counting", (redis) => redis.incr("test-big"), limits);
  expect(String(more)).toBe("9223372036854775807");
  const error = await failure(node.run("counting", (redis) => redis.incr("test-big"), limits));
  expect(error).toMatchObject({ reason: "NODE_REFUSED", code: "FAILED_PRECONDITION" });
  await using other = node.duplicate();
  expect(await ping(other)).toBe("PONG");
});

test("locks, elections and queues refuse a Redis that may remove keys, unless that is allowed", async () => {
  const evicting = { maxmemory: "100mb", "maxmemory-policy": "volatile-lru" };
  await using server = await RedisServer.start({ settings: evicting });
  for (const isAllowed of [false, true]) {
    const may = isAllowed ? { mayEvict: true } : {};
    await using locks = createLocks({ nodes: server.url, ...may });
    await using election = createElection({ node: server.url, name: "e", ttlMs: 100, ...may });
    await using queue = createQueue({ redis: server.url, name: "q", ...may });
    const all = [
      locks.lock("l").run(async () => undefined),
      election.campaign(),
      queue.push("message"),
      queue.take({ timeoutMs: 1_000 }),
    ];
    if (isAllowed) {
      await Promise.all(all);
      continue;
    }
    // Each is listened to from its beginning: they fail in any order.
    for (const error of await Promise.all(all.map((one: Promise<unknown>) => failure(one)))) {
      expect(error).toMatchObject({ reason: "NODE_REFUSED", code: "FAILED_PRECONDITION" });
      expect(error.message).toContain("volatile-lru");
    }
  }
  // Mended while the connection stays, it is looked at again with the next one.
  await using locks = createLocks({ nodes: server.url });
  await failure(locks.lock("l").acquire());
  await server.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
  await server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  const isTaken = (): Promise<boolean> =>
    locks
      .lock("l")
      .run(async () => true)
      .catch(() => false);
  await expect.poll(isTaken, { timeout: 10_000 }).toBe(true);
});

import { setTimeout as pause } from "node:timers/promises";
import { RedisServer } from "@idmint/testkit/redis";
import { expect, onTestFinished, test } from "vitest";
import { mustTake, TestQueue } from "./support.ts";

async function ownServer(): Promise<{ server: RedisServer; there: TestQueue }> {
  const server = await RedisServer.start({ settings: { appendonly: "yes" } });
  onTestFinished(() => server.close());
  return { server, there: new TestQueue(server.url) };
}

test("a take lives through a restart of Redis", async () => {
  const { server, there } = await ownServer();
  const queue = there.open();
  await queue.push("before");
  const before = await mustTake(queue);
  const waiting = queue.take({ timeoutMs: 30_000 });
  await pause(100);
  await server.kill();
  // Until the broken connection is noticed, a push may have been sent.
  const failure = async (): Promise<unknown> => queue.push("down").catch((error: unknown) => error);
  await expect.poll(failure).toMatchObject({ reason: "NODE_UNAVAILABLE" });
  await server.start();
  const producer = there.open();
  await producer.push("after");
  expect((await waiting)?.data).toBe("after");
  expect(await before.ack()).toBe(true);
});

test("a consumer is known again before it takes anything from a Redis that lost its data", async () => {
  const { server, there } = await ownServer();
  const queue = there.open({ consumerTtlMs: 3_600_000 });
  const waiting = queue.take({ timeoutMs: 30_000 });
  await expect.poll(() => there.redis.zcard(there.keys.consumers)).toBe(1);
  await server.kill();
  server.wipe();
  await server.start();
  await there.open().push("new");
  expect((await waiting)?.data).toBe("new");
  expect(await there.redis.zcard(there.keys.consumers)).toBe(1);
});

test("without Redis a take says at its end that nobody knows, and close is quick", async () => {
  const { server, there } = await ownServer();
  await server.stop();
  const queue = there.open();
  const start = performance.now();
  const error = await queue.take({ timeoutMs: 400 }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ reason: "NODE_UNAVAILABLE", retryable: true });
  expect(performance.now() - start).toBeGreaterThanOrEqual(395);
  await queue.close();
  expect(performance.now() - start).toBeLessThan(4_000);
});

test("a push without an answer has an unknown outcome, and says so", async () => {
  const { server, there } = await ownServer();
  const queue = there.open({ commandTimeoutMs: 200 });
  await queue.push("first");
  server.pause();
  const error = await queue.push("second").catch((thrown: unknown) => thrown);
  server.resume();
  expect(error).toMatchObject({ reason: "OUTCOME_UNKNOWN", code: "ABORTED", retryable: false });
  expect(String(error)).toContain("may have been done");
  // It had been done.
  await expect.poll(() => there.redis.llen(there.keys.ready)).toBe(2);
});

test("with a Redis that hangs a take comes back, and what it was given is found later", async () => {
  const { server, there } = await ownServer();
  const queue = there.open({ commandTimeoutMs: 200, consumerTtlMs: 1_000 });
  await queue.push("first");
  expect(await (await mustTake(queue)).ack()).toBe(true);
  const waiting = queue.take({ timeoutMs: 300 }).catch((thrown: unknown) => thrown);
  await pause(50);
  server.pause();
  expect(await waiting).toMatchObject({ reason: "NODE_UNAVAILABLE" });
  server.resume();
  await expect.poll(() => queue.push("second").catch(() => undefined)).toBeDefined();
  const again = await queue.take({ timeoutMs: 10_000 });
  expect(again?.data).toBe("second");
});

test("broken connections lose no message", async () => {
  const { there } = await ownServer();
  const count = 600;
  const queue = there.open({ consumerTtlMs: 1_000 });
  const producer = there.open();
  const ids = await producer.pushAll(Array.from({ length: count }, (_, at) => `message ${at}`));
  const seen = new Set<string>();
  const over = new AbortController();
  let kills = 0;
  onTestFinished(() => over.abort());
  const killer = setInterval(() => {
    // Everybody but the test itself.
    kills++;
    void there.redis.call("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal").catch(() => 0);
  }, 200);
  onTestFinished(() => clearInterval(killer));
  const consume = async (): Promise<void> => {
    while (seen.size < count && !over.signal.aborted) {
      const message = await queue.take({ timeoutMs: 2_000 }).catch(() => undefined);
      if (message === undefined) continue;
      seen.add(message.id);
      await pause(5);
      await message
        .ack()
        .catch(() => message.ack())
        .catch(() => false);
    }
  };
  await Promise.all([consume(), consume()]);
  expect(ids.filter((id) => !seen.has(id))).toEqual([]);
  expect(kills).toBeGreaterThan(3);
}, 40_000);

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { RedisServer } from "@idmint/testkit/redis";
import { expect, onTestFinished, test } from "vitest";
import { TestQueue } from "./support.ts";

/** IDMINT_LONG=1 runs the same test with as many messages as a release wants. */
const COUNT = process.env["IDMINT_LONG"] === "1" ? 10_000 : 2_000;
const KILL_EVERY = 200;
const BATCH = 100;
const script = path.join(import.meta.dirname, "consumer-child.ts");
const execArgv = ["-C", "idmint-source"];

test(`of ${COUNT} messages none is lost when the consumer is killed every ${KILL_EVERY}`, async () => {
  const server = await RedisServer.start();
  onTestFinished(() => server.close());
  const there = new TestQueue(server.url);
  const done = new Map<string, number>();
  const running = new Set<ChildProcess>();
  onTestFinished(() => running.forEach((child) => child.kill("SIGKILL")));
  let kills = 0;

  function startConsumer(): void {
    const child = fork(script, [server.url, there.name], { execArgv });
    running.add(child);
    let own = 0;
    child.on("message", (id: string) => {
      done.set(id, (done.get(id) ?? 0) + 1);
      own++;
      // Without a word, in the middle of its work; the last messages are for those that stay.
      if (own !== KILL_EVERY || done.size >= COUNT) return;
      running.delete(child);
      child.kill("SIGKILL");
      kills++;
      startConsumer();
    });
  }

  // The second one is ready when the first one dies.
  startConsumer();
  startConsumer();
  const producer = there.open();
  const pushed: string[] = [];
  while (pushed.length < COUNT) {
    const data = Array.from({ length: BATCH }, (_, at) => `message ${pushed.length + at}`);
    pushed.push(...(await producer.pushAll(data)));
  }
  await expect.poll(() => done.size, { timeout: 120_000 }).toBe(COUNT);
  expect(pushed.filter((id) => !done.has(id))).toEqual([]);
  expect(kills).toBeGreaterThanOrEqual(COUNT / KILL_EVERY - 2);
  // At least once: what was in hand at a kill came again, and nothing else.
  const repeats = [...done.values()].reduce((sum, times) => sum + times - 1, 0);
  expect(repeats).toBeLessThanOrEqual(kills * 8);

  for (const child of running) child.send("over");
  await Promise.all([...running].map((child) => once(child, "close")));
  // What the last one killed held is worked on already; it is only to be recovered and seen to be so.
  await expect
    .poll(async () => (await there.redis.zcard(there.keys.consumers)) + (await producer.recover()))
    .toBe(0);
  for (let message = await producer.take({ timeoutMs: 1 }); message !== undefined;) {
    expect(done.has(message.id)).toBe(true);
    await message.ack();
    message = await producer.take({ timeoutMs: 1 });
  }
  expect(await there.pending()).toEqual([]);
});

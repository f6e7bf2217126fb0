import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { mustTake, TestQueue } from "./support.ts";

test("fifo answers the oldest first, filo the newest", async () => {
  for (const [order, expected] of [
    ["fifo", ["a", "b", "c"]],
    ["filo", ["c", "b", "a"]],
  ] as const) {
    const there = await TestQueue.shared();
    const queue = there.open({ order });
    await queue.pushAll(["a", "b"]);
    await queue.push("c");
    expect(await queue.length()).toBe(3);
    const taken = [await mustTake(queue), await mustTake(queue)].map(({ data }) => data);
    taken.push((await queue.pop())?.data ?? "");
    expect(taken).toEqual(expected);
    expect(await queue.length()).toBe(0);
  }
});

test("a take waits for a message, and answers undefined when its time is over", async () => {
  const there = await TestQueue.shared();
  const queue = there.open();
  const producer = there.open();
  const waiting = queue.take({ timeoutMs: 10_000 });
  await producer.push("late");
  expect((await waiting)?.data).toBe("late");
  const start = performance.now();
  expect(await queue.take({ timeoutMs: 150 })).toBeUndefined();
  expect(performance.now() - start).toBeGreaterThanOrEqual(148);
  expect(await queue.pop({ timeoutMs: 1 })).toBeUndefined();
});

test("even the shortest take asks once, beside a longer one too", async () => {
  const there = await TestQueue.shared();
  const queue = there.open();
  await queue.push("there");
  expect((await queue.take({ timeoutMs: 1 }))?.data).toBe("there");
  const long = queue.take({ timeoutMs: 3_000 });
  const start = performance.now();
  expect(await queue.take({ timeoutMs: 100 })).toBeUndefined();
  expect(performance.now() - start).toBeLessThan(900);
  await queue.push("for the long one");
  expect((await long)?.data).toBe("for the long one");
});

test("several takes of one consumer are served in the order of their calls", async () => {
  const there = await TestQueue.shared();
  const queue = there.open();
  const takes = [1, 2, 3].map(() => queue.take({ timeoutMs: 5_000 }));
  await there.open().pushAll(["a", "b", "c"]);
  expect((await Promise.all(takes)).map((message) => message?.data)).toEqual(["a", "b", "c"]);
});

test("a message that came for an aborted take goes to the next one", async () => {
  const there = await TestQueue.shared();
  const queue = there.open();
  const abort = new AbortController();
  const waiting = queue.take({ timeoutMs: 5_000, signal: abort.signal });
  // Redis waits for the connection's sake by then.
  await expect.poll(async () => there.redis.zcard(there.keys.consumers)).toBe(1);
  abort.abort(new Error("no longer needed"));
  await expect(waiting).rejects.toMatchObject({ reason: "CALL_CANCELLED", code: "CANCELLED" });
  await there.open().push("kept");
  const other = there.open();
  const message = await mustTake(other);
  // Undelivered, but moved: it may count as a delivery.
  expect(message).toMatchObject({ data: "kept" });
  expect(await message.ack()).toBe(true);
  const signal = AbortSignal.abort();
  await expect(queue.take({ signal })).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
});

test("ack removes exactly the message it belongs to, also among equal ones", async () => {
  const there = await TestQueue.shared();
  const queue = there.open();
  await queue.pushAll(["same", "same", "same"]);
  const [first, second, third] = [
    await mustTake(queue),
    await mustTake(queue),
    await mustTake(queue),
  ];
  expect(new Set([first.id, second.id, third.id]).size).toBe(3);
  expect(await second.ack()).toBe(true);
  const left = (await there.pending()).flat().map((element) => element.split(":")[1]);
  expect(left).toEqual([third.id, first.id]);
  expect(await second.ack()).toBe(false);
  expect(await second.release()).toBe(false);
  expect(await first.ack()).toBe(true);
  expect(await third.ack()).toBe(true);
  expect(await there.pending()).toEqual([]);
});

test("a released message is the next one, delivered once more", async () => {
  for (const order of ["fifo", "filo"] as const) {
    const there = await TestQueue.shared();
    const queue = there.open({ order });
    await queue.pushAll(["a", "b", "c"]);
    const first = await mustTake(queue);
    expect(first.deliveries).toBe(1);
    expect(await first.release()).toBe(true);
    const again = await mustTake(queue);
    expect(again).toMatchObject({ id: first.id, data: first.data, deliveries: 2 });
    // The first delivery's hands are empty: only the second one may acknowledge.
    expect(await first.ack()).toBe(false);
    expect(await first.release()).toBe(false);
    expect(await again.ack()).toBe(true);
  }
});

test("what a silent consumer held comes back in its order, once, with two recoverers at work", async () => {
  for (const [order, expected] of [
    ["fifo", ["a", "b", "c", "d", "e"]],
    ["filo", ["e", "d", "c", "b", "a"]],
  ] as const) {
    const there = await TestQueue.shared();
    const lost = there.open({ order });
    await lost.pushAll(["a", "b", "c", "d", "e"]);
    const held = [await mustTake(lost), await mustTake(lost), await mustTake(lost)];
    await there.silenceAll();
    const recoverers = [there.open({ order }), there.open({ order }), there.open({ order })];
    const counts = await Promise.all(recoverers.map((each) => each.recover()));
    expect(counts.reduce((sum, count) => sum + count)).toBe(3);
    expect(await lost.length()).toBe(5);
    // The consumer was only paused: it learns that the messages are not its own any more.
    expect(await held[0]!.ack()).toBe(false);
    expect(await held[1]!.release()).toBe(false);
    const other = recoverers[0]!;
    const again = [];
    for (let i = 0; i < 5; i++) again.push(await mustTake(other));
    expect(again.map(({ data }) => data)).toEqual(expected);
    expect(again.map(({ deliveries }) => deliveries)).toEqual([2, 2, 2, 1, 1]);
    expect(await held[2]!.ack()).toBe(false);
    for (const message of again) expect(await message.ack()).toBe(true);
    expect(await there.pending()).toEqual([]);
  }
});

test("a consumer that lives is left alone", async () => {
  const there = await TestQueue.shared();
  const queue = there.open();
  await queue.push("held");
  const message = await mustTake(queue);
  expect(await there.open().recover()).toBe(0);
  expect(await message.ack()).toBe(true);
});

test("consumers recover the messages of silent ones by themselves", async () => {
  const there = await TestQueue.shared();
  const lost = there.open({ consumerTtlMs: 3_600_000 });
  await lost.push("held");
  await mustTake(lost);
  const other = there.open({ consumerTtlMs: 1_000 });
  const waiting = other.take({ timeoutMs: 10_000 });
  await there.silenceAll();
  expect(await waiting).toMatchObject({ data: "held", deliveries: 2 });
  expect(there.events).toContainEqual({
    type: "messages-recovered",
    queue: there.name,
    count: 1,
  });
});

test("a message that Redis moved to a consumer after its time was over is found by the second look", async () => {
  const there = await TestQueue.shared();
  const lost = there.open({ consumerTtlMs: 3_600_000 });
  await lost.push("first");
  await (await mustTake(lost)).ack();
  const [id] = await there.redis.zrange(there.keys.consumers, 0, "-1");
  await there.silenceAll();
  const other = there.open();
  await other.recover();
  expect(await there.redis.zrange(there.keys.consumers, 0, "-1")).toEqual([]);
  expect(await there.redis.zrange(there.keys.lingering, 0, "-1")).toEqual([id]);
  await there.redis.lpush(there.keys.pendingPrefix + id!, "0:late-id:late");
  expect(await other.recover()).toBe(0);
  await there.redis.zadd(there.keys.lingering, 1, id!);
  expect(await other.recover()).toBe(1);
  expect(await mustTake(other)).toMatchObject({ id: "late-id", data: "late" });
  expect(await there.redis.exists(there.keys.lingering)).toBe(0);
});

test("a consumer that was recovered and lives on keeps what it takes afterwards", async () => {
  const there = await TestQueue.shared();
  const paused = there.open({ consumerTtlMs: 1_000 });
  await paused.push("first");
  await mustTake(paused);
  const [id = ""] = await there.redis.zrange(there.keys.consumers, 0, "-1");
  const other = there.open();
  // A heartbeat may come between the two.
  const isRecovered = async (): Promise<boolean> => {
    await there.silenceAll();
    await other.recover();
    return (await there.redis.zscore(there.keys.lingering, id)) !== null;
  };
  await expect.poll(isRecovered, { timeout: 5_000 }).toBe(true);
  const isAlive = async (): Promise<boolean> =>
    (await there.redis.zscore(there.keys.consumers, id)) !== null;
  await expect.poll(isAlive, { timeout: 5_000 }).toBe(true);
  const message = await mustTake(paused);
  // The second look would come by now, if it is still to come.
  await there.redis.zadd(there.keys.lingering, "XX", 1, id);
  expect(await other.recover()).toBe(0);
  expect(await message.ack()).toBe(true);
});

test("a message that was given to a consumer in an answer that never came is found", async () => {
  const there = await TestQueue.shared();
  const queue = there.open({ consumerTtlMs: 1_000 });
  await queue.push("first");
  const first = await mustTake(queue);
  const [id] = await there.redis.zrange(there.keys.consumers, 0, "-1");
  await there.redis.lpush(there.keys.pendingPrefix + id!, "0:lost-id:lost");
  const found = await queue.take({ timeoutMs: 10_000 });
  expect(found).toMatchObject({ id: "lost-id", data: "lost" });
  expect(await found!.ack()).toBe(true);
  expect(await first.ack()).toBe(true);
  expect(there.events).toContainEqual({ type: "messages-found", queue: there.name, count: 1 });
});

test("close puts back what was not acknowledged, and refuses what waits", async () => {
  const there = await TestQueue.shared();
  const queue = there.open();
  await queue.pushAll(["a", "b"]);
  await mustTake(queue);
  await mustTake(queue);
  const waiting = queue.take().catch((error: unknown) => error);
  await queue.close();
  expect(await waiting).toMatchObject({ reason: "CLOSED" });
  await expect(queue.push("c")).rejects.toMatchObject({ reason: "CLOSED" });
  const other = there.open();
  expect(await mustTake(other)).toMatchObject({ data: "a", deliveries: 2 });
  expect(await mustTake(other)).toMatchObject({ data: "b", deliveries: 2 });
});

test("limits are refusals that name the way out", async () => {
  const there = await TestQueue.shared();
  const queue = there.open({ maxLength: 3, maxBytes: 4, maxHeld: 1 });
  await queue.pushAll(["a", "b"]);
  const full = /^OVERLOADED: .* maxLength is 3; push later/;
  await expect(queue.pushAll(["c", "d"])).rejects.toThrow(full);
  expect(await queue.length()).toBe(2);
  await queue.push("c");
  await expect(queue.push("d")).rejects.toThrow(full);
  const tooLong = /^INVALID_ARGUMENT: data must be at most 4 bytes, got 6/;
  await expect(queue.push("ééé")).rejects.toThrow(tooLong);
  await expect(queue.pushAll([])).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
  await expect(queue.push("\uD800")).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
  const message = await mustTake(queue);
  await expect(queue.take()).rejects.toThrow(/^OVERLOADED: .* raise maxHeld/);
  await message.ack();
  expect((await mustTake(queue)).data).toBe("b");
});

test("data come out as they went in", async () => {
  const there = await TestQueue.shared();
  const queue = there.open();
  const data = [
    "",
    ":",
    "0:x:y",
    "line\nline\r\n",
    "ünïcødé 🎈",
    "\u0000",
    JSON.stringify({ a: [1] }),
  ];
  await queue.pushAll(data);
  for (const text of data) {
    const message = await mustTake(queue);
    expect(message.data).toBe(text);
    await message.release();
    const again = await mustTake(queue);
    expect([again.data, await again.ack()]).toEqual([text, true]);
  }
});

test("what no queue wrote is set aside and told", async () => {
  const there = await TestQueue.shared();
  const queue = there.open();
  await there.redis.lpush(there.keys.ready, "hello");
  await queue.push("message");
  expect((await mustTake(queue)).data).toBe("message");
  expect(there.events).toContainEqual({
    type: "foreign-set-aside",
    queue: there.name,
    element: "hello",
  });
  expect(await there.redis.lrange(there.keys.foreign, 0, -1)).toEqual(["hello"]);
});

test("a connection of the caller's is never blocked, and stays open", async () => {
  const there = await TestQueue.shared();
  const options = { enableOfflineQueue: false, autoResendUnfulfilledCommands: false };
  const redis = new Redis(there.url, { ...options, lazyConnect: true });
  await redis.connect();
  onTestFinished(() => redis.disconnect());
  const queue = there.open({ redis });
  const waiting = queue.take({ timeoutMs: 700 });
  await expect.poll(async () => there.redis.zcard(there.keys.consumers)).toBe(1);
  const start = performance.now();
  expect(await redis.ping()).toBe("PONG");
  expect(performance.now() - start).toBeLessThan(400);
  expect(await waiting).toBeUndefined();
  await queue.close();
  expect(await redis.ping()).toBe("PONG");
});

test("another type at the key is a refusal at once", async () => {
  const there = await TestQueue.shared();
  await there.redis.set(there.keys.ready, "text");
  const queue = there.open();
  await expect(queue.push("a")).rejects.toMatchObject({ reason: "NODE_REFUSED" });
  await expect(queue.take()).rejects.toMatchObject({ reason: "NODE_REFUSED" });
});

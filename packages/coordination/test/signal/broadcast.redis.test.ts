import { setTimeout as pause } from "node:timers/promises";
import { RedisServer } from "@idmint/testkit/redis";
import { expect, onTestFinished, test } from "vitest";
import { heard, TestSignals } from "./support.ts";

test("a broadcast reaches everybody who listens, once, and nobody else", async () => {
  const there = await TestSignals.shared();
  const [sender, a, b] = [there.open(), there.open(), there.open()];
  expect(await sender.broadcast("deploy", "before anybody listens")).toBe(0);
  const listeners = [await a.listen("deploy"), await a.listen("deploy"), await b.listen("deploy")];
  const other = await b.listen("other");
  expect(await sender.broadcast("deploy", "v2")).toBe(2);
  await sender.broadcast("other");
  for (const listener of listeners) {
    expect(heard(await listener.wait())).toEqual(["deploy=v2"]);
    expect(listener.tryWait()).toBeUndefined();
  }
  expect(heard(await other.wait())).toEqual(["other="]);
});

test("a listener keeps what comes between two waits, in order", async () => {
  const there = await TestSignals.shared();
  const signals = there.open();
  await using listener = await signals.listen("step");
  for (const data of ["1", "2", "3"]) await signals.broadcast("step", data);
  const data = [];
  for (let i = 0; i < 3; i++) data.push(...heard(await listener.wait()));
  expect(data).toEqual(["step=1", "step=2", "step=3"]);
});

test("any of several, all of several, and a pattern", async () => {
  const there = await TestSignals.shared();
  const signals = there.open();
  await using any = await signals.listen({ anyOf: ["a", "b"] });
  await using all = await signals.listen({ allOf: ["a", "b", "c"] });
  await using pattern = await signals.listen({ pattern: "[ab]*" });
  await signals.broadcast("b", "1");
  expect(heard(await any.wait())).toEqual(["b=1"]);
  expect(heard(await pattern.wait())).toEqual(["b=1"]);
  const both = all.wait({ timeoutMs: 10_000 });
  await signals.broadcast("c", "2");
  await signals.broadcast("b", "3");
  expect(heard(await any.wait())).toEqual(["b=3"]);
  await signals.broadcast("a", "4");
  expect(heard(await both)).toEqual(["a=4", "b=3", "c=2"]);
  expect(all.tryWait()).toBeUndefined();
  expect(heard(await pattern.wait())).toEqual(["b=3"]);
  expect(heard(await pattern.wait())).toEqual(["a=4"]);
});

test("wait and tryWait listen for one signal, in time", async () => {
  const there = await TestSignals.shared();
  const signals = there.open();
  const waiting = signals.wait("go", { timeoutMs: 10_000 });
  await expect.poll(() => signals.broadcast("go", "now")).toBeGreaterThan(0);
  expect(heard(await waiting)).toEqual(["go=now"]);
  const start = performance.now();
  await expect(signals.wait("go", { timeoutMs: 120 })).rejects.toMatchObject({
    reason: "DEADLINE_EXCEEDED",
  });
  expect(await signals.tryWait({ anyOf: ["x", "y"] }, { timeoutMs: 120 })).toBeUndefined();
  expect(performance.now() - start).toBeGreaterThanOrEqual(235);
  expect(performance.now() - start).toBeLessThan(3_000);
});

test("an aborted wait ends at once, and close refuses what waits", async () => {
  const there = await TestSignals.shared();
  const signals = there.open();
  const abort = new AbortController();
  const aborted = signals.wait("never", { signal: abort.signal }).catch((error: unknown) => error);
  await using listener = await signals.listen("never");
  const waiting = listener.wait().catch((error: unknown) => error);
  abort.abort(new Error("no longer needed"));
  expect(await aborted).toMatchObject({ reason: "CALL_CANCELLED" });
  await signals.close();
  expect(await waiting).toMatchObject({ reason: "CLOSED" });
  await expect(signals.broadcast("a")).rejects.toMatchObject({ reason: "CLOSED" });
  await expect(signals.listen("a")).rejects.toMatchObject({ reason: "CLOSED" });
});

test("nothing is subscribed to that nobody listens to", async () => {
  const there = await TestSignals.shared();
  const signals = there.open();
  const first = await signals.listen("a");
  const second = await signals.listen("a");
  const channel = `${there.prefix}:signal:all:a`;
  const subscribers = async (): Promise<unknown> => there.redis.pubsub("NUMSUB", channel);
  expect(await subscribers()).toEqual([channel, 1]);
  first.close();
  await second.wait({ timeoutMs: 50 }).catch(() => undefined);
  expect(await subscribers()).toEqual([channel, 1]);
  second.close();
  await expect.poll(subscribers).toEqual([channel, 0]);
});

test("limits are refusals that name the way out", async () => {
  const there = await TestSignals.shared();
  const signals = there.open({ maxWaiters: 2, maxBytes: 4, maxBuffered: 2 });
  await using listener = await signals.listen("a");
  const second = await signals.listen("b");
  await expect(signals.listen("c")).rejects.toThrow(/^OVERLOADED: .* raise maxWaiters/);
  await expect(listener.wait()).rejects.toThrow(/^OVERLOADED/);
  second.close();
  await expect(signals.broadcast("a", "ééé")).rejects.toThrow(/at most 4 bytes, got 6/);
  const end = await signals.listen("end");
  for (const data of ["1", "2", "3"]) await signals.broadcast("a", data);
  await signals.broadcast("end");
  await expect.poll(() => end.tryWait()).toBeDefined();
  end.close();
  // The oldest had no place, and that is said.
  expect(await listener.wait()).toEqual({ signals: [], missed: ["a"] });
  expect(heard(await listener.wait())).toEqual(["a=2"]);
  expect(heard(await listener.wait())).toEqual(["a=3"]);
  for (const wanted of [{ anyOf: [] }, { allOf: ["a", "a"] }, { pattern: "a b" }, "{a}"]) {
    await expect(signals.listen(wanted)).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
  }
});

test("what no signals sent is ignored and told", async () => {
  const there = await TestSignals.shared();
  const signals = there.open();
  await using listener = await signals.listen("a");
  const channel = `${there.prefix}:signal:all:a`;
  await there.redis.publish(channel, "hello");
  await signals.broadcast("a", "mine");
  expect(heard(await listener.wait())).toEqual(["a=mine"]);
  expect(there.events).toContainEqual({ type: "foreign-ignored", channel });
});

test("a wait goes on after its connection was killed, and without a count says nothing of the gap", async () => {
  const server = await RedisServer.start();
  onTestFinished(() => server.close());
  const there = new TestSignals(server.url);
  const signals = there.open();
  const waiting = signals.wait("a", { timeoutMs: 20_000 });
  const pattern = signals.wait({ pattern: "a*" }, { timeoutMs: 20_000 });
  await expect.poll(() => there.redis.pubsub("NUMPAT")).toBe(1);
  await there.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  await expect.poll(() => there.count("listening-resumed")).toBe(1);
  expect(there.count("listening-lost")).toBe(1);
  await expect.poll(() => there.redis.pubsub("NUMPAT")).toBe(1);
  const sender = there.open();
  await sender.broadcast("a", "after");
  expect(heard(await waiting)).toEqual(["a=after"]);
  expect(heard(await pattern)).toEqual(["a=after"]);
});

test("with a count a wait ends when something was sent while it was away, and over a loss of its data", async () => {
  const server = await RedisServer.start({ settings: { appendonly: "yes" } });
  onTestFinished(() => server.close());
  const there = new TestSignals(server.url);
  const signals = there.open({ isCounted: true });
  const sender = there.open({ isCounted: true });
  await sender.broadcast("a", "before");
  await using listener = await signals.listen("a");
  await using both = await signals.listen({ allOf: ["a", "b"] });
  await sender.broadcast("a", "heard");
  expect(heard(await listener.wait())).toEqual(["a=heard"]);

  // A break without a broadcast wakes nobody.
  await there.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  await expect.poll(() => there.count("listening-resumed")).toBe(1);
  await sender.broadcast("a", "heard again");
  expect(heard(await listener.wait())).toEqual(["a=heard again"]);
  expect(there.count("signals-missed")).toBe(0);

  // Sent before the listener can be back.
  const waiting = listener.wait({ timeoutMs: 20_000 });
  await there.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  await sender.broadcast("a", "missed");
  expect(await waiting).toEqual({ signals: [], missed: ["a"] });
  expect(await both.wait()).toMatchObject({ missed: ["a"] });

  // A Redis that comes back without its data knows of no count: that is told too.
  const again = listener.wait({ timeoutMs: 20_000 });
  await server.kill();
  server.wipe();
  await server.start();
  expect(await again).toEqual({ signals: [], missed: ["a"] });
  const send = async (): Promise<unknown> =>
    sender.broadcast("a", "goes on").catch(() => undefined);
  await expect.poll(send).toBeDefined();
  expect(heard(await listener.wait())).toEqual(["a=goes on"]);
  await expect(signals.listen({ pattern: "*" })).rejects.toMatchObject({
    reason: "INVALID_ARGUMENT",
  });
});

test("with a replica each signal comes once, and goes on coming while either is away", async () => {
  const primary = await RedisServer.start();
  const replica = await RedisServer.start();
  onTestFinished(() => primary.close());
  onTestFinished(() => replica.close());
  await replica.follow(primary);
  const there = new TestSignals(primary.url);
  const signals = there.open({ replica: replica.url });
  const sender = there.open();
  await using listener = await signals.listen("a");
  const channel = `${there.prefix}:signal:all:a`;
  // It listens as soon as one of them hears: the other one's signals come late then.
  await expect.poll(() => replica.command("PUBSUB", "NUMSUB", channel)).toEqual([channel, "1"]);
  await expect.poll(() => there.redis.pubsub("NUMSUB", channel)).toEqual([channel, 1]);
  const all = Array.from({ length: 200 }, (_, at) => `a=${at}`);
  for (const at of all.keys()) await sender.broadcast("a", String(at));
  const got: string[] = [];
  while (got.length < all.length) got.push(...heard(await listener.wait()));
  expect(got).toEqual(all);
  await pause(200);
  expect(listener.tryWait()).toBeUndefined();

  await there.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  await sender.broadcast("a", "through the replica");
  expect(heard(await listener.wait())).toEqual(["a=through the replica"]);
  await replica.kill();
  await expect.poll(() => there.redis.pubsub("NUMSUB", channel)).toEqual([channel, 1]);
  await sender.broadcast("a", "through the primary");
  expect(heard(await listener.wait())).toEqual(["a=through the primary"]);
  await pause(100);
  expect(listener.tryWait()).toBeUndefined();
});

test("without Redis nothing listens, and that is said", async () => {
  const server = await RedisServer.start();
  onTestFinished(() => server.close());
  const there = new TestSignals(server.url);
  const signals = there.open({ commandTimeoutMs: 200 });
  await using listener = await signals.listen("a");
  server.pause();
  await expect(signals.broadcast("a")).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
  server.resume();
  // It had been sent.
  expect(heard(await listener.wait({ timeoutMs: 10_000 }))).toEqual(["a="]);
  await server.stop();
  await expect(listener.wait({ timeoutMs: 150 })).rejects.toMatchObject({
    reason: "NODE_UNAVAILABLE",
  });
  await expect(signals.listen("b", { timeoutMs: 150 })).rejects.toMatchObject({
    reason: "NODE_UNAVAILABLE",
  });
});

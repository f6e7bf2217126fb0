import { setTimeout as pause } from "node:timers/promises";
import { RedisServer } from "@idmint/testkit/redis";
import { expect, onTestFinished, test } from "vitest";
import type { Signal } from "../../src/signal/api.ts";
import { TestSignals } from "./support.ts";

test("a signal for one is taken by exactly one of many waiters, and kept when nobody waits", async () => {
  const there = await TestSignals.shared();
  const instances = [there.open(), there.open(), there.open()];
  const [sender] = instances;
  const waits = instances.flatMap((signals) =>
    Array.from({ length: 20 }, () => signals.tryWaitOne("job", { timeoutMs: 1_500 })),
  );
  await expect.poll(() => there.waiters("job")).toBe(60);
  const outcomes = await Promise.all(
    Array.from({ length: 40 }, (_, at) => sender!.signalOne("job", String(at))),
  );
  expect(outcomes).toEqual(outcomes.map(() => "given"));
  const got = (await Promise.all(waits)).filter((signal) => signal !== undefined);
  expect(got.map(({ data }) => Number(data)).toSorted((a, b) => a - b)).toEqual([
    ...Array.from({ length: 40 }).keys(),
  ]);
  expect(await there.waiters("job")).toBe(0);
  expect(await sender!.signalOne("job", "kept")).toBe("kept");
  expect(await instances[1]!.waitOne("job")).toMatchObject({ name: "job", data: "kept" });
});

test("signals and waits that come and go at once lose nothing and repeat nothing", async () => {
  const there = await TestSignals.shared();
  const instances = [there.open({ leaseMs: 300 }), there.open({ leaseMs: 300 })];
  const sender = there.open({ maxKept: 1_000 });
  const count = 600;
  const got: Signal[] = [];
  // So long that only signals that are lost exceed it.
  const endMs = performance.now() + 120_000;
  const waitAgain = async (at: number): Promise<void> => {
    while (got.length < count && performance.now() < endMs) {
      const abort = new AbortController();
      // Time-outs and aborts fall into the instants in which signals are given.
      const timer = at % 2 === 0 ? setTimeout(() => abort.abort(), 3 + (at % 7)) : undefined;
      const signal = await instances[at % 2]!.tryWaitOne("job", {
        timeoutMs: 1 + (at % 9),
        signal: abort.signal,
      }).catch(() => undefined);
      clearTimeout(timer);
      if (signal !== undefined) got.push(signal);
    }
  };
  const waiters = Array.from({ length: 16 }, (_, at) => waitAgain(at));
  for (let at = 0; at < count; at++) {
    await sender.signalOne("job", String(at));
    if (at % 10 === 0) await pause(2);
  }
  await Promise.all(waiters);
  const data = got.map((signal) => Number(signal.data)).toSorted((a, b) => a - b);
  expect(data).toEqual([...Array.from({ length: count }).keys()]);
}, 150_000);

test("time-outs, aborts and limits", async () => {
  const there = await TestSignals.shared();
  const signals = there.open({ maxWaiters: 1, maxKept: 2 });
  const start = performance.now();
  await expect(signals.waitOne("a", { timeoutMs: 120 })).rejects.toMatchObject({
    reason: "DEADLINE_EXCEEDED",
  });
  expect(performance.now() - start).toBeGreaterThanOrEqual(118);
  const abort = new AbortController();
  const waiting = signals.waitOne("a", { signal: abort.signal }).catch((error: unknown) => error);
  await expect(signals.waitOne("a")).rejects.toThrow(/^OVERLOADED: .* raise maxWaiters/);
  await expect.poll(() => there.waiters("a")).toBe(1);
  await expect(there.open({ maxWaiters: 1 }).waitOne("a")).rejects.toThrow(/^OVERLOADED/);
  abort.abort();
  expect(await waiting).toMatchObject({ reason: "CALL_CANCELLED" });
  await expect.poll(() => there.waiters("a")).toBe(0);
  expect(await signals.signalOne("a", "1")).toBe("kept");
  expect(await signals.signalOne("a", "2")).toBe("kept");
  await expect(signals.signalOne("a", "3")).rejects.toThrow(/^OVERLOADED: .* raise maxKept/);
  expect((await signals.waitOne("a")).data).toBe("1");
  expect((await signals.waitOne("a", { timeoutMs: 50 })).data).toBe("2");
});

test("a waiter whose process is gone is passed over, and one that does not come loses the signal to another", async () => {
  const there = await TestSignals.shared();
  const keys = `${there.prefix}:signal:one:{a}`;
  await there.redis.hset(`${keys}:clock`, "last", Date.now(), "ahead", 0);
  // Left by a process that is gone: nobody hears its channel.
  await there.redis.zadd(`${keys}:waiters`, Date.now() + 60_000, "gone/1");
  const signals = there.open({ leaseMs: 300 });
  expect(await signals.signalOne("a", "1")).toBe("kept");
  expect((await signals.waitOne("a")).data).toBe("1");

  // Paused: its connection hears, and nobody acts.
  const paused = there.redis.duplicate();
  onTestFinished(() => paused.disconnect());
  await paused.subscribe(`${there.prefix}:signal:wake:paused`);
  await there.redis.zadd(`${keys}:waiters`, Date.now() + 60_000, "paused/1");
  expect(await signals.signalOne("a", "2")).toBe("given");
  expect(await signals.tryWaitOne("a", { timeoutMs: 50 })).toBeUndefined();
  const start = performance.now();
  expect((await signals.waitOne("a", { timeoutMs: 5_000 })).data).toBe("2");
  expect(performance.now() - start).toBeLessThan(3_000);
  expect(await there.redis.hlen(`${keys}:given`)).toBe(0);
});

test("closing passes a signal on, and refuses the waits", async () => {
  const there = await TestSignals.shared();
  const closing = there.open();
  const other = there.open();
  const waiting = closing.waitOne("a").catch((error: unknown) => error);
  await expect.poll(() => there.waiters("a")).toBe(1);
  const [outcome] = await Promise.all([other.signalOne("a", "1"), closing.close()]);
  expect(["given", "kept"]).toContain(outcome);
  const end = await waiting;
  // Taken in the last instant, or passed on: never neither.
  if ((end as Signal).data !== "1") {
    expect(end).toMatchObject({ reason: "CLOSED" });
    expect((await other.waitOne("a")).data).toBe("1");
  }
});

test("waits come back after killed connections and a restart, and take what was kept meanwhile", async () => {
  const server = await RedisServer.start({ settings: { appendonly: "yes" } });
  onTestFinished(() => server.close());
  const there = new TestSignals(server.url);
  const signals = there.open({ leaseMs: 600 });
  const sender = there.open();
  const first = signals.waitOne("a", { timeoutMs: 20_000 });
  await expect.poll(() => there.waiters("a")).toBe(1);
  await there.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  await sender.signalOne("a", "after the kill");
  expect((await first).data).toBe("after the kill");

  const second = signals.waitOne("a", { timeoutMs: 20_000 });
  await expect.poll(() => there.waiters("a")).toBe(1);
  await server.kill();
  await server.start();
  const third = there.open();
  await third.signalOne("a", "after the restart");
  expect((await second).data).toBe("after the restart");

  await server.stop();
  await expect(signals.waitOne("a", { timeoutMs: 100 })).rejects.toMatchObject({
    reason: "NODE_UNAVAILABLE",
  });
});

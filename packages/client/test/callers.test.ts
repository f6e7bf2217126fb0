// What a client does in the process that uses it: whose errors, whose context and whose clocks are whose.
import { AsyncLocalStorage } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { IdmintError } from "@idmint/core";
import { expect, onTestFinished, test, vi } from "vitest";
import type { LoadMessage } from "../src/channels.ts";
import { createIdClient, type IdTag } from "../src/index.ts";
import { nodeRuntime } from "../src/runtime.ts";
import { startFleet } from "./fake-fleet.ts";
import { type FakeWorld, fakeWorld, settle } from "./fake-transport.ts";
import { allocated, pause, refusal, thrown, until } from "./support.ts";

const notFound = new IdmintError("TAG_NOT_FOUND", "there is no such tag");

async function answer(world: FakeWorld, base: bigint, count?: number): Promise<void> {
  await settle();
  for (const call of world.transport.pending.splice(0)) call.answer(allocated(base, count));
  await settle();
}

test("an async onEvent or token that rejects ends no process", async () => {
  const rejections: unknown[] = [];
  const hear = (reason: unknown): void => void rejections.push(reason);
  process.on("unhandledRejection", hear);
  onTestFinished(() => void process.off("unhandledRejection", hear));
  let heard = 0;
  const listen: () => unknown = async () => {
    heard++;
    await settle();
    throw new Error("the log is full");
  };
  const world = fakeWorld({ address: "a:1", onEvent: listen });
  const id = world.client.tag("orders").next();
  await answer(world, 1n);
  expect(await id).toBe(1n);
  const token = (async () => Promise.reject(new Error("no vault"))) as unknown as () => string;
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  const client = createIdClient({ address: servers[0]!.address, token });
  onTestFinished(() => client.close());
  const error = await refusal(client.tag("orders").next());
  expect([error.reason, error.message]).toEqual([
    "UNAUTHENTICATED",
    expect.stringContaining("must return"),
  ]);
  await pause(20);
  expect(heard).toBeGreaterThan(0);
  expect(rejections).toEqual([]);
});

test("each caller is refused with an error of its own, whose stack leads to it and whose cause they share", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("orders");
  async function bill(): Promise<bigint> {
    const id = await tag.next();
    return id;
  }
  const waiting = [refusal(bill()), refusal(tag.next()), refusal(tag.take(5))];
  await settle();
  world.transport.pending.splice(0)[0]!.fail(notFound);
  const errors = await Promise.all(waiting);
  // These come after it, and are refused with the one that was kept.
  errors.push(await refusal(tag.next()), await refusal(tag.nextNumber()));
  errors.push(
    await refusal(tag.nextString()),
    thrown(() => tag.nextSync()),
  );
  expect(new Set(errors).size).toBe(7);
  for (const error of errors) {
    expect([error.reason, error.message]).toEqual(["TAG_NOT_FOUND", notFound.message]);
    expect(error.cause).toBe(notFound);
  }
  expect(errors[0]!.stack).toContain("at bill (");
  (errors[0] as { request?: string }).request = "r-1";
  expect(errors.map((error) => "request" in error)).toEqual([
    true,
    ...errors.slice(1).map(() => false),
  ]);
});

test("whoever gives up keeps the reason, and an id that no number holds stays in its error", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("orders");
  const tooLarge = refusal(tag.nextNumber());
  await answer(world, 2n ** 60n);
  expect((await tooLarge).metadata["id"]).toBe(String(2n ** 60n));
  expect((await tooLarge).cause).toBeUndefined();
});

test.each(["next", "nextString", "nextNumber", "nextPeriodId", "take", "warm"] as const)(
  "%s without its tag says so, and options that are none are refused by name",
  async (method) => {
    const tag = fakeWorld({ address: "a:1" }).client.tag("orders");
    const call = (self: IdTag | undefined, options?: unknown): Promise<unknown> => {
      const given = method === "take" ? [1, options] : [options];
      return Reflect.apply(tag[method], self, given) as Promise<unknown>;
    };
    for (const self of [undefined, {} as IdTag]) {
      const error = await refusal(call(self));
      expect(error.reason).toBe("INVALID_ARGUMENT");
      expect(error.message).toContain(`${method} was called without its tag`);
      expect(error.message).toContain(`() => tag.${method}()`);
    }
    const unknown = await refusal(call(tag, { timeoutMs: 5 }));
    expect(unknown.violations.map(({ field }) => field)).toEqual(["timeoutMs"]);
    for (const bad of [null, 5, "soon"]) {
      expect((await refusal(call(tag, bad))).violations.map(({ field }) => field)).toEqual([
        "options",
      ]);
    }
  },
);

test.each(["nextSync", "nextStringSync", "nextNumberSync"] as const)(
  "%s without its tag says so",
  (method) => {
    const tag = fakeWorld({ address: "a:1" }).client.tag("orders");
    const error = thrown(() => Reflect.apply(tag[method], undefined, []));
    expect([error.reason, error.violations.map(({ field }) => field)]).toEqual([
      "INVALID_ARGUMENT",
      [method],
    ]);
    expect(thrown(() => tag[method]()).reason).toBe("SEGMENT_NOT_READY");
  },
);

/** Whose context requests are announced in, and events told in. */
function watchContexts(requests: AsyncLocalStorage<string>): (string | undefined)[] {
  const contexts: (string | undefined)[] = [];
  const loads = tracingChannel<unknown, LoadMessage>("idmint:load");
  const start = (): void => void contexts.push(requests.getStore());
  loads.start.subscribe(start);
  onTestFinished(() => loads.start.unsubscribe(start));
  return contexts;
}

test("a load that somebody awaits belongs to that call, its retries too; what is loaded ahead belongs to nobody", async () => {
  const requests = new AsyncLocalStorage<string>();
  const announced = watchContexts(requests);
  const told = new Set<string | undefined>();
  const onEvent = (): void => void told.add(requests.getStore());
  const world = fakeWorld({ address: "a:1", onEvent });
  const tag = world.client.tag("orders");
  const first = requests.run("first", () => tag.next());
  await settle();
  world.transport.pending.splice(0)[0]!.fail(new IdmintError("STORE_UNAVAILABLE", "away"));
  await settle();
  world.time.advance(2_000);
  await answer(world, 1n);
  expect(await first).toBe(1n);
  expect(announced).toEqual(["first", "first"]);
  // The prefetch mark is passed in the context of a request.
  await requests.run("second", async () => {
    for (let at = 0; at < 20; at++) await tag.next();
  });
  await settle();
  expect(announced.slice(2)).toEqual([undefined]);
  const warm = requests.run("third", () => world.client.tag("others").warm());
  await answer(world, 1_000n);
  await warm;
  expect(announced.slice(3)).toEqual(["third"]);
  expect([...told]).toEqual([undefined]);
});

test("timers of a client run outside of the request that set them, and work of one turn within it", async () => {
  const requests = new AsyncLocalStorage<string>();
  const runtime = nodeRuntime(() => false);
  onTestFinished(runtime.close);
  const seen: Record<string, string | undefined> = {};
  requests.run("request", () => {
    runtime.timers.after(1, () => (seen["timer"] = requests.getStore() ?? "nobody"));
    runtime.quietTimers.after(1, () => (seen["quiet"] = requests.getStore() ?? "nobody"));
    const stop = runtime.every(1, () => (seen["ticker"] = requests.getStore() ?? "nobody"));
    onTestFinished(stop);
    runtime.afterTurn(() => (seen["turn"] = requests.getStore()));
  });
  await until(() => Object.keys(seen).length === 4);
  expect(seen).toEqual({ timer: "nobody", quiet: "nobody", ticker: "nobody", turn: "request" });
});

test("nothing that a request has stored outlives it in a client", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  const client = createIdClient({ address: servers[0]!.address });
  onTestFinished(() => client.close());
  const requests = new AsyncLocalStorage<object>();
  const kept = await (async () => {
    const stored = { of: "a request" };
    const ref = new WeakRef(stored);
    await requests.run(stored, () => client.tag("orders").warm());
    return ref;
  })();
  await pause(50);
  collect();
  await pause(10);
  collect();
  expect(kept.deref()).toBeUndefined();
  expect(client.tag("orders").nextSync()).toBeGreaterThan(0n);
});

test("a client that is made under fake timers keeps the true clocks and timers", async () => {
  vi.useFakeTimers({ now: 1_000, toFake: ["Date", "performance", "setTimeout", "setInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const runtime = nodeRuntime(() => false);
  onTestFinished(runtime.close);
  const startMs = runtime.clock.now();
  let ran = 0;
  runtime.timers.after(1, () => ran++);
  const stop = runtime.every(1, () => ran++);
  expect(runtime.wallClock()).toBeGreaterThan(1_700_000_000_000);
  await new Promise((resolve) => setImmediate(resolve));
  vi.useRealTimers();
  await until(() => ran >= 2);
  stop();
  expect(Math.abs(runtime.wallClock() - Date.now())).toBeLessThan(1_000);
  expect(runtime.clock.now() - startMs).toBeGreaterThan(0);
});

test("after a leap of the wall clock alone no id that was held is issued, and none that was on its way", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("orders");
  const warm = tag.warm();
  await answer(world, 1n);
  await warm;
  expect(tag.nextSync()).toBe(1n);
  world.leap();
  expect(thrown(() => tag.nextSync()).reason).toBe("SEGMENT_NOT_READY");
  await settle();
  const [late] = world.transport.pending.splice(0);
  const waiting = tag.next();
  world.leap();
  late!.answer(allocated(200n));
  await answer(world, 300n);
  expect(await waiting).toBe(300n);
  expect(tag.nextSync()).toBe(301n);
});

test("a client is told of leaps by the clock that it reads", () => {
  const time = { monotonic: 0, wall: 1_700_000_000_000, up: 0 };
  const runtime = nodeRuntime(() => false, {
    monotonicMs: () => time.monotonic,
    wallMs: () => time.wall,
    uptimeMs: () => time.up,
  });
  let leaps = 0;
  runtime.onLeap(() => leaps++);
  time.monotonic += 2;
  time.wall += 61_000;
  expect(runtime.clock.now()).toBe(2);
  expect(leaps).toBe(1);
});

import { status } from "@grpc/grpc-js";
import { IdmintError } from "@idmint/core";
import { Order } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { BufferedIdClient } from "../../src/client.ts";
import type { IdClient, IdClientEvent, IdClientOptions, IdTag } from "../../src/index.ts";
import { nodeRuntime } from "../../src/runtime.ts";
import { GrpcTransport } from "../../src/servers/channel.ts";
import { rendezvousOrder } from "../../src/servers/rendezvous.ts";
import { type FakeServer, type FakeStore, startFleet } from "../fake-fleet.ts";
import { pause, reasonOf, refusal } from "../support.ts";

interface Fleet {
  readonly store: FakeStore;
  /** In the order in which `tag` prefers them. */
  readonly servers: readonly FakeServer[];
  readonly client: IdClient;
  readonly events: IdClientEvent[];
}

/** A fleet and a client of it; the tag is made, and its servers are in the order of preference. */
async function fleetFor(
  tag: string,
  count: number,
  options: Partial<IdClientOptions> & { order?: Order } = {},
): Promise<Fleet> {
  const { order = Order.UNORDERED, ...clientOptions } = options;
  const { store, servers } = await startFleet(count, onTestFinished);
  store.add(tag, { order });
  const addresses = servers.map(({ address }) => address);
  const events: IdClientEvent[] = [];
  // The client's own part of the hash is this number; all else is Node's.
  const runtime = { ...nodeRuntime(() => false), random: () => 0.5 };
  const client = new BufferedIdClient(
    {
      addresses,
      min: 10,
      max: 10,
      rpcDeadlineMs: 200,
      onEvent: (event) => events.push(event),
      ...clientOptions,
    },
    { runtime, transport: ({ tls }) => new GrpcTransport(tls) },
  );
  onTestFinished(async () => {
    await client.close();
  });
  const weighted = addresses.map((address) => ({ address, weight: 1 }));
  const preferred = rendezvousOrder(weighted, `${(0.5).toString(36)}/${tag}`).map((address) =>
    servers.find((server) => server.address === address)!,
  );
  return { store, servers: preferred, client, events };
}

/** Asks until the tag refuses, at most `most` times. */
async function firstRefusal(tag: IdTag, most: number): Promise<IdmintError> {
  for (let i = 0; i < most; i++) {
    try {
      await tag.next({ deadlineMs: 100 });
    } catch (error) {
      return IdmintError.from(error);
    }
    await pause(1);
  }
  return expect.fail(`${most} calls were answered`);
}

const down = (reason: "DRAINING" | "STORE_UNAVAILABLE") => () =>
  ({ kind: "fail", error: new IdmintError(reason, "not now") }) as const;

test("a tag stays with its first choice as long as that one is well", async () => {
  const { servers, client } = await fleetFor("orders", 3, { rpcDeadlineMs: 5_000 });
  for (let i = 0; i < 200; i++) await client.tag("orders").next();
  expect(servers[0]!.allocated.length).toBeGreaterThan(10);
  expect(servers[1]!.allocated).toEqual([]);
  expect(servers[2]!.allocated).toEqual([]);
});

test("when the first choice is gone the next one serves, at once and without an error", async () => {
  const { servers, client, events } = await fleetFor("orders", 3);
  const tag = client.tag("orders");
  const seen = new Set<bigint>();
  for (let i = 0; i < 50; i++) seen.add(await tag.next());
  servers[0]!.kill();
  for (let i = 0; i < 100; i++) seen.add(await tag.next());
  servers[1]!.kill();
  for (let i = 0; i < 100; i++) seen.add(await tag.next());
  expect(seen.size).toBe(250);
  expect(servers[2]!.allocated.length).toBeGreaterThan(0);
  const failed = events.filter((event) => event.type === "endpoint-failed");
  expect(failed.map(({ address }) => address)).toEqual(
    expect.arrayContaining([servers[0]!.address, servers[1]!.address]),
  );
});

for (const [name, verdict] of [
  ["drains", down("DRAINING")],
  ["has no store", down("STORE_UNAVAILABLE")],
  ["does not answer", () => ({ kind: "hang" }) as const],
  ["loses its answers", () => ({ kind: "lose" }) as const],
  [
    "hides behind a broken proxy",
    () => ({ kind: "fail-plain", code: status.UNAVAILABLE }) as const,
  ],
] as const) {
  test(`a server that ${name} is left for the next one`, async () => {
    const { servers, client } = await fleetFor("orders", 2);
    servers[0]!.verdict = verdict;
    const seen = new Set<bigint>();
    for (let i = 0; i < 100; i++) seen.add(await client.tag("orders").next());
    expect(seen.size).toBe(100);
    // The cool-down keeps loads away from it: they do not each try it first.
    expect(servers[0]!.allocated.length).toBeLessThan(3);
    expect(servers[1]!.allocated.length).toBeGreaterThan(5);
  });
}

for (const [reason, code] of [
  ["PERMISSION_DENIED", "PERMISSION_DENIED"],
  ["OVERLOADED", "RESOURCE_EXHAUSTED"],
  ["INTERNAL", "INTERNAL"],
] as const) {
  test(`a refusal as ${code} is the answer: no other server is asked, and ids in memory stay`, async () => {
    const { servers, client } = await fleetFor("orders", 2, { min: 20, max: 20 });
    const tag = client.tag("orders");
    await tag.next();
    servers[0]!.verdict = () => ({ kind: "fail", error: new IdmintError(reason, "no") });
    for (let i = 2n; i <= 20n; i++) {
      expect(await tag.next()).toBe(i);
      await pause(1);
    }
    const error = await refusal(tag.next({ deadlineMs: 100 }));
    expect([error.reason, error.code]).toEqual([reason, code]);
    expect(servers[1]!.allocated).toEqual([]);
  });
}

const WENT_BACK = new IdmintError("STORE_EPOCH_CHANGED", "the store went back");

test("a server that has not heard of an accept yet is left for one that has, for all tags, until it serves", async () => {
  const { servers, client, store } = await fleetFor("orders", 3);
  const [behind, heard, other] = [servers[0]!, servers[1]!, servers[2]!];
  for (const each of [behind, other]) {
    each.verdict = () => ({ kind: "fail", error: WENT_BACK });
    each.serving = false;
  }
  const tags = ["orders", "bills", "clicks", "small"];
  for (const name of tags.slice(1)) store.add(name);
  for (let i = 0; i < 100; i++) {
    for (const name of tags) await client.tag(name).next();
  }
  // Each of them refuses what is sent until the first answer of another one.
  expect(behind.allocated.length + other.allocated.length).toBeLessThan(10);
  const before = heard.allocated.length;
  heard.kill();
  behind.verdict = () => undefined;
  for (let i = 0; i < 20; i++) await client.tag("orders").next();
  expect(before).toBeGreaterThan(20);
  expect(behind.allocated.length).toBeGreaterThan(1);
});

test("what all servers say of the store is the answer, and they stay well", async () => {
  const { servers, client, events } = await fleetFor("orders", 3);
  for (const server of servers) server.verdict = () => ({ kind: "fail", error: WENT_BACK });
  const refused = await refusal(client.tag("orders").next());
  expect([refused.reason, refused.message]).toEqual(["STORE_EPOCH_CHANGED", WENT_BACK.message]);
  expect(servers.map(({ allocated }) => allocated.length)).toEqual([1, 1, 1]);
  // A server that is gone knows nothing better.
  servers[2]!.kill();
  await pause(200);
  expect(await reasonOf(client.tag("orders").next())).toBe("STORE_EPOCH_CHANGED");
  const failed = events.filter((event) => event.type === "endpoint-failed");
  expect(failed.map(({ address }) => address)).toEqual([servers[2]!.address]);
});

test("a busy server is asked again when it said, and no other one instead", async () => {
  const { servers, client } = await fleetFor("orders", 2);
  const error = new IdmintError("OVERLOADED", "busy", { retryAfterMs: 400 });
  const askedAt: number[] = [];
  servers[0]!.verdict = () => {
    askedAt.push(performance.now());
    return askedAt.length === 1 ? { kind: "fail", error } : undefined;
  };
  const refused = await refusal(client.tag("orders").next({ deadlineMs: 200 }));
  expect([refused.reason, refused.retryAfterMs]).toEqual(["OVERLOADED", 400]);
  expect(await client.tag("orders").next()).toBe(1n);
  expect(askedAt.length).toBe(2);
  // Timers may be a millisecond early.
  expect(askedAt[1]! - askedAt[0]!).toBeGreaterThan(395);
  expect(servers[1]!.allocated).toEqual([]);
});

test("a tag returns to its first choice once that one is well again", async () => {
  const { servers, client, events } = await fleetFor("orders", 2);
  const tag = client.tag("orders");
  await tag.next();
  servers[0]!.kill();
  for (let i = 0; i < 50; i++) await tag.next();
  await servers[0]!.start();
  const before = servers[0]!.allocated.length;
  const end = performance.now() + 4_000;
  while (servers[0]!.allocated.length === before && performance.now() < end) {
    for (let i = 0; i < 10; i++) await tag.next();
    await pause(20);
  }
  expect(servers[0]!.allocated.length).toBeGreaterThan(before);
  expect(servers[0]!.healthChecks).toBeGreaterThan(0);
  expect(events).toContainEqual({ type: "endpoint-well", address: servers[0]!.address });
});

test("a first choice that is there but not serving is not returned to", async () => {
  const { servers, client } = await fleetFor("orders", 2);
  const tag = client.tag("orders");
  servers[0]!.verdict = down("DRAINING");
  servers[0]!.serving = false;
  const end = performance.now() + 1_200;
  while (performance.now() < end) {
    for (let i = 0; i < 10; i++) await tag.next();
    await pause(20);
  }
  expect(servers[0]!.allocated.length).toBe(1);
  expect(servers[0]!.healthChecks).toBeGreaterThan(0);
});

test("with all servers gone calls end before their deadline, and go on when one is back", async () => {
  const { servers, client } = await fleetFor("orders", 2);
  const tag = client.tag("orders");
  for (const server of servers) server.kill();
  const error = await refusal(tag.next({ deadlineMs: 300 }));
  expect([error.reason, error.code]).toEqual(["SEGMENT_NOT_READY", "UNAVAILABLE"]);
  const waiting = tag.next({ deadlineMs: 4_500 });
  await servers[1]!.start();
  expect(await waiting).toBe(1n);
});

test("a raised epoch drops what is cached, at the next answer that tells it", async () => {
  const { store, client, events } = await fleetFor("orders", 1, { min: 100, max: 100 });
  const tag = client.tag("orders");
  for (let i = 0; i < 5; i++) await tag.next();
  const state = store.tags.get("orders")!;
  state.floor = 1_000_000n;
  state.epoch++;
  // Ids in memory are of the old epoch until a load, here the prefetch at a tenth, says so.
  const ids: bigint[] = [];
  for (let i = 0; i < 200; i++) {
    ids.push(await tag.next());
    await pause(0);
  }
  const firstNew = ids.findIndex((id) => id > 1_000_000n);
  expect(firstNew).toBeGreaterThan(0);
  expect(firstNew).toBeLessThan(30);
  expect(ids.slice(firstNew).every((id) => id > 1_000_000n)).toBe(true);
  expect(events.some((event) => event.type === "wasted" && event.cause === "dropped")).toBe(true);
});

test("the answer of a server that has not heard of the newer epoch is not used", async () => {
  const { store, servers, client } = await fleetFor("orders", 2);
  const tag = client.tag("orders");
  store.tags.get("orders")!.epoch = 5n;
  await tag.next();
  servers[0]!.staleEpoch = 4n;
  const before = servers[1]!.allocated.length;
  const ids = new Set<bigint>();
  for (let i = 0; i < 100; i++) ids.add(await tag.next());
  expect(ids.size).toBe(100);
  expect(servers[1]!.allocated.length).toBeGreaterThan(before);
  // It is stale, not down: it stays the first to be asked.
  expect(servers[0]!.allocated.length).toBeGreaterThan(5);
  // When all of them are stale, the call is refused as one to try again.
  servers[1]!.staleEpoch = 4n;
  expect((await firstRefusal(tag, 60)).reason).toBe("SEGMENT_NOT_READY");
});

test("a paused tag drops what is cached and refuses, and issues again once resumed", async () => {
  const { store, client } = await fleetFor("orders", 1, { min: 100, max: 100 });
  const tag = client.tag("orders");
  for (let i = 0; i < 5; i++) await tag.next();
  const state = store.tags.get("orders")!;
  state.paused = true;
  state.epoch++;
  expect((await firstRefusal(tag, 100)).reason).toBe("TAG_PAUSED");
  expect(await reasonOf(tag.next())).toBe("TAG_PAUSED");
  state.paused = false;
  state.epoch++;
  await pause(110);
  // The whole first block of a hundred was dropped.
  expect(await tag.next()).toBeGreaterThan(100n);
});

test("ids are dropped at their max_age at the latest", async () => {
  const { store, servers, client, events } = await fleetFor("orders", 1, { min: 100, max: 100 });
  store.tags.get("orders")!.maxAgeMs = 1_000;
  const tag = client.tag("orders");
  expect(await tag.next()).toBe(1n);
  await pause(2_100);
  expect(events.some((event) => event.type === "wasted" && event.cause === "expired")).toBe(true);
  expect(await tag.next()).toBe(101n);
  expect(servers[0]!.allocated.length).toBe(2);
});

test("the client's own maxAgeMs applies where it is shorter", async () => {
  const { client } = await fleetFor("orders", 1, { min: 100, max: 100, maxAgeMs: 1_000 });
  const tag = client.tag("orders");
  expect(await tag.next()).toBe(1n);
  await pause(2_100);
  expect(await tag.next()).toBe(101n);
});

test("an answer that took longer than its max_age is not used", async () => {
  const { store, servers, client } = await fleetFor("orders", 1, { rpcDeadlineMs: 2_000 });
  store.tags.get("orders")!.maxAgeMs = 100;
  let slow = true;
  servers[0]!.verdict = () => {
    const verdict = slow ? ({ kind: "delay", ms: 200 } as const) : undefined;
    slow = false;
    return verdict;
  };
  expect(await client.tag("orders").next()).toBe(11n);
});

test("PER_CLIENT ids never go down across fail-over between servers with interleaved segments", async () => {
  const { servers, client } = await fleetFor("orders", 2, { order: Order.PER_CLIENT });
  const tag = client.tag("orders");
  // Both hold blocks of a thousand: the second one's lies above the first one's.
  let last = 0n;
  const ascend = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      const id = await tag.next();
      expect(id).toBeGreaterThan(last);
      last = id;
    }
  };
  for (let round = 0; round < 6; round++) {
    const [away, here] = round % 2 === 0 ? ([1, 0] as const) : ([0, 1] as const);
    servers[away]!.verdict = down("DRAINING");
    servers[here]!.verdict = () => undefined;
    await ascend(30);
    // Ranges too lie above all that came before.
    for (const { base, count } of await tag.take(37)) {
      expect(base).toBeGreaterThan(last);
      last = base + BigInt(count) - 1n;
    }
  }
  for (const server of servers) expect(server.allocated.length).toBeGreaterThan(6);
});

test("without `after` the same walk does go down, so the servers of this test are interleaved", async () => {
  const { servers, client } = await fleetFor("orders", 2);
  const tag = client.tag("orders");
  const ids: bigint[] = [];
  for (let round = 0; round < 4; round++) {
    const [away, here] = round % 2 === 0 ? ([1, 0] as const) : ([0, 1] as const);
    servers[away]!.verdict = down("DRAINING");
    servers[here]!.verdict = () => undefined;
    for (let i = 0; i < 40; i++) ids.push(await tag.next());
  }
  expect(ids).not.toEqual(ids.toSorted((a, b) => Number(a - b)));
  expect(new Set(ids).size).toBe(ids.length);
});

test("tags of one client spread over the fleet", async () => {
  const { store, servers, client } = await fleetFor("orders", 3);
  for (let i = 0; i < 60; i++) {
    store.add(`t${i}`);
    await client.tag(`t${i}`).next();
  }
  for (const server of servers) expect(server.allocated.length).toBeGreaterThan(4);
});

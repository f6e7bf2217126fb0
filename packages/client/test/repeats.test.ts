// Servers that answer ids which they answered before: nobody gets an id twice, and the error says why.
import { IdmintError } from "@idmint/core";
import { type AllocateSegmentResponse, Order } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import {
  createIdClient,
  type IdClient,
  type IdClientEvent,
  type IdClientOptions,
} from "../src/index.ts";
import { type FakeServer, type FakeStore, startFleet } from "./fake-fleet.ts";
import { pause, reasonOf, refusal, thrown, until, UNTOLD } from "./support.ts";

type Segments = AllocateSegmentResponse["segments"];

interface Stage {
  readonly store: FakeStore;
  readonly server: FakeServer;
  readonly client: IdClient;
  readonly events: IdClientEvent[];
}

async function stage(options: Partial<IdClientOptions> = {}): Promise<Stage> {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  const server = servers[0]!;
  const events: IdClientEvent[] = [];
  const onEvent = (event: IdClientEvent): unknown => events.push(event);
  const { address } = server;
  const client = createIdClient({ address, min: 10, max: 10, onEvent, ...options });
  onTestFinished(() => client.close());
  return { store, server, client, events };
}

const range = (base: bigint, count: number, increment = 1): Segments[number] => ({
  base,
  count,
  increment,
});
const answers = (segments: Segments) => (answer: AllocateSegmentResponse) => ({
  ...answer,
  segments,
});

for (const [what, segments, id] of [
  ["overlap", [range(1n, 60), range(60n, 40)], "60"],
  ["are the same", [range(1n, 50), range(1n, 50)], "1"],
  ["lie within each other", [range(1n, 90), range(20n, 10)], "20"],
  ["interleave and meet", [range(1n, 50, 2), range(2n, 50, 3)], "5"],
] as const) {
  test(`segments of one answer that ${what} are refused`, async () => {
    const { server, client } = await stage();
    server.spoil = answers([...segments]);
    const error = await refusal(client.tag("orders").next());
    expect([error.reason, error.code]).toEqual(["SEGMENT_INVALID", "FAILED_PRECONDITION"]);
    expect(error.metadata).toEqual({ tag: "orders", server: server.address, id });
    expect(error.message).toContain(`${server.address} answered id ${id} of tag "orders"`);
  });
}

test("segments that interleave without meeting are used", async () => {
  const { server, client } = await stage();
  server.spoil = answers([range(1n, 5, 2), range(2n, 5, 2)]);
  expect(await client.tag("orders").take(10)).toHaveLength(2);
});

test("segments of one answer that are not ascending are refused", async () => {
  const { server, client } = await stage();
  server.spoil = answers([range(51n, 50), range(1n, 50)]);
  const error = await refusal(client.tag("orders").next());
  expect(error.reason).toBe("SEGMENT_INVALID");
  expect(error.message).toContain("not ascending");
});

for (const order of ["UNORDERED", "PER_CLIENT"] as const) {
  test(`an answer that comes again is refused, and what is held is dropped (${order})`, async () => {
    const { store, server, client, events } = await stage();
    store.tags.get("orders")!.order = Order[order];
    const tag = client.tag("orders");
    await tag.warm();
    const first = server.allocated.length;
    server.spoil = answers([range(1n, 10)]);
    const ids: bigint[] = [];
    let error: IdmintError | undefined;
    for (let i = 0; i < 10 && error === undefined; i++) {
      try {
        ids.push(await tag.next());
        await pause(2);
      } catch (refused) {
        error = IdmintError.from(refused);
      }
    }
    // The prefetch at a tenth of the segment brings it.
    expect(server.allocated.length).toBe(first + 1);
    expect(error?.reason).toBe("SEGMENT_INVALID");
    expect(events).toContainEqual(expect.objectContaining({ type: "wasted", cause: "dropped" }));
    expect(thrown(() => tag.nextSync()).reason).toBe("SEGMENT_INVALID");
    expect(new Set(ids).size).toBe(ids.length);
    // It goes on with what is new.
    server.spoil = (answer) => answer;
    await until(() => {
      try {
        ids.push(tag.nextSync());
        return true;
      } catch {
        return false;
      }
    });
    expect(new Set(ids).size).toBe(ids.length);
  });
}

test("who was given ids that the store knows nothing of is told so, issues none of them, and goes on above them", async () => {
  const { store, client } = await stage();
  const orders = store.tags.get("orders")!;
  orders.order = Order.PER_CLIENT;
  const tag = client.tag("orders");
  await tag.take(5);
  orders.floor = 2n;
  const error = await refusal(tag.take(100));
  expect([error.reason, error.code]).toEqual(["STORE_EPOCH_CHANGED", "FAILED_PRECONDITION"]);
  expect(error.message).toMatch(/given ids up to \d+, and the store knows of none so high/);
  const after = /idmint tag advance orders --floor (\d+)$/.exec(error.message)?.[1];
  expect(thrown(() => tag.nextSync()).reason).toBe("STORE_EPOCH_CHANGED");
  orders.floor = BigInt(after ?? "");
  let next = 0n;
  await until(() => {
    try {
      next = tag.nextSync();
      return true;
    } catch {
      return false;
    }
  });
  expect(next).toBe(BigInt(after ?? "") + 1n);
});

test("an answer of long ago is refused, also when others were used in between", async () => {
  const { server, client } = await stage();
  const tag = client.tag("orders");
  const seen = new Set<bigint>();
  // Another client of the server takes every second block.
  server.spoil = (answer) => {
    server.allocate({ tag: "orders", count: 10, after: 0n, instance: "" });
    return answer;
  };
  for (let i = 0; i < 3_000; i++) seen.add(await tag.next());
  for (const base of [1n, 61n, 2_001n]) {
    expect(seen.has(base + 4n)).toBe(true);
    server.spoil = answers([range(base + 4n, 1)]);
    expect(await reasonOf(tag.take(300))).toBe("SEGMENT_INVALID");
    await pause(110);
  }
});

test("a take of several answers is refused when one of them comes twice", async () => {
  const { server, client } = await stage();
  server.maxCount = 100;
  const tag = client.tag("orders");
  await tag.next();
  let spoiled = 0;
  server.spoil = (answer) =>
    spoiled++ === 2 ? { ...answer, segments: [range(150n, 100)] } : answer;
  const error = await refusal(tag.take(1_000));
  expect(error.reason).toBe("SEGMENT_INVALID");
});

test("what is held is compared, also when it is more than is remembered", async () => {
  const { server, client } = await stage();
  server.maxCount = 10;
  const tag = client.tag("orders");
  // The limit of an answer is known from the first one on.
  expect(await tag.next()).toBe(1n);
  let answered = 1;
  server.spoil = (answer) => {
    // Blocks that leave gaps, so that each is a range of its own.
    const base = BigInt(answered++) * 20n + 1n;
    return { ...answer, segments: [range(answered === 1_500 ? 3n : base, 10)] };
  };
  const error = await refusal(tag.take(16_000, { deadlineMs: 60_000 }));
  expect(error.reason).toBe("SEGMENT_INVALID");
  expect(error.metadata["id"]).toBe("3");
}, 30_000);

test("ids that servers mint one by one are compared as well", async () => {
  const { server, client } = await stage();
  const wrongKind = new IdmintError("WRONG_KIND", "no segments", { metadata: { kind: "ticket" } });
  server.verdict = () => ({ kind: "fail", error: wrongKind });
  const bases = [1n, 3n, 2n, 11n, 3n];
  server.generate = ({ count }) => ({
    segments: [range(bases.shift() ?? 100n, count)],
    ids: [],
    epoch: 1n,
    period: "",
    periodEndTime: undefined,
    texts: [],
    ...UNTOLD,
  });
  const tag = client.tag("orders");
  expect([await tag.next(), await tag.next(), await tag.next()]).toEqual([1n, 3n, 2n]);
  expect(await tag.take(5)).toEqual([range(11n, 5)]);
  const error = await refusal(tag.take(2));
  expect(error.reason).toBe("SEGMENT_INVALID");
  expect(error.metadata).toMatchObject({ id: "3", server: server.address });
});

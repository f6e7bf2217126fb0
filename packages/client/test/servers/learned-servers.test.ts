// What the SDK does with servers that it learned from a list, against the transport without sockets.
import { IdmintError } from "@idmint/core";
import { type AllocateSegmentResponse, Order } from "@idmint/proto";
import { expect, test } from "vitest";
import type { IdClientEvent, IdClientOptions } from "../../src/index.ts";
import type { ListedServer } from "../../src/servers/servers-state.ts";
import { type FakeWorld, fakeWorld, type PendingAllocate, settle } from "../fake-transport.ts";
import { refusal } from "../support.ts";

const away = new IdmintError("SERVER_UNAVAILABLE", "away");

function server(address: string, more: Partial<ListedServer> = {}): ListedServer {
  return {
    nodeId: `node ${address}`,
    address,
    zone: "a",
    weight: 100,
    isDraining: false,
    isAlive: true,
    heardAtMs: 0,
    ...more,
  };
}

/** A fleet that answers whatever is asked, except where a test says otherwise. */
class Stage {
  readonly world: FakeWorld;
  readonly events: IdClientEvent[] = [];
  version = 1;
  servers: readonly ListedServer[];
  /** What answers at an address; by default the server that is listed there. */
  readonly nodeIdAt = new Map<string, string>();
  readonly isAway = new Set<string>();
  /** They answer requests, and not when they are asked for their name. */
  readonly isSilent = new Set<string>();
  readonly refusalAt = new Map<string, IdmintError>();
  /** Addresses in the order in which they were asked for ids. */
  readonly asked: string[] = [];
  readonly proved: string[] = [];
  order: Order = Order.UNORDERED;
  lists = 0;
  readonly listedBy: string[] = [];
  /** What is listed at an address; by default `servers`. */
  readonly listAt = new Map<string, readonly ListedServer[]>();
  /** First ids of what callers got, and of what somebody else than the listed server answered. */
  readonly taken = new Set<bigint>();
  readonly foreign = new Set<bigint>();
  #next = 1n;

  constructor(servers: readonly ListedServer[], options: Partial<IdClientOptions> = {}) {
    this.servers = servers;
    const onEvent = (event: IdClientEvent): void => void this.events.push(event);
    this.world = fakeWorld({ address: "seed:1", min: 10, max: 10, zone: "a", onEvent, ...options });
  }

  /** Lets everything happen that is under way. */
  async serve(): Promise<void> {
    const { transport } = this.world;
    for (let at = 0; at < 30; at++) {
      await settle();
      const { pending, proofs, listing, probes } = transport;
      if (pending.length + proofs.length + listing.length + probes.length === 0) return;
      for (const call of pending.splice(0)) this.#answer(call);
      for (const { endpoint, answer } of proofs.splice(0)) {
        this.proved.push(endpoint);
        const identity = { nodeId: this.#nodeIdOf(endpoint), isServing: true };
        const isGone = this.isAway.has(endpoint) || this.isSilent.has(endpoint);
        answer(isGone ? undefined : identity);
      }
      for (const { endpoint, answer } of listing.splice(0)) {
        this.lists++;
        this.listedBy.push(endpoint);
        const nodeId = this.#nodeIdOf(endpoint);
        const servers = this.listAt.get(endpoint) ?? this.servers;
        answer({ nodeId, version: this.version, servers });
      }
      for (const { endpoint, answer } of probes.splice(0)) {
        answer(this.isAway.has(endpoint) ? undefined : true);
      }
    }
  }

  /** Loads of one tag: takes all ids of a segment, `count` times, with `everyMs` between them. */
  async load(tag: string, count = 1, everyMs = 0): Promise<readonly string[]> {
    const from = this.asked.length;
    for (let at = 0; at < count; at++) {
      const taken = this.world.client.tag(tag).take(10);
      await this.serve();
      for (const { base } of await taken) this.taken.add(base);
      if (everyMs > 0) this.world.time.advance(everyMs);
      await this.serve();
    }
    return this.asked.slice(from);
  }

  /** Time goes by, and loads with it, until the tags have moved to where they belong. */
  async settleDown(tags: readonly string[] = ["t"]): Promise<void> {
    for (let at = 0; at < 14; at++) {
      for (const tag of tags) await this.load(tag);
      this.world.time.advance(1_000);
    }
  }

  #nodeIdOf(address: string): string {
    return this.nodeIdAt.get(address) ?? `node ${address}`;
  }

  #answer({ endpoint, request, answer, fail }: PendingAllocate): void {
    this.asked.push(endpoint);
    const refused = this.isAway.has(endpoint) ? away : this.refusalAt.get(endpoint);
    if (refused !== undefined) {
      fail(refused);
      return;
    }
    const response: AllocateSegmentResponse = {
      segments: [{ base: this.#next, count: request.count, increment: 1 }],
      epoch: 1n,
      releaseToken: "",
      maxAge: { seconds: 600n, nanos: 0 },
      order: this.order,
      maxCount: 10_000_000,
      nodesVersion: this.version,
      nodeId: this.#nodeIdOf(endpoint),
    };
    if (this.nodeIdAt.has(endpoint)) this.foreign.add(this.#next);
    this.#next += BigInt(request.count);
    answer(response);
  }
}

test("the list is fetched once, servers of it are proved before they are asked, and the own zone is preferred", async () => {
  const stage = new Stage([server("near:1"), server("far:1", { zone: "b" })]);
  expect(await stage.load("t")).toEqual(["seed:1"]);
  expect(stage.lists).toBe(1);
  expect(stage.events).toContainEqual({ type: "servers-listed", servers: 2, inZone: 1 });
  await stage.settleDown();
  expect(new Set(stage.proved)).toEqual(new Set(["near:1", "far:1"]));
  expect(new Set(await stage.load("t", 20))).toEqual(new Set(["near:1"]));
  expect(stage.lists).toBe(1);
});

test("clients of one tag prefer different servers", async () => {
  const firsts = new Set<string>();
  for (const part of [0.11, 0.22, 0.33, 0.44, 0.55, 0.66, 0.77, 0.88, 0.99]) {
    const { client, transport } = fakeWorld({ addresses: ["a:1", "b:1", "c:1"] }, () => part);
    const refused = refusal(client.tag("t").take(10));
    await settle();
    const [call] = transport.pending;
    firsts.add(call!.endpoint);
    call!.fail(new IdmintError("TAG_NOT_FOUND", "no"));
    await refused;
  }
  expect(firsts.size).toBe(3);
});

test("a newer list is fetched when it was heard of for 2.5 to 5 s, and PER_CLIENT tags take it up over 5 s more", async () => {
  const stage = new Stage([server("one:1")]);
  stage.order = Order.PER_CLIENT;
  const tags = Array.from({ length: 12 }, (_, at) => `t${at}`);
  await stage.settleDown(tags);
  stage.version = 2;
  stage.servers = [server("one:1", { weight: 0 }), server("two:1")];
  await stage.load("t0");
  for (let ms = 0; ms < 3_600; ms += 400) {
    stage.world.time.advance(400);
    await stage.load("t0");
  }
  // Half-way between 2.5 and 5 s, by this test's random number: not yet.
  expect(stage.lists).toBe(1);
  stage.world.time.advance(400);
  await stage.load("t0");
  expect(stage.lists).toBe(2);
  const moved: number[] = [];
  for (let second = 0; second <= 6; second++) {
    let count = 0;
    for (const tag of tags) {
      const asked = await stage.load(tag);
      if (asked.at(-1) === "two:1") count++;
    }
    moved.push(count);
    stage.world.time.advance(1_000);
  }
  expect(moved[0]).toBeLessThan(tags.length / 2);
  expect(moved.at(-1)).toBe(tags.length);
  expect(new Set(moved).size).toBeGreaterThan(3);
});

test("tags without an order follow a newer list with their next load", async () => {
  const stage = new Stage([server("one:1"), server("two:1", { weight: 0 })]);
  const tags = Array.from({ length: 12 }, (_, at) => `t${at}`);
  await stage.settleDown(tags);
  stage.version = 2;
  stage.servers = [server("one:1", { weight: 0 }), server("two:1")];
  for (const tag of tags) await stage.load(tag);
  stage.world.time.advance(4_000);
  await stage.load("t0");
  // It proves the newly preferred one.
  await stage.load("t0");
  for (const tag of tags) expect((await stage.load(tag)).at(-1)).toBe("two:1");
});

test("a server that drains is left in the load that finds out, without an error", async () => {
  const stage = new Stage([server("one:1"), server("two:1")]);
  await stage.settleDown();
  const [first] = await stage.load("t");
  const other = first === "one:1" ? "two:1" : "one:1";
  stage.refusalAt.set(first!, new IdmintError("DRAINING", "drained", { retryAfterMs: 1_000 }));
  const asked = await stage.load("t", 5);
  expect(asked).toEqual([first, other, other, other, other, other]);
});

test("an address that leads to a server of another store is never asked for ids", async () => {
  const stage = new Stage([server("good:1", { zone: "b" }), server("bad:1")]);
  stage.nodeIdAt.set("bad:1", "a server of another store");
  await stage.settleDown();
  expect(stage.proved).toContain("bad:1");
  expect(stage.asked).not.toContain("bad:1");
  expect((await stage.load("t", 10)).at(-1)).toBe("good:1");
});

test("an address that somebody else has now is found out by its first answer, which nobody gets", async () => {
  const stage = new Stage([server("near:1"), server("far:1", { zone: "b" })]);
  await stage.settleDown();
  expect(await stage.load("t")).toEqual(["near:1"]);
  stage.nodeIdAt.set("near:1", "a server of another store");
  const asked = await stage.load("t", 20, 1_000);
  // Once, and never again.
  expect(asked.filter((address) => address === "near:1")).toEqual(["near:1"]);
  const failure = stage.events.find((event) => event.type === "endpoint-failed");
  expect(failure?.error.message).toContain(
    "near:1 is no server that the servers of this store list",
  );
  expect(stage.foreign.size).toBe(1);
  for (const id of stage.taken) expect(stage.foreign.has(id)).toBe(false);
});

test("what a server of a copy of the store lists is not believed, though it names the servers of the original", async () => {
  const near = server("near:1");
  const far = server("far:1", { zone: "b" });
  const stage = new Stage([near, far]);
  await stage.settleDown();
  // A newer list, of which the server tells that is asked: it is asked for it 4 s later.
  stage.version = 2;
  expect(await stage.load("t")).toEqual(["near:1"]);
  const copy = "a server of a copy";
  stage.nodeIdAt.set("near:1", copy);
  stage.listAt.set("near:1", [near, far, server("near:1", { nodeId: copy })]);
  stage.world.time.advance(4_000);
  const asked = await stage.load("t", 20, 1_000);
  expect(stage.listedBy).toContain("near:1");
  for (const id of stage.taken) expect(stage.foreign.has(id)).toBe(false);
  expect(asked.at(-1)).toBe("far:1");
  // The list is asked for elsewhere then, and near:1 is used again once it is itself.
  expect(stage.listedBy.at(-1)).toBe("seed:1");
  stage.nodeIdAt.clear();
  stage.listAt.clear();
  await stage.settleDown();
  expect((await stage.load("t")).at(-1)).toBe("near:1");
});

test("with the seed away, the name of a server that was started again comes from another server's list", async () => {
  const far = server("far:1", { zone: "b" });
  const stage = new Stage([server("near:1"), far]);
  await stage.settleDown();
  stage.isAway.add("seed:1");
  await stage.load("t", 5, 1_000);
  const restarted = "node near:1, started again";
  stage.nodeIdAt.set("near:1", restarted);
  stage.servers = [server("near:1", { nodeId: restarted }), far];
  const asked = await stage.load("t", 20, 1_000);
  expect(asked.at(-1)).toBe("near:1");
});

test("a fleet that was renewed whole while a client slept is learned anew from the seed", async () => {
  const far = server("far:1", { zone: "b" });
  const stage = new Stage([server("near:1"), far]);
  await stage.settleDown();
  const renewed = [
    server("near:1", { nodeId: "n2" }),
    server("far:1", { nodeId: "f2", zone: "b" }),
  ];
  stage.servers = renewed;
  for (const { address, nodeId } of renewed) stage.nodeIdAt.set(address, nodeId);
  stage.world.time.advance(86_400_000);
  const asked = await stage.load("t", 20, 1_000);
  expect(asked).toContain("seed:1");
  expect(asked.at(-1)).toBe("near:1");
});

test("what such a server refuses does not count either", async () => {
  const stage = new Stage([server("near:1"), server("far:1", { zone: "b" })]);
  await stage.settleDown();
  stage.nodeIdAt.set("near:1", "a server of another store");
  stage.refusalAt.set("near:1", new IdmintError("TAG_NOT_FOUND", "no such tag"));
  expect(await stage.load("t", 3)).toEqual(["near:1", "far:1", "far:1", "far:1"]);
});

test("a learned server's own refusal counts once it has told its name again", async () => {
  const stage = new Stage([server("near:1")]);
  await stage.settleDown();
  const proofs = stage.proved.length;
  stage.refusalAt.set("near:1", new IdmintError("TAG_PAUSED", "paused"));
  const refused = refusal(stage.world.client.tag("t").take(10));
  await stage.serve();
  expect((await refused).reason).toBe("TAG_PAUSED");
  expect(stage.proved.length).toBe(proofs + 1);
});

test("a refusal whose sender cannot be asked for its name is a failure, and another server is asked", async () => {
  const stage = new Stage([server("near:1"), server("far:1", { zone: "b" })]);
  await stage.settleDown();
  stage.refusalAt.set("near:1", new IdmintError("TAG_PAUSED", "paused"));
  stage.isSilent.add("near:1");
  expect(await stage.load("t", 2)).toEqual(["near:1", "far:1", "far:1"]);
});

test("a learned server that was started again is used once a newer list has its name", async () => {
  const stage = new Stage([server("near:1"), server("far:1", { zone: "b" })]);
  await stage.settleDown();
  const restarted = "node near:1, started again";
  stage.nodeIdAt.set("near:1", restarted);
  stage.servers = [server("near:1", { nodeId: restarted }), server("far:1", { zone: "b" })];
  const asked = await stage.load("t", 20, 1_000);
  expect(stage.lists).toBeGreaterThan(1);
  expect(asked.at(-1)).toBe("near:1");
});

test("when the own zone is cut off the third try reaches another one, and nobody fails", async () => {
  const near = ["n1:1", "n2:1", "n3:1"];
  const stage = new Stage([
    ...near.map((address) => server(address)),
    server("far:1", { zone: "b" }),
  ]);
  await stage.settleDown(["t", "u", "v", "w"]);
  for (const address of [...near, "seed:1"]) stage.isAway.add(address);
  const asked = await stage.load("t");
  expect(asked.length).toBe(3);
  expect(asked.at(-1)).toBe("far:1");
  // Healed: back within the looks every 2 s and the slow start, all of them.
  stage.world.time.advance(20_000);
  await stage.load("t", 3);
  stage.isAway.clear();
  const until = stage.world.time.now() + 10_000;
  while (stage.world.time.now() < until) await stage.load("t", 1, 250);
  expect(near).toContain((await stage.load("t")).at(-1));
});

test("while no server of the list can be reached, the seeds serve", async () => {
  const stage = new Stage([server("n1:1"), server("n2:1")]);
  for (const address of ["n1:1", "n2:1"]) stage.isAway.add(address);
  await stage.settleDown();
  expect(new Set(stage.asked)).toEqual(new Set(["seed:1"]));
});

test("connections of servers that a newer list lacks are closed, and those that fail are forgotten", async () => {
  const stage = new Stage([server("one:1"), server("two:1")]);
  await stage.settleDown(["t", "u", "v", "w", "x", "y"]);
  stage.version = 2;
  stage.servers = [server("one:1")];
  await stage.settleDown(["t", "u", "v", "w", "x", "y"]);
  expect(stage.world.transport.forgotten).toContain("two:1");
  expect(new Set(await stage.load("t", 5))).toEqual(new Set(["one:1"]));
  // The last way, when nothing else is left.
  for (const address of ["one:1", "seed:1"]) stage.isAway.add(address);
  expect((await stage.load("t")).at(-1)).toBe("two:1");
});

test("tries beyond the first are a tenth of the loads, however many fail", async () => {
  const stage = new Stage([], { addresses: ["a:1", "b:1", "c:1"], address: undefined });
  const tags = Array.from({ length: 100 }, (_, at) => stage.world.client.tag(`t${at}`));
  stage.isAway.add("a:1").add("b:1").add("c:1");
  const calls = tags.map((tag) => tag.next({ deadlineMs: 300 }).catch(() => undefined));
  await stage.serve();
  // 100 loads at once: one try each, and what the bucket has.
  expect(stage.asked.length).toBeGreaterThanOrEqual(100);
  expect(stage.asked.length).toBeLessThanOrEqual(100 + 10 + 10);
  stage.world.time.advance(300);
  await stage.serve();
  await Promise.all(calls);
});

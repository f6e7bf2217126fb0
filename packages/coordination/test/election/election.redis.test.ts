import { randomUUID } from "node:crypto";
import { RedisServer, sharedRedisUrl } from "@idmint/testkit/redis";
import { expect, test } from "vitest";
import { redisBallot } from "../../src/election/ballot.ts";
import { CAMPAIGN } from "../../src/election/scripts.ts";
import { createElection, type ElectionEvent, type ElectionOptions } from "../../src/index.ts";
import { RedisNode } from "../../src/redis/node.ts";
import { failure, sleep, until } from "../support.ts";

const url = await sharedRedisUrl();
const ttlMs = 600;

function options(more: Partial<ElectionOptions> = {}): ElectionOptions {
  return { node: url, name: `test-${randomUUID()}`, ttlMs, ...more };
}

test("one leads and stays leader; when it resigns the other follows at once, in a later term", async () => {
  const shared = options();
  const events: ElectionEvent[] = [];
  await using one = createElection({ ...shared, candidate: "one" });
  await using two = createElection({ ...shared, onEvent: (event) => events.push(event) });
  const start = performance.now();
  const first = await one.campaign();
  // Nothing was known of this election: one whole ttl is waited for.
  expect(performance.now() - start).toBeGreaterThanOrEqual(ttlMs);
  const error = await failure(two.campaign({ waitMs: 3 * ttlMs }));
  expect(error).toMatchObject({ reason: "DEADLINE_EXCEEDED" });
  first.assert();
  await first.verify();
  expect(await first.act(async ({ term }) => term)).toBe(first.term);
  await first.resign();
  expect(() => first.assert()).toThrow("it resigned");
  expect(first.signal.aborted).toBe(false);
  const turn = performance.now();
  await using second = await two.campaign();
  expect(performance.now() - turn).toBeLessThan(ttlMs);
  expect(second.term > first.term).toBe(true);
  const types = events.map(({ type }) => type);
  expect(types.filter((type) => type === "following")).toHaveLength(1);
  expect(types.at(-1)).toBe("elected");
});

test("a leader that was silent is followed after its ttl, and knows that it leads no more", async () => {
  await using server = await RedisServer.start();
  const shared = options({ node: server.url });
  await using one = createElection(shared);
  await using two = createElection(shared);
  const first = await one.campaign();
  const overrun = failure(first.act(async () => until("it is lost", () => first.signal.aborted)));
  // Its connection dies for good.
  await one.close();
  const second = await two.campaign();
  expect(first.signal.aborted).toBe(true);
  expect(() => first.assert()).toThrow("NOT_LEADER");
  expect(await overrun).toMatchObject({ reason: "NOT_LEADER", code: "ABORTED" });
  expect(second.term > first.term).toBe(true);
});

test("a leader keeps its term through a short absence of Redis' answers", async () => {
  await using server = await RedisServer.start();
  await using one = createElection(options({ node: server.url, ttlMs: 1_500 }));
  const leader = await one.campaign();
  server.pause();
  await sleep(400);
  server.resume();
  await sleep(1_500);
  leader.assert();
});

test("an empty Redis elects nobody for a whole ttl", async () => {
  await using server = await RedisServer.start();
  const events: ElectionEvent[] = [];
  const shared = options({ node: server.url, onEvent: (event) => events.push(event) });
  await using one = createElection(shared);
  await using two = createElection(shared);
  const first = await one.campaign();
  const next = two.campaign();
  await server.kill();
  await server.start();
  const start = performance.now();
  const second = await next;
  expect(performance.now() - start).toBeGreaterThan(ttlMs * 0.9);
  expect(first.remainingMs).toBe(0);
  expect(second.term > first.term).toBe(true);
  expect(events.some(({ type }) => type === "settling")).toBe(true);
});

test("terms may come from elsewhere, and one that is not new is refused", async () => {
  // A try whose answer from Redis comes late is followed by another one, which asks for a term of its own.
  const given: bigint[] = [6n];
  let isStuck = false;
  const termSource = async (): Promise<bigint> => {
    const last = given.at(-1)!;
    given.push(isStuck ? last : last + 1n);
    return given.at(-1)!;
  };
  await using one = createElection(options({ termSource }));
  const first = await one.campaign();
  expect(first.term).toBe(given.at(-1));
  await first.resign();
  isStuck = true;
  expect(await failure(one.campaign())).toMatchObject({ reason: "TOKEN_WENT_BACK" });
  isStuck = false;
  await using second = await one.campaign();
  expect(second.term).toBe(given.at(-1));
  expect(second.term > first.term).toBe(true);
});

test("candidates with different times are told, and replicas elect nobody", async () => {
  await using master = await RedisServer.start();
  await using replica = await RedisServer.start({ settings: { "replica-read-only": "no" } });
  await replica.follow(master);
  const shared = options({ node: master.url });
  await using one = createElection(shared);
  await using leader = await one.campaign();
  await using two = createElection({ ...shared, ttlMs: 2 * ttlMs });
  expect(await failure(two.campaign())).toMatchObject({ reason: "ELECTION_MISMATCH" });
  await using three = createElection({ ...shared, name: "other", node: replica.url });
  const error = await failure(three.campaign({ waitMs: 2 * ttlMs }));
  expect(error).toMatchObject({
    reason: "DEADLINE_EXCEEDED",
    cause: { reason: "NODE_UNAVAILABLE" },
  });
  leader.assert();
});

test("standing ends when it is cancelled or closed", async () => {
  const shared = options();
  await using one = createElection(shared);
  const two = createElection(shared);
  await using leader = await one.campaign();
  const signal = AbortSignal.timeout(100);
  expect(await failure(two.campaign({ signal }))).toMatchObject({ reason: "CALL_CANCELLED" });
  const campaign = failure(two.campaign());
  await sleep(50);
  await two.close();
  expect(await campaign).toMatchObject({ reason: "CLOSED" });
  leader.assert();
});

test("a Redis that has the words of another one elects nobody for a whole ttl", async () => {
  await using node = new RedisNode(url);
  const name = `test-${randomUUID()}`;
  // As replication or a snapshot left it: another Redis was asked a moment ago, and may have elected somebody.
  const seen = `idmint:election:{${name}}:seen`;
  const limits = { timeoutMs: 1_000 };
  const words = `another run ${ttlMs}`;
  await node.run("setting", (redis) => redis.set(seen, words, "PX", ttlMs), limits);
  const ballot = redisBallot(node, { name, prefix: "idmint", ttlMs });
  const wish = { floor: 0n, isMinting: true };
  const stand = async (): Promise<string> => (await ballot.campaign("one", wish, limits)).type;
  const start = performance.now();
  expect(await stand()).toBe("settling");
  await expect.poll(stand, { timeout: 10_000 }).toBe("elected");
  expect(performance.now() - start).toBeGreaterThanOrEqual(ttlMs);
});

test("a term is above the floor that the candidate brings, also where Redis' own count and clock are below it", async () => {
  await using node = new RedisNode(url);
  const limits = { timeoutMs: 1_000 };
  const ballot = redisBallot(node, { name: `test-${randomUUID()}`, prefix: "idmint", ttlMs });
  // The clock of Redis counts microseconds, and gets there in the year 2223.
  const floor = 8_000_000_000_000_000n;
  const stand = async (): Promise<unknown> =>
    ballot.campaign("one", { floor, isMinting: true }, limits);
  await expect
    .poll(stand, { timeout: 10_000 })
    .toMatchObject({ type: "elected", term: floor + 1n });
});

test("a candidate that comes from another Redis is a reason to elect nobody for a whole ttl", async () => {
  await using node = new RedisNode(url);
  const name = `test-${randomUUID()}`;
  const leader = `idmint:election:{${name}}`;
  const keys = [leader, `${leader}:term`, `${leader}:seen`, `${leader}:settling`];
  const stand = async (last: string): Promise<readonly string[]> => {
    const args = [String(ttlMs), last, "owner", "0", "1"];
    const answer = await node.script("standing", CAMPAIGN, { keys, args }, { timeoutMs: 1_000 });
    return answer as readonly string[];
  };
  const [here = ""] = await stand("");
  // Words keep Redis from forgetting; then the settling is over.
  await expect.poll(async () => (await stand(here))[1], { timeout: 5_000 }).toBe("elected");
  await node.redis.del(leader);
  expect((await stand("another run"))[1]).toBe("settling");
  expect((await stand(here))[1]).toBe("settling");
});

test("who does not lead any more renews nothing, and does not keep another's time from running out", async () => {
  await using node = new RedisNode(url);
  const name = `test-${randomUUID()}`;
  const ballot = redisBallot(node, { name, prefix: "idmint", ttlMs });
  const limits = { timeoutMs: 1_000 };
  const wish = { floor: 0n, isMinting: true };
  const stand = async (): Promise<string> => (await ballot.campaign("one", wish, limits)).type;
  await expect.poll(stand, { timeout: 10_000 }).toBe("elected");
  const start = performance.now();
  // Somebody asks for the leader's time all the while, as one that was overtaken would.
  while (performance.now() - start < ttlMs / 2) {
    expect(await ballot.renew("two", limits)).toBe(false);
    await sleep(10);
  }
  expect(await ballot.renew("one", limits)).toBe(true);
  await expect
    .poll(async () => (await ballot.renew("two", limits)) || (await stand()) === "elected", {
      timeout: 10_000,
    })
    .toBe(true);
  expect(await ballot.renew("two", limits)).toBe(false);
});

import { decodeObjectId, decodeUuid, IdmintError } from "@idmint/core";
import { expect, test } from "vitest";
import { createTestIdClient } from "../../src/testing.ts";
import { type FakeWorld, fakeWorld, settle } from "../fake-transport.ts";
import { reasonOf, refusal, thrown } from "../support.ts";
import { answerFrom, idsFrom, learn, onlyOne, wrongKind } from "./uncached-support.ts";

const TEXT = { text: "true" };

/** A world whose tag "t" is known to be of kind uuid or object_id, with these settings. */
async function madeWorld(
  kind: string,
  settings: Record<string, string>,
): Promise<FakeWorld & { first: Promise<string> }> {
  const world = fakeWorld({ address: "a:1" });
  const first = world.client.tag("t").nextString();
  first.catch(() => undefined);
  await learn(world, kind, { ...TEXT, ...settings });
  return { ...world, first };
}

test.each(["1", "4", "6", "7"])("UUIDs of version %s are made here", async (version) => {
  const { client, transport, first } = await madeWorld("uuid", { version });
  const tag = client.tag("t");
  const texts = [await first, await tag.nextString(), tag.nextStringSync()];
  await tag.warm();
  expect(texts.map((text) => decodeUuid(text)?.version)).toEqual(texts.map(() => Number(version)));
  expect(new Set(texts).size).toBe(3);
  expect([transport.pending.length, transport.generating.length]).toEqual([0, 0]);
});

test("UUIDs of numbers, of names, and ObjectIds are those of the tag's settings", async () => {
  const dce = await madeWorld("uuid", { version: "2", domain: "GROUP", number: "1000" });
  expect(await dce.first).toMatch(/^000003e8-.{4}-2.{3}-..01-/);
  const namespace = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
  const named = await madeWorld("uuid", { version: "5", namespace });
  expect((await refusal(named.first)).violations.map(({ field }) => field)).toEqual(["name"]);
  const tag = named.client.tag("t");
  const name = "www.example.com";
  expect(await tag.nextString({ name })).toBe("2ed6657d-e927-568b-95e1-2665a8aea6a2");
  expect(await reasonOf(tag.nextString({ name: "é".repeat(2_049) }))).toBe("INVALID_ARGUMENT");
  const objectIds = await madeWorld("object_id", { variant: "MACHINE_PROCESS" });
  expect(decodeObjectId(await objectIds.first)).toBeGreaterThan(0);
});

test("ids that are text are had as text only", async () => {
  const { client, first } = await madeWorld("uuid", { version: "7" });
  await first;
  const tag = client.tag("t");
  for (const call of [tag.next(), tag.nextNumber(), tag.take(2), tag.nextPeriodId()]) {
    expect(await reasonOf(call)).toBe("WRONG_KIND");
  }
  expect(thrown(() => tag.nextSync()).message).toContain("nextString()");
  expect(thrown(() => tag.nextNumberSync()).reason).toBe("WRONG_KIND");
  const error = await refusal(tag.nextString({ name: "x" }));
  expect(error.violations.map(({ field }) => field)).toEqual(["name"]);
  await client.close();
  expect(await reasonOf(tag.nextString())).toBe("CLIENT_CLOSED");
});

const TEN_MINUTES_MS = 600_000;

/** A world in which a UUID was made, and then nothing was heard for so long. */
async function silentWorld(forMs: number): Promise<FakeWorld> {
  const world = await madeWorld("uuid", { version: "4" });
  await world.first;
  world.time.advance(forMs);
  return world;
}

test("UUIDs are made here for ten minutes, and then servers are asked whether the tag still issues", async () => {
  const world = await silentWorld(TEN_MINUTES_MS - 1);
  const tag = world.client.tag("t");
  expect(decodeUuid(await tag.nextString())?.version).toBe(4);
  world.time.advance(1);
  expect(thrown(() => tag.nextStringSync()).reason).toBe("SEGMENT_NOT_READY");
  const asked = tag.nextString();
  await learn(world, "uuid", { ...TEXT, version: "4" });
  expect(decodeUuid(await asked)?.version).toBe(4);
  expect(decodeUuid(tag.nextStringSync())?.version).toBe(4);
});

test("servers are asked in good time, and nobody waits for that", async () => {
  const world = await silentWorld(TEN_MINUTES_MS / 2);
  const tag = world.client.tag("t");
  tag.nextStringSync();
  world.tick();
  await learn(world, "uuid", { ...TEXT, version: "4" });
  world.time.advance(TEN_MINUTES_MS - 1);
  expect(decodeUuid(tag.nextStringSync())?.version).toBe(4);
});

test("no UUID is made any more once a server refuses the tag", async () => {
  const world = await silentWorld(TEN_MINUTES_MS / 2);
  const tag = world.client.tag("t");
  tag.nextStringSync();
  world.tick();
  const isPaused = async (): Promise<void> => {
    await settle();
    expect(world.transport.pending.length).toBe(1);
    world.transport.pending.shift()?.fail(new IdmintError("TAG_PAUSED", "it is paused"));
    await settle();
  };
  await isPaused();
  const refused = reasonOf(tag.nextString());
  await isPaused();
  expect(await refused).toBe("TAG_PAUSED");
});

test("a clock that leapt makes UUIDs wait for a server", async () => {
  const world = await silentWorld(0);
  world.leap();
  const asked = world.client.tag("t").nextString();
  await learn(world, "uuid", { ...TEXT, version: "4" });
  expect(decodeUuid(await asked)?.version).toBe(4);
});

test("what is left of a burst is no right to make UUIDs later", async () => {
  const world = await silentWorld(0);
  const tag = world.client.tag("t");
  for (let at = 0; at < 400; at++) tag.nextStringSync();
  for (let seconds = 0; seconds < 600; seconds += 30) {
    for (let at = 0; at < 30; at++) {
      world.time.advance(1_000);
      world.tick();
    }
    if (seconds < 570) tag.nextStringSync();
  }
  expect(thrown(() => tag.nextStringSync()).reason).toBe("SEGMENT_NOT_READY");
});

test("what is left of a burst is none once a millisecond has passed, though no ticker runs", async () => {
  const world = await silentWorld(TEN_MINUTES_MS - 1);
  const tag = world.client.tag("t");
  const timers = world.time.pending;
  for (let at = 0; at < 400; at++) tag.nextStringSync();
  expect(world.time.pending).toBe(timers + 1);
  world.time.advance(1);
  expect(world.time.pending).toBe(timers);
  expect(thrown(() => tag.nextStringSync()).reason).toBe("SEGMENT_NOT_READY");
});

test("a client that is closed in a burst leaves no timer", async () => {
  const world = await silentWorld(0);
  const timers = world.time.pending;
  for (let at = 0; at < 400; at++) world.client.tag("t").nextStringSync();
  expect(world.time.pending).toBe(timers + 1);
  await world.client.close();
  expect(world.time.pending).toBe(timers);
});

test.each([1, 2, 3, 4])(
  "after %i spaced UUIDs a synchronous call is told to wait",
  async (count) => {
    const world = await silentWorld(0);
    const tag = world.client.tag("t");
    for (let at = 0; at < count; at++) {
      world.time.advance(10);
      tag.nextStringSync();
    }
    world.time.advance(TEN_MINUTES_MS);
    expect(thrown(() => tag.nextStringSync()).reason).toBe("SEGMENT_NOT_READY");
  },
);

test("a refusal that does not speak of the tag takes nothing of the ten minutes", async () => {
  const world = await silentWorld(0);
  const tag = world.client.tag("t");
  world.time.advance(0.6 * TEN_MINUTES_MS);
  tag.nextStringSync();
  world.tick();
  await settle();
  world.transport.pending.shift()?.fail(new IdmintError("QUOTA_EXCEEDED", "later"));
  await settle();
  world.tick();
  await settle();
  expect(world.transport.pending.length).toBe(0);
  world.time.advance(0.3 * TEN_MINUTES_MS);
  expect(decodeUuid(tag.nextStringSync())?.version).toBe(4);
  world.tick();
  await learn(world, "uuid", { ...TEXT, version: "4" });
  world.time.advance(0.3 * TEN_MINUTES_MS);
  expect(decodeUuid(tag.nextStringSync())?.version).toBe(4);
});

test("an answer to a request of before a leap says nothing, whether it is the first or a later one", async () => {
  const later = await silentWorld(0.6 * TEN_MINUTES_MS);
  later.client.tag("t").nextStringSync();
  later.tick();
  await settle();
  later.time.advance(1);
  later.leap();
  await learn(later, "uuid", { ...TEXT, version: "4" });
  expect(thrown(() => later.client.tag("t").nextStringSync()).reason).toBe("SEGMENT_NOT_READY");

  const first = fakeWorld({ address: "a:1" });
  const asked = first.client.tag("t").nextString();
  await settle();
  first.time.advance(1);
  first.leap();
  first.transport.pending.shift()?.fail(wrongKind("uuid", { ...TEXT, version: "4" }));
  expect(await Promise.race([asked, settle().then(() => "none yet")])).toBe("none yet");
  while (first.transport.pending.length > 0) {
    for (const one of first.transport.pending.splice(0))
      one.fail(wrongKind("uuid", { ...TEXT, version: "4" }));
    await settle();
    await settle();
  }
  expect(decodeUuid(await asked)?.version).toBe(4);
});

test("texts of a format come from the servers, one request for all calls that come together", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("t");
  const calls = [tag.nextString(), tag.nextString(), tag.nextString()];
  await learn(world, "segment", { ...TEXT, max_count: "2" });
  const two = await onlyOne(world);
  expect(two.request).toEqual({ tag: "t", count: 2, asList: true });
  two.answer({ ...idsFrom(1n, 0), segments: [], texts: ["A1", "A2"] });
  const one = await onlyOne(world);
  one.answer({ ...idsFrom(1n, 0), segments: [], texts: ["A3"] });
  expect(await Promise.all(calls)).toEqual(["A1", "A2", "A3"]);
  expect(await reasonOf(tag.next())).toBe("WRONG_KIND");
  expect(await reasonOf(tag.warm())).toBe("WRONG_KIND");
  expect(thrown(() => tag.nextStringSync()).reason).toBe("WRONG_KIND");
});

test("an answer with fewer texts than were asked for is used by nobody", async () => {
  const world = fakeWorld({ address: "a:1" });
  const call = reasonOf(world.client.tag("t").nextString());
  await learn(world, "snowflake", { ...TEXT, max_count: "10000" });
  (await onlyOne(world)).answer({ ...idsFrom(1n, 0), segments: [], texts: [] });
  expect(await call).toBe("SEGMENT_INVALID");
});

test("unguessable numbers come from the servers, as many at once as these allow", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("t");
  const first = tag.next();
  await learn(world, "segment", { max_count: "1000" });
  await answerFrom(world, 123_456_789n);
  expect(await first).toBe(123_456_789n);
  const error = await refusal(tag.take(1_001));
  expect(error.message).toContain("at most 1000");
  const text = tag.nextString();
  await answerFrom(world, 5n);
  expect(await text).toBe("5");
});

test("settings that this SDK does not know leave the ids to the servers", async () => {
  const world = fakeWorld({ address: "a:1" });
  const call = world.client.tag("t").nextString();
  await learn(world, "uuid", { ...TEXT, version: "9" });
  (await onlyOne(world)).answer({ ...idsFrom(1n, 0), segments: [], texts: ["from a server"] });
  expect(await call).toBe("from a server");
});

test("a name is refused by a tag of kind segment before an id is taken", async () => {
  const world = fakeWorld({ address: "a:1" });
  const call = refusal(world.client.tag("t").nextString({ name: "x" }));
  await learn(world, "ticket");
  expect((await call).violations.map(({ field }) => field)).toEqual(["name"]);
  expect(world.transport.generating).toEqual([]);
});

test("the stand-in has ids that are text, and ids that are made at once", async () => {
  const client = createTestIdClient();
  const orders = client.tag("orders");
  orders.setText((number) => `A${number}`);
  expect(await orders.nextString()).toBe("A1");
  expect(await reasonOf(orders.next())).toBe("WRONG_KIND");
  expect(thrown(() => orders.nextStringSync()).reason).toBe("WRONG_KIND");
  const trace = client.tag("trace");
  trace.setKind("uuid");
  trace.setText((number, name = "") => `${number}${name}`);
  expect([trace.nextStringSync(), await trace.nextString({ name: "b" })]).toEqual(["1", "2b"]);
  expect(thrown(() => trace.nextSync()).reason).toBe("WRONG_KIND");
  const flakes = client.tag("flakes");
  flakes.setKind("snowflake");
  await flakes.warm();
  expect([flakes.nextSync(), flakes.nextNumberSync()]).toEqual([1n, 2]);
  expect(await reasonOf(flakes.nextString({ name: "x" }))).toBe("INVALID_ARGUMENT");
});

// Names that are no tags, and clients that nobody closes: what they may cost.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { IdmintError, type Reason } from "@idmint/core";
import { type AllocateSegmentResponse, Order } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { type FakeWorld, fakeWorld, settle } from "./fake-transport.ts";
import { allocated, pause, reasonOf, refusal, thrown } from "./support.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function answerOf(base: bigint, maxAge = 600n): AllocateSegmentResponse {
  return allocated(base, 2, { maxAge: { seconds: maxAge, nanos: 0 }, order: Order.PER_CLIENT });
}

async function refuseAll(world: FakeWorld, reason: Reason): Promise<void> {
  await settle();
  for (const call of world.transport.pending.splice(0)) call.fail(new IdmintError(reason, "no"));
  await settle();
}

/** Asks for an id of a name that is none; the tag is dropped. */
async function askInVain(world: FakeWorld, name: string): Promise<void> {
  const refused = reasonOf(world.client.tag(name).next());
  await refuseAll(world, "TAG_NOT_FOUND");
  expect(await refused).toBe("TAG_NOT_FOUND");
}

async function collectAll(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    // What a turn of the event loop has looked at lives until it ends.
    await pause(1);
    collect();
  }
}

/** Lets refusals be over, and what nobody holds go. */
async function letGo(world: FakeWorld): Promise<void> {
  world.time.advance(5_000);
  world.tick();
  await collectAll();
  world.tick();
}

test("names that are no tags count against maxTags only until their refusals are over, and are forgotten", async () => {
  const world = fakeWorld({ address: "a:1", maxTags: 3 });
  const seen: WeakRef<object>[] = [];
  for (const name of ["a", "b", "c"]) {
    await askInVain(world, name);
    seen.push(new WeakRef(world.client.tag(name)));
  }
  expect(await reasonOf((async () => world.client.tag("d").next())())).toBe("OVERLOADED");
  // Whoever asks again at once hears the same, and no server is asked.
  world.tick();
  await collectAll();
  expect(await reasonOf(world.client.tag("a").next())).toBe("TAG_NOT_FOUND");
  expect(world.transport.pending).toEqual([]);
  await letGo(world);
  expect(seen.filter((ref) => ref.deref() !== undefined)).toEqual([]);
  for (const name of ["d", "e", "f"]) await askInVain(world, name);
});

test("a name that is no tag is asked for again by its synchronous callers alone, and forgotten without them", async () => {
  const world = fakeWorld({ address: "a:1", maxTags: 1 });
  expect(thrown(() => world.client.tag("a").nextSync()).reason).toBe("SEGMENT_NOT_READY");
  await refuseAll(world, "TAG_NOT_FOUND");
  for (let second = 0; second < 4; second++) {
    world.time.advance(1_000);
    world.tick();
  }
  await settle();
  expect(world.transport.pending).toEqual([]);
  expect(thrown(() => world.client.tag("a").nextSync()).reason).toBe("TAG_NOT_FOUND");
  await refuseAll(world, "TAG_NOT_FOUND");
  await letGo(world);
  await askInVain(world, "b");
});

test("a tag that somebody holds stays the one of its name, is held again when it loads, and counts then", async () => {
  const world = fakeWorld({ address: "a:1", maxTags: 1 });
  const tag = world.client.tag("late");
  await askInVain(world, "late");
  await letGo(world);
  expect(world.client.tag("late")).toBe(tag);
  const id = tag.next();
  await settle();
  world.transport.pending.splice(0)[0]!.answer(answerOf(1n));
  expect(await id).toBe(1n);
  await letGo(world);
  expect(() => world.client.tag("other")).toThrow("maxTags");
  expect(world.client.tag("late").nextSync()).toBe(2n);
});

test("a tag that is used again when all places are taken is refused", async () => {
  const world = fakeWorld({ address: "a:1", maxTags: 1 });
  const first = world.client.tag("first");
  await letGo(world);
  const second = reasonOf(world.client.tag("second").next());
  const refused = await refusal(first.next());
  expect([refused.reason, refused.metadata["tag"]]).toEqual(["OVERLOADED", "first"]);
  await refuseAll(world, "TAG_NOT_FOUND");
  expect(await second).toBe("TAG_NOT_FOUND");
});

test("a tag that had ids is never forgotten, so that later ones are above them", async () => {
  const world = fakeWorld({ address: "a:1" });
  const id = world.client.tag("orders").next();
  await settle();
  world.transport.pending.splice(0)[0]!.answer(answerOf(1_000n, 1n));
  await id;
  await refuseAll(world, "TAG_NOT_FOUND");
  world.time.advance(60_000);
  await letGo(world);
  const refused = reasonOf(world.client.tag("orders").next());
  await settle();
  expect(world.transport.pending.at(-1)?.request.after).toBeGreaterThanOrEqual(1_001n);
  await refuseAll(world, "TAG_NOT_FOUND");
  expect(await refused).toBe("TAG_NOT_FOUND");
});

test("an outage makes nobody forget a tag that is kept ready", async () => {
  const world = fakeWorld({ address: "a:1", maxTags: 1 });
  const warm = reasonOf(world.client.tag("orders").warm({ deadlineMs: 100 }));
  await settle();
  const [load] = world.transport.pending.splice(0);
  load!.fail(new IdmintError("STORE_UNAVAILABLE", "later", { retryAfterMs: 20_000 }));
  expect(await warm).toBe("SEGMENT_NOT_READY");
  await letGo(world);
  expect(() => world.client.tag("other")).toThrow("maxTags");
});

test("a client that is closed refuses tags that it held weakly, too", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("unused");
  await letGo(world);
  await world.client.close();
  // The first call at once, before any load could tell.
  expect(thrown(() => tag.nextSync()).reason).toBe("CLIENT_CLOSED");
  expect(await reasonOf(tag.next())).toBe("CLIENT_CLOSED");
});

function make(): FakeWorld["client"] {
  return fakeWorld({ address: "many.example:1" }).client;
}

test("ten live clients of one address are warned of once, and closed ones do not count", async () => {
  const warnings: Error[] = [];
  const hear = (warning: Error): void => {
    if (warning.name === "IdmintWarning") warnings.push(warning);
  };
  process.on("warning", hear);
  onTestFinished(() => void process.off("warning", hear));
  for (let at = 0; at < 30; at++) await make().close();
  const few = Array.from({ length: 9 }, make);
  await pause(5);
  expect(warnings).toEqual([]);
  fakeWorld({ address: "other.example:1" });
  const more = Array.from({ length: 5 }, make);
  await pause(5);
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringContaining("10 clients of many.example:1"),
  ]);
  await Promise.all([...few, ...more].map((client) => client.close()));
});

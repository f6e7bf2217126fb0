// Who retries what: one try is one request, one load asks each endpoint once, the buffer starts the next load.
import { IdmintError } from "@idmint/core";
import type { AllocateSegmentResponse } from "@idmint/proto";
import { expect, test } from "vitest";
import { type FakeWorld, fakeWorld, settle } from "../fake-transport.ts";
import { allocated, reasonOf, thrown } from "../support.ts";

const away = new IdmintError("SERVER_UNAVAILABLE", "away");

function answerOf(base: bigint, count: number): AllocateSegmentResponse {
  return allocated(base, count, { releaseToken: `t${base}` });
}

/** Fails the only call in flight, and answers which endpoint it was for. */
async function failOne(world: FakeWorld, error: IdmintError): Promise<string> {
  expect(world.transport.pending.length).toBe(1);
  const call = world.transport.pending.shift()!;
  call.fail(error);
  await settle();
  return call.endpoint;
}

test("one load asks three endpoints once each, and then waits for the buffer's back-off", async () => {
  const world = fakeWorld({ addresses: ["a:1", "b:1", "c:1", "d:1"] });
  const id = world.client.tag("t").next();
  await settle();
  const asked = [
    await failOne(world, away),
    await failOne(world, away),
    await failOne(world, away),
  ];
  expect(new Set(asked).size).toBe(3);
  expect(world.transport.pending).toEqual([]);
  // The next load begins with the one that did not fail.
  world.time.advance(100);
  await settle();
  const fourth = world.transport.pending.shift()!;
  expect(asked).not.toContain(fourth.endpoint);
  fourth.answer(answerOf(1n, 100));
  expect(await id).toBe(1n);
});

test("one endpoint is asked once per load, at the buffer's pace, until the call's deadline", async () => {
  const world = fakeWorld({ address: "a:1" });
  const refused = reasonOf(world.client.tag("t").next({ deadlineMs: 10_000 }));
  const askedAt: number[] = [];
  for (let ms = 0; ms < 10_000; ms += 10) {
    await settle();
    if (world.transport.pending.length > 0) {
      askedAt.push(ms);
      await failOne(world, away);
    }
    world.time.advance(10);
  }
  expect(await refused).toBe("SEGMENT_NOT_READY");
  // 50 ms … 2 s, half-way by this test's random number: a handful, not a storm.
  expect(askedAt.length).toBeGreaterThan(6);
  expect(askedAt.length).toBeLessThan(20);
  for (const [i, at] of askedAt.slice(1).entries()) {
    expect(at - askedAt[i]!).toBeGreaterThanOrEqual(50);
    expect(at - askedAt[i]!).toBeLessThanOrEqual(2_000);
  }
});

test("the one server of five that is back is found within 2 s, though it asked for a long pause before", async () => {
  const addresses = ["a:1", "b:1", "c:1", "d:1", "e:1"];
  for (const back of addresses) {
    const world = fakeWorld({ addresses });
    const tag = world.client.tag("t");
    const busy = new IdmintError("STORE_UNAVAILABLE", "not now", { retryAfterMs: 30_000 });
    const id = tag.next({ deadlineMs: 120_000 });
    /** One more step of 10 ms; `isBack`: one server answers again. */
    const step = async (isBack: boolean): Promise<void> => {
      await settle();
      for (const call of world.transport.pending.splice(0)) {
        if (call.endpoint !== back) call.fail(away);
        else if (isBack) call.answer(answerOf(1n, 100));
        else call.fail(busy);
      }
      for (const look of world.transport.probes.splice(0))
        look.answer(isBack && look.endpoint === back ? true : undefined);
      await settle();
      world.time.advance(10);
    };
    for (let ms = 0; ms < 20_000; ms += 10) await step(false);
    const answered: number[] = [];
    for (let ms = 0; ms < 4_000 && answered.length === 0; ms += 10) {
      await step(true);
      void id.then(() => answered.push(ms));
    }
    expect(answered[0]).toBeLessThan(2_000);
    expect(await id).toBe(1n);
    await world.client.close();
  }
});

test("max_age counts from the sending of the request, not from its answer", async () => {
  const world = fakeWorld({ address: "a:1", maxAgeMs: 1_000 });
  const tag = world.client.tag("t");
  const id = tag.next();
  await settle();
  world.time.advance(700);
  world.transport.pending.shift()!.answer(answerOf(1n, 100));
  expect(await id).toBe(1n);
  world.time.advance(299);
  expect(tag.nextSync()).toBe(2n);
  world.time.advance(1);
  expect(thrown(() => tag.nextSync()).reason).toBe("SEGMENT_NOT_READY");
});

test("nobody retries when nobody asks", async () => {
  const world = fakeWorld({ address: "a:1" });
  const refused = reasonOf(world.client.tag("t").next({ deadlineMs: 100 }));
  await settle();
  world.time.advance(100);
  expect(await refused).toBe("SEGMENT_NOT_READY");
  await failOne(world, away);
  for (let i = 0; i < 100; i++) {
    world.time.advance(1_000);
    world.tick();
    await settle();
  }
  expect(world.transport.pending).toEqual([]);
});

test("a load serves all calls that came while it was in flight: never two at once", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("t");
  const calls = Array.from({ length: 50 }, () => tag.next());
  thrown(() => tag.nextSync());
  const warm = tag.warm();
  const ranges = tag.take(20);
  await settle();
  expect(world.transport.pending.length).toBe(1);
  world.transport.pending.shift()!.answer(answerOf(1n, 100));
  expect(await Promise.all(calls)).toEqual(Array.from({ length: 50 }, (_, i) => BigInt(i + 1)));
  await warm;
  expect((await ranges)[0]).toEqual({ base: 51n, increment: 1, count: 20 });
});

test("every request has a deadline, that of the options", async () => {
  const world = fakeWorld({ address: "a:1", rpcDeadlineMs: 1_234 });
  const id = world.client.tag("t").next();
  await settle();
  expect(world.transport.pending[0]!.timeoutMs).toBe(1_234);
  world.transport.pending[0]!.answer(answerOf(1n, 100));
  expect(await id).toBe(1n);
});

test("an answer that comes while closing is given back whole, and nobody gets any of it", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("t");
  const refused = reasonOf(tag.next());
  await settle();
  const call = world.transport.pending.shift()!;
  const closing = world.client.close();
  expect(await refused).toBe("CLIENT_CLOSED");
  call.answer(answerOf(1n, 100));
  await closing;
  expect(await reasonOf(tag.next())).toBe("CLIENT_CLOSED");
  expect(world.transport.released).toEqual([
    { endpoint: "a:1", request: { tag: "t", releaseToken: "t1", unusedCount: 100 } },
  ]);
  expect(world.transport.isClosed).toBe(true);
  expect(world.time.pending).toBe(0);
});

test("close does not wait long for an answer that does not come, and asks nobody else for it", async () => {
  const world = fakeWorld({ addresses: ["a:1", "b:1"] });
  const refused = [reasonOf(world.client.tag("t").next()), reasonOf(world.client.tag("u").next())];
  await settle();
  const closing = world.client.close();
  world.transport.pending.shift()!.fail(away);
  await settle();
  expect(world.transport.pending.length).toBe(1);
  world.time.advance(500);
  await closing;
  expect(await Promise.all(refused)).toEqual(["CLIENT_CLOSED", "CLIENT_CLOSED"]);
  expect(world.transport.released).toEqual([]);
});

test("a malformed answer is refused as a whole", async () => {
  const world = fakeWorld({ address: "a:1" });
  for (const segment of [
    { base: -5n, count: 10, increment: 1 },
    { base: 1n, count: 0, increment: 1 },
    { base: 1n, count: 10, increment: 0 },
    { base: 2n ** 63n - 5n, count: 10, increment: 1 },
  ]) {
    const tag = world.client.tag(`t${segment.base}-${segment.count}-${segment.increment}`);
    const refused = reasonOf(tag.next());
    await settle();
    world.transport.pending.shift()!.answer({ ...answerOf(1n, 1), segments: [segment] });
    expect(await refused).toBe("SEGMENT_INVALID");
  }
});

test("thousands of leftovers are released a few at a time, and not after the time for closing is over", async () => {
  const world = fakeWorld({ address: "a:1" });
  const { transport, time } = world;
  for (let i = 0; i < 1_000; i++) {
    const id = world.client.tag(`t${i}`).next();
    await Promise.resolve();
    transport.pending.shift()!.answer(answerOf(BigInt(i) * 100n + 1n, 100));
    await id;
  }
  let inFlight = 0;
  let most = 0;
  transport.releaseOutcome = async () => {
    most = Math.max(most, ++inFlight);
    await settle();
    inFlight--;
    time.advance(10);
    return { reclaimedCount: 1 };
  };
  await world.client.close();
  expect(most).toBe(32);
  // 2 s at 10 ms each, and those in flight when the time was over.
  expect(transport.released.length).toBeGreaterThanOrEqual(200);
  expect(transport.released.length).toBeLessThanOrEqual(200 + 32);
  const tokens = transport.released.map(({ request }) => request.releaseToken);
  expect(new Set(tokens).size).toBe(tokens.length);
});

test("an answer that comes too late for its ids still ends those of an older epoch", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("t");
  const first = tag.next();
  await settle();
  world.transport.pending.shift()!.answer(answerOf(1n, 100));
  expect(await first).toBe(1n);
  // The prefetch is sent, and its answer takes longer than its ids may be kept; those in memory may be kept longer.
  await tag.take(20);
  world.time.advance(1_000);
  const maxAge = { seconds: 1n, nanos: 0 };
  world.transport.pending.shift()!.answer({ ...answerOf(101n, 100), epoch: 2n, maxAge });
  await settle();
  expect(await reasonOf(tag.next({ deadlineMs: 40 }))).toBe("SEGMENT_NOT_READY");
});

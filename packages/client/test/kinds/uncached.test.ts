// Ids of kinds that are not held in memory: who shares a request, what is refused, and when the kind is asked for anew.
import { IdmintError, type Reason } from "@idmint/core";
import { type AllocateSegmentResponse, Order } from "@idmint/proto";
import { expect, test } from "vitest";
import { fakeWorld, settle } from "../fake-transport.ts";
import type { IdClientEvent } from "../../src/index.ts";
import { rangesOf, reasonOf, refusal, thrown, UNTOLD } from "../support.ts";
import { answerFrom, idsFrom, learn, onlyOne, worldOf, wrongKind } from "./uncached-support.ts";

const segment: AllocateSegmentResponse = {
  segments: [{ base: 501n, count: 100, increment: 1 }],
  epoch: 3n,
  releaseToken: "",
  maxAge: { seconds: 600n, nanos: 0 },
  order: Order.UNORDERED,
  maxCount: 10_000_000,
  ...UNTOLD,
};

test("the kind is learned at the first call, told, and costs no request a call after that", async () => {
  const events: IdClientEvent[] = [];
  const world = await worldOf("sequence", {
    onEvent: (event: IdClientEvent) => events.push(event),
  });
  expect(events).toContainEqual({ type: "kind-learned", tag: "t", kind: "sequence" });
  const tag = world.client.tag("t");
  for (let id = 2n; id < 10n; id++) {
    const call = tag.next();
    // `answerFrom` wants GenerateIds to be the only request there is.
    await answerFrom(world, id);
    expect(await call).toBe(id);
  }
});

test("calls that come while a request is in flight share the next one, in their order", async () => {
  const world = await worldOf("sequence");
  const tag = world.client.tag("t");
  const first = tag.next();
  const request = await onlyOne(world);
  expect(request.request).toEqual({ tag: "t", count: 1, asList: false });
  const others = [tag.next(), tag.nextNumber(), tag.nextString()];
  await settle();
  expect(world.transport.generating).toEqual([]);
  request.answer(idsFrom(2n, 1));
  expect(await first).toBe(2n);
  const { request: second } = await answerFrom(world, 3n);
  expect(second.count).toBe(3);
  expect(await Promise.all(others)).toEqual([3n, 4, "5"]);
});

test("all calls of one turn are one request, those of a tag not yet known too", async () => {
  const world = fakeWorld({ address: "a:1" });
  const calls = Array.from({ length: 64 }, () => world.client.tag("t").next());
  await learn(world, "sequence");
  const { request } = await answerFrom(world, 1n);
  expect(request.count).toBe(64);
  expect(await Promise.all(calls)).toEqual(Array.from({ length: 64 }, (_, i) => BigInt(i + 1)));
});

test("what needs ids in memory is refused with the way out, without asking a server each time", async () => {
  const world = await worldOf("sequence");
  const tag = world.client.tag("t");
  for (const call of [
    () => tag.nextSync(),
    () => tag.nextNumberSync(),
    () => tag.nextStringSync(),
  ]) {
    const error = thrown(call);
    expect([error.reason, error.retryable]).toEqual(["WRONG_KIND", false]);
    expect(error.message).toContain("await next()");
    expect(error.metadata).toEqual({ tag: "t", kind: "sequence" });
  }
  expect((await refusal(tag.warm())).message).toContain("await next()");
  const taken = await refusal(tag.take(5));
  expect([taken.reason, taken.message.includes("out of order")]).toEqual(["WRONG_KIND", true]);
  expect(await reasonOf(tag.nextPeriodId())).toBe("WRONG_KIND");
  await settle();
  expect([world.transport.pending, world.transport.generating]).toEqual([[], []]);
});

test("a tag whose first call is a synchronous one learns its kind from it", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("t");
  expect(thrown(() => tag.nextSync()).reason).toBe("SEGMENT_NOT_READY");
  await learn(world, "ticket");
  expect(thrown(() => tag.nextSync()).reason).toBe("WRONG_KIND");
});

test("ids that do not follow each other are dealt out exactly, ranges of them too", async () => {
  const world = await worldOf("ticket");
  const tag = world.client.tag("t");
  const calls = [tag.next(), tag.take(4), tag.next()];
  const call = await onlyOne(world);
  expect(call.request.count).toBe(6);
  const segments = [
    { base: 7n, count: 3, increment: 60 },
    { base: 1000n, count: 1, increment: 1 },
    { base: 8n, count: 2, increment: 60 },
  ];
  call.answer({ ...idsFrom(1n, 1), segments });
  const [first, ranges, last] = await Promise.all(calls);
  expect([first, last]).toEqual([7n, 68n]);
  expect(ranges).toEqual([
    { base: 67n, count: 2, increment: 60 },
    { base: 1000n, count: 1, increment: 1 },
    { base: 8n, count: 1, increment: 60 },
  ]);
});

test("an answer of the wrong size, or malformed, is used by nobody", async () => {
  for (const segments of [
    [],
    [{ base: 2n, count: 2, increment: 1 }],
    [{ base: -1n, count: 1, increment: 1 }],
  ]) {
    const world = await worldOf("sequence");
    const call = reasonOf(world.client.tag("t").next());
    (await onlyOne(world)).answer({ ...idsFrom(2n, 1), segments });
    expect(await call).toBe("SEGMENT_INVALID");
  }
});

test("UNAVAILABLE moves on to another endpoint, every other refusal is the answer", async () => {
  const world = await worldOf("sequence", { addresses: ["a:1", "b:1", "c:1"], address: undefined });
  const tag = world.client.tag("t");
  const call = tag.next();
  const first = await onlyOne(world);
  first.fail(new IdmintError("DRAINING", "stops"));
  const second = await onlyOne(world);
  expect(second.endpoint).not.toBe(first.endpoint);
  second.answer(idsFrom(2n, 1));
  expect(await call).toBe(2n);
  for (const reason of ["TAG_PAUSED", "TAG_EXHAUSTED", "OVERLOADED"] satisfies Reason[]) {
    const refused = reasonOf(tag.next());
    (await onlyOne(world)).fail(new IdmintError(reason, "no"));
    expect(await refused).toBe(reason);
  }
});

test("a request that failed everywhere is sent again after a back-off, for those who still wait", async () => {
  const world = await worldOf("sequence");
  const tag = world.client.tag("t");
  const [short, long] = [reasonOf(tag.next({ deadlineMs: 20 })), tag.next()];
  const failed = await onlyOne(world);
  expect(failed.request.count).toBe(2);
  failed.fail(new IdmintError("STORE_UNAVAILABLE", "away"));
  // Nothing will be sent before its deadline.
  expect(await short).toBe("STORE_UNAVAILABLE");
  await settle();
  expect(world.transport.generating).toEqual([]);
  // Whoever comes meanwhile is in the same request.
  const later = tag.next();
  world.time.advance(100);
  const { request } = await answerFrom(world, 2n);
  expect(request.count).toBe(2);
  expect(new Set(await Promise.all([long, later]))).toEqual(new Set([2n, 3n]));
});

test("MAX_NOT_RAISED is asked of no other endpoint, and its delay is obeyed", async () => {
  const world = await worldOf("sequence", { addresses: ["a:1", "b:1"], address: undefined });
  const tag = world.client.tag("t");
  const error = new IdmintError("MAX_NOT_RAISED", "soon", { retryAfterMs: 700 });
  const call = tag.next();
  const first = await onlyOne(world);
  first.fail(error);
  await settle();
  expect(await reasonOf(tag.next({ deadlineMs: 600 }))).toBe("MAX_NOT_RAISED");
  world.time.advance(690);
  await settle();
  expect(world.transport.generating).toEqual([]);
  world.time.advance(10);
  // It is no fault of the endpoint, so the tag stays with it.
  expect((await answerFrom(world, 2n)).endpoint).toBe(first.endpoint);
  expect(await call).toBe(2n);
});

test("a busy server is asked again when it said, no other one is, and callers wait", async () => {
  const world = await worldOf("sequence", { addresses: ["a:1", "b:1"], address: undefined });
  const tag = world.client.tag("t");
  const call = tag.next();
  const first = await onlyOne(world);
  first.fail(new IdmintError("OVERLOADED", "busy", { retryAfterMs: 700 }));
  await settle();
  expect(await reasonOf(tag.next({ deadlineMs: 600 }))).toBe("OVERLOADED");
  world.time.advance(690);
  await settle();
  expect(world.transport.generating).toEqual([]);
  world.time.advance(10);
  expect((await answerFrom(world, 2n)).endpoint).toBe(first.endpoint);
  expect(await call).toBe(2n);
});

test("deadlines and aborts end a wait; ids that come for it later are a gap", async () => {
  const events: IdClientEvent[] = [];
  const world = await worldOf("sequence", {
    onEvent: (event: IdClientEvent) => events.push(event),
  });
  const tag = world.client.tag("t");
  const abort = new AbortController();
  const calls = [
    reasonOf(tag.next({ deadlineMs: 500 })),
    reasonOf(tag.next({ signal: abort.signal })),
  ];
  const live = tag.next();
  const request = await onlyOne(world);
  abort.abort();
  world.time.advance(460);
  expect(await Promise.all(calls)).toEqual(["STORE_UNAVAILABLE", "CALL_CANCELLED"]);
  request.answer(idsFrom(2n, 3));
  expect(await live).toBe(4n);
  expect(events).toContainEqual({ type: "wasted", tag: "t", count: 2, cause: "abandoned" });
  expect(await reasonOf(tag.next({ signal: abort.signal }))).toBe("CALL_CANCELLED");
});

test("waiters are bounded, those that wait for a retry too", async () => {
  const world = await worldOf("sequence", { maxWaiters: 3 });
  const tag = world.client.tag("t");
  const calls = [tag.next(), tag.next(), tag.next()];
  (await onlyOne(world)).fail(new IdmintError("SERVER_UNAVAILABLE", "away"));
  await settle();
  expect(await reasonOf(tag.next())).toBe("OVERLOADED");
  world.time.advance(100);
  await answerFrom(world, 2n);
  expect(new Set(await Promise.all(calls))).toEqual(new Set([2n, 3n, 4n]));
});

test("a batch that is too large for a server is split, not refused", async () => {
  const world = await worldOf("sequence");
  const calls = Array.from({ length: 8 }, () => world.client.tag("t").next());
  let issued = 1n;
  for (const { count, fits } of [
    { count: 8, fits: false },
    { count: 4, fits: true },
    { count: 4, fits: true },
  ]) {
    const call = await onlyOne(world);
    expect(call.request.count).toBe(count);
    if (fits) call.answer(idsFrom(issued + 1n, count));
    else call.fail(new IdmintError("INVALID_ARGUMENT", "count must be at most 5"));
    if (fits) issued += BigInt(count);
  }
  expect(await Promise.all(calls)).toEqual([2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n]);
});

test("close refuses whoever waits, and what comes later is used by nobody", async () => {
  const world = await worldOf("sequence");
  const tag = world.client.tag("t");
  const refused = [reasonOf(tag.next()), reasonOf(tag.next())];
  const request = await onlyOne(world);
  const closing = world.client.close();
  request.answer(idsFrom(2n, 2));
  await closing;
  expect(await Promise.all(refused)).toEqual(["CLIENT_CLOSED", "CLIENT_CLOSED"]);
  expect(await reasonOf(tag.next())).toBe("CLIENT_CLOSED");
  expect(thrown(() => tag.nextSync()).reason).toBe("CLIENT_CLOSED");
  expect(world.time.pending).toBe(0);
});

test("a sequence answers nothing that is not above what it answered before", async () => {
  for (const base of [1n, 4n]) {
    const world = await worldOf("sequence", { addresses: ["a:1", "b:1"], address: undefined });
    const tag = world.client.tag("t");
    const five = tag.next();
    await answerFrom(world, 5n);
    expect(await five).toBe(5n);
    const call = tag.next();
    // A store that went back, unnoticed by that server; another one may know better.
    await answerFrom(world, base);
    await answerFrom(world, 6n);
    expect(await call).toBe(6n);
  }
});

test("of kinds without an order, ids may go down", async () => {
  const world = await worldOf("redis_snowflake");
  const call = world.client.tag("t").next();
  await answerFrom(world, 0n);
  expect(await call).toBe(0n);
});

test("an answer of an older epoch is not used", async () => {
  const world = await worldOf("ticket");
  const tag = world.client.tag("t");
  const call = reasonOf(tag.next({ deadlineMs: 20 }));
  await answerFrom(world, 2n, { epoch: 0n });
  expect(await call).toBe("STORE_UNAVAILABLE");
});

test("after a newer epoch the kind is asked for anew, within the call", async () => {
  const world = await worldOf("sequence");
  const tag = world.client.tag("t");
  // Paused and resumed: it is what it was.
  const same = tag.next();
  await answerFrom(world, 10n, { epoch: 2n });
  await learn(world, "sequence");
  await answerFrom(world, 11n, { epoch: 2n });
  expect(await same).toBe(11n);
  // Deleted and made again as a segment tag: the ids of before are not used, in case that it is one with an order.
  const other = tag.next();
  await answerFrom(world, 12n, { epoch: 3n });
  await settle();
  world.transport.pending.shift()!.answer(segment);
  expect(await other).toBe(501n);
  expect(tag.nextSync()).toBe(502n);
  expect(rangesOf(await tag.take(3))).toBe("503+3");
});

test("a call goes on through all changes of a tag that come within it", async () => {
  const world = await worldOf("sequence");
  const { pending, generating } = world.transport;
  const tag = world.client.tag("t");
  const slow = tag.next();
  let base = 10n;
  for (const epoch of [2n, 3n, 4n, 5n]) {
    const first = await onlyOne(world);
    const quick = tag.next();
    first.answer(idsFrom(base, 1, { epoch }));
    for (let turn = 0; turn < 3; turn++) await settle();
    // It was sent before the slow one knows that the tag is of the same kind in this epoch.
    expect([pending.length, generating.length]).toEqual([1, 1]);
    pending.shift()!.fail(wrongKind("sequence"));
    await settle();
    await answerFrom(world, base + 1n, { epoch });
    expect(await quick).toBe(base + 1n);
    base += 10n;
  }
  await answerFrom(world, base, { epoch: 5n });
  expect(await slow).toBe(base);
});

test("a segment tag that is made again as a sequence drops what is in memory", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("t");
  const first = tag.next();
  await settle();
  world.transport.pending.shift()!.answer(segment);
  expect(await first).toBe(501n);
  await tag.take(20);
  // The prefetch.
  await learn(world, "sequence");
  expect(thrown(() => tag.nextSync()).reason).toBe("WRONG_KIND");
  const next = tag.next();
  await answerFrom(world, 601n, { epoch: 5n });
  expect(await next).toBe(601n);
});

test("WRONG_KIND and TAG_NOT_FOUND of a call make the next one ask for the kind", async () => {
  for (const reason of ["WRONG_KIND", "TAG_NOT_FOUND"] as const) {
    const world = await worldOf("sequence");
    const tag = world.client.tag("t");
    const call = tag.next();
    const outcome = call.catch((error: unknown) => IdmintError.from(error).reason);
    (await onlyOne(world)).fail(new IdmintError(reason, "gone"));
    await settle();
    if (reason === "TAG_NOT_FOUND") {
      expect(await outcome).toBe(reason);
      void tag.next().catch(() => {});
    }
    await learn(world, "ticket");
    const { request } = await answerFrom(world, 9n);
    expect(request.count).toBe(1);
    if (reason === "WRONG_KIND") expect(await outcome).toBe(9n);
  }
});

test("servers that cannot agree on the kind end a call, not an endless loop", async () => {
  const world = await worldOf("sequence");
  const refused = reasonOf(world.client.tag("t").next());
  for (let turn = 0; turn < 2; turn++) {
    (await onlyOne(world)).fail(wrongKind("segment"));
    if (turn === 0) await learn(world, "sequence");
    await settle();
  }
  world.transport.pending.shift()?.fail(wrongKind("sequence"));
  expect(await refused).toBe("WRONG_KIND");
});

test("a sequence whose kind is asked for anew during an outage is not spoken of as one with segments", async () => {
  const world = await worldOf("sequence");
  const tag = world.client.tag("t");
  world.time.advance(60_000);
  world.tick();
  const refused = refusal(tag.next({ deadlineMs: 40 }));
  await settle();
  world.transport.pending.shift()!.fail(new IdmintError("SERVER_UNAVAILABLE", "it is away"));
  const { message } = await refused;
  expect(message).toBe(
    'SEGMENT_NOT_READY: no id of tag "t" came in time; the last try failed: SERVER_UNAVAILABLE: it is away',
  );
});

test("a kind that nobody used for a minute is asked for anew", async () => {
  const world = await worldOf("sequence");
  const tag = world.client.tag("t");
  world.time.advance(59_000);
  world.tick();
  expect(thrown(() => tag.nextSync()).reason).toBe("WRONG_KIND");
  world.time.advance(1_000);
  world.tick();
  expect(thrown(() => tag.nextSync()).reason).toBe("SEGMENT_NOT_READY");
  await settle();
  world.transport.pending.shift()!.answer(segment);
  await settle();
  expect(tag.nextSync()).toBe(501n);
});

test("an id that nobody holds in memory is asked for before cold tags that wait", async () => {
  const world = await worldOf("sequence");
  const { transport, time, client } = world;
  for (let at = 0; at < 2_000; at++) {
    client
      .tag(`cold${at}`)
      .next()
      .catch(() => undefined);
  }
  await settle();
  client
    .tag("t")
    .next()
    .catch(() => undefined);
  await settle();
  expect(transport.generating).toHaveLength(0);
  time.advance(250);
  transport.pending.shift()?.fail(new IdmintError("TAG_NOT_FOUND", "no such tag"));
  await settle();
  expect(transport.generating).toHaveLength(1);
});

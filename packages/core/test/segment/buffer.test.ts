import {
  type BufferEvent,
  type BufferOptions,
  countOf,
  IdmintError,
  idsOf,
  type Load,
  type LoadRequest,
  SegmentBuffer,
  segmentOf,
} from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";

const defaults: BufferOptions = {
  min: 100,
  max: 1_000_000,
  holdForMs: 60_000,
  prefetchShare: 0.1,
  maxWaiters: 5_000,
  ordered: false,
};

/** A buffer whose loads the test answers by hand, in the order they were asked for. */
function setUp(options: Partial<BufferOptions> = {}, maxAgeMs?: number) {
  const time = new FakeTime(1_000);
  const events: BufferEvent[] = [];
  const asked: {
    request: LoadRequest;
    grant: (count?: number, epoch?: bigint) => Promise<void>;
    fail: (error: IdmintError) => Promise<void>;
  }[] = [];
  let floor = 0n;
  const load = async (request: LoadRequest): Promise<Load<string>> => {
    const { promise, resolve, reject } = Promise.withResolvers<Load<string>>();
    let isAnswered = false;
    asked.push({
      request,
      grant: async (count = request.count, epoch = 1n) => {
        if (isAnswered) return;
        isAnswered = true;
        const segments = [segmentOf(floor + 1n, count)];
        floor += BigInt(count);
        resolve({
          segments,
          epoch,
          receipt: `r${asked.length}`,
          ...(maxAgeMs === undefined ? {} : { expiresAt: time.now() + maxAgeMs }),
        });
        await settle();
      },
      fail: async (error) => {
        reject(error);
        await settle();
      },
    });
    return promise;
  };
  const buffer = new SegmentBuffer<string>(
    "orders",
    { ...defaults, ...options },
    { load, clock: time, timers: time, random: () => 0, onEvent: (event) => events.push(event) },
  );
  return { time, buffer, asked, events };
}

/** A buffer whose first hundred ids are there, and none of them issued. */
async function warm() {
  const made = setUp();
  const ready = made.buffer.take(0);
  await made.asked[0]?.grant();
  await ready;
  return made;
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await Promise.resolve();
};
const down = new IdmintError("STORE_UNAVAILABLE", "down", { retryAfterMs: 100 });

/** What a promise came to, without waiting for it. */
function track<T>(answer: T | Promise<T>): { value?: T; error?: IdmintError } {
  const outcome: { value?: T; error?: IdmintError } = {};
  Promise.resolve(answer).then(
    (value) => (outcome.value = value),
    (error: unknown) => (outcome.error = error as IdmintError),
  );
  return outcome;
}

test("the next load starts when a tenth of the current one is used, and not before", async () => {
  const { buffer, asked } = setUp();
  const first = buffer.next();
  await asked[0]?.grant();
  expect(await first).toBe(1n);
  for (let i = 2; i <= 9; i++) expect(buffer.next()).toBe(BigInt(i));
  expect(asked).toHaveLength(1);
  expect(buffer.next()).toBe(10n);
  expect(asked).toHaveLength(2);
});

test("ids go on without a pause from one load to the next, each exactly once", async () => {
  const { buffer, asked } = setUp({ min: 10, max: 10 });
  const ids = [track(buffer.next())];
  await asked[0]?.grant();
  for (let i = 1; i < 100; i++) {
    const id = buffer.next();
    expect(id).not.toBeInstanceOf(Promise);
    ids.push({ value: id as bigint });
    await asked[asked.length - 1]?.grant();
  }
  expect(ids.map((id) => id.value)).toEqual(Array.from({ length: 100 }, (_, i) => BigInt(i + 1)));
});

test("1,000 calls on a cold tag of min 10 are all served, in the order of arrival, by two loads", async () => {
  const { buffer, asked } = setUp({ min: 10 });
  const calls = Array.from({ length: 1_000 }, () => track(buffer.next()));
  expect(asked).toHaveLength(1);
  await asked[0]?.grant();
  await asked[1]?.grant();
  expect(calls.map((call) => call.value)).toEqual(
    Array.from({ length: 1_000 }, (_, i) => BigInt(i + 1)),
  );
  expect(asked.length).toBeLessThanOrEqual(3);
});

test("while a load hangs, calls with ids ready do not notice", async () => {
  const { buffer, asked } = setUp();
  void buffer.next();
  await asked[0]?.grant();
  for (let i = 2; i <= 100; i++) expect(buffer.next()).toBe(BigInt(i));
  expect(asked).toHaveLength(2);
});

test("a waiting call is refused 50 ms before its deadline, with the time to come back", async () => {
  const { buffer, time } = setUp();
  const call = track(buffer.next({ deadline: time.now() + 500 }));
  time.advance(449);
  await settle();
  expect(call).toEqual({});
  time.advance(1);
  await settle();
  expect(call.error).toMatchObject({
    code: "UNAVAILABLE",
    reason: "SEGMENT_NOT_READY",
    retryable: true,
  });
  expect(call.error?.retryAfterMs).toBeGreaterThan(0);
});

test("a call is refused at once when no load can start before its deadline", async () => {
  const { buffer, asked, time } = setUp();
  const first = track(buffer.next({ deadline: time.now() + 10_000 }));
  await asked[0]?.fail(down);
  expect(() => buffer.next({ deadline: time.now() + 40 })).toThrow(/SEGMENT_NOT_READY/);
  time.advance(60);
  await asked[1]?.grant();
  expect(first.value).toBe(1n);
});

test("a failed load is tried again for those who wait, after 50 ms and up to 2 s", async () => {
  const { buffer, asked, time } = setUp();
  const call = track(buffer.next({ deadline: time.now() + 60_000 }));
  for (let attempt = 0; attempt < 8; attempt++) {
    expect(asked).toHaveLength(attempt + 1);
    await asked[attempt]?.fail(down);
    time.advance(50);
  }
  await asked[8]?.grant();
  expect(call.value).toBe(1n);
});

test("a failed prefetch is tried again by later requests, not by a timer", async () => {
  const { buffer, asked, time } = setUp();
  void buffer.next();
  await asked[0]?.grant();
  for (let i = 0; i < 20; i++) void buffer.next();
  await asked[1]?.fail(down);
  expect(time.pending).toBe(0);
  void buffer.next();
  expect(asked).toHaveLength(2);
  time.advance(50);
  void buffer.next();
  expect(asked).toHaveLength(3);
});

test("more callers than may wait are refused with OVERLOADED", () => {
  const { buffer } = setUp({ maxWaiters: 3 });
  const calls = [track(buffer.next()), track(buffer.next()), track(buffer.next())];
  expect(() => buffer.next()).toThrow(/OVERLOADED/);
  expect(calls).toHaveLength(3);
});

test("a caller that goes away leaves its ids to the others", async () => {
  const { buffer, asked } = setUp();
  const controller = new AbortController();
  const gone = track(buffer.next({ signal: controller.signal }));
  const stays = track(buffer.next());
  controller.abort();
  await asked[0]?.grant();
  expect(gone.error).toMatchObject({ reason: "CALL_CANCELLED" });
  expect(stays.value).toBe(1n);
});

test("one call may take more than max, and gets exactly what it asked for", async () => {
  const { buffer, asked } = setUp({ max: 1_000 });
  const call = track(buffer.take(5_000));
  expect(asked[0]?.request.count).toBe(5_000);
  await asked[0]?.grant();
  expect(countOf(call.value ?? [])).toBe(5_000);
});

test("take spans segments, ascending and without a gap", async () => {
  const { buffer, asked } = setUp({ max: 100 });
  void buffer.next();
  await asked[0]?.grant();
  for (let i = 2; i <= 20; i++) void buffer.next();
  await asked[1]?.grant();
  const segments = await buffer.take(120);
  expect([...idsOf(segments)]).toEqual(Array.from({ length: 120 }, (_, i) => BigInt(i + 21)));
});

test("at the tag's end the rest is issued, and then everything is refused with OUT_OF_RANGE", async () => {
  const { buffer, asked } = setUp();
  const call = track(buffer.take(30));
  await asked[0]?.grant(20);
  await asked[1]?.fail(new IdmintError("TAG_EXHAUSTED", "end"));
  expect(call.error).toMatchObject({ code: "OUT_OF_RANGE" });
  expect(countOf(await buffer.take(30, undefined, 0n, true))).toBe(20);
  expect(() => buffer.next()).toThrow(/TAG_EXHAUSTED/);
});

test("ids of a lower epoch are dropped, those on their way too", async () => {
  const { buffer, asked, events } = setUp();
  void buffer.next();
  await asked[0]?.grant();
  for (let i = 2; i <= 10; i++) void buffer.next();
  buffer.observeEpoch(2n);
  expect(buffer.ready).toBe(0);
  await asked[1]?.grant(100, 1n);
  expect(buffer.ready).toBe(0);
  expect(events.filter((event) => event.type === "wasted")).toMatchObject([
    { count: 90, cause: "dropped" },
    { count: 100, cause: "rejected" },
  ]);
});

test("a fenced buffer holds nothing, refuses with its reason, and starts afresh", async () => {
  const { buffer, asked } = setUp();
  void buffer.next();
  await asked[0]?.grant();
  buffer.fence(new IdmintError("TAG_PAUSED", "paused"));
  expect(() => buffer.next()).toThrow(/TAG_PAUSED/);
  expect(() => buffer.tryNext()).toThrow(/TAG_PAUSED/);
  expect(() => buffer.tryNextNumber()).toThrow(/TAG_PAUSED/);
  buffer.unfence();
  const call = track(buffer.next());
  await asked[1]?.grant();
  expect(call.value).toBe(101n);
});

test("the failure of a load that a fence gave up says nothing of the load after it", async () => {
  const { buffer, asked } = setUp();
  const first = track(buffer.next());
  buffer.fence(new IdmintError("TAG_PAUSED", "paused"));
  buffer.unfence();
  const call = track(buffer.next());
  expect(asked.length).toBe(2);
  await asked[0]?.fail(new IdmintError("TAG_NOT_FOUND", "of the tag of before"));
  expect([first.error?.reason, call.error]).toEqual(["TAG_PAUSED", undefined]);
  await asked[1]?.grant();
  expect(call.value).toBe(1n);
});

test.each([
  ["ISSUING_STOPPED", 0],
  ["TAG_PAUSED", 0],
  ["STORE_EPOCH_CHANGED", 0],
  ["PERMISSION_DENIED", 90],
] as const)(
  "a load that is refused with %s leaves %d of the ids that are held",
  async (reason, left) => {
    const { buffer, asked } = setUp();
    void buffer.next();
    await asked[0]?.grant();
    // The next load begins at a tenth.
    for (let i = 2; i <= 10; i++) void buffer.next();
    await asked[1]?.fail(new IdmintError(reason, "refused"));
    expect(buffer.ready).toBe(left);
  },
);

test("`after` within what is held is served from memory, above it straight from the loader", async () => {
  const { buffer, asked } = setUp();
  void buffer.next();
  await asked[0]?.grant();
  expect(await buffer.take(5, undefined, 1n)).toEqual([segmentOf(2n, 5)]);
  const direct = track(buffer.take(5, undefined, 50n));
  expect(asked[1]?.request).toEqual({ count: 5, minCount: 5, after: 50n });
  await asked[1]?.grant();
  expect(direct.value).toEqual([segmentOf(101n, 5)]);
  expect(buffer.next()).toBe(7n);
});

test("a direct load of an epoch below the highest seen is refused, and never answered as if it were new", async () => {
  const { buffer, asked } = setUp();
  void buffer.next();
  await asked[0]?.grant(100, 2n);
  const late = track(buffer.take(5, undefined, 100n));
  const asking = asked.length;
  // While it is under way the epoch rises, and its answer is of the one before.
  buffer.observeEpoch(3n);
  await asked[asking - 1]?.grant(5, 2n);
  expect(late.error).toMatchObject({ reason: "SEGMENT_NOT_READY", retryable: true });
  expect(buffer.issued).toBe(1);
  const present = track(buffer.take(5, undefined, 105n));
  await asked.at(-1)?.grant(5, 3n);
  expect(present.value).toEqual([segmentOf(106n, 5)]);
});

test("a direct load of a later epoch ends what is held of the earlier ones", async () => {
  const { buffer, asked } = setUp();
  void buffer.next();
  await asked[0]?.grant(100, 2n);
  const direct = track(buffer.take(5, undefined, 100n));
  await asked.at(-1)?.grant(5, 3n);
  expect(direct.value).toEqual([segmentOf(101n, 5)]);
  expect([buffer.epoch, buffer.ready]).toEqual([3n, 0]);
});

test("ids past 2^53 − 1 are refused as numbers, and not lost", async () => {
  const time = new FakeTime();
  const base = 2n ** 53n - 3n;
  const buffer = new SegmentBuffer<undefined>("t", defaults, {
    load: async ({ count }) => ({
      segments: [segmentOf(base, count)],
      epoch: 1n,
      receipt: undefined,
    }),
    clock: time,
    timers: time,
    random: () => 0,
  });
  expect(await buffer.next()).toBe(base);
  expect(buffer.tryNextNumber()).toBe(Number.MAX_SAFE_INTEGER - 1);
  expect(buffer.tryNextNumber()).toBe(Number.MAX_SAFE_INTEGER);
  expect(() => buffer.tryNextNumber()).toThrow(/UNSAFE_INTEGER/);
  expect(() => buffer.tryNextNumber()).toThrow(/UNSAFE_INTEGER/);
  expect(buffer.tryNext()).toBe(2n ** 53n);
});

test("ids expire at max_age", async () => {
  const { buffer, asked, time } = setUp({}, 10_000);
  void buffer.next();
  await asked[0]?.grant();
  time.advance(9_999);
  buffer.sample();
  expect(buffer.ready).toBe(99);
  time.advance(1);
  buffer.sample();
  expect(buffer.ready).toBe(0);
  expect(asked).toHaveLength(1);
});

for (const [name, issue] of [
  ["next", (buffer) => buffer.next()],
  ["tryNext", (buffer) => buffer.tryNext()],
  ["tryNextNumber", (buffer) => buffer.tryNextNumber()],
  ["take", (buffer) => buffer.take(1)],
] as const satisfies [string, (buffer: SegmentBuffer<string>) => unknown][]) {
  test(`a ticker's look at the clock is none for the id that ${name} issues later`, async () => {
    const { buffer, asked, time } = setUp({}, 10_000);
    void buffer.next();
    await asked[0]?.grant();
    time.advance(9_990);
    buffer.sample();
    time.advance(10);
    track(issue(buffer) as Promise<unknown>);
    expect(buffer.issued).toBe(1);
  });

  test(`no ticker has to run for ${name} to issue nothing past max_age`, async () => {
    const { buffer, asked, time, events } = setUp({}, 10_000);
    void buffer.next();
    await asked[0]?.grant();
    time.advance(5_000);
    for (let i = 0; i < 5; i++) {
      track(issue(buffer) as Promise<unknown>);
      time.advance(2);
    }
    expect(buffer.issued).toBe(6);
    time.advance(5_000);
    track(issue(buffer) as Promise<unknown>);
    expect(buffer.issued).toBe(6);
    expect(events).toContainEqual({ type: "wasted", tag: "orders", count: 94, cause: "expired" });
  });
}

test("a burst looks at the clock at least every 1,024 ids, and a pause of 1 ms makes it every id", async () => {
  const { buffer, asked, time } = setUp({ min: 100_000 }, 10_000);
  const looks: number[] = [];
  const now = time.now.bind(time);
  time.now = () => {
    looks.push(buffer.issued);
    return now();
  };
  void buffer.next();
  await asked[0]?.grant();
  for (let i = 0; i < 9_000; i++) buffer.tryNext();
  const gaps = looks.slice(1).map((at, i) => at - (looks[i] ?? 0));
  expect(Math.max(...gaps)).toBe(1_024);
  // Doubling gets there soon, so that a burst costs few looks.
  expect(looks.length).toBeLessThan(40);
  // Between ids that are 2 ms apart it looks each time, whatever the burst left.
  const from = buffer.issued;
  for (let i = 0; i < 100; i++) {
    time.advance(2);
    buffer.tryNext();
  }
  expect(looks.filter((at) => at >= from)).toHaveLength(100);
  for (let i = 0; i < 9_000; i++) buffer.tryNext();
  // What is left of the stride is the most that a process may issue that was stopped in the middle of a burst: no timer runs.
  time.now = () => now() + 20_000;
  const before = buffer.issued;
  while (buffer.tryNext() !== undefined) expect(buffer.issued - before).toBeLessThan(1_024);
  expect(buffer.ready).toBe(0);
});

test("what a burst leaves is not issued past max_age, though no ticker runs", async () => {
  const { buffer, asked, time } = setUp({ min: 100_000 }, 10_000);
  void buffer.next();
  await asked[0]?.grant();
  time.advance(9_998);
  for (let i = 0; i < 3_000; i++) buffer.tryNext();
  time.advance(2);
  expect(buffer.tryNext()).toBeUndefined();
});

test("a burst sets one timer, which ends with it or with the buffer, and a few ids set none", async () => {
  const { buffer, asked, time } = setUp({ min: 100_000 }, 10_000);
  void buffer.next();
  await asked[0]?.grant();
  time.advance(5);
  const few = 8;
  for (let i = 0; i < few; i++) buffer.tryNext();
  expect(time.pending).toBe(0);
  for (let i = 0; i < 3_000; i++) {
    buffer.tryNext();
    if (i % 10 === 0) await buffer.take(1);
    expect(time.pending).toBeLessThanOrEqual(1);
  }
  expect(time.pending).toBe(1);
  time.advance(1);
  expect(time.pending).toBe(0);
  for (let i = 0; i < 50; i++) buffer.tryNext();
  expect(time.pending).toBe(1);
  buffer.drain(down);
  expect(time.pending).toBe(0);
});

test("ids that never expire need no timer, however many are asked for", async () => {
  const { buffer, asked, time } = setUp({ min: 100_000 });
  void buffer.next();
  await asked[0]?.grant();
  for (let i = 0; i < 3_000; i++) {
    buffer.tryNext();
    await buffer.take(1);
  }
  expect(time.pending).toBe(0);
});

test("a burst that goes on past max_age without a turn of the event loop ends there", async () => {
  const { buffer, asked, time } = setUp({ min: 1_000_000 }, 10_000);
  void buffer.next();
  await asked[0]?.grant();
  // 10 µs an id: 1,024 of them take longer than the clock may stay unseen, so strides stay at about 100.
  let lastAt = 0;
  for (let i = 0; i < 2_000_000; i++) {
    if (buffer.tryNext() === undefined) break;
    lastAt = time.now();
    time.advance(0.01);
  }
  expect(lastAt).toBeGreaterThan(10_990);
  expect(lastAt).toBeLessThan(11_003);
});

test("a waiter gets no id that expired while it waited", async () => {
  const { buffer, asked, time } = setUp({ min: 10 }, 10_000);
  void buffer.next();
  await asked[0]?.grant();
  const call = track(buffer.take(12, { deadline: time.now() + 60_000 }));
  time.advance(10_000);
  await asked[1]?.grant(12);
  expect(call.value).toEqual([segmentOf(11n, 12)]);
});

test("an answer that expired on its way is not used", async () => {
  const { buffer, asked, events, time } = setUp({}, 0);
  const call = track(buffer.next({ deadline: time.now() + 60_000 }));
  await asked[0]?.grant();
  expect(call).toEqual({});
  expect(events).toContainEqual({ type: "wasted", tag: "orders", count: 100, cause: "rejected" });
  const direct = track(buffer.take(5, undefined, 50n));
  await asked[1]?.grant();
  expect(direct.error).toMatchObject({ reason: "SEGMENT_NOT_READY" });
});

test("ids that were put back stand in their order among the segments of an answer", async () => {
  const { buffer } = await warm();
  const { generation } = buffer;
  await buffer.take(50);
  expect(buffer.putBack([segmentOf(41n, 10)], generation)).toBe(10);
  expect(await buffer.take(60)).toEqual([segmentOf(41n, 10), segmentOf(51n, 50)]);
});

test.each<[string, (buffer: SegmentBuffer<string>) => unknown]>([
  ["a fence", (buffer) => buffer.fence(down)],
  ["a later epoch", (buffer) => buffer.observeEpoch(2n)],
  ["an unknown age", (buffer) => buffer.expireAll()],
  ["the end of the buffer", (buffer) => buffer.drain(down)],
])(
  "after %s nothing that was taken before is put back, and nothing that was put back is left",
  async (_, end) => {
    const { buffer } = await warm();
    const { generation } = buffer;
    await buffer.take(50);
    expect(buffer.putBack([segmentOf(46n, 5)], generation)).toBe(5);
    end(buffer);
    buffer.unfence();
    expect(buffer.ready).toBe(0);
    expect(buffer.putBack([segmentOf(41n, 5)], generation)).toBe(0);
    expect(buffer.ready).toBe(0);
  },
);

test("ids that a load's refusal forbids are not put back", async () => {
  const { buffer, asked } = await warm();
  const { generation } = buffer;
  await buffer.take(50);
  await asked[1]?.fail(new IdmintError("STORE_EPOCH_CHANGED", "gone back"));
  expect(buffer.putBack([segmentOf(46n, 5)], generation)).toBe(0);
});

test("ids that were asked for before a fence are not answered after it", async () => {
  const { buffer, asked } = await warm();
  const direct = track(buffer.take(5, undefined, 100n));
  buffer.fence(down);
  buffer.unfence();
  await asked[1]?.grant();
  expect(direct.error).toMatchObject({ reason: "SEGMENT_NOT_READY" });
});

test("ids are put back until 64 loads are held", async () => {
  const { buffer } = await warm();
  const { generation } = buffer;
  await buffer.take(100);
  const before = buffer.ready;
  expect(before).toBe(0);
  for (let id = 100n; id > 36n; id--)
    expect(buffer.putBack([segmentOf(id, 1)], generation)).toBe(1);
  expect(buffer.putBack([segmentOf(36n, 1)], generation)).toBe(0);
  expect(buffer.ready).toBe(64);
});

test("for synchronous callers ids are renewed before they expire", async () => {
  const { buffer, asked, time } = setUp({}, 10_000);
  expect(buffer.tryNext()).toBeUndefined();
  await asked[0]?.grant();
  expect(buffer.tryNext()).toBe(1n);
  for (let second = 0; second < 100; second++) {
    time.advance(1_000);
    buffer.sample();
    await asked[asked.length - 1]?.grant();
    expect(buffer.ready).toBeGreaterThan(0);
  }
  expect(asked.length).toBeLessThan(15);
});

test("drain answers the unused end of every load and ends the buffer", async () => {
  const { buffer, asked } = setUp();
  void buffer.next();
  await asked[0]?.grant();
  for (let i = 2; i <= 10; i++) void buffer.next();
  await asked[1]?.grant();
  expect(buffer.drain(new IdmintError("DRAINING", "stopping"))).toEqual([
    { receipt: "r1", segments: [segmentOf(11n, 90)] },
    { receipt: "r2", segments: [segmentOf(101n, 100)] },
  ]);
  expect(() => buffer.next()).toThrow(/DRAINING/);
});

test("drain answers what is unused of the segments of one load", async () => {
  const segments = [segmentOf(1n, 2), segmentOf(11n, 2), segmentOf(21n, 2)];
  const load = async (): Promise<Load<string>> => ({ segments, epoch: 1n, receipt: "r1" });
  const time = new FakeTime(1_000);
  const buffer = new SegmentBuffer<string>(
    "orders",
    { ...defaults, prefetchShare: 1 },
    { load, clock: time, timers: time, random: () => 0, onEvent: () => undefined },
  );
  expect([await buffer.next(), await buffer.next(), await buffer.next()]).toEqual([1n, 2n, 11n]);
  expect(buffer.heldIdOf(segmentOf(12n, 1))).toBe(12n);
  expect(buffer.heldIdOf(segmentOf(13n, 8))).toBeUndefined();
  expect(buffer.drain(new IdmintError("DRAINING", "stopping"))).toEqual([
    { receipt: "r1", segments: [segmentOf(12n, 1), segmentOf(21n, 2)] },
  ]);
});

test("of two loads only the ids of the one that expired are wasted", async () => {
  const { buffer, asked, time, events } = setUp({}, 10_000);
  void buffer.next();
  await asked[0]?.grant();
  for (let i = 2; i <= 10; i++) void buffer.next();
  time.advance(5_000);
  await asked[1]?.grant();
  time.advance(5_000);
  buffer.sample();
  expect(events).toContainEqual({ type: "wasted", tag: "orders", count: 90, cause: "expired" });
  expect(buffer.ready).toBe(100);
});

test("never more than one load is fetched ahead, however fast the loader is", async () => {
  const time = new FakeTime();
  let loads = 0;
  const load = async ({ count }: LoadRequest): Promise<Load<undefined>> => {
    const base = BigInt(loads++) * 1_000n + 1n;
    return { segments: [segmentOf(base, count)], epoch: 1n, receipt: undefined };
  };
  const ports = { load, clock: time, timers: time, random: () => 0 };
  const buffer = new SegmentBuffer<undefined>("t", defaults, ports);
  expect(await buffer.next()).toBe(1n);
  for (let i = 0; i < 50; i++) {
    void buffer.next();
    await settle();
  }
  expect(loads).toBe(2);
});

test("a listener that throws costs nobody an id", async () => {
  const time = new FakeTime();
  const buffer = new SegmentBuffer<undefined>("t", defaults, {
    load: async ({ count }) => ({
      segments: [segmentOf(1n, count)],
      epoch: 1n,
      receipt: undefined,
    }),
    clock: time,
    timers: time,
    random: () => 0,
    onEvent: () => {
      throw new Error("a bad listener");
    },
  });
  expect(await buffer.next()).toBe(1n);
});

const busy = new IdmintError("OVERLOADED", "busy", { retryAfterMs: 3_000 });

test("after a busy server's refusal the next load waits as long as it asked, and callers wait with it", async () => {
  const { time, buffer, asked, events } = setUp();
  const [short, long] = [track(buffer.next({ deadline: 3_500 })), track(buffer.next())];
  await asked[0]?.fail(busy);
  // Whoever has less time than that hears why.
  expect(short.error).toBe(busy);
  expect(events).toContainEqual(expect.objectContaining({ type: "load-failed", retryInMs: 3_000 }));
  expect(() => buffer.next({ deadline: time.now() + 2_000 })).toThrow(/OVERLOADED/);
  time.advance(2_999);
  await settle();
  expect(asked.length).toBe(1);
  time.advance(1);
  await settle();
  expect(asked.length).toBe(2);
  await asked[1]?.grant();
  await settle();
  expect(long.value).toBe(1n);
});

test("ids in memory last through it, and a refusal without a time is final", async () => {
  const { buffer, asked } = setUp({ min: 100, max: 100 });
  const first = track(buffer.next());
  await asked[0]?.grant();
  expect(first.value).toBe(1n);
  for (let at = 0; at < 20; at++) await buffer.next();
  await asked[1]?.fail(busy);
  for (let at = 0; at < 79; at++) expect(typeof buffer.next()).toBe("bigint");
  const { buffer: other, asked: others } = setUp();
  const refused = track(other.next());
  await others[0]?.fail(new IdmintError("OVERLOADED", "full"));
  expect(refused.error?.reason).toBe("OVERLOADED");
});

test("no refusal keeps a buffer from asking for longer than half a minute and a fifth of it", async () => {
  const { time, buffer, asked } = setUp();
  void track(buffer.next({ deadline: 100_000 }));
  await asked[0]?.fail(new IdmintError("OVERLOADED", "busy", { retryAfterMs: 1e9 }));
  time.advance(36_000);
  await settle();
  expect(asked.length).toBe(2);
});

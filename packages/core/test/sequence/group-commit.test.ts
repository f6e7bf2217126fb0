import {
  type BufferEvent,
  type Committed,
  GroupCommit,
  type GroupCommitOptions,
  IdmintError,
} from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";

/** A round trip that the test answers. */
interface RoundTrip {
  readonly count: number;
  readonly grant: (ids?: Partial<Committed>) => Promise<void>;
  readonly fail: (error: unknown) => Promise<void>;
}

function setUp(options: Partial<GroupCommitOptions> = {}) {
  const time = new FakeTime();
  const trips: RoundTrip[] = [];
  const events: BufferEvent[] = [];
  let floor = 0n;
  const turns: (() => void)[] = [];
  const commits = new GroupCommit(
    "t",
    { maxWaiters: 100, maxCount: 1_000, ...options },
    {
      commit: (tag, count) => {
        expect(tag).toBe("t");
        const { promise, resolve, reject } = Promise.withResolvers<Committed>();
        const base = floor + 1n;
        floor += BigInt(count);
        trips.push({
          count,
          grant: (ids) => {
            resolve({ base, count, epoch: 1n, period: undefined, ...ids });
            return settle();
          },
          fail: (error) => {
            reject(error);
            return settle();
          },
        });
        return promise;
      },
      afterTurn: (run) => turns.push(run),
      clock: time,
      timers: time,
      onEvent: (event) => events.push(event),
    },
  );
  /** The present turn ends, and what follows from it too. */
  const turn = async (): Promise<void> => {
    for (const run of turns.splice(0)) run();
    await settle();
  };
  const take = (count = 1, deadline?: number): Promise<string> =>
    commits.take(count, deadline === undefined ? undefined : { deadline }).then(textOf, reasonOf);
  return { time, trips, events, commits, turn, take };
}

function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function textOf({ base, count }: Committed): string {
  return count === 1 ? String(base) : `${base}…${base + BigInt(count) - 1n}`;
}

function reasonOf(error: unknown): string {
  return error instanceof IdmintError ? error.reason : String(error);
}

test("calls of one turn are one round trip, those that come during it are the next one", async () => {
  const { trips, turn, take } = setUp();
  const first = [take(), take(3), take()];
  await turn();
  const second = [take(), take(2)];
  await turn();
  expect(trips.map(({ count }) => count)).toEqual([5]);
  await trips[0]?.grant();
  await turn();
  expect(trips.map(({ count }) => count)).toEqual([5, 3]);
  await trips[1]?.grant();
  expect(await Promise.all(first)).toEqual(["1", "2…4", "5"]);
  expect(await Promise.all(second)).toEqual(["6", "7…8"]);
});

test("an answer carries the period and the epoch of its grant", async () => {
  const { commits, trips, turn } = setUp();
  const answer = commits.take(2);
  await turn();
  const period = { unit: "DAY", start: "2026-11-21", endsAtMs: 5 } as const;
  await trips[0]?.grant({ epoch: 7n, period });
  expect(await answer).toEqual({ base: 1n, count: 2, epoch: 7n, period });
});

test("a round trip takes no more ids than it may, and the next one takes the rest", async () => {
  const { trips, turn, take } = setUp({ maxCount: 10 });
  const answers = [take(6), take(6), take(4)];
  await turn();
  await trips[0]?.grant();
  await turn();
  await trips[1]?.grant();
  expect(trips.map(({ count }) => count)).toEqual([6, 10]);
  expect(await Promise.all(answers)).toEqual(["1…6", "7…12", "13…16"]);
});

test("more calls than may wait are refused, also while others are in flight", async () => {
  const { trips, turn, take } = setUp({ maxWaiters: 3 });
  const answers = [take(), take()];
  await turn();
  answers.push(take(), take());
  expect(await Promise.race([answers[3], turn()])).toBe("OVERLOADED");
  await trips[0]?.grant();
  answers.push(take());
  await turn();
  await trips[1]?.grant();
  expect(await Promise.all(answers)).toEqual(["1", "2", "3", "OVERLOADED", "4"]);
});

test("a call that ends before its batch closes takes no ids, one that ends later leaves a gap", async () => {
  const { time, trips, turn, take, events } = setUp();
  const answers = [take(1, 10_000), take(2, 100), take(1, 10_000)];
  await turn();
  const next = [take(5, 100), take(1, 10_000)];
  time.advance(60);
  expect(await answers[1]).toBe("STORE_UNAVAILABLE");
  expect(await next[0]).toBe("STORE_UNAVAILABLE");
  await trips[0]?.grant();
  expect(await answers[0]).toBe("1");
  expect(await answers[2]).toBe("4");
  expect(events).toEqual([{ type: "wasted", tag: "t", count: 2, cause: "abandoned" }]);
  await turn();
  expect(trips[1]?.count).toBe(1);
  await trips[1]?.grant();
  expect(await next[1]).toBe("5");
});

test("a caller that goes away is refused at once, and one that was gone before asks nothing", async () => {
  const { commits, turn, trips } = setUp();
  const gone = new AbortController();
  const answer = commits.take(1, { signal: gone.signal }).catch(reasonOf);
  gone.abort();
  expect(await answer).toBe("CALL_CANCELLED");
  expect(await commits.take(1, { signal: gone.signal }).catch(reasonOf)).toBe("CALL_CANCELLED");
  await turn();
  expect(trips).toEqual([]);
  expect(commits.waiting).toBe(0);
});

test("a round trip that fails refuses its batch, and the next batch goes on", async () => {
  const { trips, turn, take } = setUp();
  const first = [take(), take()];
  await turn();
  const second = take();
  await trips[0]?.fail(new IdmintError("STORE_UNAVAILABLE", "no outcome"));
  expect(await Promise.all(first)).toEqual(["STORE_UNAVAILABLE", "STORE_UNAVAILABLE"]);
  await turn();
  await trips[1]?.grant();
  // What may have been granted is used by nobody.
  expect(await second).toBe("3");
});

test("an answer that does not fit its round trip is a fault, and nobody gets its ids", async () => {
  const { trips, turn, take } = setUp();
  const answer = take(2);
  await turn();
  await trips[0]?.grant({ count: 1 });
  expect(await answer).toBe("INTERNAL");
});

test("ids of an epoch below the one that is known are not used; their calls get later ones", async () => {
  const { commits, trips, turn, take, events } = setUp();
  const answers = [take(), take(2)];
  await turn();
  commits.observeEpoch(2n);
  await trips[0]?.grant({ epoch: 1n });
  expect(events).toEqual([{ type: "wasted", tag: "t", count: 3, cause: "rejected" }]);
  answers.push(take());
  await turn();
  await trips[1]?.grant({ epoch: 2n });
  expect(await Promise.all(answers)).toEqual(["4", "5…6", "7"]);
});

test("a fence refuses whoever waits and whoever asks; the answer in flight is waste", async () => {
  const { commits, trips, turn, take, events } = setUp();
  const answers = [take()];
  await turn();
  answers.push(take());
  commits.fence(new IdmintError("TAG_PAUSED", "paused"));
  answers.push(take());
  expect(await Promise.all(answers)).toEqual(["TAG_PAUSED", "TAG_PAUSED", "TAG_PAUSED"]);
  expect(commits.waiting).toBe(0);
  commits.unfence();
  const later = take();
  await turn();
  await trips[0]?.grant();
  expect(events).toEqual([{ type: "wasted", tag: "t", count: 1, cause: "rejected" }]);
  await trips[1]?.grant();
  expect(await later).toBe("2");
});

test("a store that answers under an older epoch again and again costs one round trip a call, not an endless loop", async () => {
  const { trips, events, turn, take, commits } = setUp();
  commits.observeEpoch(5n);
  const answers = [take(), take(2)];
  await turn();
  await trips[0]?.grant({ epoch: 4n });
  await turn();
  expect(trips.length).toBe(1);
  expect(await Promise.all(answers)).toEqual(["STORE_UNAVAILABLE", "STORE_UNAVAILABLE"]);
  expect(events).toEqual([{ type: "wasted", tag: "t", count: 3, cause: "rejected" }]);
  // Whoever asks next is answered as soon as the store knows better.
  const next = take();
  await turn();
  await trips[1]?.grant({ epoch: 5n });
  expect(await next).toBe("4");
});

test("at the tag's end each call that still fits gets its ids, and only the others are refused", async () => {
  const { trips, turn, take } = setUp();
  const exhausted = new IdmintError("TAG_EXHAUSTED", "too few ids left");
  // Four ids are left.
  const answers = [take(5), take(), take(), take(), take(2)];
  await turn();
  const counts: number[] = [];
  let left = 4;
  for (let trip = 0; trip < trips.length; trip++) {
    const { count, grant, fail } = trips[trip] as RoundTrip;
    counts.push(count);
    const fits = count <= left;
    if (fits) left -= count;
    await (fits ? grant() : fail(exhausted));
    await turn();
  }
  expect(counts).toEqual([10, 6, 5, 5, 2, 3, 1, 2]);
  const reasons = await Promise.all(answers);
  expect(reasons.map((text) => text === "TAG_EXHAUSTED")).toEqual([
    true,
    false,
    false,
    false,
    true,
  ]);
});

test("a batch of more ids than may be asked for at once is tried in halves", async () => {
  const { trips, turn, take } = setUp();
  const answers = [take(), take(), take(), take()];
  await turn();
  await trips[0]?.fail(new IdmintError("INVALID_ARGUMENT", "count must be at most 3"));
  await turn();
  await trips[1]?.grant();
  await turn();
  await trips[2]?.grant();
  expect(trips.map(({ count }) => count)).toEqual([4, 2, 2]);
  expect(await Promise.all(answers)).toEqual(["5", "6", "7", "8"]);
});

test("at an exhausted tag a thousand calls cost a dozen round trips", async () => {
  const { trips, turn, take } = setUp({ maxWaiters: 1_000 });
  const answers = Array.from({ length: 1_000 }, () => take());
  await turn();
  for (let trip = 0; trip < trips.length; trip++) {
    await trips[trip]?.fail(new IdmintError("TAG_EXHAUSTED", "no ids left"));
    await turn();
  }
  expect(new Set(await Promise.all(answers))).toEqual(new Set(["TAG_EXHAUSTED"]));
  expect(trips.length).toBeLessThanOrEqual(12);
});

test("a listener that throws costs nobody an id", async () => {
  const time = new FakeTime();
  let trips = 0;
  let told = 0;
  const commits = new GroupCommit(
    "t",
    { maxWaiters: 1, maxCount: 1 },
    {
      // The first round trip is overtaken by a change of the tag, so that there is something to tell.
      commit: async (_tag, count) => {
        const epoch = BigInt(trips++);
        commits.observeEpoch(1n);
        return { base: epoch + 1n, count, epoch, period: undefined };
      },
      afterTurn: setImmediate,
      clock: time,
      timers: time,
      onEvent: () => {
        told++;
        throw new Error("a bad listener");
      },
    },
  );
  expect((await commits.take(1)).base).toBe(2n);
  expect([trips, told]).toEqual([2, 1]);
});

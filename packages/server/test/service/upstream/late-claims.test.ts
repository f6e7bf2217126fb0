import { lostTag, type Tag, VersionGuard } from "@idmint/core/server";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import type { ServerEvent } from "../../../src/service/events.ts";
import { LateClaims } from "../../../src/service/upstream/late-claims.ts";

const NOTE = { id: "1", principal: "", proof: "", peer: "", method: "late claim", server: "" };

/** A server that was granted 1 to 100 of `t` in epoch 5, and a store whose calls the test answers by hand. */
function setUp() {
  const guard = new VersionGuard();
  guard.admitIds("t", { epoch: 5n, first: 1n, last: 100n, period: "" });
  const calls: { tag: string; floor: bigint; answer: (raised: boolean) => void; fail(): void }[] =
    [];
  const events: ServerEvent[] = [];
  const time = new FakeTime();
  const records: Tag[] = [];
  const claims = new LateClaims({
    store: {
      getTags: async (names) => records.filter(({ name }) => names.includes(name)),
      advanceTag: (tag, floor) => {
        const { promise, resolve, reject } = Promise.withResolvers<{ tag: Tag; raised: boolean }>();
        const answer = (raised: boolean) => resolve({ tag: {} as Tag, raised });
        calls.push({ tag, floor, answer, fail: () => reject(new Error("down")) });
        return promise;
      },
    },
    guard,
    timers: time,
    storeTimeoutMs: 1_000,
    note: () => NOTE,
    emit: (event) => events.push(event),
  });
  /** Another history begins with these floors. */
  const begin = async (...tags: readonly Tag[]) => {
    records.splice(0, records.length, ...tags);
    claims.startHistory();
    await settled();
  };
  return { guard, claims, begin, calls, events };
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};
const { kind } = lostTag("any", [], false, 0);
const record = (floor: bigint, epoch: bigint, periodStart = "", name = "t") =>
  ({ name, kind, floor, epoch, version: 1n, periodStart }) as Tag;

test("a floor that an accept left below ids granted here is raised above them", async () => {
  const { begin, calls, events } = setUp();
  await begin(record(30n, 9n));
  expect(calls).toMatchObject([{ tag: "t", floor: 100n }]);
  calls[0]?.answer(true);
  await settled();
  expect(events).toEqual([{ type: "late-claim", tag: "t", missing: 70n }]);
});

test("a floor of the same epoch, of another period or above them is left alone", async () => {
  const { guard, begin, calls } = setUp();
  guard.admitIds("s", { epoch: 5n, first: 1n, last: 100n, period: "2026-01-01" });
  for (const tag of [record(30n, 5n), record(30n, 4n), record(100n, 9n)]) await begin(tag);
  await begin(record(1n, 9n, "2026-01-02", "s"), record(1n, 9n, "", "other"));
  await begin(record(1n, 9n, "", "s"));
  expect(calls).toEqual([]);
  await begin(record(1n, 9n, "2026-01-01", "s"));
  expect(calls).toMatchObject([{ tag: "s", floor: 100n }]);
});

test("what an accept made of a floor is claimed in the next one, which a store that lost the first one needs", async () => {
  const { guard, begin } = setUp();
  await begin(record(1_000_100n, 9n));
  expect([...guard.claims()]).toEqual([{ tag: "t", period: "", last: 1_000_100n }]);
});

test("nothing is told of a floor that somebody else raised, and a raise that failed is tried again", async () => {
  const { claims, calls, events } = setUp();
  const ids = { epoch: 9n, first: 11n, last: 20n, period: "" };
  claims.below("t", ids);
  calls[0]?.fail();
  await settled();
  claims.below("t", ids);
  calls[1]?.fail();
  await settled();
  // A store that takes no changes is told of once.
  expect(events).toMatchObject([{ type: "late-claim-failed", tag: "t" }]);
  claims.below("t", ids);
  expect(calls).toHaveLength(3);
  // It shows again while it is being raised: that is looked at once more.
  claims.below("t", ids);
  calls[2]?.answer(true);
  await settled();
  expect(calls).toHaveLength(4);
  calls[3]?.answer(false);
  await settled();
  expect(events.slice(1)).toEqual([{ type: "late-claim", tag: "t", missing: 90n }]);
});

// A sequence in Redis whose maximum is bounded closely, with other servers that take what a raise brings.
import { FakeTime, MemoryRedis, MemoryStore, type RedisCalls } from "@idmint/testkit";
import { type CountingRedis, VersionGuard } from "@idmint/core/server";
import { expect, test } from "vitest";
import { RedisSequenceCounter } from "../../../../src/service/kinds/sequence/redis-counter.ts";
import { RedisMarks } from "../../../../src/service/redis/marks.ts";
import { placeOf } from "../../../../src/service/redis/place.ts";
import { Raises } from "../../../../src/service/upstream/raises.ts";
import { sequenceSettings } from "../../redis/redis-tags.ts";

const TAG = "t";

function emit(): void {}

async function stage() {
  const store = new MemoryStore();
  const settings = sequenceSettings(TAG, { step: 5, maxSkip: 10, ceiling: 1_000_000n });
  const tag = await store.createTag(settings);
  const time = new FakeTime();
  const redis = new MemoryRedis({ wallClock: () => 0, newToken: () => 1n });
  const calls = redis.of("store");
  const common = { store, clock: time, timers: time, storeTimeoutMs: 1_000, emit };
  const raises = new Raises({
    ...common,
    guard: new VersionGuard(),
    history: () => 0,
    onWentBack: (_, detail) => expect.fail(detail),
    onBelow: (name) => expect.fail(name),
  });
  /** What others do after each raise that Redis got. */
  const others = { times: 0, count: 0 };
  const sequences: RedisCalls["sequences"] = {
    ...calls.sequences,
    raise: async (request) => {
      const isRaised = await calls.sequences.raise(request);
      if (others.times-- > 0) await take(others.count);
      return isRaised;
    },
  };
  const redisServer: CountingRedis = {
    ...calls,
    name: "a",
    sequences,
    reachable: true,
    refusal: "",
    close: () => Promise.resolve(),
  };
  const counter = new RedisSequenceCounter(tag, {
    ...common,
    redisServer: () => redisServer,
    raises,
    readPlace: async (name) => placeOf((await store.getTags([name]))[0]!),
    marks: new RedisMarks({ ...common, afterTurn: (run) => void Promise.resolve().then(run) }),
    random: () => 0.5,
    wallClock: () => 0,
  });
  const take = async (count: number): Promise<void> => {
    const generation = store.database.rows.get(TAG)?.generation ?? 0n;
    await calls.sequences.issue({ tag: TAG, generation, count, seen: 0n });
  };
  const steals = (times: number, count: number): void => {
    Object.assign(others, { times, count });
  };
  return { counter, steals };
}

test("a call for ids that others took of a raise waits for the next raise", async () => {
  const { counter, steals } = await stage();
  await counter.commit(10);
  steals(2, 5);
  const { base, count } = await counter.commit(9);
  expect({ base, count }).toEqual({ base: 21n, count: 9 });
});

test("it does not wait for ever", async () => {
  const { counter, steals } = await stage();
  await counter.commit(10);
  steals(Infinity, 5);
  await expect(counter.commit(9)).rejects.toMatchObject({ reason: "MAX_NOT_RAISED" });
});

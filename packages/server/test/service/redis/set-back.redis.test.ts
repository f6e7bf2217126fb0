// A Redis that is set back in the middle of its life, so that its run_id stays: whole servers, one of which had seen less.
import {
  CreateTagRequest,
  type LeaseWorkerResponse,
  SequenceBackend,
  TagServiceService,
  WorkerRegistry,
} from "@idmint/proto";
import { MemoryStore } from "@idmint/testkit";
import type { RedisServer } from "@idmint/testkit/redis";
import { expect, test } from "vitest";
import { createSnowflake, lease, takeIds } from "../../snowflake-support.ts";
import { ownRedis } from "../../store/redis/support.ts";
import { call, startTest, type TestServer, until } from "../../support.ts";

const TAG = "t";
const KEY = `idmint:{${TAG}}`;

/** Remembers what Redis has; the answer brings it back. */
type SetBack = (redis: RedisServer) => Promise<() => Promise<void>>;

const WAYS: Readonly<Record<string, SetBack>> = {
  "DEBUG RELOAD NOSAVE": async (redis) => {
    await redis.command("SAVE");
    return async () => void (await redis.command("DEBUG", "RELOAD", "NOSAVE"));
  },
  "RESTORE … REPLACE of the key": async (redis) => {
    // The reply of DUMP is no text, so it stays in Redis.
    const keep = "redis.call('SET', 'kept', redis.call('DUMP', KEYS[1])) return 'OK'";
    await redis.command("EVAL", keep, 1, KEY);
    const put = "return redis.call('RESTORE', KEYS[1], 0, redis.call('GET', 'kept'), 'REPLACE')";
    return async () => void (await redis.command("EVAL", put, 1, KEY));
  },
  // All memory is as it was, and connections of which the other side has gone on are broken.
  "a virtual machine set back": async (redis) => {
    await redis.command("SAVE");
    return async () => {
      await redis.command("DEBUG", "RELOAD", "NOSAVE");
      await redis.command("CLIENT", "KILL", "TYPE", "NORMAL", "SKIPME", "YES");
    };
  },
  "FLUSHALL, and then the older data": async (redis) => {
    await redis.command("SAVE");
    return async () => void (await redis.command("DEBUG", "RELOAD", "NOSAVE"));
  },
};

async function start() {
  const redis = await ownRedis({ settings: { "enable-debug-command": "yes" } });
  const flags = { "redis-urls": redis.url };
  const store = new MemoryStore();
  const one = await startTest({ flags, store });
  const other = new MemoryStore({ database: store.database });
  const two = await startTest({ flags, parts: { store: other } });
  const newest = () => store.database.marks.get(TAG)?.[0];
  /** Waits until the store was told of `mark`, of a generation above this one. */
  const kept = async (mark: bigint, generation = 0n): Promise<void> =>
    until(() => {
      const is = newest();
      return is !== undefined && is.generation > generation && is.mark >= mark;
    }, 10_000);
  /** The same, and until the second server has heard of it. */
  const told = async (mark: bigint, generation?: bigint): Promise<void> => {
    await kept(mark, generation);
    const turns = other.count("exchangeMarks");
    await until(() => other.count("exchangeMarks") >= turns + 2, 10_000);
  };
  return { redis, one, two, store, newest, kept, told };
}

/** Asks until it is answered. */
async function soon<T>(ask: () => Promise<T>): Promise<T> {
  const answers: T[] = [];
  await until(async () => {
    const answer = await ask().catch(() => undefined);
    if (answer !== undefined) answers.push(answer);
    return answers.length > 0;
  }, 10_000);
  return answers[0]!;
}

/** What becomes an alarm. */
function expectAlarm({ events }: TestServer): void {
  const seeded = { type: "redis-seeded", why: "behind", isLoss: true };
  expect(events).toContainEqual(expect.objectContaining(seeded));
}

async function createSequence({ tags }: TestServer): Promise<void> {
  const kind = { $case: "sequence" as const, value: { backend: SequenceBackend.REDIS } };
  const request = CreateTagRequest.fromPartial({ tag: { name: TAG, kind } });
  await call(tags, TagServiceService.createTag, request);
}

test.each(Object.keys(WAYS))(
  "a server that had seen less of a sequence repeats nothing after %s",
  async (way) => {
    const { redis, one, two, newest, kept, told } = await start();
    await createSequence(one);
    const ids = [...(await takeIds(one, TAG, 5)), ...(await takeIds(two, TAG, 5))];
    const setBack = await WAYS[way]!(redis);
    if (way.startsWith("FLUSHALL")) {
      // The older data has all that was answered under its generation: only the later generation tells of later ids.
      await kept(10n);
      const before = newest()?.generation;
      await redis.command("FLUSHALL");
      ids.push(...(await soon(() => takeIds(one, TAG, 3))));
      await told(1n, before);
    } else {
      for (let round = 0; round < 10; round++) ids.push(...(await takeIds(one, TAG, 100)));
      await told(1_010n);
    }
    await setBack();
    ids.push(...(await soon(() => takeIds(two, TAG, 100))));
    ids.push(...(await soon(() => takeIds(one, TAG, 100))));
    expect(new Set(ids).size).toBe(ids.length);
    // Each was asked for after those before were answered.
    expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)));
    if (!way.startsWith("FLUSHALL")) expectAlarm(two);
  },
  60_000,
);

test("a server that starts after Redis was set back has seen nothing, and repeats nothing", async () => {
  const { redis, one, two, store, kept } = await start();
  await createSequence(one);
  const ids = await takeIds(one, TAG, 5);
  await redis.command("SAVE");
  ids.push(...(await takeIds(one, TAG, 500)));
  await kept(505n);
  for (const { server } of [one, two]) await server.close();
  await redis.command("DEBUG", "RELOAD", "NOSAVE");
  const flags = { "redis-urls": redis.url };
  const fresh = await startTest({ flags, store: new MemoryStore({ database: store.database }) });
  ids.push(...(await soon(() => takeIds(fresh, TAG, 500))));
  expect(new Set(ids).size).toBe(ids.length);
  expectAlarm(fresh);
}, 60_000);

test("positions of a redis_snowflake are refused below the mark, and begin anew above it", async () => {
  const { redis, one, two, told, store } = await start();
  const kind = { $case: "redisSnowflake" as const, value: { shard: 1 } };
  const request = CreateTagRequest.fromPartial({ tag: { name: TAG, kind } });
  await call(one.tags, TagServiceService.createTag, request);
  const ids = [...(await takeIds(one, TAG, 5)), ...(await takeIds(two, TAG, 5))];
  await redis.command("SAVE");
  const before = store.database.marks.get(TAG)?.[0]?.mark ?? 0n;
  // These are ahead of the clock, so a Redis that forgot them would make them again at once.
  ids.push(...(await takeIds(one, TAG, 40_000)));
  await told(before + 40_000n);
  await redis.command("DEBUG", "RELOAD", "NOSAVE");
  ids.push(...(await soon(() => takeIds(two, TAG, 10_000))));
  expect(new Set(ids).size).toBe(ids.length);
  expectAlarm(two);
}, 60_000);

test("a lease that Redis forgot in the middle of its life is not given twice", async () => {
  const { redis, one, two, told } = await start();
  await createSnowflake(one, TAG, { registry: WorkerRegistry.REDIS });
  const leased = (server: TestServer, instance: string): Promise<LeaseWorkerResponse> =>
    soon(() => lease(server, { tag: TAG, instance }));
  await leased(one, "a");
  await leased(two, "b");
  await redis.command("SAVE");
  const forgotten = await leased(one, "c");
  await told(3n);
  await redis.command("DEBUG", "RELOAD", "NOSAVE");
  // Without the mark the worker id would be given again, for the same milliseconds.
  for (const instance of ["d", "e", "f"]) {
    const next = await leased(two, instance);
    expect(next.notBeforeMs).toBeGreaterThan(forgotten.reservedUntilMs);
  }
  expectAlarm(two);
}, 60_000);

// A server whose Redis stands behind real Sentinels, and URLs that are mixed up.
import { inspect } from "node:util";
import { CreateTagRequest, SequenceBackend, type Tag, TagServiceService } from "@idmint/proto";
import { MASTER, type RedisServer, type RedisSettings, startSentinel } from "@idmint/testkit/redis";
import { expect, onTestFinished, test } from "vitest";
import { ownRedis } from "../../store/redis/support.ts";
import { call, generateId, refusalOf, startTest, type TestServer, until } from "../../support.ts";

async function createSequence({ tags }: TestServer, name: string): Promise<Tag | undefined> {
  const backend = SequenceBackend.REDIS;
  const tag = { name, kind: { $case: "sequence", value: { backend } } };
  const request = CreateTagRequest.fromPartial({ tag } as Parameters<
    typeof CreateTagRequest.fromPartial
  >[0]);
  return (await call(tags, TagServiceService.createTag, request)).tag;
}

async function sentinelsOf(
  redis: RedisServer,
  settings: RedisSettings = {},
): Promise<readonly RedisServer[]> {
  return Promise.all(
    [1, 2, 3].map(async () => {
      const sentinel = await startSentinel(redis.port, { settings });
      onTestFinished(() => sentinel.close());
      return sentinel;
    }),
  );
}

function urlOf(sentinels: readonly { readonly port: number }[]): string {
  return `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${MASTER}`;
}

async function refusedAtStart(url: string): Promise<string> {
  const error: unknown = await startTest({ flags: { "redis-urls": `a=${url}` } }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({
    reason: "INVALID_ARGUMENT",
    violations: [{ field: "redis.urls" }],
  });
  return String(error);
}

test("a Sentinel given as a Redis, a Redis given as a Sentinel and a cluster behind Sentinels are refused at the start", async () => {
  const redis = await ownRedis();
  const sentinels = await sentinelsOf(redis);
  const way = "redis+sentinel://host:port,host:port,host:port/master-name";
  expect(await refusedAtStart(sentinels[0]!.url)).toContain(way);
  // With the number of a database too, of which a Sentinel knows nothing.
  expect(await refusedAtStart(`${sentinels[0]!.url}/1`)).toContain(way);
  const mixed = await refusedAtStart(urlOf([redis, sentinels[1]!, sentinels[2]!]));
  expect(mixed).toContain(`127.0.0.1:${redis.port}: this is a Redis and not a Sentinel`);
  expect(mixed).toContain("write redis://host:port");
  const cluster = await ownRedis({ settings: { "cluster-enabled": "yes" } });
  expect(await refusedAtStart(urlOf(await sentinelsOf(cluster)))).toContain("Redis Cluster");
});

test("a Sentinel that takes the place of a Redis later is refused as what it is", async () => {
  const redis = await ownRedis();
  const server = await startTest({ flags: { "redis-urls": redis.url } });
  await createSequence(server, "orders");
  await generateId(server, "orders");
  await redis.kill();
  const sentinel = await startSentinel(1, { port: redis.port });
  onTestFinished(() => sentinel.close());
  await until(() => server.events.some(({ type }) => type === "redis-unfit"), 10_000);
  const refused = await refusalOf(generateId(server, "orders"));
  expect(refused).toMatchObject({ code: "FAILED_PRECONDITION", reason: "NOT_CONFIGURED" });
  expect(refused.message).toContain("redis+sentinel://");
});

test("Sentinels have a user and a password of their own, which nothing shows", async () => {
  const redis = await ownRedis({ settings: { requirepass: "s3cret-redis" } });
  const sentinels = await sentinelsOf(redis, {
    requirepass: "s3cret-watch",
    "sentinel auth-pass": `${MASTER} s3cret-redis`,
  });
  const flags = { "redis-urls": urlOf(sentinels) };
  const env = { IDMINT_REDIS_PASSWORD: "s3cret-redis" };
  const right = { ...env, IDMINT_REDIS_SENTINEL_PASSWORD: "s3cret-watch" };
  const server = await startTest({ flags, env: right });
  await createSequence(server, "orders");
  expect((await generateId(server, "orders")).id).toBe(1n);
  // The election of the server that watches runs over the same Sentinels.
  await until(async () => {
    const keys = String(await redis.command("KEYS", "*election*"));
    return keys.includes("watch");
  }, 10_000);
  for (const [wrong, option] of [
    [env, "IDMINT_REDIS_SENTINEL_PASSWORD"],
    [{ ...right, IDMINT_REDIS_SENTINEL_PASSWORD: "s3cret-wrong" }, "IDMINT_REDIS_SENTINEL_USER"],
    [{ ...right, IDMINT_REDIS_SENTINEL_USER: "nobody" }, "IDMINT_REDIS_SENTINEL_USER"],
    [{ ...right, IDMINT_REDIS_PASSWORD: "s3cret-wrong" }, "IDMINT_REDIS_PASSWORD"],
  ] as const) {
    const other = await startTest({ flags, env: wrong });
    await createSequence(other, "orders");
    const refused = await refusalOf(generateId(other, "orders"));
    expect(refused).toMatchObject({ code: "UNAVAILABLE", reason: "STORE_UNAVAILABLE" });
    expect(refused.message).toContain(option);
    const lost = other.events.filter(({ type }) => type === "redis-lost");
    expect(lost).toHaveLength(1);
    expect(inspect([other.events, refused.message], { depth: 20 })).not.toContain("s3cret");
  }
});

test("a replica that was promoted is given a new start, also while the old master still answers", async () => {
  const [old, replica] = [await ownRedis(), await ownRedis()];
  await replica.follow(old);
  const sentinels = await sentinelsOf(old);
  const server = await startTest({ flags: { "redis-urls": urlOf(sentinels) } });
  await createSequence(server, "orders");
  for (let at = 0; at < 20; at++) await generateId(server, "orders");
  await until(
    async () => (await replica.command("HGET", "idmint:{orders}", "cur")) === "20",
    10_000,
  );
  await replica.promote();
  // Of these the new master never hears.
  let last = 0n;
  for (let at = 0; at < 20; at++) last = (await generateId(server, "orders")).id;
  expect(last).toBe(40n);
  for (const sentinel of sentinels.slice(1)) {
    await sentinel.command("SENTINEL", "REMOVE", MASTER);
    await sentinel.command("SENTINEL", "MONITOR", MASTER, "127.0.0.1", replica.port, 2);
  }
  await until(async () => {
    const { id } = await generateId(server, "orders").catch(() => ({ id: last + 1n }));
    expect(id).toBeGreaterThan(last);
    last = id;
    return server.events.filter(({ type }) => type === "redis-seeded").length === 2;
  }, 20_000);
  const [, start] = server.events.filter(({ type }) => type === "redis-seeded");
  expect(start).toMatchObject({ why: "restarted", isLoss: true });
  expect((await generateId(server, "orders")).id).toBeGreaterThan(last);
  expect(BigInt(String(await replica.command("HGET", "idmint:{orders}", "cur")))).toBeGreaterThan(
    40n,
  );
});

test("with min-replicas-to-write, a master without its replicas counts nothing, and goes on with them", async () => {
  const settings = { "min-replicas-to-write": "1", "min-replicas-max-lag": "1" };
  const [master, replica] = [await ownRedis({ settings }), await ownRedis()];
  await replica.follow(master);
  const server = await startTest({ flags: { "redis-urls": master.url } });
  await createSequence(server, "orders");
  await until(
    () =>
      generateId(server, "orders").then(
        () => true,
        () => false,
      ),
    10_000,
  );
  replica.pause();
  await until(
    () =>
      generateId(server, "orders").then(
        () => false,
        () => true,
      ),
    10_000,
  );
  const before = await master.command("HGET", "idmint:{orders}", "cur");
  const refused = await refusalOf(generateId(server, "orders"));
  expect(refused).toMatchObject({ code: "UNAVAILABLE", reason: "STORE_UNAVAILABLE" });
  expect(refused.message).toContain("NOREPLICAS");
  expect(await master.command("HGET", "idmint:{orders}", "cur")).toBe(before);
  replica.resume();
  let id = 0n;
  await until(async () => {
    ({ id } = await generateId(server, "orders").catch(() => ({ id })));
    return id > 0n;
  }, 10_000);
  expect(id).toBe(BigInt(String(before)) + 1n);
});

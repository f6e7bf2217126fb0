// A whole server with Redis servers, over a store in memory.
import {
  AdvanceTagRequest,
  CreateTagRequest,
  GenerateIdsRequest,
  IdServiceService,
  MoveTagRequest,
  NodeServiceService,
  PauseTagRequest,
  ResumeTagRequest,
  SequenceBackend,
  type Tag,
  TagServiceService,
} from "@idmint/proto";
import { MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import { Receiver } from "../../alarms/receiver.ts";
import { ownRedis } from "../../store/redis/support.ts";
import {
  call,
  generateId,
  Refusal,
  refusalOf,
  startTest,
  type TestServer,
  until,
} from "../../support.ts";

async function createTag({ tags }: TestServer, tag: object): Promise<Tag> {
  const request = CreateTagRequest.fromPartial({ tag });
  const answer = await call(tags, TagServiceService.createTag, request);
  if (answer.tag === undefined) throw new Error("an answer without a tag");
  return answer.tag;
}

function sequence(name: string, value: object = {}): object {
  const backend = SequenceBackend.REDIS;
  return { name, kind: { $case: "sequence", value: { backend, ...value } } };
}

test("sequences and snowflakes count in Redis, and tags are spread over its Redis servers", async () => {
  const [a, b] = [await ownRedis(), await ownRedis()];
  const flags = { "redis-urls": `a=${a.url},b=${b.url}` };
  const store = new MemoryStore();
  const one = await startTest({ flags, store });
  const two = await startTest({
    flags,
    parts: { store: new MemoryStore({ database: store.database }) },
  });
  const redisServers = new Map<string, number>();
  for (let at = 0; at < 12; at++) {
    const tag = await createTag(one, sequence(`orders-${at}`));
    expect(tag.ceiling).toBe(2n ** 53n - 1n);
    const { redisServer } = tag.kind?.$case === "sequence" ? tag.kind.value : { redisServer: "" };
    redisServers.set(redisServer, (redisServers.get(redisServer) ?? 0) + 1);
    expect((await generateId(one, tag.name)).id).toBe(1n);
    expect((await generateId(two, tag.name)).id).toBe(2n);
  }
  expect([...redisServers.keys()].toSorted()).toEqual(["a", "b"]);
  await createTag(one, { name: "events", kind: { $case: "redisSnowflake", value: { shard: 5 } } });
  const ids = [];
  for (const { ids: service } of [one, two, one]) {
    const request = GenerateIdsRequest.fromPartial({ tag: "events", count: 3_000 });
    const { segments } = await call(service, IdServiceService.generateIds, request);
    for (const { base, count } of segments) {
      for (let i = 0; i < count; i++) ids.push(base + BigInt(i));
    }
  }
  expect(new Set(ids).size).toBe(9_000);
  expect((ids[0]! >> 10n) & 4_095n).toBe(5n);
});

test("says what is wrong: no Redis, too many snowflakes, a ceiling past 2^53, a Redis server that is not there", async () => {
  const without = await startTest();
  const refusedHere = await refusalOf(createTag(without, sequence("orders")));
  expect(refusedHere).toMatchObject({ code: "FAILED_PRECONDITION", reason: "NOT_CONFIGURED" });
  expect(refusedHere.message).toContain("redis.urls");
  const redis = await ownRedis();
  const flags = { "redis-urls": redis.url, "limits-count-as-segments": "1000000" };
  const server = await startTest({ flags });
  const tooHigh = await refusalOf(createTag(server, { ...sequence("orders"), ceiling: 2n ** 53n }));
  expect(tooHigh.fields).toEqual([expect.objectContaining({ field: "tag.ceiling" })]);
  await createTag(server, { name: "events", kind: { $case: "redisSnowflake", value: {} } });
  const request = GenerateIdsRequest.fromPartial({ tag: "events", count: 51_201 });
  const tooMany = await refusalOf(call(server.ids, IdServiceService.generateIds, request));
  expect(tooMany.fields).toMatchObject([
    { field: "count", description: "must be at most 51200, got 51201; ask several times for more" },
  ]);
  const move = MoveTagRequest.fromPartial({ name: "events", redisServer: "b" });
  const unknown = await refusalOf(call(server.tags, TagServiceService.moveTag, move));
  expect(unknown.fields[0]?.description).toContain("default");
});

test("MoveTag moves between Redis servers, and every server follows", async () => {
  const [a, b] = [await ownRedis(), await ownRedis()];
  const flags = { "redis-urls": `a=${a.url},b=${b.url}` };
  const store = new MemoryStore();
  const one = await startTest({ flags, store });
  const two = await startTest({
    flags,
    parts: { store: new MemoryStore({ database: store.database }) },
  });
  await createTag(one, sequence("orders"));
  let last = 0n;
  for (const redisServer of ["a", "b", "a", "b"]) {
    const request = MoveTagRequest.fromPartial({ name: "orders", redisServer });
    const { tag } = await call(one.tags, TagServiceService.moveTag, request);
    expect(tag?.kind).toMatchObject({ value: { redisServer } });
    for (const server of [two, one, two]) {
      const { id } = await generateId(server, "orders");
      expect(id).toBeGreaterThan(last);
      last = id;
    }
  }
});

test("an operator advances, pauses and resumes a sequence in Redis, and all servers obey", async () => {
  const redis = await ownRedis();
  const flags = { "redis-urls": redis.url, "poll-interval": "50ms" };
  const store = new MemoryStore();
  const one = await startTest({ flags, store });
  const other = new MemoryStore({ database: store.database });
  const two = await startTest({ flags, parts: { store: other } });
  await createTag(one, sequence("orders"));
  for (const server of [one, two]) await generateId(server, "orders");
  const advance = AdvanceTagRequest.fromPartial({ name: "orders", floor: 1_000_000n });
  await call(one.tags, TagServiceService.advanceTag, advance);
  expect((await generateId(one, "orders")).id).toBeGreaterThan(1_000_000n);
  await until(async () => (await generateId(two, "orders")).id > 1_000_000n);
  const pause = PauseTagRequest.fromPartial({ name: "orders" });
  await call(one.tags, TagServiceService.pauseTag, pause);
  expect((await refusalOf(generateId(one, "orders"))).reason).toBe("TAG_PAUSED");
  await until(async () => (await reasonOf(generateId(two, "orders"))) === "TAG_PAUSED");
  const resume = ResumeTagRequest.fromPartial({ name: "orders" });
  await call(one.tags, TagServiceService.resumeTag, resume);
  const { id } = await generateId(one, "orders");
  await until(async () => (await reasonOf(generateId(two, "orders"))) === "");
  expect((await generateId(two, "orders")).id).toBeGreaterThan(id);
});

test("a stop of all servers holds for whatever counts in Redis", async () => {
  const redis = await ownRedis();
  const flags = { "redis-urls": redis.url, "poll-interval": "50ms" };
  const store = new MemoryStore();
  const one = await startTest({ flags, store });
  const other = new MemoryStore({ database: store.database });
  const two = await startTest({ flags, parts: { store: other } });
  await createTag(one, sequence("orders"));
  await createTag(one, { name: "events", kind: { $case: "redisSnowflake", value: { shard: 5 } } });
  const tags = ["orders", "events"];
  const last = new Map<string, bigint>();
  for (const tag of tags) {
    await generateId(one, tag);
    last.set(tag, (await generateId(two, tag)).id);
  }
  await call(one.nodes, NodeServiceService.stopIssuing, { validateOnly: false });
  for (const tag of tags) {
    expect((await refusalOf(generateId(one, tag))).reason).toBe("ISSUING_STOPPED");
    await until(async () => (await reasonOf(generateId(two, tag))) === "ISSUING_STOPPED");
  }
  await call(two.nodes, NodeServiceService.resumeIssuing, { validateOnly: false });
  for (const tag of tags) {
    const { id } = await generateId(two, tag);
    expect(id).toBeGreaterThan(last.get(tag) ?? 0n);
    await until(async () => (await reasonOf(generateId(one, tag))) === "");
    expect((await generateId(one, tag)).id).toBeGreaterThan(id);
  }
});

/** Why a call was refused; empty when it was answered. */
async function reasonOf(answer: Promise<unknown>): Promise<string> {
  const [outcome] = await Promise.allSettled([answer]);
  if (outcome.status === "fulfilled") return "";
  return outcome.reason instanceof Refusal ? outcome.reason.reason : String(outcome.reason);
}

test("a server that starts makes Redis ready for its tags before anybody calls", async () => {
  const redis = await ownRedis();
  const flags = { "redis-urls": redis.url };
  const store = new MemoryStore();
  const first = await startTest({ flags, store });
  await createTag(first, sequence("orders"));
  await generateId(first, "orders");
  await first.server.close();
  await redis.command("FLUSHALL");
  const next = new MemoryStore({ database: store.database });
  await startTest({ flags, parts: { store: next } });
  await until(async () => (await redis.command("HGET", "idmint:{orders}", "cur")) !== null);
});

test("tags of Redis servers that a server lacks, or that are down, keep none of the others from being made ready", async () => {
  const [a, b, c] = [await ownRedis(), await ownRedis(), await ownRedis()];
  const store = new MemoryStore();
  const urls = `a=${a.url},b=${b.url},c=${c.url}`;
  const first = await startTest({ flags: { "redis-urls": urls }, store });
  const move = (name: string, redisServer: string) =>
    call(first.tags, TagServiceService.moveTag, MoveTagRequest.fromPartial({ name, redisServer }));
  // They are taken from the end of the list, several at a time.
  for (const name of ["orders", ...Array.from({ length: 30 }, (_, at) => `x${at}`)]) {
    await createTag(first, sequence(name));
    await move(name, name === "orders" ? "b" : Number(name.slice(1)) % 2 === 0 ? "a" : "c");
  }
  await first.server.close();
  await c.kill();
  await b.command("FLUSHALL");
  const next = new MemoryStore({ database: store.database });
  const flags = { "redis-urls": `b=${b.url},c=${c.url}` };
  const server = await startTest({ flags, parts: { store: next } });
  await until(async () => (await b.command("HGET", "idmint:{orders}", "cur")) !== null);
  const failed = () => server.events.filter(({ type }) => type === "redis-preload-failed");
  await until(() => failed().length > 0);
  expect(failed()).toHaveLength(1);
});

test("one of several servers is elected to watch, and raises ahead of use", async () => {
  const redis = await ownRedis();
  const flags = { "redis-urls": redis.url, "redis-raise-below": "60s", "redis-raise-by": "120s" };
  const store = new MemoryStore();
  const one = await startTest({ flags, store });
  const two = await startTest({
    flags,
    parts: { store: new MemoryStore({ database: store.database }) },
  });
  await createTag(one, sequence("orders", { step: 1_000 }));
  const raised = () =>
    [...one.events, ...two.events].filter(({ type }) => type === "redis-raised").length;
  await until(async () => {
    await generateId(one, "orders");
    return raised() > 0;
  }, 30_000);
  const who = [one, two].filter(({ events }) => events.some(({ type }) => type === "redis-raised"));
  expect(who).toHaveLength(1);
}, 60_000);

test("tells once of a Redis that is lost, and of its return", async () => {
  const redis = await ownRedis();
  const server = await startTest({ flags: { "redis-urls": redis.url } });
  await createTag(server, sequence("orders"));
  await generateId(server, "orders");
  await redis.kill();
  const refused = await refusalOf(generateId(server, "orders"));
  expect(refused).toMatchObject({ code: "UNAVAILABLE", reason: "STORE_UNAVAILABLE" });
  await redis.start();
  const start = performance.now();
  await until(async () => {
    const answer = await generateId(server, "orders").catch(() => undefined);
    return answer !== undefined && answer.id > 1n;
  });
  expect(performance.now() - start).toBeLessThan(5_000);
  const told = server.events.filter(({ type }) => /^redis-(?:lost|back)$/.test(type));
  expect(told.map(({ type }) => type)).toEqual(["redis-lost", "redis-back"]);
});

test("a user with a password, who may touch only keys of idmint and run no dangerous command, is enough", async () => {
  const redis = await ownRedis();
  const rights = ["~idmint*", "&idmint*", "-@all", "+@read", "+@write", "+@scripting"];
  const more = ["+@connection", "+@pubsub", "+info", "+time"];
  await redis.command("ACL", "SETUSER", "app", "on", ">p@ss/w%rd:1", ...rights, ...more);
  await redis.command("ACL", "SETUSER", "default", "off");
  const url = redis.url.replace("//", "//app@");
  const flags = { "redis-urls": url, "redis-raise-below": "60s", "redis-raise-by": "120s" };
  const receiver = await Receiver.start();
  const env = {
    IDMINT_REDIS_PASSWORD: "p@ss/w%rd:1",
    IDMINT_ALARM_WEBHOOK_URL: receiver.url("/"),
  };
  const server = await startTest({ flags, env });
  await createTag(server, sequence("orders", { step: 1_000 }));
  await createTag(server, { name: "events", kind: { $case: "redisSnowflake", value: {} } });
  await generateId(server, "events");
  await until(async () => {
    await generateId(server, "orders");
    return server.events.some(({ type }) => type === "redis-raised");
  }, 30_000);
  server.store.database.move();
  await until(() => receiver.received.length === 1, 10_000);
  const consumers = () => redis.command("ZCARD", "idmint:queue:{alarms:given}:consumers");
  await until(async () => Number(await consumers()) === 1, 20_000);
  // Signals and alarms would get along without, so only Redis tells that they were let in.
  expect(await redis.command("ACL", "LOG")).toEqual([]);
}, 60_000);

test("a Redis Cluster is refused at the start, and when it takes the place of a Redis later", async () => {
  const settings = { "cluster-enabled": "yes" };
  const cluster = await ownRedis({ settings });
  const refused = startTest({ flags: { "redis-urls": `a=${cluster.url}` } });
  await expect(refused).rejects.toMatchObject({
    reason: "INVALID_ARGUMENT",
    violations: [
      { field: "redis.urls", description: expect.stringContaining("Redis Cluster") as string },
    ],
  });
  const redis = await ownRedis();
  const server = await startTest({ flags: { "redis-urls": redis.url } });
  await createTag(server, sequence("orders"));
  await generateId(server, "orders");
  await redis.kill();
  await redis.start(settings);
  await until(() => server.events.some(({ type }) => type === "redis-unfit"), 10_000);
  const later = await refusalOf(generateId(server, "orders"));
  expect(later).toMatchObject({ code: "FAILED_PRECONDITION", reason: "NOT_CONFIGURED" });
  expect(later.message).toContain("Redis Cluster");
});

test.each(["yes", "no"])(
  "a replica (read-only: %s) counts nothing and says what it is",
  async (readOnly) => {
    const master = await ownRedis();
    const replica = await ownRedis({ settings: { "replica-read-only": readOnly } });
    await replica.follow(master);
    const server = await startTest({ flags: { "redis-urls": replica.url } });
    await createTag(server, sequence("orders"));
    expect(server.events).toContainEqual(
      expect.objectContaining({
        type: "redis-unfit",
        why: expect.stringContaining("replica") as string,
      }),
    );
    const refused = await refusalOf(generateId(server, "orders"));
    expect(refused).toMatchObject({ code: "UNAVAILABLE", reason: "STORE_UNAVAILABLE" });
    expect(refused.message).toContain("it is a replica");
  },
);

test("a Redis that may remove keys is told of, and one that has no bound or removes none is not", async () => {
  const unbounded = { "maxmemory-policy": "allkeys-lru" };
  const faithful = { maxmemory: "100mb" };
  const evicting = { ...unbounded, ...faithful };
  for (const [settings, isTold] of [
    [unbounded, false],
    [faithful, false],
    [evicting, true],
  ] as const) {
    const redis = await ownRedis({ settings });
    const { events } = await startTest({ flags: { "redis-urls": redis.url } });
    const told = events.filter(({ type }) => type === "redis-unfit");
    expect(told).toHaveLength(isTold ? 1 : 0);
    if (isTold)
      expect(told[0]).toMatchObject({ why: expect.stringContaining("allkeys-lru") as string });
  }
});

test("a tag in a Redis that a server is not configured with is refused as such", async () => {
  const [a, b] = [await ownRedis(), await ownRedis()];
  const store = new MemoryStore();
  const both = await startTest({ flags: { "redis-urls": `a=${a.url},b=${b.url}` }, store });
  await createTag(both, sequence("orders"));
  await createTag(both, { name: "flakes", kind: { $case: "snowflake", value: { registry: 2 } } });
  for (const name of ["orders", "flakes"]) {
    const move = MoveTagRequest.fromPartial({ name, redisServer: "a" });
    await call(both.tags, TagServiceService.moveTag, move);
  }
  for (const flags of [{}, { "redis-urls": `b=${b.url}` }]) {
    const other = new MemoryStore({ database: store.database });
    const server = await startTest({ flags, store: other });
    for (const name of ["orders", "flakes"]) {
      const refused = await refusalOf(generateId(server, name));
      expect(refused).toMatchObject({ code: "FAILED_PRECONDITION", reason: "NOT_CONFIGURED" });
      expect(refused.message).toContain("redis.urls");
      expect(refused.metadata).toMatchObject({ tag: name });
    }
  }
});

// Whole servers that share the queue of their alarms in a real Redis, and a real receiver.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { CreateTagRequest, SequenceBackend, TagServiceService } from "@idmint/proto";
import { builtOf, serverEnv, MemoryStore, storeIsDown } from "@idmint/testkit";
import type { RedisServer } from "@idmint/testkit/redis";
import { expect, onTestFinished, test } from "vitest";
import { ownRedis } from "../store/redis/support.ts";
import {
  call,
  generateId,
  refusalOf,
  sleep,
  startTest,
  type TestServer,
  until,
} from "../support.ts";
import { Receiver } from "./receiver.ts";

function start(
  redis: RedisServer,
  url: string,
  { store, after = "30s" }: { store?: MemoryStore; after?: string } = {},
): Promise<TestServer> {
  return startTest({
    ...(store === undefined ? {} : { store }),
    env: {
      IDMINT_REDIS_URLS: redis.url,
      IDMINT_REDIS_TIMEOUT: "2s",
      IDMINT_POLL_INTERVAL: "100ms",
      IDMINT_ALARM_WEBHOOK_URL: url,
      IDMINT_ALARM_WEBHOOK_TOKEN: "sesame",
      IDMINT_ALARM_AFTER: after,
    },
  });
}

/** Until somebody is elected to deliver. */
async function elected(redis: RedisServer): Promise<void> {
  const elect = async () =>
    Number(await redis.command("EXISTS", "idmint:election:{alarms:given}")) === 1;
  await until(elect, 60_000);
}

/** A server in a process of its own. */
function startChild(redis: RedisServer, url: string): ChildProcess {
  const script = builtOf("packages/server/test/alarms/alarm-child.ts");
  const child = spawn(process.execPath, ["-C", "idmint-source", script], {
    env: {
      PATH: process.env["PATH"],
      ...serverEnv(),
      IDMINT_GRPC_ADDRESS: "127.0.0.1:0",
      IDMINT_HTTP_ADDRESS: "127.0.0.1:0",
      IDMINT_REDIS_URLS: redis.url,
      IDMINT_ALARM_WEBHOOK_URL: url,
      IDMINT_ALARM_WEBHOOK_TIMEOUT: "60s",
      IDMINT_LOG_LEVEL: "error",
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

async function createSequence({ tags }: TestServer, name: string): Promise<void> {
  const value = { backend: SequenceBackend.REDIS, step: 1 };
  const tag = { name, kind: { $case: "sequence", value } } as const;
  await call(tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag }));
}

test("of several servers that see the same, one tells, once; and it goes on after the receiver was away", async () => {
  const redis = await ownRedis();
  const receiver = await Receiver.start();
  await receiver.close();
  const one = await start(redis, receiver.url("/one"));
  const other = new MemoryStore({ database: one.store.database });
  const two = await start(redis, receiver.url("/two"), { store: other });
  await elected(redis);
  one.store.database.move();
  const events = () => [...one.events, ...two.events];
  await until(() => events().some(({ type }) => type === "alarm-failed"), 10_000);
  await receiver.open();
  await until(() => receiver.received.length > 0, 10_000);
  await until(
    async () => Number(await redis.command("LLEN", "idmint:queue:{alarms:given}:ready")) === 0,
  );
  await sleep(1_500);
  expect(receiver.keys).toEqual(["STORE_WENT_BACK"]);
  expect(receiver.received[0]?.headers.authorization).toBe("Bearer sesame");
  // Both saw it.
  for (const { events: own } of [one, two]) {
    expect(own.some(({ type }) => type === "fenced")).toBe(true);
  }
});

test("what a killed server was delivering, another one delivers", async () => {
  const redis = await ownRedis();
  const receiver = await Receiver.start();
  const taken = Promise.withResolvers<void>();
  // The one that will be killed never gets an answer.
  receiver.answer = (response, path) => {
    if (path === "/child") taken.resolve();
    else response.end();
  };
  const child = startChild(redis, receiver.url("/child"));
  await elected(redis);
  const other = await start(redis, receiver.url("/other"));
  other.store.database.move();
  await taken.promise;
  expect(receiver.received.map(({ path }) => path)).toEqual(["/child"]);
  child.kill("SIGKILL");
  await once(child, "exit");
  await until(() => receiver.received.length === 2, 90_000);
  const [first, second] = receiver.received;
  expect(second?.path).toBe("/other");
  expect(second?.alarm).toEqual(first?.alarm);
});

test("a Redis that is lost, and lasts to be, is told of without it", async () => {
  const redis = await ownRedis();
  const receiver = await Receiver.start();
  await start(redis, receiver.url("/"), { after: "300ms" });
  await elected(redis);
  await redis.kill();
  await until(() => receiver.received.length > 0, 10_000);
  expect(receiver.received[0]?.alarm).toMatchObject({
    alarm: "REDIS_LOST",
    key: "REDIS_LOST:default",
    details: { redisServer: "default" },
  });
});

test("a sequence that is used up, and a Redis that lost what it had counted, are told of; a new tag is not", async () => {
  const redis = await ownRedis();
  const receiver = await Receiver.start();
  const server = await start(redis, receiver.url("/"));
  await elected(redis);
  await createSequence(server, "orders");
  await generateId(server, "orders");
  await createSequence(server, "others");
  await generateId(server, "others");
  const { store } = server;
  store.faults = { before: (operation) => (operation === "raise" ? storeIsDown() : undefined) };
  await until(async () => {
    const refusal = await refusalOf(generateId(server, "orders")).catch(() => undefined);
    return refusal?.reason === "MAX_NOT_RAISED";
  });
  await until(() => receiver.received.length === 1, 10_000);
  expect(receiver.received[0]?.alarm).toMatchObject({
    key: "MAX_NOT_RAISED:orders",
    details: {
      tag: "orders",
      redisServer: "default",
      error: expect.stringContaining("down") as string,
    },
  });
  store.faults = {};
  await redis.command("DEL", "idmint:{orders}", "idmint:{others}");
  await until(async () => {
    await generateId(server, "orders").catch(() => undefined);
    return receiver.received.length === 2;
  }, 10_000);
  expect(receiver.received[1]?.alarm).toMatchObject({
    key: "REDIS_RESEEDED:default",
    severity: "warning",
    details: { tag: "orders", why: "missing" },
  });
});

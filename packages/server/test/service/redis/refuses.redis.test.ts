// A Redis that answers, and lets its user run no scripts.
import { CreateTagRequest, SequenceBackend, TagServiceService } from "@idmint/proto";
import { expect, test } from "vitest";
import { redisStanding } from "../../../src/store/open-redis.ts";
import { ownRedis } from "../../store/redis/support.ts";
import { call, generateId, refusalOf, startTest, until } from "../../support.ts";

const NO_SCRIPTS = ["ACL", "SETUSER", "default", "-eval", "-evalsha"] as const;
const SCRIPTS = ["ACL", "SETUSER", "default", "+eval", "+evalsha"] as const;

async function started(url: string) {
  const flags = { "redis-urls": url, "http-address": "127.0.0.1:0" };
  const tested = await startTest({ flags });
  const { server, events, tags } = tested;
  const value = { backend: SequenceBackend.REDIS };
  const sequence = { name: "s", kind: { $case: "sequence" as const, value } };
  const segment = { name: "g", kind: { $case: "segment" as const, value: {} } };
  for (const tag of [sequence, segment]) {
    await call(tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag }));
  }
  return {
    ...tested,
    state: () => server.node.status(),
    ready: async () => (await fetch(`http://${server.httpAddress}/readyz`)).status,
    told: () => events.filter(({ type }) => type === "redis-unfit").length,
  };
}

const DEGRADED = expect.stringMatching(
  /^ids that are counted in Redis are refused .*Redis "default": .*NOPERM.*(?:eval|evalsha).*docs\/redis\.md/u,
) as string;

test("a server that may run no scripts says so, serves what it can, and goes on when it may again", async () => {
  const redis = await ownRedis();
  await redis.command(...NO_SCRIPTS);
  const it = await started(redis.url);
  await until(() => it.state().state === "DEGRADED");
  expect(it.state().stateReason).toEqual(DEGRADED);
  expect(await it.ready()).toBe(200);
  expect((await refusalOf(generateId(it, "s"))).reason).toBe("STORE_UNAVAILABLE");
  expect((await generateId(it, "g")).id).toBe(1n);
  // It looks again every second, and tells it once.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(it.told()).toBe(1);
  await redis.command(...SCRIPTS);
  await until(() => it.state().state === "SERVING");
  expect((await generateId(it, "s")).id).toBe(1n);
});

test("rights that are taken away while a server runs show with the next id", async () => {
  const redis = await ownRedis();
  const it = await started(redis.url);
  expect((await generateId(it, "s")).id).toBe(1n);
  expect([it.state().state, it.told()]).toEqual(["SERVING", 0]);
  await redis.command(...NO_SCRIPTS);
  await refusalOf(generateId(it, "s"));
  await until(() => it.state().state === "DEGRADED");
  expect(it.state().stateReason).toEqual(DEGRADED);
  expect(it.told()).toBe(1);
});

test("whoever looks at a Redis finds that its user may run no scripts", async () => {
  const redis = await ownRedis();
  const place = { name: "default", url: redis.url, password: undefined, timeoutMs: 2_000 };
  expect((await redisStanding(place, 5_000)).unfit).toBeUndefined();
  await redis.command("ACL", "SETUSER", "default", "-time");
  expect((await redisStanding(place, 5_000)).unfit).toMatch(
    /^it runs no scripts of idmint \(.*\): give its user the rights that docs\/redis\.md lists$/u,
  );
});

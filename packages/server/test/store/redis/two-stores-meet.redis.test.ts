// What servers tell each other through a Redis that servers of another store use too.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { RedisAlarmQueue } from "../../../src/store/redis/alarm-queue.ts";
import { Candidate } from "../../../src/store/redis/candidate.ts";
import { TagSignals } from "../../../src/store/redis/tag-signals.ts";
import { until } from "../../support.ts";
import { ownRedis } from "./support.ts";

function closed<T extends { close(): Promise<void> }>(part: T): T {
  onTestFinished(() => part.close());
  return part;
}

test("each store's servers elect a leader of their own", async () => {
  const { url } = await ownRedis();
  const stores = ["a", "b"].map((id) => closed(new Candidate(url, "watch", () => id)));
  await until(() => stores.every(({ isLeader }) => isLeader), 10_000);
  const heard: string[] = [];
  const late = closed(new Candidate(url, "watch", () => heard[0]));
  await sleep(500);
  expect(late.isLeader).toBe(false);
  heard.push("c");
  await until(() => late.isLeader, 10_000);
});

test("a change of a tag wakes nobody of another store", async () => {
  const redis = await ownRedis();
  const servers = ["a", "a", "b"].map((id) => {
    const its = { signals: closed(new TagSignals(redis.url, () => id)), heard: 0 };
    its.signals.start(() => its.heard++);
    return its;
  });
  const channels = ["a", "b"].map((id) => `idmint:signal:all:tags-changed:${id}`);
  await until(async () => {
    const answer = (await redis.command("PUBSUB", "NUMSUB", ...channels)) as unknown[];
    return Number(answer[1]) === 2 && Number(answer[3]) === 1;
  }, 10_000);
  servers[0]?.signals.tell();
  await until(() => servers[1]?.heard === 1);
  await sleep(200);
  expect(servers.map(({ heard }) => heard)).toEqual([0, 1, 0]);
});

test("an alarm is delivered by servers of its own store, and by its own server before the store was heard", async () => {
  const { url } = await ownRedis();
  const [a, b] = ["a", "b"].map((id) => closed(new RedisAlarmQueue(url, 2_000, () => id)));
  await until(() => a?.isDeliverer === true && b?.isDeliverer === true, 10_000);
  await a?.push("of a");
  const { signal } = new AbortController();
  expect(await b?.take(500, signal)).toBeUndefined();
  const taken = await a?.take(500, signal);
  expect(taken?.body).toBe("of a");
  await taken?.ack();
  const unknown = closed(new RedisAlarmQueue(url, 2_000, () => undefined));
  await expect(unknown.push("of nobody")).rejects.toThrow("the store was not heard yet");
});

// Servers on one etcd, which tells them of each other's changes; polls find them without it.
import { TagServiceService } from "@idmint/proto";
import type { Store } from "@idmint/core/server";
import { expect, test } from "vitest";
import { openStore } from "../../../src/store/open-store.ts";
import { type EtcdHarness, etcdHarness } from "./harness.ts";
import { createSequence } from "../../service/kinds/sequence/suite.ts";
import {
  call,
  createTag,
  generateId,
  Refusal,
  startTest,
  type TestServer,
  until,
} from "../../support.ts";

/** Two servers that poll as seldom as is allowed. */
async function pair(
  { config }: EtcdHarness,
  as: (store: Store) => Store = (store) => store,
): Promise<readonly [TestServer, TestServer]> {
  const start = async (): Promise<TestServer> => {
    const flags = { "poll-interval": "1s" };
    return startTest({ flags, parts: { store: as(await openStore(config)) } });
  };
  return [await start(), await start()];
}

async function isRefused(server: TestServer, tag: string): Promise<boolean> {
  return generateId(server, tag).then(
    () => false,
    () => true,
  );
}

/** How long another server takes to notice that a tag is paused or resumed, each time, in ascending order. */
async function noticed(one: TestServer, two: TestServer, times: number): Promise<number[]> {
  const took: number[] = [];
  for (let at = 0; at < times; at++) {
    const isPaused = at % 2 === 0;
    const method = isPaused ? TagServiceService.pauseTag : TagServiceService.resumeTag;
    await call(one.tags, method, { name: "orders", etag: "", validateOnly: false });
    const start = performance.now();
    await until(async () => (await isRefused(two, "orders")) === isPaused, 10_000);
    took.push(performance.now() - start);
  }
  return took.toSorted((a, b) => a - b);
}

test("servers on one etcd notice each other's changes at once", async () => {
  const [one, two] = await pair(await etcdHarness());
  await createTag(one, "orders");
  await generateId(two, "orders");
  const took = await noticed(one, two, 9);
  // Polls alone would take half a second on average.
  expect(took[4]).toBeLessThan(300);
});

test("servers whose watches are dead notice each other's changes by their polls", async () => {
  // It listens, and nothing is ever told.
  const [one, two] = await pair(await etcdHarness(), (store) => ({
    ...store,
    listen: () => undefined,
  }));
  await createTag(one, "orders");
  await generateId(two, "orders");
  expect((await noticed(one, two, 2))[1]).toBeLessThan(5_000);
});

// Each on a store of its own: what a server saw of one tag soon marks all of the store.
for (const tag of ["bills", "orders"]) {
  test(`a floor that a hand set back is refused by the server that was granted more: ${tag}`, async () => {
    const harness = await etcdHarness();
    const [one] = await pair(harness);
    if (tag === "bills") await createSequence(one, tag);
    else await createTag(one, tag, { min: 10, max: 10 });
    for (let calls = 0; calls < 40; calls++) await generateId(one, tag);
    const key = `${harness.config.prefix}tag/${tag}`;
    const [row] = await harness.gateway.under(key);
    const its = JSON.parse(row?.value ?? "{}") as object;
    await harness.gateway.put(key, JSON.stringify({ ...its, floor: "10" }));
    await expect(drained(one, tag)).resolves.toBe("STORE_EPOCH_CHANGED");
  });
}

/** Takes ids, none of which may have been issued before, until one is refused; answers why. */
async function drained(server: TestServer, tag: string): Promise<string> {
  for (let calls = 0; calls < 40; calls++) {
    const answer = await generateId(server, tag).catch((error: unknown) => error);
    if (answer instanceof Refusal) return answer.reason;
    expect(answer).toMatchObject({ id: expect.toSatisfy((id: bigint) => id > 40n) as bigint });
  }
  return "";
}

// What a server knows when it becomes ready; over a store in memory.
import { invalidField } from "@idmint/core";
import { MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, test } from "vitest";
import { knowRecentTags } from "../../../src/service/issue/recent-tags.ts";
import type { ServerEvent } from "../../../src/service/events.ts";
import { realSystem } from "../../../src/main/system.ts";
import { createTag, generateId, startTest, type TestServer } from "../../support.ts";

/** Another server on the store of one that issued ids of some tags. */
async function afterUse(prepare: (store: MemoryStore) => void = () => undefined): Promise<{
  readonly next: TestServer;
  readonly tookMs: number;
}> {
  const first = await startTest();
  for (const name of ["a", "b", "c"]) {
    await createTag(first, name);
    await generateId(first, name);
  }
  const store = new MemoryStore({ database: first.store.database });
  prepare(store);
  const start = performance.now();
  const next = await startTest({ store });
  return { next, tookMs: performance.now() - start };
}

function known({ events }: TestServer): Extract<ServerEvent, { type: "tags-known" }> | undefined {
  return events.find((event) => event.type === "tags-known");
}

test("a server that becomes ready knows the tags that were used last, and took no ids of them", async () => {
  const { next } = await afterUse();
  expect(known(next)).toMatchObject({ tags: 3, error: undefined });
  const { store, events } = next;
  expect(events.findIndex(({ type }) => type === "tags-known")).toBeLessThan(
    events.findIndex(({ type }) => type === "serving"),
  );
  expect([store.count("recentTags"), store.count("getTags"), store.count("grant")]).toEqual([
    1, 1, 0,
  ]);
  for (const name of ["a", "b", "c"]) await generateId(next, name);
  expect(store.count("getTags")).toBe(1);
});

test("a store that does not say which tags were used holds a start up for two seconds at most", async () => {
  const { next, tookMs } = await afterUse((store) => {
    store.faults = {
      before: async (call) => {
        if (call === "recentTags") await new Promise(() => undefined);
      },
    };
  });
  expect(tookMs).toBeGreaterThan(1_500);
  expect(known(next)).toMatchObject({ tags: 0, error: { reason: "STORE_UNAVAILABLE" } });
  await generateId(next, "a");
});

test("tags that cannot be looked up hold a start up for two seconds at most", async () => {
  const { next, tookMs } = await afterUse((store) => {
    store.faults = {
      before: async (call) => {
        if (call === "getTags") await new Promise(() => undefined);
      },
    };
  });
  expect(tookMs).toBeGreaterThan(1_500);
  expect(known(next)).toMatchObject({ tags: 0, error: { reason: "STORE_UNAVAILABLE" } });
});

test("a store that refuses to say it holds nothing up", async () => {
  const { next } = await afterUse((store) => {
    store.faults = {
      before: (call) => {
        if (call === "recentTags") storeIsDown();
      },
    };
  });
  expect(known(next)).toMatchObject({ tags: 0, error: { reason: "STORE_UNAVAILABLE" } });
  await generateId(next, "a");
});

test("as many tags are made known as leave room for others, and never more than a thousand", async () => {
  const limits: number[] = [];
  const found: string[] = [];
  const events: ServerEvent[] = [];
  const ports = {
    ...realSystem,
    store: {
      recentTags: async (limit: number) => {
        limits.push(limit);
        return ["a", "b"];
      },
    },
    directory: {
      size: 1,
      find: async (name: string) => {
        found.push(name);
        throw invalidField(name, "of a test");
      },
    },
    emit: (event: ServerEvent) => void events.push(event),
  };
  for (const maxTags of [1, 100, 1_000_000]) await knowRecentTags(ports, maxTags);
  expect(limits).toEqual([1, 50, 1_000]);
  expect(found).toEqual(["a", "b", "a", "b", "a", "b"]);
  expect(events[0]).toMatchObject({
    type: "tags-known",
    tags: 1,
    error: { code: "INVALID_ARGUMENT" },
  });
});

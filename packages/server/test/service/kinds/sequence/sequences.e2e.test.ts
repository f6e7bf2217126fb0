import { IdServiceService, Tag, TagServiceService } from "@idmint/proto";
import { MemoryDatabase, MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, test } from "vitest";
import { createSequence, reasonOf, sequenceSuite } from "./suite.ts";
import { sqliteHarness } from "../../../store/harness.ts";
import { call, generateId, holdBack, refusalOf, startTest, until } from "../../../support.ts";

sequenceSuite("memory", () => {
  const database = new MemoryDatabase();
  return Promise.resolve({
    open: () => Promise.resolve(new MemoryStore({ database })),
    shiftPeriods: (days) => Promise.resolve(database.shiftPeriods(days)),
    remove: () => Promise.resolve(),
  });
});

sequenceSuite("SQLite", sqliteHarness);

test("a call whose ids do not become durable in time is refused before its deadline, and its ids are a gap", async () => {
  const it = await startTest();
  await createSequence(it, "bills");
  await generateId(it, "bills");
  const letGo = holdBack(it.store, "grant", "after");
  const start = performance.now();
  const { code, reason, retryAfterMs, metadata } = await refusalOf(generateId(it, "bills", 400));
  expect({ code, reason, metadata }).toEqual({
    code: "UNAVAILABLE",
    reason: "STORE_UNAVAILABLE",
    metadata: { tag: "bills" },
  });
  expect(retryAfterMs).toBeGreaterThan(0);
  expect(performance.now() - start).toBeGreaterThan(200);
  letGo();
  await until(() => it.server.counters.wastedIds === 1);
  expect((await generateId(it, "bills")).id).toBe(3n);
});

test("a grant whose outcome is unknown burns its ids, and whoever waited is refused with RetryInfo", async () => {
  const it = await startTest();
  await createSequence(it, "bills");
  it.store.faults = { after: (operation) => (operation === "grant" ? storeIsDown() : undefined) };
  const refusals = await Promise.all([1, 2, 3].map(() => refusalOf(generateId(it, "bills"))));
  it.store.faults = {};
  for (const { reason, retryAfterMs } of refusals) {
    expect(reason).toBe("STORE_UNAVAILABLE");
    expect(retryAfterMs).toBeGreaterThan(0);
  }
  expect((await generateId(it, "bills")).id).toBe(4n);
});

test("more calls than limits.waiters are refused as overload, not queued", async () => {
  const it = await startTest({ flags: { "limits-waiters": "5" } });
  await createSequence(it, "bills");
  await generateId(it, "bills");
  const letGo = holdBack(it.store, "grant");
  const answers = Array.from({ length: 8 }, () =>
    generateId(it, "bills").then(({ id }) => id, reasonOf),
  );
  await until(() => it.server.counters.refusedCalls >= 3);
  letGo();
  const settled = await Promise.all(answers);
  expect(settled.filter((each) => each === "OVERLOADED")).toHaveLength(3);
  expect(settled.filter((each) => typeof each === "bigint")).toHaveLength(5);
});

test("a server that stops refuses whoever waits for a sequence", async () => {
  const it = await startTest();
  await createSequence(it, "bills");
  await generateId(it, "bills");
  const letGo = holdBack(it.store, "grant");
  const waiting = refusalOf(generateId(it, "bills"));
  await until(() => it.store.count("grant") === 2);
  const closed = it.server.close();
  expect((await waiting).reason).toBe("DRAINING");
  letGo();
  await closed;
});

test("a tag that counts where this server cannot reach is refused with what to configure", async () => {
  const it = await startTest();
  const redis = { server: "a", step: 10 };
  const kind = { kind: "sequence", start: 1n, periods: undefined, redis } as const;
  await it.store.createTag({
    name: "bills",
    description: "",
    order: "STRICT",
    ceiling: 1_000n,
    kind,
  });
  const refusal = await refusalOf(generateId(it, "bills"));
  expect(refusal).toMatchObject({ code: "FAILED_PRECONDITION", reason: "NOT_CONFIGURED" });
  expect(refusal.message).toContain("redis.urls");
  // What is not said of its place can still be changed.
  const { tag } = await call(it.tags, TagServiceService.updateTag, {
    tag: { ...Tag.create(), name: "bills", description: "counted in Redis" },
    updateMask: ["description"],
    validateOnly: false,
  });
  expect(tag?.kind).toMatchObject({ $case: "sequence", value: { redisServer: "a", step: 10 } });
});

test("a store that went back fences its sequences like any other tag", async () => {
  const it = await startTest({ flags: { "poll-interval": "100ms" } });
  await createSequence(it, "bills");
  const snapshot = it.store.database.snapshot();
  const request = { tag: "bills", count: 10, asList: false };
  await call(it.ids, IdServiceService.generateIds, request);
  it.store.database.restore(snapshot);
  expect((await refusalOf(generateId(it, "bills"))).reason).toBe("STORE_EPOCH_CHANGED");
  await it.store.accept(100n);
  await until(async () => (await generateId(it, "bills").catch(() => undefined)) !== undefined);
  expect((await generateId(it, "bills")).id).toBeGreaterThan(100n);
});

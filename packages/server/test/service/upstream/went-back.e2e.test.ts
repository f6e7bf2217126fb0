import {
  IdServiceService,
  NodeServiceService,
  RenewWorkerLeaseRequest,
  StoreState,
  WorkerServiceService,
} from "@idmint/proto";
import { acceptAsking } from "@idmint/core/server";
import { MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import { nodeTimers } from "../../../src/timers.ts";
import { createSnowflake, lease } from "../../snowflake-support.ts";
import {
  call,
  createTag,
  generateId,
  refusalOf,
  startTest,
  type TestServer,
  until,
  holdBack,
} from "../../support.ts";

function isFenced(it: TestServer, tag: string): Promise<boolean> {
  return generateId(it, tag).then(
    () => false,
    (error: unknown) => (error as { reason?: string }).reason === "STORE_EPOCH_CHANGED",
  );
}

function issues(it: TestServer, tag: string): Promise<boolean> {
  return generateId(it, tag).then(
    () => true,
    () => false,
  );
}

/** A server that issued from `orders`, and what the store was like before. */
async function withBackup(options: Parameters<typeof startTest>[0] = {}) {
  const it = await startTest(options);
  await createTag(it, "orders", { min: 10, max: 10 });
  const backup = it.store.database.snapshot();
  const issued: bigint[] = [];
  for (let calls = 0; calls < 25; calls++) issued.push((await generateId(it, "orders")).id);
  return { it, backup, issued };
}

test("a row that went back is refused before the first new grant", async () => {
  const { it, backup, issued } = await withBackup();
  it.store.database.restoreRow(backup, "orders");
  const seen = new Set(issued);
  const refusal = await refusalOf(
    (async () => {
      for (;;) {
        const { id } = await generateId(it, "orders");
        expect(seen).not.toContain(id);
        seen.add(id);
      }
    })(),
  );
  expect(refusal).toMatchObject({ code: "FAILED_PRECONDITION", reason: "STORE_EPOCH_CHANGED" });
  expect(refusal.details).toContain("PreconditionFailure");
  expect(refusal.message).toContain("idmint store accept");
});

test("the poll notices a row that went back though nobody asks, and other tags go on", async () => {
  const { it, backup } = await withBackup();
  await createTag(it, "other");
  await generateId(it, "other");
  it.store.database.restoreRow(backup, "orders");
  await until(() => it.events.some((event) => event.type === "fenced" && event.tag === "orders"));
  expect(await isFenced(it, "orders")).toBe(true);
  await generateId(it, "other");
  const status = await call(it.nodes, NodeServiceService.getNodeStatus, {});
  expect(status).toMatchObject({ state: 3, store: { state: StoreState.GRANTING } });
  expect(status.stateReason).toContain("the store went back for one tag, which it refuses: orders");
  // Callers of other tags are served here.
  expect((await fetch(`http://${it.server.httpAddress}/readyz`)).status).toBe(200);
});

test("a store that is another one is refused by servers that ran and by fresh ones, until it is accepted", async () => {
  const { it, issued } = await withBackup();
  it.store.database.move();
  await until(() => isFenced(it, "orders"));
  const fresh = await startTest({ store: new MemoryStore({ database: it.store.database }) });
  expect(await isFenced(fresh, "orders")).toBe(true);
  const status = await call(fresh.nodes, NodeServiceService.getNodeStatus, {});
  expect(status).toMatchObject({ state: 3, store: { state: StoreState.FENCED } });
  expect(status.store?.fenceReason).not.toBe("");
  expect((await fetch(`http://${fresh.server.httpAddress}/readyz`)).status).toBe(503);
  await it.store.accept(1_000n);
  for (const server of [it, fresh]) {
    await until(() => issues(server, "orders"));
    const { id, epoch } = await generateId(server, "orders");
    expect(id).toBeGreaterThan((issued.at(-1) ?? 0n) + 900n);
    expect(epoch).toBeGreaterThan(1_000n);
  }
});

test("a server that starts issues nothing before one that knows the store has renewed its row", async () => {
  const { it } = await withBackup();
  await until(() => [...it.store.database.nodes.values()].some(({ isProved }) => isProved));
  const release = holdBack(it.store, "changes", "before");
  await until(() => it.store.count("changes") > 0);
  const fresh = await startTest({ store: new MemoryStore({ database: it.store.database }) });
  expect(await refusalOf(generateId(fresh, "orders"))).toMatchObject({
    code: "UNAVAILABLE",
    reason: "STORE_UNAVAILABLE",
    message: expect.stringContaining("has just started") as string,
  });
  const readyz = async (): Promise<number> =>
    (await fetch(`http://${fresh.server.httpAddress}/readyz`)).status;
  expect(await readyz()).toBe(503);
  expect(await call(fresh.nodes, NodeServiceService.getNodeStatus, {})).toMatchObject({
    stateReason: expect.stringContaining("has just started") as string,
  });
  // Of two newcomers none proves the store to the other.
  const second = await startTest({ store: new MemoryStore({ database: it.store.database }) });
  expect(await issues(second, "orders")).toBe(false);
  release();
  for (const server of [fresh, second]) await until(() => issues(server, "orders"));
  expect(await readyz()).toBe(200);
});

test("a server that may believe an unproved store issues at once", async () => {
  const { it } = await withBackup();
  await until(() => [...it.store.database.nodes.values()].some(({ isProved }) => isProved));
  const release = holdBack(it.store, "changes", "before");
  const store = new MemoryStore({ database: it.store.database });
  const fresh = await startTest({ store, flags: { "allow-unproved-store": "true" } });
  expect(await issues(fresh, "orders")).toBe(true);
  release();
});

test("a whole store that went back below its revision is refused though its identity is the same", async () => {
  const it = await startTest();
  const empty = it.store.database.snapshot();
  await createTag(it, "orders");
  await generateId(it, "orders");
  // One poll, so that the server knows the revision.
  const polls = it.store.count("changes");
  await until(() => it.store.count("changes") > polls + 1);
  it.store.database.restore(empty);
  await until(() => isFenced(it, "orders"));
});

test("a store restored to before it was accepted is refused until it is accepted anew", async () => {
  const { it } = await withBackup();
  const before = it.store.database.snapshot();
  await it.store.accept(1_000n);
  await until(() => it.events.some((event) => event.type === "incarnation-changed"));
  await generateId(it, "orders");
  it.store.database.restore(before);
  await until(() => isFenced(it, "orders"));
  // Epochs are times in seconds: another accept of the same row within the second would give it the same epoch.
  it.store.database.clockOffsetMs += 1_000;
  await it.store.accept(10_000n);
  await until(async () => !(await isFenced(it, "orders")));
});

test("a server never gives what it gave before an accept whose gap was too small", async () => {
  const { it, backup, issued } = await withBackup();
  it.store.database.restore(backup);
  await it.store.accept(1n);
  await until(() => it.events.some((event) => event.type === "late-claim"));
  const seen = new Set(issued);
  for (let calls = 0; calls < 300; calls++) {
    const { id } = await generateId(it, "orders");
    expect(seen).not.toContain(id);
    seen.add(id);
  }
});

test("an accept asks the server what it was granted, and leaves no floor below", async () => {
  const { it, backup, issued } = await withBackup();
  it.store.database.restoreRow(backup, "orders");
  const times = { leastMs: 2_500, mostMs: 10_000, longestMs: 20_000, pauseMs: 5_000 };
  const clock = { now: () => performance.now() };
  const asking = { store: it.store, clock, timers: nodeTimers, nonce: "nonce", times };
  const report = await acceptAsking(asking, { gap: 0n });
  expect(report.claims).toMatchObject({ raised: 1, servers: [{ told: "all" }] });
  const [row] = await it.store.getTags(["orders"]);
  expect(row?.floor).toBeGreaterThanOrEqual(issued.at(-1) ?? 0n);
  await until(async () => !(await isFenced(it, "orders")));
  const seen = new Set(issued);
  for (let calls = 0; calls < 50; calls++) {
    const { id } = await generateId(it, "orders");
    expect(seen).not.toContain(id);
    seen.add(id);
  }
  expect(it.events.map(({ type }) => type)).not.toContain("late-claim");
});

test("with epoch_gap the server accepts by itself, once, and says so loudly", async () => {
  const { it, backup, issued } = await withBackup({ flags: { "epoch-gap": "5000" } });
  const accepts = (): number => it.store.count("accept");
  expect(accepts()).toBe(0);
  it.store.database.restore(backup);
  it.store.database.move();
  await until(() => it.events.some((event) => event.type === "store-accepted"));
  await until(async () => !(await isFenced(it, "orders")));
  expect((await generateId(it, "orders")).id).toBeGreaterThan((issued.at(-1) ?? 0n) + 4_900n);
  expect(accepts()).toBe(1);
  // Another store altogether, while nobody asks for ids.
  it.store.database.move();
  await until(() => accepts() === 2);
});

test("ids on their way when the store is accepted are never issued", async () => {
  const { it, issued } = await withBackup();
  const release = holdBack(it.store, "grant", "after");
  const grants = it.store.count("grant");
  const waiting = call(it.ids, IdServiceService.generateIds, {
    tag: "orders",
    count: 50,
    asList: true,
  });
  const refused = refusalOf(waiting);
  await until(() => it.store.count("grant") > grants);
  await it.store.accept(0n);
  await until(() => it.events.some((event) => event.type === "incarnation-changed"));
  release();
  expect(await refused).toMatchObject({ code: "UNAVAILABLE" });
  await until(() => it.events.some((event) => event.type === "late-grant"));
  const seen = new Set(issued);
  for (let calls = 0; calls < 30; calls++) {
    const { id } = await generateId(it, "orders");
    expect(seen).not.toContain(id);
    seen.add(id);
  }
});

test("a store that forgot a lease is refused before its worker id is leased again", async () => {
  const it = await startTest();
  await createSnowflake(it, "t");
  await lease(it, { tag: "t", instance: "first" });
  const backup = it.store.database.snapshot();
  const forgotten = await lease(it, { tag: "t", instance: "a" });
  it.store.database.restore(backup);
  const refusal = await refusalOf(lease(it, { tag: "t", instance: "b" }));
  expect(refusal).toMatchObject({ reason: "STORE_EPOCH_CHANGED", metadata: { tag: "t" } });
  expect(it.events).toContainEqual(expect.objectContaining({ type: "fenced", tag: "t" }));
  expect(await isFenced(it, "t")).toBe(true);
  await it.store.accept(0n);
  await until(async () => !(await isFenced(it, "t")));
  const next = await lease(it, { tag: "t", instance: "b" });
  expect(next.notBeforeMs).toBeGreaterThan(forgotten.reservedUntilMs + 60_000n);
});

test("a store that forgot renewals is refused before the worker id is leased again", async () => {
  const it = await startTest();
  await createSnowflake(it, "t");
  const { workerId, dataCenter, token } = await lease(it, { tag: "t", instance: "a" });
  const backup = it.store.database.snapshot();
  const renewal = { tag: "t", workerId, dataCenter, token };
  for (let renewals = 0; renewals < 3; renewals++) {
    const request = RenewWorkerLeaseRequest.fromPartial(renewal);
    const renewed = await call(it.workers, WorkerServiceService.renewWorkerLease, request);
    renewal.token = renewed.token;
  }
  it.store.database.restore(backup);
  const refusal = await refusalOf(lease(it, { tag: "t", instance: "a" }));
  expect(refusal.reason).toBe("STORE_EPOCH_CHANGED");
  expect(await isFenced(it, "t")).toBe(true);
});

// An operator stops all servers on a store, and lets them go on.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  AllocateSegmentRequest,
  CreateTagRequest,
  type DeepPartial,
  GenerateIdsRequest,
  type GetIssuingResponse,
  IdServiceService,
  NodeServiceService,
  NodeState,
  PauseTagRequest,
  PeriodUnit,
  ReleaseWorkerLeaseRequest,
  RenewWorkerLeaseRequest,
  type StopIssuingResponse,
  type Tag,
  TagServiceService,
  WorkerServiceService,
} from "@idmint/proto";
import { MemoryDatabase, MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { createSnowflake, lease, takeIds } from "../../snowflake-support.ts";
import {
  call,
  createTag,
  generateId,
  holdBack,
  Refusal,
  refusalOf,
  startTest,
  type TestServer,
  until,
} from "../../support.ts";

const STOPPED = { code: "FAILED_PRECONDITION", reason: "ISSUING_STOPPED" };

function stop({ nodes }: TestServer, validateOnly = false): Promise<StopIssuingResponse> {
  return call(nodes, NodeServiceService.stopIssuing, { validateOnly });
}

async function resume({ nodes }: TestServer, validateOnly = false): Promise<void> {
  await call(nodes, NodeServiceService.resumeIssuing, { validateOnly });
}

function issuing({ nodes }: TestServer): Promise<GetIssuingResponse> {
  return call(nodes, NodeServiceService.getIssuing, {});
}

async function reasonOf(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
    return "";
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

async function create({ tags }: TestServer, tag: DeepPartial<Tag>): Promise<void> {
  await call(tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag }));
}

/** Servers on one store. */
async function servers(count: number, flags: Record<string, string> = {}): Promise<TestServer[]> {
  const database = new MemoryDatabase();
  const all: TestServer[] = [];
  for (let at = 0; at < count; at++) {
    all.push(await startTest({ store: new MemoryStore({ database }), flags }));
  }
  return all;
}

async function pair(flags: Record<string, string> = {}): Promise<[TestServer, TestServer]> {
  const [one, two] = await servers(2, flags);
  if (one === undefined || two === undefined) throw new Error("no servers");
  return [one, two];
}

function allocate({ ids }: TestServer, tag: string) {
  const request = AllocateSegmentRequest.fromPartial({ tag, count: 5 });
  return call(ids, IdServiceService.allocateSegment, request);
}

/** Whatever a server issues or leases. */
function everything(it: TestServer): readonly (readonly [string, Promise<unknown>])[] {
  const many = GenerateIdsRequest.fromPartial({ tag: "segments", count: 3 });
  return [
    ["segment", generateId(it, "segments")],
    ["several", call(it.ids, IdServiceService.generateIds, many)],
    ["allocation", allocate(it, "segments")],
    ["sequence", generateId(it, "sequence")],
    ["period", generateId(it, "daily")],
    ["snowflake", generateId(it, "flakes")],
    ["lease", lease(it, { tag: "flakes", instance: "sdk" })],
    ["uuid", generateId(it, "uuids")],
    // An SDK asks for a segment before it makes such ids by itself.
    ["uuids of an SDK", allocate(it, "uuids")],
    ["object id", generateId(it, "objects")],
    ["formatted", generateId(it, "formatted")],
  ];
}

async function createAll(it: TestServer): Promise<void> {
  await createTag(it, "segments", { min: 100, max: 100 });
  await createSnowflake(it, "flakes");
  const sequence = { $case: "sequence" as const, value: {} };
  const daily = { period: PeriodUnit.DAY, timeZone: "UTC" };
  await create(it, { name: "sequence", kind: sequence });
  await create(it, { name: "daily", kind: { $case: "sequence", value: daily } });
  await create(it, { name: "uuids", kind: { $case: "uuid", value: { version: 4 } } });
  await create(it, { name: "objects", kind: { $case: "objectId", value: {} } });
  const segment = { $case: "segment" as const, value: {} };
  await create(it, { name: "formatted", kind: segment, format: { template: "A{id}" } });
}

/** Of everything, what is refused and why. */
async function outcomes(it: TestServer): Promise<Record<string, string>> {
  const all = everything(it).map(async ([name, answer]) => [name, await reasonOf(answer)] as const);
  return Object.fromEntries(await Promise.all(all));
}

test("all servers refuse whatever they issue or lease, old tags and new, until they are resumed", async () => {
  const [one, two] = await pair();
  await createAll(one);
  const well = await outcomes(one);
  // A tag without segments says what it is.
  expect(Object.values(well).filter((reason) => reason !== "")).toEqual(["WRONG_KIND"]);
  await outcomes(two);
  await stop(one);
  const refusals = await outcomes(one);
  expect(new Set(Object.values(refusals))).toEqual(new Set([STOPPED.reason]));
  await until(async () => (await reasonOf(generateId(two, "segments"))) !== "", 2_000);
  expect(await outcomes(two)).toEqual(refusals);
  await createTag(two, "new");
  for (const it of [one, two]) {
    expect(await refusalOf(generateId(it, "new"))).toMatchObject(STOPPED);
  }
  await resume(two);
  expect(await outcomes(two)).toEqual(well);
  await until(async () => (await reasonOf(generateId(one, "new"))) === "", 2_000);
  expect(await outcomes(one)).toEqual(well);
});

test("a refusal says since when, and how to resume; the server says it too, and takes calls", async () => {
  const [one, two] = await pair();
  await createTag(one, "orders");
  const { stoppedTime } = await stop(one);
  const refusal = await refusalOf(generateId(one, "orders"));
  expect(refusal).toMatchObject({
    ...STOPPED,
    metadata: { stopped_since: stoppedTime?.toISOString() },
  });
  expect(refusal.message).toContain("idmint resume-issuing --all");
  expect(refusal.details).toContain("PreconditionFailure");
  await until(() => two.events.some(({ type }) => type === "issuing-stopped"));
  for (const { nodes, server } of [one, two]) {
    const status = await call(nodes, NodeServiceService.getNodeStatus, {});
    expect(status).toMatchObject({ state: NodeState.STOPPED, stoppedTime });
    // Who takes servers that are not ready out of service would turn a clear refusal into an outage.
    const probe = await fetch(`http://${server.httpAddress}/readyz`);
    expect([probe.status, await probe.json()]).toEqual([200, { ready: true, state: "STOPPED" }]);
  }
  await resume(one);
  await until(() => two.events.some(({ type }) => type === "issuing-resumed"));
  const after = await call(two.nodes, NodeServiceService.getNodeStatus, {});
  expect([after.state, after.stoppedTime]).toEqual([NodeState.SERVING, undefined]);
});

test("a tag that was paused before stays paused, and a tag can be paused meanwhile", async () => {
  const [one, two] = await pair();
  for (const name of ["before", "meanwhile", "free"]) await createTag(one, name);
  const pause = (name: string) =>
    call(one.tags, TagServiceService.pauseTag, PauseTagRequest.fromPartial({ name }));
  await pause("before");
  await stop(one);
  await pause("meanwhile");
  expect(await refusalOf(generateId(one, "before"))).toMatchObject(STOPPED);
  await resume(one);
  for (const it of [one, two]) {
    await until(async () => (await reasonOf(generateId(it, "free"))) === "", 2_000);
    for (const name of ["before", "meanwhile"]) {
      expect(await reasonOf(generateId(it, name))).toBe("TAG_PAUSED");
    }
  }
});

test("what a server held is never issued after a stop, also if it hears of it when all is over", async () => {
  const [one, two] = await pair({ "node-max-offline": "20s" });
  await createTag(one, "orders", { min: 1_000, max: 1_000 });
  await generateId(one, "orders");
  const before = (await generateId(two, "orders")).id;
  two.store.faults = { before: (each) => (each === "changes" ? storeIsDown() : undefined) };
  await until(() => !two.server.node.status().reachable);
  const { effectiveTime, laggingNodes } = await stop(one);
  // It goes on with what it has, which the answer reckons with.
  expect((await generateId(two, "orders")).id).toBe(before + 1n);
  expect(laggingNodes).toHaveLength(1);
  expect(effectiveTime?.getTime()).toBeGreaterThan(Date.now() + 10_000);
  await resume(one);
  const floor = one.store.database.rows.get("orders")?.floor ?? 0n;
  two.store.faults = {};
  await until(() => two.server.node.status().reachable);
  for (const it of [one, two]) expect((await generateId(it, "orders")).id).toBeGreaterThan(floor);
});

test("effective_time is when every server has obeyed and callers' segments are too old", async () => {
  const [one] = await pair();
  await createTag(one, "short", { maxAgeS: 1n });
  await createTag(one, "longest", { maxAgeS: 30n });
  await call(one.tags, TagServiceService.deleteTag, {
    name: "longest",
    etag: "",
    validateOnly: false,
  });
  await createTag(one, "long", { maxAgeS: 20n });
  const sentMs = Date.now();
  await stop(one);
  await until(async () => (await issuing(one)).laggingNodeCount === 0);
  const confirmed = await issuing(one);
  const atMs = confirmed.effectiveTime?.getTime() ?? 0;
  // Callers of the tag that is gone may hold segments of it still.
  expect(atMs - sentMs).toBeGreaterThan(30_000);
  expect(atMs - Date.now()).toBeLessThan(30_500);
  expect(confirmed).toMatchObject({ inEffect: false, laggingNodes: [] });
});

test("a stop of tags that nobody holds ids of is in effect as soon as all servers have obeyed", async () => {
  const [one, two] = await pair();
  await create(one, { name: "sequence", kind: { $case: "sequence", value: {} } });
  await stop(one);
  await until(async () => (await issuing(one)).inEffect, 5_000);
  expect(await refusalOf(generateId(two, "sequence"))).toMatchObject(STOPPED);
});

test("what is only checked changes nothing, and what is so already is answered as it is", async () => {
  const [one] = await pair();
  await createTag(one, "orders");
  expect((await stop(one, true)).effectiveTime).toBe(undefined);
  expect((await generateId(one, "orders")).id).toBe(1n);
  const { stoppedTime } = await stop(one);
  await resume(one, true);
  expect((await stop(one)).stoppedTime).toEqual(stoppedTime);
  expect((await issuing(one)).stoppedTime).toEqual(stoppedTime);
  await resume(one);
  await resume(one);
  expect((await issuing(one)).stoppedTime).toBe(undefined);
});

test("a stop outlasts a restart of all servers", async () => {
  const database = new MemoryDatabase();
  const first = await startTest({ store: new MemoryStore({ database }) });
  await createTag(first, "orders");
  await generateId(first, "orders");
  await stop(first);
  await first.server.close();
  const second = await startTest({ store: new MemoryStore({ database }) });
  expect(await refusalOf(generateId(second, "orders"))).toMatchObject(STOPPED);
  await resume(second);
  expect(await reasonOf(generateId(second, "orders"))).toBe("");
});

test("a server that goes on with its leases while its store is down remembers the stop", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-issuing-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const database = new MemoryDatabase();
  const flags = { "snowflake-cache-file": path.join(folder, "leases"), instance: "one" };
  const first = await startTest({ flags, store: new MemoryStore({ database }) });
  await createSnowflake(first, "flakes");
  const before = await takeIds(first, "flakes", 5);
  await stop(first);
  await first.server.close();
  const store = new MemoryStore({ database, faults: { before: storeIsDown } });
  const second = await startTest({ flags, store });
  expect(second.server.node.status().reachable).toBe(false);
  expect(await refusalOf(generateId(second, "flakes"))).toMatchObject(STOPPED);
  store.faults = {};
  await until(() => second.server.node.status().reachable);
  expect(await refusalOf(generateId(second, "flakes"))).toMatchObject(STOPPED);
  await resume(second);
  expect((await takeIds(second, "flakes", 1))[0]).toBeGreaterThan(before.at(-1) ?? 0n);
});

test("a lease that is on its way when servers stop is not answered, and none is renewed", async () => {
  const [one] = await pair();
  await createSnowflake(one, "flakes");
  const { dataCenter, workerId, token } = await lease(one, { tag: "flakes", instance: "held" });
  const release = holdBack(one.store, "leaseWorker", "after");
  const late = refusalOf(lease(one, { tag: "flakes", instance: "late" }));
  await stop(one);
  release();
  expect(await late).toMatchObject(STOPPED);
  const key = { tag: "flakes", dataCenter, workerId, token };
  const renewal = RenewWorkerLeaseRequest.fromPartial(key);
  const renew = () => call(one.workers, WorkerServiceService.renewWorkerLease, renewal);
  expect(await refusalOf(renew())).toMatchObject(STOPPED);
  // Operators may look at workers meanwhile.
  const list = { tag: "flakes", pageSize: 0, pageToken: "", workerId: undefined };
  expect((await call(one.workers, WorkerServiceService.listWorkers, list)).workers).toHaveLength(2);
  await resume(one);
  await renew();
  const gone = ReleaseWorkerLeaseRequest.fromPartial(key);
  expect(await reasonOf(call(one.workers, WorkerServiceService.releaseWorkerLease, gone))).toBe(
    "WORKER_LEASE_LOST",
  );
});

test("a grant that is on its way when servers stop is waste", async () => {
  const [one] = await pair();
  await createTag(one, "orders", { min: 10, max: 10 });
  const release = holdBack(one.store, "grant", "after");
  const late = refusalOf(generateId(one, "orders"));
  await until(() => one.store.count("grant") === 1);
  await stop(one);
  expect(await late).toMatchObject(STOPPED);
  release();
  await resume(one);
  expect((await generateId(one, "orders")).id).toBeGreaterThan(10n);
});

test("a store that goes back while servers are stopped is left to an operator", async () => {
  const it = await startTest({ flags: { "epoch-gap": "1000" } });
  await createTag(it, "orders");
  const backup = it.store.database.snapshot();
  await generateId(it, "orders");
  await stop(it);
  // The stop went with it.
  it.store.database.restore(backup);
  await until(async () => (await reasonOf(generateId(it, "orders"))) === "STORE_EPOCH_CHANGED");
  await until(() => it.store.count("changes") > 10);
  expect(it.store.count("accept")).toBe(0);
});

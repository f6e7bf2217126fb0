import { decode, SNOWFLAKE_PRESETS } from "@idmint/core";
import {
  AllocateSegmentRequest,
  DecodeIdRequest,
  DeleteTagRequest,
  IdServiceService,
  ListWorkersRequest,
  PauseTagRequest,
  ReleaseWorkerLeaseRequest,
  RenewWorkerLeaseRequest,
  ResumeTagRequest,
  TagServiceService,
  UpdateTagRequest,
  WorkerServiceService,
} from "@idmint/proto";
import { MemoryDatabase, MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, test } from "vitest";
import { createSnowflake, DEFAULT_BITS, lease, takeIds } from "../../../snowflake-support.ts";
import { sqliteHarness } from "../../../store/harness.ts";
import { call, generateId, refusalOf, sleep, startTest, until } from "../../../support.ts";

const LAYOUT = SNOWFLAKE_PRESETS["41-10-12"];
/** Registry calls of a server that makes ids. */
const LEASING = new Set(["leaseWorker", "renewWorker", "releaseWorker"]);

/** Servers on one store in memory. */
async function startServers(count: number, flags: Record<string, string> = {}) {
  const database = new MemoryDatabase();
  const servers = [];
  for (let at = 0; at < count; at++) {
    servers.push(await startTest({ store: new MemoryStore({ database }), flags }));
  }
  return { database, servers };
}

test("ids of two servers are all different, of the present time, and each server's ascend", async () => {
  const { servers } = await startServers(2);
  const [one, two] = servers;
  if (one === undefined || two === undefined) throw new Error("two servers");
  await createSnowflake(one, "t");
  const taken: bigint[][] = [];
  const began = Date.now();
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all([
      takeIds(one, "t", 1_000),
      takeIds(two, "t", 1_000),
      generateId(one, "t").then(({ id }) => [id]),
      generateId(two, "t").then(({ id }) => [id]),
    ]);
    taken.push(...answers);
  }
  const all = taken.flat();
  expect(new Set(all).size).toBe(all.length);
  expect(all).toHaveLength(20 * 2_002);
  const workers = new Map<number, bigint[]>();
  for (const ids of taken) {
    const parts = ids.map((id) => decode(LAYOUT, id));
    const [worker] = new Set(parts.map((each) => each.worker));
    expect(new Set(parts.map((each) => each.worker)).size).toBe(1);
    expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)));
    workers.set(worker ?? -1, [...(workers.get(worker ?? -1) ?? []), ids[0] ?? 0n]);
    for (const { tick } of parts) {
      const ms = LAYOUT.timeOriginMs + tick;
      expect(ms).toBeGreaterThanOrEqual(began);
      expect(ms).toBeLessThanOrEqual(Date.now() + 50);
    }
  }
  expect([...workers.keys()].toSorted((a, b) => a - b)).toEqual([0, 1]);
});

test("streams and DecodeId know snowflakes, and nobody allocates segments of them", async () => {
  const it = await startTest();
  const tag = await createSnowflake(it, "t", { layout: { ...DEFAULT_BITS, dataCenterBits: 0 } });
  expect(tag.ceiling).toBe(2n ** 63n - 1n);
  expect(tag.kind).toMatchObject({ value: { idsPerSecond: 4_096_000n, dataCenter: 0 } });
  const { id, epoch } = await generateId(it, "t");
  expect(epoch).toBe(1n);
  const request = DecodeIdRequest.fromPartial({ tag: "t", value: { $case: "id", value: id } });
  const decoded = await call(it.ids, IdServiceService.decodeId, request);
  expect(Math.abs((decoded.time?.getTime() ?? 0) - Date.now())).toBeLessThan(5_000);
  expect(decoded.snowflake).toMatchObject({ worker: 0, dataCenter: 0, extension: 0 });
  const allocate = AllocateSegmentRequest.fromPartial({ tag: "t", count: 1 });
  const refused = await refusalOf(call(it.ids, IdServiceService.allocateSegment, allocate));
  expect(refused).toMatchObject({
    reason: "WRONG_KIND",
    metadata: { tag: "t", kind: "snowflake" },
  });
  const tooMany = await refusalOf(takeIds(it, "t", 4_096_001));
  expect(tooMany.fields[0]?.field).toBe("count");
});

test("after an accept snowflakes are made at once, ahead of the clock, and no clock is blamed", async () => {
  const flags = { "poll-interval": "100ms" };
  const it = await startTest({ flags });
  await createSnowflake(it, "t");
  const before = await generateId(it, "t");
  await it.store.accept(0n);
  const accepted = async () => {
    const answer = await generateId(it, "t").catch(() => undefined);
    return answer !== undefined && answer.epoch > before.epoch;
  };
  await until(accepted, 3_000);
  const taken: bigint[] = [];
  for (let round = 0; round < 20; round++) {
    taken.push(...(await takeIds(it, "t", 1_000)));
    await sleep(50);
  }
  expect(new Set(taken).size).toBe(20_000);
  const ticks = taken.map((id) => decode(LAYOUT, id).tick);
  const aheadMs = LAYOUT.timeOriginMs + Math.min(...ticks) - Date.now();
  expect(aheadMs).toBeGreaterThan(350_000);
  // They advanced by what their sequences hold, and not with the clock.
  expect(Math.max(...ticks) - Math.min(...ticks)).toBeLessThan(100);
  const blamed = it.events.filter(({ type }) => type.startsWith("clock-"));
  expect(blamed).toEqual([]);
  const ready = await fetch(`http://${it.server.httpAddress}/readyz`);
  expect(ready.status).toBe(200);
});

test("a layout of 22 worker bits has 4,194,304 workers, and a free one is found among them", async () => {
  const { servers, database } = await startServers(1);
  const [it] = servers;
  if (it === undefined) throw new Error("a server");
  const layout = {
    timeBits: 28,
    workerBits: 22,
    sequenceBits: 13,
    timeUnit: { seconds: 1n, nanos: 0 },
  };
  await createSnowflake(it, "t", { layout });
  const first = await lease(it, { tag: "t", instance: "pod-0" });
  expect(first.workerId).toBe(0);
  const [row] = database.workers.get("t") ?? [];
  const last = { ...row!, workerId: 2 ** 22 - 1, instance: "pod-4194303" };
  database.workers.set("t", [row!, last]);
  const again = await lease(it, { tag: "t", instance: "pod-4194303" });
  expect(again.workerId).toBe(2 ** 22 - 1);
  const key = { tag: "t", dataCenter: 0, workerId: again.workerId, token: again.token };
  const renewal = RenewWorkerLeaseRequest.fromPartial({ ...key, reserveUntilMs: 0n });
  const { token } = await call(it.workers, WorkerServiceService.renewWorkerLease, renewal);
  const release = ReleaseWorkerLeaseRequest.fromPartial({ ...key, token });
  await call(it.workers, WorkerServiceService.releaseWorkerLease, release);
  const beyond = { ...renewal, workerId: 2 ** 22 };
  const refused = await refusalOf(call(it.workers, WorkerServiceService.renewWorkerLease, beyond));
  expect(refused.fields[0]?.description).toBe(
    "must be 0 to 4194303, as it was answered, got 4194304",
  );
});

test("a layout of 5 worker bits has 32 workers; the 33rd is refused, and its server too", async () => {
  const { servers } = await startServers(2);
  const [one, two] = servers;
  if (one === undefined || two === undefined) throw new Error("two servers");
  await createSnowflake(one, "t", { layout: { timeBits: 41, workerBits: 5, sequenceBits: 7 } });
  await generateId(one, "t");
  const leases = await Promise.all(
    Array.from({ length: 31 }, (_, at) => lease(two, { tag: "t", instance: `pod-${at}` })),
  );
  const ids = leases.map(({ workerId }) => workerId).toSorted((a, b) => a - b);
  expect(ids).toEqual(Array.from({ length: 31 }, (_, at) => at + 1));
  const refused = await refusalOf(lease(one, { tag: "t", instance: "pod-31" }));
  expect(refused).toMatchObject({
    code: "RESOURCE_EXHAUSTED",
    reason: "WORKER_IDS_EXHAUSTED",
    metadata: { tag: "t", data_center: "0" },
  });
  const itself = await refusalOf(generateId(two, "t"));
  expect(itself.reason).toBe("WORKER_IDS_EXHAUSTED");
  expect((await generateId(one, "t")).id).toBeGreaterThan(0n);
  // Who had one has it again.
  const again = await lease(one, { tag: "t", instance: "pod-7" });
  expect(again.workerId).toBe(leases[7]?.workerId);
});

test("the worker id of a dead server goes on above what was reserved for it", async () => {
  const { database, servers } = await startServers(2);
  const [one, two] = servers;
  if (one === undefined || two === undefined) throw new Error("two servers");
  await createSnowflake(one, "t", {
    layout: { timeBits: 41, workerBits: 0, sequenceBits: 12 },
  });
  const before = await takeIds(one, "t", 1_000);
  // Nobody hears of it any more.
  one.store.faults = {
    before: (operation) => (LEASING.has(operation) ? storeIsDown() : undefined),
  };
  const refused = await refusalOf(generateId(two, "t"));
  expect(refused.reason).toBe("WORKER_IDS_EXHAUSTED");
  const [reserved] = database.workers.get("t") ?? [];
  database.clockOffsetMs += 31_000;
  const after: bigint[] = [];
  await until(async () => {
    after.push(...(await takeIds(two, "t", 1_000).catch(() => [])));
    return after.length > 0;
  }, 8_000);
  const layout = { ...LAYOUT, workerBits: 0 };
  const first = decode(layout, after[0] ?? 0n);
  expect(layout.timeOriginMs + first.tick).toBeGreaterThan(reserved?.reservedUntilMs ?? Infinity);
  // It lives yet, and makes what it may.
  const late: bigint[] = await takeIds(one, "t", 1_000).catch(() => []);
  const all = [...before, ...after, ...late];
  expect(new Set(all).size).toBe(all.length);
});

test("without its registry a server goes on to the end of its reservation, then refuses", async () => {
  const it = await startTest();
  await createSnowflake(it, "t");
  const ids = [(await generateId(it, "t")).id];
  const start = performance.now();
  it.store.faults = { before: () => storeIsDown() };
  let refused;
  while (performance.now() - start < 6_000) {
    const answer = generateId(it, "t", 400).then(({ id }) => id);
    const id = await answer.catch(() => undefined);
    if (id === undefined) {
      refused = await refusalOf(answer);
      // On a busy machine the caller may give up before it hears why.
      if (refused.code !== "DEADLINE_EXCEEDED") break;
      continue;
    }
    ids.push(id);
    await sleep(20);
  }
  const lasted = performance.now() - start;
  expect(refused).toMatchObject({ code: "UNAVAILABLE", reason: "SEGMENT_NOT_READY" });
  expect(refused?.retryAfterMs).toBeGreaterThan(0);
  expect(lasted).toBeGreaterThan(1_500);
  expect(lasted).toBeLessThan(4_500);
  it.store.faults = {};
  await until(async () => {
    const answer = await generateId(it, "t").catch(() => undefined);
    if (answer !== undefined) ids.push(answer.id);
    return answer !== undefined;
  }, 5_000);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)));
});

test("a server that stops releases its worker id, and one under its name gets it back", async () => {
  const database = new MemoryDatabase();
  const flags = { instance: "pod-a" };
  const first = await startTest({ store: new MemoryStore({ database }), flags });
  await createSnowflake(first, "t");
  const before = await takeIds(first, "t", 100);
  await first.server.close();
  const [row] = database.workers.get("t") ?? [];
  expect(row).toMatchObject({ instance: "pod-a", workerId: 0 });
  expect(row?.expiresAtMs).toBeLessThanOrEqual(Date.now());
  const second = await startTest({ store: new MemoryStore({ database }), flags });
  const after = await takeIds(second, "t", 100);
  expect(after[0]).toBeGreaterThan(before.at(-1) ?? 0n);
  expect(database.workers.get("t")).toHaveLength(1);
});

test("a pause ends leases, and what comes after is of the new epoch and above", async () => {
  const it = await startTest();
  await createSnowflake(it, "t");
  const { id } = await generateId(it, "t");
  const leased = await lease(it, { tag: "t", instance: "sdk" });
  const pause = PauseTagRequest.fromPartial({ name: "t" });
  await call(it.tags, TagServiceService.pauseTag, pause);
  expect((await refusalOf(generateId(it, "t"))).reason).toBe("TAG_PAUSED");
  expect((await refusalOf(lease(it, { tag: "t", instance: "x" }))).reason).toBe("TAG_PAUSED");
  const resume = ResumeTagRequest.fromPartial({ name: "t" });
  await call(it.tags, TagServiceService.resumeTag, resume);
  const next = await generateId(it, "t");
  expect(next.epoch).toBe(3n);
  expect(next.id).toBeGreaterThan(id);
  const { dataCenter, workerId, token } = leased;
  const renewal = RenewWorkerLeaseRequest.fromPartial({ tag: "t", dataCenter, workerId, token });
  const lost = await refusalOf(call(it.workers, WorkerServiceService.renewWorkerLease, renewal));
  expect(lost).toMatchObject({ code: "ABORTED", reason: "WORKER_LEASE_LOST" });
});

test("leases are renewed, released and listed by those who make ids themselves", async () => {
  const harness = await sqliteHarness();
  const store = await harness.open();
  const it = await startTest({ parts: { store } });
  await createSnowflake(it, "t", {
    layout: { timeBits: 41, dataCenterBits: 5, workerBits: 5, sequenceBits: 12 },
    dataCenter: 3,
  });
  const first = await lease(it, { tag: "t", instance: "pod-a" });
  expect(first).toMatchObject({ dataCenter: 3, workerId: 0, epoch: 1n, extension: 0 });
  expect(first.ttl).toEqual({ seconds: 30n, nanos: 0 });
  expect(first.snowflake?.layout).toMatchObject({ workerBits: 5, dataCenterBits: 5 });
  expect(first.reservedUntilMs).toBe(first.nowMs + 3_000n);
  const reserveUntilMs = first.nowMs + 4_000n;
  const key = { tag: "t", dataCenter: 3, workerId: 0 };
  const renewed = await call(
    it.workers,
    WorkerServiceService.renewWorkerLease,
    RenewWorkerLeaseRequest.fromPartial({ ...key, token: first.token, reserveUntilMs }),
  );
  expect(renewed.reservedUntilMs).toBe(reserveUntilMs);
  await lease(it, { tag: "t", instance: "pod-b", dataCenter: 0 });
  const release = ReleaseWorkerLeaseRequest.fromPartial({ ...key, token: renewed.token });
  await call(it.workers, WorkerServiceService.releaseWorkerLease, release);
  const again = await refusalOf(call(it.workers, WorkerServiceService.releaseWorkerLease, release));
  expect(again.reason).toBe("WORKER_LEASE_LOST");
  const pages = [];
  let pageToken = "";
  do {
    const request = ListWorkersRequest.fromPartial({ tag: "t", pageSize: 1, pageToken });
    const page = await call(it.workers, WorkerServiceService.listWorkers, request);
    pages.push(...page.workers);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  const shown = pages.map(
    ({ dataCenter, workerId, instance, leased }) =>
      `${dataCenter}/${workerId} ${instance} ${leased}`,
  );
  expect(shown).toEqual(["0/0 pod-b true", "3/0 pod-a false"]);
  await lease(it, { tag: "t", instance: "pod-c", dataCenter: 3 });
  await lease(it, { tag: "t", instance: "pod-d", dataCenter: 5 });
  for (const [workerId, places] of [
    [0, [0, 3, 5]],
    [1, [3]],
    [2, []],
  ] as const) {
    const request = ListWorkersRequest.fromPartial({ tag: "t", workerId });
    const found = await call(it.workers, WorkerServiceService.listWorkers, request);
    expect(found.workers.map(({ dataCenter }) => dataCenter)).toEqual(places);
    expect(found.workers.every((worker) => worker.workerId === workerId)).toBe(true);
    expect(found.nextPageToken).toBe("");
  }
  const one = ListWorkersRequest.fromPartial({ tag: "t", workerId: 0, pageSize: 2 });
  const begun = await call(it.workers, WorkerServiceService.listWorkers, one);
  const rest = { ...one, pageToken: begun.nextPageToken };
  const ended = await call(it.workers, WorkerServiceService.listWorkers, rest);
  expect([...begun.workers, ...ended.workers].map(({ instance }) => instance)).toEqual([
    "pod-b",
    "pod-a",
    "pod-d",
  ]);
  await it.server.close();
  await harness.remove();
});

test("settings that may change do, and the layout until the first lease", async () => {
  const it = await startTest();
  await createSnowflake(it, "t");
  const update = async (value: object, ...updateMask: string[]): Promise<unknown> => {
    const tag = { name: "t", kind: { $case: "snowflake" as const, value } };
    const request = UpdateTagRequest.fromPartial({ tag, updateMask });
    return (await call(it.tags, TagServiceService.updateTag, request)).tag;
  };
  const layout = { timeBits: 41, workerBits: 5, sequenceBits: 7 };
  expect(await update({ layout }, "snowflake.layout")).toMatchObject({ ceiling: 2n ** 53n - 1n });
  const { id } = await generateId(it, "t");
  expect(id).toBeLessThan(2n ** 53n);
  const clock = { clockPolicy: 3 as const, clockWait: { seconds: 0n, nanos: 20_000_000 } };
  const paths = ["snowflake.clock_policy", "snowflake.clock_wait"];
  expect(await update(clock, ...paths)).toMatchObject({ kind: { value: clock } });
  expect((await generateId(it, "t")).id).toBeGreaterThan(id);
  const refused = await refusalOf(update({}, "snowflake.layout"));
  expect(refused.reason).toBe("FIELD_IMMUTABLE");
});

test.each(["changed", "made again"] as const)(
  "nothing is made or leased by the old layout of a tag that was %s, before that is heard of",
  async (how) => {
    const { servers } = await startServers(2);
    const [one, two] = servers;
    if (one === undefined || two === undefined) throw new Error("two servers");
    await createSnowflake(two, "t", {
      layout: { timeBits: 41, workerBits: 10, sequenceBits: 12 },
    });
    // One knows the tag, and hears no more of it.
    const allocate = AllocateSegmentRequest.fromPartial({ tag: "t", count: 1 });
    await refusalOf(call(one.ids, IdServiceService.allocateSegment, allocate));
    one.store.faults = {
      before: (operation) => (operation === "changes" ? storeIsDown() : undefined),
    };
    const layout = { timeBits: 41, workerBits: 12, sequenceBits: 10 };
    if (how === "changed") {
      const tag = { name: "t", kind: { $case: "snowflake" as const, value: { layout } } };
      const request = UpdateTagRequest.fromPartial({ tag, updateMask: ["snowflake.layout"] });
      await call(two.tags, TagServiceService.updateTag, request);
    } else {
      await call(
        two.tags,
        TagServiceService.deleteTag,
        DeleteTagRequest.fromPartial({ name: "t" }),
      );
      await createSnowflake(two, "t", { layout });
    }
    expect((await refusalOf(lease(one, { tag: "t", instance: "a" }))).code).toBe("UNAVAILABLE");
    // It is refused just before its deadline, and a busy caller sees the deadline first.
    const { code } = await refusalOf(takeIds(one, "t", 1, 400));
    expect(["UNAVAILABLE", "DEADLINE_EXCEEDED"]).toContain(code);
    const ids = await takeIds(two, "t", 1_000);
    one.store.faults = {};
    await until(async () => {
      const taken: bigint[] = await takeIds(one, "t", 4_000, 400).catch(() => []);
      ids.push(...taken);
      return taken.length > 0;
    }, 5_000);
    const leased = await lease(one, { tag: "t", instance: "a" });
    expect(leased.snowflake?.layout).toMatchObject(layout);
    for (let round = 0; round < 10; round++) {
      ids.push(...(await Promise.all([takeIds(one, "t", 900), takeIds(two, "t", 900)])).flat());
    }
    expect(new Set(ids).size).toBe(ids.length);
  },
);

// Quotas and overload on a real server: what callers see.
import { setTimeout as pause } from "node:timers/promises";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import {
  IdServiceService,
  NodeServiceService,
  type StreamIdsRequest,
  type StreamIdsResponse,
  TagServiceService,
} from "@idmint/proto";
import { HealthClient } from "@idmint/proto/grpc-js";
import { HealthCheckResponse_ServingStatus } from "@idmint/proto/health";
import { ErrorInfo, RetryInfo } from "@idmint/proto/rpc";
import { MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import {
  call,
  createTag,
  generateId,
  refusalOf,
  startTest,
  type TestServer,
  until,
} from "../../support.ts";

const SEGMENT_LOADED = { min: 1_000_000, max: 1_000_000 };

function allocate(
  { ids }: Pick<TestServer, "ids">,
  tag: string,
  count: number,
  timeoutMs?: number,
) {
  return call(
    ids,
    IdServiceService.allocateSegment,
    { tag, count, after: 0n, instance: "" },
    timeoutMs,
  );
}

function refusalsOf(settled: readonly PromiseSettledResult<unknown>[]): readonly unknown[] {
  return settled.filter((each) => each.status === "rejected").map(({ reason }): unknown => reason);
}

/**
 * How many of so many calls at once were answered; the others were over a quota. While its connection becomes narrow, a
 * caller is refused all.
 */
async function admittedOf(it: Pick<TestServer, "ids">, tag: string, calls: number) {
  const settled = await Promise.allSettled(
    Array.from({ length: calls }, () => generateId(it, tag, 20_000)),
  );
  const refusals = refusalsOf(settled);
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      reason: expect.stringMatching(/^(QUOTA_EXCEEDED|OVERLOADED)$/u) as string,
    });
  }
  return calls - refusals.length;
}

test("a refusal is an answer that names the quota and says when to come back", async () => {
  const it = await startTest({
    flags: { "quota-caller-calls": "2", "quota-tag-ids": "100,b=none" },
  });
  for (const name of ["a", "b"]) await createTag(it, name);
  await allocate(it, "a", 2_000);
  const ofTag = await refusalOf(generateId(it, "a"));
  expect(ofTag).toMatchObject({
    code: "RESOURCE_EXHAUSTED",
    reason: "QUOTA_EXCEEDED",
    metadata: { quota: "tag_ids", limit: "100", tag: "a" },
  });
  expect(ofTag.details).toEqual(["ErrorInfo", "RetryInfo", "QuotaFailure"]);
  expect(ofTag.retryAfterMs).toBeGreaterThan(0);
  expect(ofTag.retryAfterMs).toBeLessThanOrEqual(19_010);
  // The refused call took nothing of the caller's.
  const seen = await Promise.allSettled(Array.from({ length: 50 }, () => generateId(it, "b")));
  const refused = refusalsOf(seen);
  expect(refused.length).toBeGreaterThan(0);
  expect(seen.length).toBeGreaterThan(refused.length);
  expect(refused[0]).toMatchObject({
    reason: "QUOTA_EXCEEDED",
    metadata: { quota: "caller_calls", limit: "2", caller: "127.0.0.1" },
  });
  // Operators and probes are never refused.
  for (let i = 0; i < 50; i++) {
    await call(it.tags, TagServiceService.getTag, { name: "a" });
    await call(it.nodes, NodeServiceService.getNodeStatus, {});
  }
  expect(await healthOf(it)).toBe(HealthCheckResponse_ServingStatus.SERVING);
  expect(it.server.counters.overQuotaCalls).toBe(refused.length + 1);
});

function healthOf({ server, ids }: TestServer) {
  const client = new HealthClient(server.grpcAddress, undefined as never, {
    channelOverride: ids.getChannel(),
  });
  return new Promise((resolve, reject) => {
    client.check({ service: "" }, (error, answer) => {
      if (error === null) resolve(answer.status);
      else reject(error);
    });
  });
}

test("of 1,000 calls a second a quota of 100 admits 90 to 110 a second", async () => {
  // What a test that could not run for a moment has not asked for is still there afterwards.
  const burstMs = 5_000;
  const flags = { "quota-caller-calls": "100", "quota-burst": `${burstMs}ms` };
  const it = await startTest({ flags });
  await createTag(it, "orders", SEGMENT_LOADED);
  for (let tries = 0; tries < 5; tries++) {
    // At some time after this, less than one call was left.
    let emptySince = 0;
    await until(async () => {
      emptySince = performance.now();
      return (await admittedOf(it, "orders", 100)) < 100;
    });
    const start = performance.now();
    const { admitted, offeredUntil, lastAdmittedAt, longestGapMs } = await offer(it, 2_500);
    expect(admitted).toBeLessThanOrEqual((lastAdmittedAt - emptySince) / 10 + 1);
    if (longestGapMs > burstMs - 1_000) continue;
    expect(admitted).toBeGreaterThanOrEqual((0.9 * (offeredUntil - start)) / 10);
    return;
  }
  throw new Error("this test was stopped for seconds again and again");
});

/** Offers 1,000 calls a second, ten at a time, and at the end as many as take all that is left. */
async function offer(it: TestServer, forMs: number) {
  const start = performance.now();
  let [admitted, lastAdmittedAt, longestGapMs, last] = [0, 0, 0, start];
  const waves: Promise<unknown>[] = [];
  const wave = (calls: number): void => {
    for (let i = 0; i < calls; i++) {
      const one = async (): Promise<void> => {
        if ((await admittedOf(it, "orders", 1)) === 0) return;
        admitted++;
        lastAdmittedAt = performance.now();
      };
      waves.push(one());
    }
  };
  for (let now = start; now - start < forMs; now = performance.now()) {
    longestGapMs = Math.max(longestGapMs, now - last);
    last = now;
    wave(10);
    await pause(10);
  }
  const offeredUntil = performance.now();
  wave(500);
  await Promise.all(waves);
  return { admitted, offeredUntil, lastAdmittedAt, longestGapMs };
}

test("each request of a long-lived stream counts, and is refused by an answer of its own", async () => {
  const it = await startTest({ flags: { "quota-caller-calls": "50" } });
  await createTag(it, "orders", SEGMENT_LOADED);
  const stream = it.ids.streamIds() as unknown as ClientDuplexStream<
    Partial<StreamIdsRequest>,
    StreamIdsResponse
  >;
  onTestFinished(() => stream.cancel());
  stream.on("error", () => undefined);
  const answers: StreamIdsResponse[] = [];
  stream.on("data", (answer: StreamIdsResponse) => answers.push(answer));
  const start = performance.now();
  stream.write({ call: 1, tag: "orders", count: 0, name: "" });
  for (let i = 2; i <= 1_000; i++) stream.write({ call: i, tag: "", count: 0, name: "" });
  await until(() => answers.length === 1_000);
  const seconds = (performance.now() - start) / 1_000;
  const errors = answers.flatMap(({ result }) => (result?.$case === "error" ? [result.value] : []));
  const admitted = answers.length - errors.length;
  expect(admitted).toBeGreaterThanOrEqual(50);
  expect(admitted).toBeLessThanOrEqual(50 + 50 * seconds + 1);
  expect(answers.map(({ call: number }) => number).toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: 1_000 }, (_, i) => i + 1),
  );
  for (const { details } of errors) {
    const [info, retry] = details;
    expect(ErrorInfo.decode(info?.value ?? Buffer.alloc(0)).reason).toBe("QUOTA_EXCEEDED");
    expect(RetryInfo.decode(retry?.value ?? Buffer.alloc(0)).retryDelay).toBeDefined();
  }
  // The stream goes on, and with the tag that it named before it was refused.
  await until(async () => {
    const before = answers.length;
    stream.write({ call: 9_999, tag: "", count: 0, name: "" });
    await until(() => answers.length > before);
    return answers.at(-1)?.result?.$case === "one";
  });
});

test("a refused request that names a tag names it for the next one too", async () => {
  const it = await startTest({ flags: { "quota-tag-calls": "1000,a=1" } });
  for (const name of ["a", "b"]) await createTag(it, name);
  const stream = it.ids.streamIds() as unknown as ClientDuplexStream<
    Partial<StreamIdsRequest>,
    StreamIdsResponse
  >;
  onTestFinished(() => stream.cancel());
  stream.on("error", () => undefined);
  const kinds = new Map<number, string>();
  stream.on("data", ({ call: number, result }: StreamIdsResponse) =>
    kinds.set(number, result?.$case ?? ""),
  );
  const names = ["b", "a", "a", "", ""];
  for (const [at, tag] of names.entries()) stream.write({ call: at, tag, count: 0, name: "" });
  await until(() => kinds.size === names.length);
  expect(names.map((_, at) => kinds.get(at))).toEqual(["one", "one", "error", "error", "error"]);
});

test("a segment above the burst is admitted on debt, and ids that a call did not get are no debt", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store, flags: { "quota-caller-ids": "1000" } });
  for (const name of ["a", "b"]) await createTag(it, name, { min: 100, max: 100 });
  // The store fails: three times a million ids, none of which were issued.
  store.faults = { before: (each) => (each === "grant" ? storeIsDown() : undefined) };
  for (let i = 0; i < 3; i++) {
    const refusal = await refusalOf(allocate(it, "a", 1_000_000, 1_000));
    expect(refusal).toMatchObject({ code: "UNAVAILABLE" });
  }
  store.faults = {};
  let granted: Awaited<ReturnType<typeof allocate>> | undefined;
  await until(async () => {
    try {
      granted = await allocate(it, "b", 30_000);
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: "UNAVAILABLE" });
      return false;
    }
  });
  expect(granted?.segments.reduce((sum, { count }) => sum + count, 0)).toBe(30_000);
  const refusal = await refusalOf(allocate(it, "b", 1));
  expect(refusal).toMatchObject({ reason: "QUOTA_EXCEEDED", metadata: { quota: "caller_ids" } });
  // 29,000 ids of debt, less what was paid since.
  expect(refusal.retryAfterMs).toBeLessThanOrEqual(29_001);
  expect(refusal.retryAfterMs).toBeGreaterThan(5_000);
  const most = 1_000 + 1_000 * 3_600;
  const tooMany = await refusalOf(allocate(it, "b", most + 1));
  expect(tooMany).toMatchObject({ reason: "QUOTA_EXCEEDED" });
  expect(tooMany.message).toContain(`${most} ids at most`);
});

test("two servers on one store admit half of a quota each", async () => {
  const store = new MemoryStore();
  // A bucket that is never filled again during the test.
  const flags = { "quota-tag-calls": "3600,orders=100", "quota-burst": "1s" };
  const one = await startTest({ store, flags });
  await createTag(one, "orders", SEGMENT_LOADED);
  await createTag(one, "probe", SEGMENT_LOADED);
  const two = await startTest({ store, flags });
  // Each knows of the other when its row has moved, and a second later it counts.
  for (const { nodes } of [one, two]) {
    await until(async () => {
      const { nodes: rows } = await call(nodes, NodeServiceService.listNodes, {
        pageSize: 0,
        pageToken: "",
      });
      return rows.length === 2;
    });
  }
  await pause(2_500);
  for (const it of [one, two]) {
    const start = performance.now();
    const admitted = await admittedOf(it, "orders", 200);
    const seconds = (performance.now() - start) / 1_000;
    expect(admitted).toBeGreaterThanOrEqual(50);
    expect(admitted).toBeLessThanOrEqual(50 + 50 * seconds + 1);
  }
});

test("a quota that cannot be is refused at the start, with its name", async () => {
  for (const value of ["0", "-1", "1.5", "a=5", "10,a", "10,a=1,a=2", "10,=3"]) {
    await expect(startTest({ flags: { "quota-tag-ids": value } })).rejects.toThrow(
      /--quota-tag-ids must be none or a whole number/,
    );
  }
});

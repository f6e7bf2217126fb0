// The capacity of tags, from a real server on a real store.
import { millisecondsOf } from "@idmint/core";
import {
  CapacityLimitKind,
  CreateTagRequest,
  type GetTagCapacityResponse,
  IdServiceService,
  TagServiceService,
  WorkerServiceService,
} from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { createSequence } from "../kinds/sequence/suite.ts";
import { sqliteHarness } from "../../store/harness.ts";
import { call, createTag, refusalOf, sleep, startTest, type TestServer } from "../../support.ts";

function capacityOf({ tags }: TestServer, name: string): Promise<GetTagCapacityResponse> {
  return call(tags, TagServiceService.getTagCapacity, { name });
}

test("a tag drained at a known rate is foretold within 5 %", async () => {
  const harness = await sqliteHarness();
  onTestFinished(() => harness.remove());
  const it = await startTest({ parts: { store: await harness.open() } });
  await createSequence(it, "bills", {}, { ceiling: 1_000_000_000n });
  expect(await capacityOf(it, "bills")).toMatchObject({ idsPerSecond: undefined });
  const calls: { startedAt: number; endedAt: number }[] = [];
  const end = performance.now() + 3_000;
  while (performance.now() < end) {
    const startedAt = performance.now();
    await call(it.ids, IdServiceService.generateIds, { tag: "bills", count: 100, asList: false });
    calls.push({ startedAt, endedAt: performance.now() });
    await sleep(20);
  }
  // The last look was between these two.
  const from = performance.now();
  const { idsPerSecond = 0, watched, limits } = await capacityOf(it, "bills");
  const to = performance.now();
  const nowMs = Date.now();
  const watchedMs = watched === undefined ? 0 : millisecondsOf(watched);
  expect(watchedMs).toBeGreaterThan(1_000);
  // What was issued by a time is at least that of calls that had ended, and at most that of calls that had begun.
  const least = (at: number) => 100 * calls.filter(({ endedAt }) => endedAt <= at).length;
  const most = (at: number) => 100 * calls.filter(({ startedAt }) => startedAt <= at).length;
  const fewest = (least(from) - most(to - watchedMs)) / (watchedMs / 1_000);
  const highest = (most(to) - least(from - watchedMs)) / (watchedMs / 1_000);
  expect(idsPerSecond).toBeGreaterThan(fewest * 0.95);
  expect(idsPerSecond).toBeLessThan(highest * 1.05);
  const left = 1_000_000_000n - BigInt(calls.length * 100);
  const ceiling = limits.find(({ kind }) => kind === CapacityLimitKind.CEILING);
  expect(ceiling).toMatchObject({ lastId: 1_000_000_000n, idsLeft: left });
  const inSeconds = ((ceiling?.runOutTime?.getTime() ?? 0) - nowMs) / 1_000;
  expect(inSeconds).toBeGreaterThan((Number(left) / highest) * 0.95);
  expect(inSeconds).toBeLessThan((Number(left) / fewest) * 1.05);
});

test("a snowflake tag says when its bits of time end and how many worker ids are left", async () => {
  const it = await startTest();
  const request = CreateTagRequest.fromPartial({
    tag: {
      name: "trace",
      kind: {
        $case: "snowflake",
        value: { layout: { timeBits: 41, workerBits: 2, sequenceBits: 12 } },
      },
    },
  });
  const { tag } = await call(it.tags, TagServiceService.createTag, request);
  const end = tag?.kind?.$case === "snowflake" ? tag.kind.value.endTime : undefined;
  expect(end).toBeInstanceOf(Date);
  expect(await capacityOf(it, "trace")).toEqual({
    idsPerSecond: undefined,
    watched: undefined,
    limits: [
      {
        kind: CapacityLimitKind.TIME_BITS,
        lastId: 0n,
        idsLeft: undefined,
        runOutTime: end,
      },
    ],
    workers: { total: 4, left: 4 },
  });
  await call(it.workers, WorkerServiceService.leaseWorker, {
    tag: "trace",
    instance: "one",
    dataCenter: undefined,
    reserveAhead: undefined,
  });
  expect((await capacityOf(it, "trace")).workers).toEqual({ total: 4, left: 3 });
});

test("what is no tag is refused by its field, and a tag that is not there as not found", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const { code, fields } = await refusalOf(capacityOf(it, "no tag"));
  expect([code, fields[0]?.field]).toEqual(["INVALID_ARGUMENT", "name"]);
  expect((await refusalOf(capacityOf(it, "ghost"))).reason).toBe("TAG_NOT_FOUND");
});

// The capacity of tags, from a real server on a real store.
import {
  CapacityLimitKind,
  CreateTagRequest,
  type GetTagCapacityResponse,
  IdServiceService,
  TagServiceService,
  WorkerServiceService,
} from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { createSequence } from "./sequence-suite.ts";
import { sqliteHarness } from "./store/harness.ts";
import { call, createTag, refusalOf, sleep, startTest, type TestServer } from "./support.ts";

function capacityOf({ tags }: TestServer, name: string): Promise<GetTagCapacityResponse> {
  return call(tags, TagServiceService.getTagCapacity, { name });
}

test("a tag drained at a known rate is foretold within 5 %", async () => {
  const harness = await sqliteHarness();
  onTestFinished(() => harness.remove());
  const it = await startTest({ parts: { store: await harness.open() } });
  await createSequence(it, "bills", {}, { ceiling: 1_000_000_000n });
  expect(await capacityOf(it, "bills")).toMatchObject({ idsPerSecond: undefined });
  // What is known of the drain: no look was earlier than the first bound, nor later than the last one.
  const first = { from: performance.now(), to: 0 };
  expect(await capacityOf(it, "bills")).toMatchObject({ watched: undefined });
  first.to = performance.now();
  let issued = 0;
  while (performance.now() - first.to < 3_000) {
    await call(it.ids, IdServiceService.generateIds, { tag: "bills", count: 100, asList: false });
    issued += 100;
    await sleep(20);
  }
  const last = { from: performance.now(), to: 0 };
  const { idsPerSecond = 0, limits } = await capacityOf(it, "bills");
  last.to = performance.now();
  const nowMs = Date.now();
  const slowest = (issued * 1_000) / (last.to - first.from);
  const fastest = (issued * 1_000) / (last.from - first.to);
  expect(idsPerSecond).toBeGreaterThan(slowest * 0.95);
  expect(idsPerSecond).toBeLessThan(fastest * 1.05);
  const end = limits.find(({ kind }) => kind === CapacityLimitKind.CEILING);
  expect(end).toMatchObject({ lastId: 1_000_000_000n, idsLeft: 1_000_000_000n - BigInt(issued) });
  const inSeconds = ((end?.runOutTime?.getTime() ?? 0) - nowMs) / 1_000;
  expect(inSeconds).toBeGreaterThan((Number(end?.idsLeft) / fastest) * 0.95);
  expect(inSeconds).toBeLessThan((Number(end?.idsLeft) / slowest) * 1.05);
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

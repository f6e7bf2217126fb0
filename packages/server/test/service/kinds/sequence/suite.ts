import type { Store } from "@idmint/core/server";
import {
  CreateTagRequest,
  type DeepPartial,
  type GenerateIdResponse,
  IdServiceService,
  ListPeriodsRequest,
  PeriodUnit,
  type SequenceKind,
  type StreamIdsResponse,
  type Tag,
  TagServiceService,
} from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import {
  call,
  generateId,
  idsOf,
  Refusal,
  refusalOf,
  startTest,
  type TestServer,
  until,
} from "../../../support.ts";

const DAY_MS = 86_400_000;

/** A fresh store that several servers open. */
export interface SequenceHarness {
  open(): Promise<Store>;
  /** Moves what the store remembers of periods, as if so many days had passed (negative: since then). */
  shiftPeriods(days: number): Promise<void>;
  remove(): Promise<void>;
}

/** Two servers on one store. */
async function startTwo(
  harness: () => Promise<SequenceHarness>,
  flags: Record<string, string> = {},
): Promise<{ one: TestServer; two: TestServer; harness: SequenceHarness }> {
  const its = await harness();
  onTestFinished(() => its.remove());
  const one = await startTest({ flags, parts: { store: await its.open() } });
  const two = await startTest({ flags, parts: { store: await its.open() } });
  return { one, two, harness: its };
}

export async function createSequence(
  { tags }: Pick<TestServer, "tags">,
  name: string,
  value: DeepPartial<SequenceKind> = {},
  more: { ceiling?: bigint } = {},
): Promise<Tag> {
  const request = { tag: { name, kind: { $case: "sequence" as const, value }, ...more } };
  const { tag } = await call(
    tags,
    TagServiceService.createTag,
    CreateTagRequest.fromPartial(request),
  );
  if (tag === undefined) throw new Error("an answer without a tag");
  return tag;
}

/** The reason of a refused call. */
export function reasonOf(error: unknown): string {
  if (error instanceof Refusal) return error.reason;
  throw error;
}

/** The date in a time zone. */
function dateIn(timeZone: string, at = Date.now()): string {
  return new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short" }).format(at);
}

/** What must hold of sequences on every store. */
export function sequenceSuite(name: string, harness: () => Promise<SequenceHarness>): void {
  test(`${name}: an id asked for after another was answered is larger, over two servers`, async () => {
    const { one, two } = await startTwo(harness);
    await createSequence(one, "bills");
    let clock = 0;
    const calls: { asked: number; answered: number; id: bigint }[] = [];
    const caller = async (at: number): Promise<void> => {
      for (let round = 0; round < 15; round++) {
        const asked = ++clock;
        const { id } = await generateId((at + round) % 2 === 0 ? one : two, "bills");
        calls.push({ asked, answered: ++clock, id });
      }
    };
    await Promise.all(Array.from({ length: 24 }, (_, at) => caller(at)));
    expect(new Set(calls.map(({ id }) => id)).size).toBe(24 * 15);
    for (const before of calls) {
      const inverted = calls.filter(({ asked, id }) => asked > before.answered && id < before.id);
      expect(inverted).toEqual([]);
    }
    // None was lost: every call was answered.
    expect(calls.map(({ id }) => id).toSorted((a, b) => Number(a - b))).toEqual(
      calls.map((_, at) => BigInt(at + 1)),
    );
  });

  test(`${name}: 64 calls at once cost few grants`, async () => {
    const { one } = await startTwo(harness);
    await createSequence(one, "bills");
    await generateId(one, "bills");
    const before = one.server.counters.grants;
    const answers = await Promise.all(Array.from({ length: 64 }, () => generateId(one, "bills")));
    expect(answers.map(({ id }) => id).toSorted((a, b) => Number(a - b))).toEqual(
      Array.from({ length: 64 }, (_, at) => BigInt(at + 2)),
    );
    expect(one.server.counters.grants - before).toBeLessThanOrEqual(8);
  });

  test(`${name}: counts and streams are answered with ids that follow each other`, async () => {
    const { one, two } = await startTwo(harness);
    await createSequence(one, "bills", { start: 100n });
    const request = { tag: "bills", count: 5, asList: true };
    const list = await call(one.ids, IdServiceService.generateIds, request);
    expect(list).toMatchObject({
      ids: [100n, 101n, 102n, 103n, 104n],
      segments: [],
      texts: [],
      epoch: 1n,
      period: "",
      periodEndTime: undefined,
    });
    const ranges = await call(two.ids, IdServiceService.generateIds, { ...request, asList: false });
    expect(idsOf(ranges.segments)).toEqual([105n, 106n, 107n, 108n, 109n]);
    expect(await streamed(one, "bills")).toMatchObject({
      $case: "one",
      value: { id: 110n, epoch: 1n, period: "" },
    });
    expect(one.server.counters.issuedIds).toBe(6);
  });

  periodTests(name, harness);
  returnTests(name, harness);
  refusalTests(name, harness);
}

/** The answer to one request on a stream. */
async function streamed(
  { ids }: Pick<TestServer, "ids">,
  tag: string,
): Promise<StreamIdsResponse["result"]> {
  const stream = ids.streamIds();
  const answers: StreamIdsResponse[] = [];
  stream.on("data", (answer: StreamIdsResponse) => answers.push(answer));
  stream.on("error", () => undefined);
  onTestFinished(() => stream.cancel());
  stream.write({ call: 1, tag, count: 1, name: "" });
  await until(() => answers.length === 1);
  return answers[0]?.result;
}

function periodTests(name: string, harness: () => Promise<SequenceHarness>): void {
  test(`${name}: a daily sequence answers its date, a text and the end of the day, and starts at 1`, async () => {
    const { one, two } = await startTwo(harness);
    const timeZone = "Asia/Shanghai";
    const tag = await createSequence(one, "bills", { period: PeriodUnit.DAY, timeZone });
    expect(tag).toMatchObject({ period: "", order: 3, floor: 0n });
    const dates = [dateIn(timeZone)];
    const first = await generateId(one, "bills");
    const second = await generateId(two, "bills");
    dates.push(dateIn(timeZone));
    const answers: GenerateIdResponse[] = [first, second];
    for (const { id, period, text, periodEndTime } of answers) {
      expect(dates).toContain(period);
      expect(text).toBe(`${period.replaceAll("-", "")}-${id}`);
      // Shanghai is eight hours ahead, all year.
      expect(periodEndTime?.getTime()).toBe(Date.parse(period) + DAY_MS - 8 * 3_600_000);
    }
    if (first.period === second.period) expect([first.id, second.id]).toEqual([1n, 2n]);
    const { period } = await call(one.ids, IdServiceService.generateIds, {
      tag: "bills",
      count: 3,
      asList: false,
    });
    expect([...dates, dateIn(timeZone)]).toContain(period);
    expect(await streamed(one, "bills")).toMatchObject({
      $case: "one",
      value: { id: 6n, period },
    });
    const now = await call(one.tags, TagServiceService.getTag, { name: "bills" });
    expect(now.tag?.period).toBe(period);
  });

  test(`${name}: each period begins at 1, and those that ended are listed, newest first`, async () => {
    const { one, two, harness: its } = await startTwo(harness);
    await createSequence(one, "bills", { period: PeriodUnit.WEEK, timeZone: "UTC" });
    const issued: string[] = [];
    for (const count of [3, 2, 4]) {
      // The same week comes again, which a server that was granted its ids would never take.
      const { ids: service } = await startTest({ parts: { store: await its.open() } });
      const { ids, period } = await call(service, IdServiceService.generateIds, {
        tag: "bills",
        count,
        asList: true,
      });
      expect(ids).toEqual(Array.from({ length: count }, (_, at) => BigInt(at + 1)));
      issued.push(period);
      await its.shiftPeriods(-7);
    }
    const { id, period } = await generateId(two, "bills");
    expect(id).toBe(1n);
    expect(period).toMatch(/^\d{4}-W\d\d$/);
    const list = (request: object) =>
      call(
        two.tags,
        TagServiceService.listPeriods,
        ListPeriodsRequest.fromPartial({ name: "bills", ...request }),
      );
    const all = await list({});
    expect(all.periods.map(({ lastId }) => lastId)).toEqual([4n, 2n, 3n]);
    expect(all.nextPageToken).toBe("");
    const names = all.periods.map((each) => each.period);
    expect([period, ...names]).toEqual([period, ...names].toSorted().toReversed());
    const first = await list({ pageSize: 2 });
    expect(first.periods).toEqual(all.periods.slice(0, 2));
    const rest = await list({ pageSize: 2, pageToken: first.nextPageToken });
    expect(rest).toEqual({ periods: all.periods.slice(2), nextPageToken: "" });
  });
}

function returnTests(name: string, harness: () => Promise<SequenceHarness>): void {
  test(`${name}: a sequence goes back from a period ahead of the clock, on every server`, async () => {
    const { one, two, harness: its } = await startTwo(harness);
    await createSequence(one, "bills", { period: PeriodUnit.MONTH, timeZone: "UTC" });
    const { period } = await generateId(one, "bills");
    const back = { name: "bills", period, floor: undefined, etag: "", validateOnly: false };
    // Well into a later month.
    await its.shiftPeriods(61);
    const ahead = await generateId(two, "bills");
    expect(ahead.period.localeCompare(period)).toBe(1);
    const without = call(one.tags, TagServiceService.returnToPeriod, back);
    expect((await refusalOf(without)).reason).toBe("INVALID_ARGUMENT");
    for (const wrong of ["2026-11-01", "2026-13", "next", ""]) {
      const asked = { ...back, period: wrong, floor: 5n };
      const refusal = await refusalOf(call(one.tags, TagServiceService.returnToPeriod, asked));
      expect(refusal.reason).toBe("INVALID_ARGUMENT");
    }
    const answer = await call(one.tags, TagServiceService.returnToPeriod, { ...back, floor: 5n });
    expect(answer).toMatchObject({ returned: true, tag: { period, floor: 5n, epoch: 2n } });
    expect(await generateId(two, "bills")).toMatchObject({ period, id: 6n, epoch: 2n });
    expect(await generateId(one, "bills")).toMatchObject({ period, id: 7n });
    const again = await call(two.tags, TagServiceService.returnToPeriod, back);
    expect(again).toMatchObject({ returned: false, tag: { floor: 7n } });
  });
}

function refusalTests(name: string, harness: () => Promise<SequenceHarness>): void {
  test(`${name}: a tag that is paused or deleted on one server issues nothing on any`, async () => {
    const { one, two } = await startTwo(harness);
    await createSequence(one, "bills");
    await generateId(two, "bills");
    const named = { name: "bills", etag: "", validateOnly: false };
    await call(one.tags, TagServiceService.pauseTag, named);
    // The store itself refuses, so there is nothing to wait for.
    for (const each of [one, two]) {
      expect((await refusalOf(generateId(each, "bills"))).reason).toBe("TAG_PAUSED");
    }
    await call(two.tags, TagServiceService.resumeTag, named);
    expect(await generateId(two, "bills")).toMatchObject({ id: 2n, epoch: 3n });
    await call(one.tags, TagServiceService.deleteTag, named);
    for (const each of [one, two]) {
      expect((await refusalOf(generateId(each, "bills"))).reason).toBe("TAG_NOT_FOUND");
    }
    // Nothing of a sequence is in anybody's memory: it is in effect as soon as the other server has said that it obeys.
    await until(async () => {
      const effect = await call(one.tags, TagServiceService.getTagEffect, { name: "bills" });
      return effect.inEffect;
    });
  });

  test(`${name}: an advanced sequence goes on above its new floor`, async () => {
    const { one, two } = await startTwo(harness);
    await createSequence(one, "bills");
    await generateId(two, "bills");
    const advance = { name: "bills", floor: 500n, etag: "", validateOnly: false };
    await call(one.tags, TagServiceService.advanceTag, { ...advance, allowLargeRaise: false });
    expect(await generateId(two, "bills")).toMatchObject({ id: 501n, epoch: 2n });
  });

  test(`${name}: at the ceiling whoever still fits is served, and the others are refused`, async () => {
    const { one } = await startTwo(harness);
    await createSequence(one, "bills", {}, { ceiling: 5n });
    await generateId(one, "bills");
    const wishes = [4, 1, 1, 1, 1, 1].map((count) =>
      call(one.ids, IdServiceService.generateIds, { tag: "bills", count, asList: true }).then(
        ({ ids }) => ids.length,
        reasonOf,
      ),
    );
    const answers = await Promise.all(wishes);
    const counts = answers.filter((each) => typeof each === "number");
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(4);
    expect(answers.filter((each) => typeof each === "string")).toEqual(
      Array.from({ length: 6 - counts.length }, () => "TAG_EXHAUSTED"),
    );
  });

  test(`${name}: a sequence hands out no segments, takes none back, and says of what kind it is`, async () => {
    const { one } = await startTwo(harness);
    await createSequence(one, "bills");
    const allocated = call(one.ids, IdServiceService.allocateSegment, {
      tag: "bills",
      count: 10,
      after: 0n,
      instance: "",
    });
    const { code, reason, metadata } = await refusalOf(allocated);
    expect({ code, reason, metadata }).toEqual({
      code: "FAILED_PRECONDITION",
      reason: "WRONG_KIND",
      metadata: { tag: "bills", kind: "sequence" },
    });
    const release = { tag: "bills", releaseToken: "0.x", unusedCount: 1 };
    const { reclaimedCount } = await call(one.ids, IdServiceService.releaseSegment, release);
    expect(reclaimedCount).toBe(0);
    const listed = call(one.tags, TagServiceService.listPeriods, {
      name: "bills",
      pageSize: 0,
      pageToken: "",
    });
    expect((await refusalOf(listed)).reason).toBe("WRONG_KIND");
  });

  test(`${name}: a name that becomes one of another kind is served as that`, async () => {
    const { one, two } = await startTwo(harness, { "poll-interval": "100ms" });
    await createSequence(one, "bills");
    await generateId(two, "bills");
    await call(one.tags, TagServiceService.deleteTag, {
      name: "bills",
      etag: "",
      validateOnly: false,
    });
    const kind = { $case: "segment" as const, value: { min: 10, max: 10 } };
    const request = CreateTagRequest.fromPartial({ tag: { name: "bills", kind } });
    await call(one.tags, TagServiceService.createTag, request);
    const allocate = { tag: "bills", count: 3, after: 0n, instance: "" };
    await until(async () => {
      const answer = call(two.ids, IdServiceService.allocateSegment, allocate);
      return answer.then(
        () => true,
        () => false,
      );
    });
    expect((await generateId(two, "bills")).id).toBeGreaterThan(1n);
  });
}

// Sequences that start again every period, through the SDK.
import { expect, test } from "vitest";
import { fakeWorld } from "../fake-transport.ts";
import { reasonOf, refusal, UNTOLD } from "../support.ts";
import { answerFrom, learn } from "./uncached-support.ts";

const day = (date: string) => ({
  period: date,
  periodEndTime: new Date(Date.parse(`${date}T16:00:00Z`)),
});

async function periodWorld(options: object = {}) {
  const world = fakeWorld({ address: "a:1", ...options });
  const tag = world.client.tag("t");
  const first = tag.nextPeriodId();
  await learn(world, "sequence");
  await answerFrom(world, 7n, day("2026-11-21"));
  const answer = await first;
  return { world, tag, answer };
}

test("an id comes with its period, and with a text that is unique by itself", async () => {
  const { answer } = await periodWorld();
  expect(answer).toEqual({
    period: "2026-11-21",
    id: 7n,
    text: "20261121-7",
    endsAt: new Date("2026-11-21T16:00:00Z"),
  });
});

test("plain calls are refused, and use up nothing once it is known that the tag has periods", async () => {
  const { world, tag } = await periodWorld();
  for (const call of [
    tag.next(),
    tag.nextString(),
    tag.nextNumber(),
    tag[Symbol.asyncIterator]().next(),
  ]) {
    const error = await refusal(call);
    expect([error.reason, error.metadata]).toEqual(["WRONG_KIND", { tag: "t", kind: "sequence" }]);
    expect(error.message).toContain("nextPeriodId()");
  }
  expect(world.transport.generating).toEqual([]);
});

test("an id that was issued before the periods were known stands in the refusal", async () => {
  const world = fakeWorld({ address: "a:1" });
  const plain = refusal(world.client.tag("t").next());
  await learn(world, "sequence");
  await answerFrom(world, 3n, day("2026-11-21"));
  expect((await plain).metadata).toMatchObject({ period: "2026-11-21", id: "3" });

  const other = fakeWorld({ address: "a:1" });
  const periodic = refusal(other.client.tag("t").nextPeriodId());
  await learn(other, "sequence");
  await answerFrom(other, 4n);
  const error = await periodic;
  expect([error.reason, error.metadata["id"]]).toEqual(["WRONG_KIND", "4"]);
  expect(error.message).toContain("Use next()");
  expect(await reasonOf(other.client.tag("t").nextPeriodId())).toBe("WRONG_KIND");
});

test("a session never sees yesterday after today", async () => {
  const { world, tag } = await periodWorld({ addresses: ["a:1", "b:1"], address: undefined });
  const today = tag.nextPeriodId();
  await answerFrom(world, 1n, day("2026-11-22"));
  expect(await today).toMatchObject({ text: "20261122-1" });
  const next = tag.nextPeriodId();
  await answerFrom(world, 8n, day("2026-11-21"));
  await answerFrom(world, 2n, day("2026-11-22"));
  expect(await next).toMatchObject({ text: "20261122-2" });
});

test("all ids of one answer are of its period", async () => {
  const { world, tag } = await periodWorld();
  const calls = [tag.nextPeriodId(), tag.nextPeriodId(), tag.nextPeriodId()];
  await answerFrom(world, 1n, { ...day("2026-11-22"), period: "2026-W47" });
  expect((await Promise.all(calls)).map(({ text }) => text)).toEqual([
    "2026W47-1",
    "2026W47-2",
    "2026W47-3",
  ]);
});

test("a segment tag has no periods, and nothing is used up to say so", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("t");
  const refused = refusal(tag.nextPeriodId());
  await new Promise(setImmediate);
  const call = world.transport.pending.shift()!;
  call.answer({
    segments: [{ base: 1n, count: call.request.count, increment: 1 }],
    epoch: 1n,
    releaseToken: "",
    maxAge: { seconds: 600n, nanos: 0 },
    order: 1,
    maxCount: 10_000_000,
    ...UNTOLD,
  });
  expect((await refused).message).toContain("Use next()");
  expect(await tag.next()).toBe(1n);
});

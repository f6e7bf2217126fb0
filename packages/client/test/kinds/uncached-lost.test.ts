// Ids of a sequence that its store, accepted with too small a gap, would give again.
import type { GenerateIdsResponse } from "@idmint/proto";
import { expect, test } from "vitest";
import { type FakeWorld, fakeWorld } from "../fake-transport.ts";
import { reasonOf, refusal } from "../support.ts";
import { answerFrom, learn, worldOf } from "./uncached-support.ts";

const day = (date: number) => ({
  period: `2026-01-0${date}`,
  periodEndTime: new Date(Date.UTC(2026, 0, date + 1)),
});

/** Answers of another epoch make the SDK ask for the kind; the same ids are answered then. */
async function answerAnew(world: FakeWorld, base: bigint, more: Partial<GenerateIdsResponse>) {
  await answerFrom(world, base, more);
  await learn(world, "sequence");
  await answerFrom(world, base, more);
}

test("ids of a sequence at or below those of before an accept are refused until the tag is above them", async () => {
  const world = await worldOf("sequence");
  const tag = world.client.tag("t");
  const high = tag.next();
  await answerFrom(world, 500n);
  expect(await high).toBe(500n);
  const low = refusal(tag.next());
  await answerAnew(world, 500n, { epoch: 2n });
  const { reason, retryable, message } = await low;
  expect([reason, retryable]).toEqual(["STORE_EPOCH_CHANGED", false]);
  expect(message).toContain("idmint tag advance t --floor 500");
  const above = tag.next();
  await answerFrom(world, 501n, { epoch: 3n });
  expect(await above).toBe(501n);
});

test("an operator may take a sequence back to an earlier period, and its ids of before are refused there too", async () => {
  const world = fakeWorld({ address: "a:1" });
  const tag = world.client.tag("t");
  const late = tag.nextPeriodId();
  await learn(world, "sequence");
  await answerFrom(world, 900n, day(2));
  expect((await late).id).toBe(900n);
  const early = tag.nextPeriodId();
  await answerAnew(world, 40n, { ...day(1), epoch: 2n });
  expect((await early).id).toBe(40n);
  const low = reasonOf(tag.nextPeriodId());
  await answerAnew(world, 40n, { ...day(1), epoch: 3n });
  expect(await low).toBe("STORE_EPOCH_CHANGED");
});

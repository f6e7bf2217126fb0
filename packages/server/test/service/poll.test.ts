import { type StoreChanges, VersionGuard } from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { createCounters } from "../../src/service/counters.ts";
import type { Directory } from "../../src/service/directory.ts";
import { Poll } from "../../src/service/poll.ts";

const CHANGES: StoreChanges = {
  incarnation: "one",
  revision: 1n,
  changed: [],
  more: false,
  behind: [],
  fenced: "",
  nowMs: 0,
  parts: [],
};

/** A poll every 800 ms of a store that answers when it is told to. */
async function started() {
  const time = new FakeTime();
  const asked: { readonly at: number; answer(): Promise<void>; fail(): Promise<void> }[] = [];
  const changes = () => {
    const { promise, resolve, reject } = Promise.withResolvers<StoreChanges>();
    const answer = async () => {
      resolve(CHANGES);
      await settle();
    };
    const fail = async () => {
      reject(new Error("down"));
      await settle();
    };
    asked.push({ at: time.now(), answer, fail });
    return promise;
  };
  const poll = new Poll({
    store: { changes },
    accept: undefined,
    epochGap: undefined,
    // Nothing changes, so that nothing is asked of it.
    directory: { retryAll: () => undefined } as Directory,
    guard: new VersionGuard(),
    clock: time,
    timers: time,
    intervalMs: 800,
    timeoutMs: 1_000,
    counters: createCounters(),
    emit: () => undefined,
  });
  const start = poll.start();
  await asked[0]!.answer();
  await start;
  return { time, asked, poll, at: () => asked.map((each) => each.at) };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

test("what another server tells of is asked for at once, but not sooner than 50 ms after the last time", async () => {
  const { time, asked, poll, at } = await started();
  time.advance(300);
  poll.hasten();
  time.advance(0);
  expect(at()).toEqual([0, 300]);
  await asked[1]!.answer();
  for (let turn = 0; turn < 10; turn++) poll.hasten();
  time.advance(49);
  expect(at()).toEqual([0, 300]);
  time.advance(1);
  expect(at()).toEqual([0, 300, 350]);
  await asked[2]!.answer();
  time.advance(799);
  expect(at()).toHaveLength(3);
  time.advance(1);
  expect(at()).toEqual([0, 300, 350, 1_150]);
});

test("what is told while a poll is under way takes one more, and never two at once", async () => {
  const { time, asked, poll, at } = await started();
  time.advance(800);
  for (let turn = 0; turn < 10; turn++) poll.hasten();
  time.advance(500);
  expect(at()).toEqual([0, 800]);
  await asked[1]!.answer();
  time.advance(0);
  expect(at()).toEqual([0, 800, 1_300]);
  await asked[2]!.answer();
  time.advance(799);
  expect(at()).toHaveLength(3);
});

test("a store that does not answer is not asked more often because of signals", async () => {
  const { time, asked, poll, at } = await started();
  time.advance(800);
  await asked[1]!.fail();
  for (let ms = 0; ms < 249; ms++) {
    poll.hasten();
    time.advance(1);
  }
  expect(at()).toHaveLength(2);
  time.advance(1);
  expect(at()).toEqual([0, 800, 1_050]);
  poll.stop();
  await asked[2]!.answer();
  poll.hasten();
  time.advance(5_000);
  expect(at()).toHaveLength(3);
});

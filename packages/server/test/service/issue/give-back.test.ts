// A server with more tags than one call of its store may hold gives all of them back.
import { IdmintError } from "@idmint/core";
import { type GiveBackRequest, MAX_BATCH, STORE_CALLS } from "@idmint/core/server";
import { FakeTime, MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import type { ServerEvent } from "../../../src/service/events.ts";
import { GIVE_BACK_MS, giveBackAll } from "../../../src/service/issue/give-back.ts";
import { SETTINGS, setUp, settled } from "../directory-world.ts";

const TAGS = 2_500;

/** A store in memory that holds its calls to the limits of the port, as those of servers are. */
function limitedStore(): { readonly store: MemoryStore; readonly sizes: readonly number[] } {
  const store = new MemoryStore();
  const sizes: number[] = [];
  const giveBack = store.giveBack.bind(store);
  Object.assign(store, {
    giveBack: async (requests: readonly GiveBackRequest[]) => {
      sizes.push(requests.length);
      STORE_CALLS.giveBack.check?.(requests);
      return giveBack(requests);
    },
  });
  return { store, sizes };
}

test("a server that stops gives back the ids of all its tags", async () => {
  const { store, sizes } = limitedStore();
  const { directory, call } = setUp(store, TAGS);
  const names = Array.from({ length: TAGS }, (_, at) => `t${at}`);
  for (const name of names) await store.createTag({ ...SETTINGS, name });
  for (let at = 0; at < TAGS; at += 1_000)
    directory.admit(await store.getTags(names.slice(at, at + 1_000)));
  const ids = names.map(async (name) => directory.get(name)?.buffer?.next(call));
  while ([...directory.entries()].some(({ buffer }) => buffer?.ready !== 19)) await settled();
  expect(new Set(await Promise.all(ids))).toEqual(new Set([1n]));
  expect(await directory.drain(new IdmintError("DRAINING", "over"))).toEqual({
    givenBack: 19 * TAGS,
    wasted: 0,
  });
  expect(sizes).toEqual([MAX_BATCH, MAX_BATCH, 500]);
  for (const { floor } of await store.getTags(names.slice(0, 1_000))) expect(floor).toBe(1n);
});

/** Ranges of so many tags, each one id wider than the one before, and a store that answers after `tookMs`. */
function rangesAt(count: number, answer: (batch: readonly GiveBackRequest[]) => readonly number[]) {
  const time = new FakeTime();
  const events: ServerEvent[] = [];
  const calls: (readonly GiveBackRequest[])[] = [];
  const requests = Array.from({ length: count }, (_, at) => {
    return { tag: `t${at}`, from: 1n, to: BigInt(at + 1), version: 1n, giver: undefined };
  });
  const store = {
    giveBack: (batch: readonly GiveBackRequest[]) => {
      calls.push(batch);
      return Promise.resolve(answer(batch));
    },
  };
  const emit = (event: ServerEvent): void => void events.push(event);
  const give = () => giveBackAll(requests, { store, clock: time, timers: time, emit }, 1_000);
  return { give, time, calls, events };
}

test("the widest ranges go first, and it ends in time", async () => {
  const it = rangesAt(5_000, (batch) => {
    it.time.advance(GIVE_BACK_MS / 2 + 1);
    return batch.map(() => 1);
  });
  expect(await it.give()).toBe(2 * MAX_BATCH);
  expect(it.calls.map(([first]) => first?.tag)).toEqual(["t4999", "t3999"]);
});

test("a call that fails is the last one, and is told", async () => {
  const it = rangesAt(5_000, (batch) => {
    if (it.calls.length === 2) throw new IdmintError("STORE_UNAVAILABLE", "away");
    return batch.map(() => 1);
  });
  expect(await it.give()).toBe(MAX_BATCH);
  expect(it.calls.length).toBe(2);
  expect(it.events).toMatchObject([{ type: "give-back-failed" }]);
});

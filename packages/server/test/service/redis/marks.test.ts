// Readings of how far Redis had counted that are under way together, for one tag.
import { MemoryStore, FakeTime } from "@idmint/testkit";
import type { MarkStore } from "@idmint/core/server";
import { expect, test } from "vitest";
import { RedisMarks } from "../../../src/service/redis/marks.ts";

const five = { tag: "t", generation: 5n };
const six = { tag: "t", generation: 6n };

/** Marks over a store whose answers come when the test lets them. */
function stage() {
  const store = new MemoryStore();
  const held: (() => void)[] = [];
  let holds = true;
  const exchangeMarks: MarkStore["exchangeMarks"] = async (risen, asked) => {
    const told = await store.exchangeMarks(risen, asked);
    const { promise, resolve } = Promise.withResolvers<void>();
    if (holds) held.push(resolve);
    else resolve();
    await promise;
    return told;
  };
  const time = new FakeTime();
  const marks = new RedisMarks({
    store: { exchangeMarks },
    storeTimeoutMs: 1_000,
    clock: time,
    timers: time,
    afterTurn: (run) => void Promise.resolve().then(run),
    emit: () => undefined,
  });
  const answer = (): void => {
    holds = false;
    for (const resolve of held.splice(0)) resolve();
  };
  return { store, marks, held, answer };
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

test("a turn that asked before for an older generation keeps no newer one from being read", async () => {
  const { store, marks, held, answer } = stage();
  await store.exchangeMarks([{ ...six, mark: 40n }], []);
  marks.note({ ...five, mark: 7n });
  const turn = marks.turn();
  const learned = marks.learn([six]);
  await settled();
  expect(held).toHaveLength(2);
  answer();
  await Promise.all([turn, learned]);
  expect(marks.of(six)).toBe(40n);
});

test("who wants two generations of a tag at once is refused neither", async () => {
  const { store, marks, answer } = stage();
  await store.exchangeMarks([{ ...six, mark: 40n }], []);
  const both = Promise.all([marks.read(five), marks.read(six)]);
  await settled();
  answer();
  expect(await both).toEqual([0n, 40n]);
});

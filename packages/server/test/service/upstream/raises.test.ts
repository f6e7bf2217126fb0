import { VersionGuard } from "@idmint/core/server";
import { MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import { Raises } from "../../../src/service/upstream/raises.ts";
import { sequenceSettings } from "../redis/redis-tags.ts";

/** Raises by 20 of the tags t and u, over a store that does `before` and `after` at each call. */
async function raisesOver(faults: {
  readonly before?: () => Promise<void>;
  readonly after?: () => Promise<void>;
}): Promise<(tag: string) => ReturnType<Raises["raise"]>> {
  let isMade = false;
  const once = (fault?: () => Promise<void>) => async (): Promise<void> => {
    if (isMade) await fault?.();
  };
  const store = new MemoryStore({
    faults: { before: once(faults.before), after: once(faults.after) },
  });
  for (const name of ["t", "u"]) {
    await store.createTag(sequenceSettings(name, { step: 20, ceiling: 1_000n }));
  }
  isMade = true;
  const raises = new Raises({
    store,
    guard: new VersionGuard(),
    timers: { after: () => () => undefined },
    storeTimeoutMs: 10_000,
    history: () => 0,
    onWentBack: (_, detail) => expect.fail(detail),
    onBelow: (tag) => expect.fail(tag),
  });
  return (tag) => raises.raise({ tag, by: 20n, atLeast: 0n, newGeneration: false });
}

test("raises of one tag do not overtake each other, and do not wait for those of others", async () => {
  const answers: (() => void)[] = [];
  const raise = await raisesOver({
    after: () => new Promise<void>((resolve) => answers.push(resolve)),
  });
  const asked = [raise("t"), raise("t"), raise("u"), raise("t")];
  let most = 0;
  // Each turn answers one call at least, as long as any is under way: what was asked for last comes first.
  for (const _ of asked) {
    await new Promise(setImmediate);
    most = Math.max(most, answers.length);
    answers.pop()?.();
  }
  const floors = (await Promise.all(asked)).map(({ before, floor }) => `${before} to ${floor}`);
  expect(floors).toEqual(["0 to 20", "20 to 40", "0 to 20", "40 to 60"]);
  expect(most).toBe(2);
});

test("a raise that fails does not hold up the next one of its tag", async () => {
  const outcomes = [Promise.reject(new Error("down")), Promise.resolve()];
  const raise = await raisesOver({ before: () => outcomes.shift() ?? Promise.resolve() });
  const [first, second] = [raise("t"), raise("t")];
  await expect(first).rejects.toThrow("STORE_UNAVAILABLE");
  await expect(second).resolves.toMatchObject({ before: 0n, floor: 20n });
});

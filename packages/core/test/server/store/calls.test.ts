import { expect, test } from "vitest";
import {
  checkedCall,
  STORE_CALLS,
  type StoreCall,
  storeCalls,
  wrapStore,
} from "../../../src/server/store/calls.ts";
import type { GrantRequest } from "../../../src/server/store/grants.ts";
import type { Store } from "../../../src/server/store/store.ts";

const WISH: GrantRequest = {
  tag: "t",
  kind: "segment",
  count: 1,
  minCount: 1,
  after: 0n,
  seenVersion: 0n,
};

/** A store that answers nothing, and what it was asked. */
function silentStore() {
  const asked: [StoreCall, ...unknown[]][] = [];
  let isClosed = false;
  const store: Store = {
    ...storeCalls(async (name, args) => {
      asked.push([name, ...args]);
      return undefined as never;
    }),
    backend: "silent",
    maxBatch: 7,
    get schemaVersion() {
      return asked.length;
    },
    groupOf: (tag) => `group of ${tag}`,
    close: async () => {
      isClosed = true;
    },
  };
  return { store, asked, isClosed: () => isClosed };
}

test("each call of the table is made by its name, with its arguments, and nothing else is", async () => {
  const { store, asked } = silentStore();
  const names = Object.keys(STORE_CALLS) as StoreCall[];
  const calls = store as unknown as Record<StoreCall, (...args: unknown[]) => Promise<unknown>>;
  for (const name of names) await calls[name]("a", 2, undefined);
  expect(asked).toEqual(names.map((name) => [name, "a", 2, undefined]));
  expect(names).not.toContain("close");
});

test("a wrapped store is the same one with something around each call", async () => {
  const { store, asked, isClosed } = silentStore();
  const begun: string[] = [];
  const wrapped = wrapStore(store, async (name, args, inner) => {
    begun.push(name);
    return inner[name](...args);
  });
  await wrapped.grant([WISH], { skipLocked: true });
  await wrapped.setTagState("t", "PAUSED", undefined);
  expect(begun).toEqual(["grant", "setTagState"]);
  expect(asked).toEqual([
    ["grant", [WISH], { skipLocked: true }],
    ["setTagState", "t", "PAUSED", undefined],
  ]);
  expect(wrapped).toMatchObject({ backend: "silent", maxBatch: 7, schemaVersion: 2 });
  expect(wrapped.groupOf?.("t")).toBe("group of t");
  expect(wrapped).not.toHaveProperty("partsOf");
  await wrapped.close();
  expect(isClosed()).toBe(true);
});

test("what breaks a limit of the port rejects, and empty lists are answered, without the store", async () => {
  const { store, asked } = silentStore();
  const checked = wrapStore(store, checkedCall);
  await expect(checked.grant([WISH, WISH])).rejects.toThrow("occurs twice");
  await expect(checked.grant([{ ...WISH, count: 1.5 }])).rejects.toThrow(RangeError);
  await expect(checked.getTags(Array(1_001).fill("t"))).rejects.toThrow(RangeError);
  await expect(checked.accept(-1n)).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
  expect(await checked.grant([])).toEqual([]);
  expect(await checked.giveBack([])).toEqual([]);
  expect(await checked.forgetNodes([])).toBe(0);
  expect(asked).toEqual([]);
  // Lists without a limit of their own, and calls without an answer for none.
  await checked.getTags([]);
  await checked.exchangeMarks([], []);
  expect(asked.map(([name]) => name)).toEqual(["getTags", "exchangeMarks"]);
});

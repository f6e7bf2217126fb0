// A walk that no fault fails shows nothing: these are planted in a store in memory, and walks of it are held against another one.
import { type Store, storeUnavailable, wrapStore } from "@idmint/core/server";
import { MemoryDatabase, MemoryStore } from "@idmint/testkit";
import { walkStore } from "@idmint/testkit/store-model";
import type { StoreHarness } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";

/** What a handle does in another way. */
type Fault = (store: Store, database: MemoryDatabase) => Partial<Store>;

const NONE: Fault = () => ({});

/** `faultOfCut`: of handles whose line is cut. */
function memoryHarness(fault: Fault, faultOfCut: Fault): StoreHarness {
  const database = new MemoryDatabase();
  const open = async (its: Fault): Promise<Store> => {
    const store = new MemoryStore({ database });
    const plain = wrapStore(store, (name, args, inner) => inner[name](...args));
    return { ...plain, ...its(plain, database) };
  };
  return {
    open: () => open(fault),
    openCut: async () => ({ store: await open(faultOfCut), cut: () => undefined }),
    shiftPeriods: async (days) => database.shiftPeriods(days),
    passWorkers: async (ms) => database.passWorkers(ms),
    keep: async () => {
      const rows = database.snapshot();
      return async () => {
        database.restore(rows);
        database.move();
      };
    },
    remove: async () => undefined,
  };
}

const FAULTS: Readonly<Record<string, readonly [Fault, Fault]>> = {
  "grants are of rows as they were read": [
    (_, database) => ({
      grant: async (requests) => {
        const read = database.clone();
        await new Promise(setImmediate);
        const grants = await new MemoryStore({ database: read }).grant(requests);
        for (const { tag } of requests) {
          const row = read.rows.get(tag);
          if (row !== undefined) database.rows.set(tag, row);
        }
        return grants;
      },
    }),
    NONE,
  ],
  "what nobody heard is done again": [
    NONE,
    (store) =>
      wrapStore(store, async (name, args, inner) => {
        await inner[name](...args);
        await inner[name](...args);
        throw storeUnavailable("nobody heard it");
      }),
  ],
  "an accept adds no gap": [
    (store) => ({ accept: (_gap, ...more) => store.accept(0n, ...more) }),
    NONE,
  ],
  "a version is not raised by a give-back": [
    (store, database) => ({
      giveBack: async (requests) => {
        const answers = await store.giveBack(requests);
        for (const [at, { tag, version }] of requests.entries()) {
          const row = database.rows.get(tag);
          if (row !== undefined && answers[at] !== 0) database.rows.set(tag, { ...row, version });
        }
        return answers;
      },
    }),
    NONE,
  ],
};

test("a store in memory answers as one in memory does", async () => {
  await walkStore(async () => memoryHarness(NONE, NONE), { runs: 20, steps: 120 });
});

test.each(Object.keys(FAULTS))("a walk notices that %s", async (what) => {
  const [fault, faultOfCut] = FAULTS[what] ?? [NONE, NONE];
  const walk = walkStore(async () => memoryHarness(fault, faultOfCut), { runs: 100, steps: 120 });
  await expect(walk).rejects.toThrow("Property failed");
});

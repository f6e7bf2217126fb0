import { MemoryDatabase, MemoryStore } from "@idmint/testkit";
import { type StoreHarness, storeSuite } from "@idmint/testkit/store-suite";

async function memoryHarness(): Promise<StoreHarness> {
  const database = new MemoryDatabase();
  return {
    open: async () => new MemoryStore({ database }),
    shiftPeriods: async (days) => database.shiftPeriods(days),
    passWorkers: async (ms) => database.passWorkers(ms),
    remove: async () => undefined,
  };
}

storeSuite("memory", memoryHarness);

import { DatabaseSync } from "node:sqlite";
import { WorkerRegistry } from "@idmint/proto";
import { test } from "vitest";
import { sqliteFile } from "../../fleet-support.ts";
import { holdWorkerIds, TEST_TIMEOUT_MS } from "./worker-ids.ts";

/** For longer than a write takes. */
function isLocked(file: string): boolean {
  const database = new DatabaseSync(file, { timeout: 250 });
  try {
    database.exec("BEGIN IMMEDIATE; ROLLBACK");
    return false;
  } catch {
    return true;
  } finally {
    database.close();
  }
}

test(
  "worker ids in SQLite: no id twice, whoever is killed, frozen or has a wrong clock",
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const file = await sqliteFile();
    await holdWorkerIds({
      storeUrl: `sqlite:${file}`,
      registry: WorkerRegistry.STORE,
      hasOneClock: true,
      isLocked: () => isLocked(file),
      endLeases: async (instances) => {
        const database = new DatabaseSync(file, { timeout: 5_000 });
        const end = database.prepare("UPDATE worker SET expires_at_ms = 0 WHERE instance = ?");
        for (const instance of instances) end.run(instance);
        database.close();
      },
    });
  },
);

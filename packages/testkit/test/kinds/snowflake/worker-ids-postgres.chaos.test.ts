import { WorkerRegistry } from "@idmint/proto";
import { test } from "vitest";
import { ownPostgres } from "../../fleet-support.ts";
import { holdWorkerIds, TEST_TIMEOUT_MS } from "./worker-ids.ts";

test(
  "worker ids in PostgreSQL: no id twice, whoever is killed, frozen or has a wrong clock",
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const postgres = await ownPostgres();
    await using database = await postgres.createDatabase();
    await holdWorkerIds({
      storeUrl: database.url,
      registry: WorkerRegistry.STORE,
      hasOneClock: false,
      endLeases: async (instances) => {
        const names = instances.map((name) => `'${name}'`).join(", ");
        await database.query(`UPDATE idmint.worker
          SET expires_at_ms = 0, written_by = pg_current_xact_id()::xid
          WHERE instance IN (${names})`);
      },
    });
  },
);

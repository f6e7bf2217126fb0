import { expect, test, vi } from "vitest";
import { monotonicMs } from "../../src/store/sqlite/database.ts";
import { openDatabase } from "../../src/store/sqlite/open.ts";
import { sqliteHarness } from "./harness.ts";

// Every handle starts a thread, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 30_000 });

test("a connection syncs every commit before it is answered", async () => {
  const harness = await sqliteHarness();
  const { database } = openDatabase(harness.config);
  const pragmas = database.raw(monotonicMs() + 5_000, (transaction) =>
    ["journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync"].map(
      (name) => transaction.get(`PRAGMA ${name}`)?.[name],
    ),
  );
  // 2 is FULL. NORMAL would pass every other test, and lose acknowledged grants when the machine goes down.
  expect(pragmas).toEqual(["wal", 2n, 1n, 1n]);
  database.close();
  await harness.remove();
});

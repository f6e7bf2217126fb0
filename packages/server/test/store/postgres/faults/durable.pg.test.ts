// Databases that would lose what they were told, and one that only looks like it.
import { createTestDatabase, type TestDatabase } from "@idmint/testkit/postgres";
import { granted, reasonOf, settingsOf } from "@idmint/testkit/store-suite";
import { expect, onTestFinished, test } from "vitest";
import { openStore, storeStatus } from "../../../../src/store/open-store.ts";
import { acceptAtOnce } from "../../accept.ts";
import {
  acceptTicketDatabase,
  migrateTicketDatabase,
  openTicketDatabases,
} from "../../../../src/store/open-tickets.ts";
import { type PostgresHarness, postgresHarness } from "../../harness.ts";

async function harness(): Promise<PostgresHarness> {
  const its = await postgresHarness();
  onTestFinished(() => its.remove());
  return its;
}

test.each(["ROLE", "DATABASE"])(
  "synchronous_commit that is off at the %s is no fault: servers switch it on for themselves",
  async (where) => {
    const { config, database } = await harness();
    const role = `off_${database.name}`;
    await database.query(`CREATE ROLE "${role}" LOGIN SUPERUSER`);
    onTestFinished(async () => void (await database.query(`DROP ROLE "${role}"`)));
    const name = where === "ROLE" ? role : database.name;
    await database.query(`ALTER ${where} "${name}" SET synchronous_commit = off`);
    const url = new URL(config.url);
    url.username = role;
    const its = { ...config, url: url.href };
    const store = await openStore(its);
    await store.createTag(settingsOf("t"));
    await granted(store, "t");
    await store.close();
    expect((await storeStatus(its)).unsafe).not.toContain("synchronous_commit");
    const allowed = { ...its, allowUnsafe: [...its.allowUnsafe, "synchronous_commit"] };
    expect((await storeStatus(allowed)).unsafe).toContain("synchronous_commit");
  },
);

const UNLOGGED = { reason: "STORE_UNSAFE", metadata: { settings: "unlogged" } };

test.each(["tag", "store", "node", "token"])(
  "a store whose table %s a crash would empty is refused at the start, by an accept and by a status",
  async (table) => {
    const { config, database } = await harness();
    const running = await openStore(config);
    onTestFinished(() => running.close());
    await running.createTag(settingsOf("t"));
    await granted(running, "t");
    await database.query(`ALTER TABLE idmint.${table} SET UNLOGGED`);
    for (const work of [
      async (): Promise<unknown> => openStore(config),
      async (): Promise<unknown> => acceptAtOnce(config, 1_000n),
      // A server that accepts by itself has its connections already.
      async (): Promise<unknown> => running.accept(1_000n),
    ]) {
      await expect(work()).rejects.toMatchObject({
        ...UNLOGGED,
        message: expect.stringContaining(`ALTER TABLE idmint.${table} SET LOGGED`) as string,
      });
    }
    const { findings } = await storeStatus(config);
    expect(findings).toMatchObject([{ name: "unlogged", isFatal: true }]);
    expect(findings?.[0]?.found).toContain(`idmint.${table}`);
    await database.query(`ALTER TABLE idmint.${table} SET LOGGED`);
    await acceptAtOnce(config, 1_000n);
    expect((await granted(running, "t")).base).toBeGreaterThan(1_000n);
  },
);

test("a ticket database with a table that a crash would empty is refused too", async () => {
  const database: TestDatabase = await createTestDatabase();
  onTestFinished(() => database.close());
  const allowUnsafe = ["fsync", "full_page_writes"];
  const config = { backend: "postgres", url: database.url, allowUnsafe, name: "a" } as const;
  await migrateTicketDatabase(config, { dryRun: false });
  await database.query("ALTER TABLE idmint_ticket.slot SET UNLOGGED");
  const [ticket] = await openTicketDatabases([config]);
  onTestFinished(() => ticket?.close());
  const asked = ticket?.listSlotsIds({ afterSlotsId: "", limit: 1 }) ?? Promise.resolve();
  expect(await reasonOf(asked)).toBe("STORE_UNSAFE");
  await expect(acceptTicketDatabase([config], "a", 0n)).rejects.toMatchObject(UNLOGGED);
});

// A server that is started again beside rows of others that stand still: its own row, and what it was granted, go on.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { MemoryDatabase, MemoryStore } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { createSnowflake, takeIds } from "../../snowflake-support.ts";
import {
  createTag,
  generateId,
  refusalOf,
  startTest,
  type TestServer,
  until,
} from "../../support.ts";

function one() {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-kept-row-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const database = new MemoryDatabase();
  const flags = { "snowflake-cache-file": path.join(folder, "leases"), instance: "one" };
  const start = (): Promise<TestServer> => {
    return startTest({ flags, store: new MemoryStore({ database }) });
  };
  return { database, start };
}

/** A server with a file, that issued; and the row of another one, which died. */
async function withDead() {
  const { database, start } = one();
  const first = await start();
  await createTag(first, "orders", { min: 10, max: 10 });
  await createSnowflake(first, "flakes");
  await takeIds(first, "flakes", 1);
  const { id } = await generateId(first, "orders");
  const own = (): (typeof database)["nodes"] extends ReadonlyMap<string, infer Row> ? Row : never =>
    [...database.nodes.values()].find(({ instance }) => instance === "one")!;
  await until(() => own().isProved);
  database.nodes.set("dead", { ...own(), id: "dead", instance: "dead", address: "10.9.9.9:1" });
  const { renewals } = own();
  await until(() => own().renewals > renewals + 1n);
  return { database, start, first, id };
}

test("it is proved at once, and knows what it was granted", async () => {
  const { start, first, id } = await withDead();
  await first.server.close();
  const again = await start();
  expect((await generateId(again, "orders")).id).toBeGreaterThan(id);
  expect(again.server.node.status()).toMatchObject({ stateReason: "" });
});

test("in another history its row proves nothing", async () => {
  const { database, start, first } = await withDead();
  await first.server.close();
  database.incarnation = "another";
  const again = await start();
  expect(await refusalOf(generateId(again, "orders"))).toMatchObject({
    reason: "STORE_UNAVAILABLE",
    message: expect.stringContaining("has just started") as string,
  });
});

// The commands about a store in several databases of a real PostgreSQL.
import { createTestDatabase } from "@idmint/testkit/postgres";
import { expect, onTestFinished, test } from "vitest";
import { idmint, type CommandResult } from "../../support.ts";

type Run = (...args: readonly string[]) => Promise<CommandResult>;

/** Runs `idmint` with two databases. */
async function twoDatabases(): Promise<Run> {
  const urls: string[] = [];
  for (let i = 0; i < 2; i++) {
    const database = await createTestDatabase();
    onTestFinished(() => database.close());
    urls.push(database.url);
  }
  const env = {
    IDMINT_STORE_URL: urls[0] ?? "",
    IDMINT_STORE_MORE_URLS: `b=${urls[1]}`,
    IDMINT_ALLOW_UNSAFE_STORE: "fsync,full_page_writes",
  };
  return (...args) => idmint(args, { env });
}

test("databases are migrated, made one store and looked at", async () => {
  const run = await twoDatabases();
  const migrated = await run("migrate");
  expect([migrated.exitCode, migrated.err]).toEqual([0, ""]);
  const before = await run("store", "spread", "status");
  expect(before.exitCode).toBe(5);
  expect(before.err).toContain("idmint store spread add");
  const added = await run("store", "spread", "add", "--yes");
  expect([added.exitCode, added.out]).toEqual([0, "added b; restart the servers\n"]);
  expect((await run("store", "spread", "add", "--yes")).out).toBe("nothing to add\n");
  const after = await run("store", "spread", "status");
  expect([after.exitCode, after.err]).toEqual([0, ""]);
  expect(after.out).toMatch(/^b +0 +0 +ok$/m);
  expect((await run("store", "status")).exitCode).toBe(0);
  const accepted = await run("store", "accept", "--gap", "5", "--yes");
  expect([accepted.exitCode, accepted.out]).toEqual([
    0,
    "accepted: the floors of 0 tags were raised by 5\n",
  ]);
});

test("a move of what is not there, or to nowhere, is refused", async () => {
  const run = await twoDatabases();
  await run("migrate");
  await run("store", "spread", "add", "--yes");
  const nowhere = await run("store", "spread", "move", "orders", "--to", "c");
  expect(nowhere.err).toContain("must be one of default, b");
  const nothing = await run("store", "spread", "move", "orders", "--to", "b");
  expect(nothing.err).toContain('tag "orders" does not exist');
});

test("a store in one database has nothing to spread, and a file cannot be spread", async () => {
  const alone = await idmint(["store", "spread", "status"], { env: {} });
  expect(alone.err).toContain("store.more_urls");
  const file = { IDMINT_STORE_URL: "sqlite:./x.db", IDMINT_STORE_MORE_URLS: "b=postgres://h/d" };
  const refused = await idmint(["store", "spread", "status"], { env: file });
  expect(refused.err).toContain("needs a store.url of PostgreSQL");
});

// The pair that other tests stand on does what they take for granted.
import { expect, test } from "vitest";
import { TestPostgresPair } from "../src/postgres-pair.ts";

async function rowsOf(server: TestPostgresPair["primary"]): Promise<number> {
  const [row] = await server.query("SELECT count(*) AS rows FROM t");
  return Number(row?.["rows"]);
}

test("an asynchronous pair loses what was not streamed, and can be joined again", async () => {
  await using pair = await TestPostgresPair.start("asynchronous");
  await pair.primary.query("CREATE TABLE t (i int); INSERT INTO t VALUES (1)");
  await pair.caughtUp();
  await pair.stallStandby();
  await pair.primary.query("INSERT INTO t VALUES (2)");
  await pair.primary.stop("kill");
  await pair.promote();
  expect(await rowsOf(pair.primary)).toBe(1);
  await pair.rejoin();
  await pair.primary.query("INSERT INTO t VALUES (3)");
  await pair.caughtUp();
  expect(await rowsOf(pair.standby)).toBe(2);
});

test("a synchronous pair answers no commit that its standby does not have, unless the wait is cancelled", async () => {
  await using pair = await TestPostgresPair.start("synchronous");
  await pair.primary.query("CREATE TABLE t (i int)");
  await pair.stallStandby();
  const insert = pair.primary.query("INSERT INTO t VALUES (1)");
  while ((await pair.cancelWaits()) === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await insert;
  expect(await rowsOf(pair.primary)).toBe(1);
  await pair.primary.stop("kill");
  await pair.promote();
  expect(await rowsOf(pair.primary)).toBe(0);
});

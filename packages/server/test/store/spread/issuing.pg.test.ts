// A stop of all servers on a store in several databases, one of which is away.
import { type TestDatabase, TestPostgres } from "@idmint/testkit/postgres";
import { reasonOf, settingsOf } from "@idmint/testkit/store-suite";
import { expect, onTestFinished, test } from "vitest";
import { openStore, storeStatus } from "../../../src/store/open-store.ts";
import { generateId, refusalOf, startTest } from "../../support.ts";
import { spreadHarness } from "../harness.ts";

test("a database that is away keeps nobody from stopping, and is asked for by the command", async () => {
  const mortal = await TestPostgres.start();
  onTestFinished(() => mortal.close());
  const given = new Map<string, TestDatabase>([["b", await mortal.createDatabase()]]);
  const harness = await spreadHarness(["default", "b"], given, { timeoutMs: 1_000 });
  onTestFinished(() => harness.remove());
  const server = await startTest({ parts: { store: await openStore(harness.config) } });
  const operator = await openStore(harness.config);
  onTestFinished(() => operator.close());
  const names = ["t1", "t2", "t3", "t4", "t5", "t6"];
  for (const name of names) await operator.createTag(settingsOf(name));
  for (const name of names) await generateId(server, name);
  const isStopped = (): boolean => server.server.node.status().state === "STOPPED";
  await mortal.stop("kill");
  expect(await reasonOf(operator.setIssuing(true))).toBe("STORE_UNAVAILABLE");
  const state = (): number | undefined => server.server.node.status().stoppedAtMs;
  await expect.poll(state, { timeout: 10_000 }).toBeDefined();
  for (const name of names) {
    expect((await refusalOf(generateId(server, name))).reason).toBe("ISSUING_STOPPED");
  }
  await mortal.start();
  const again = (): Promise<boolean> =>
    operator.setIssuing(true).then(
      () => true,
      () => false,
    );
  await expect.poll(again, { timeout: 20_000 }).toBe(true);
  expect((await storeStatus(harness.config)).stoppedTime).not.toBe("");
  expect((await operator.setIssuing(true)).map(({ name }) => name).toSorted()).toEqual([
    "b",
    "default",
  ]);
  await expect.poll(isStopped, { timeout: 10_000 }).toBe(true);
  await operator.setIssuing(false);
  expect((await storeStatus(harness.config)).stoppedTime).toBe("");
  await expect.poll(state, { timeout: 10_000 }).toBe(undefined);
  for (const name of names) await generateId(server, name);
});

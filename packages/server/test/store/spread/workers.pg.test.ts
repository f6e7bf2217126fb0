// Worker leases of tags in several databases of a real PostgreSQL: each tag's are in the one database where the tag is.
import { IdmintError } from "@idmint/core";
import {
  granted,
  leaseOf,
  NO_CHECK,
  reasonOf,
  renewalOf,
  settingsOf,
  snowflakeOf,
} from "@idmint/testkit/store-suite";
import { expect, onTestFinished, test } from "vitest";
import { moveTagTo, openStore } from "../../../src/store/open-store.ts";
import { open as openPostgres } from "../../../src/store/postgres/store.ts";
import { homeOf } from "../../../src/store/spread/home.ts";
import { spreadHarness } from "../harness.ts";

const NAMES = ["b", "default"];
const IN_STORE = { place: { registry: "STORE" } } as const;

test("worker ids are leased where the tag is, by servers that look elsewhere first too, and stay there", async () => {
  const harness = await spreadHarness();
  onTestFinished(() => harness.remove());
  const store = await openStore(harness.config);
  onTestFinished(() => store.close());
  expect(homeOf(NAMES, "t")).toBe("default");
  await store.createTag(settingsOf("t"));
  const before = await granted(store, "t");
  await moveTagTo(harness.config, "t", "b");
  await granted(store, "t", { seenVersion: before.version });
  await store.setTagState("t", "DELETED", NO_CHECK);
  await store.createTag(snowflakeOf("t", IN_STORE));

  const late = await openStore(harness.config);
  onTestFinished(() => late.close());
  expect(late.groupOf?.("t")).toBe("default");
  const lease = await late.leaseWorker(leaseOf("a"));
  expect(late.groupOf?.("t")).toBe("b");
  expect((await store.leaseWorker(leaseOf("b"))).workerId).toBe(lease.workerId + 1);
  const renewal = renewalOf(lease);
  const renewed = await store.renewWorker(renewal);
  expect(renewed.token).not.toBe(lease.token);

  // What the tag left behind leases nothing, and keeps nothing alive.
  const its = harness.config.databases.get("default");
  if (its === undefined) throw new Error("no first database");
  const home = await openPostgres({ ...its, place: { member: "default", members: NAMES } });
  onTestFinished(() => home.close());
  const refusals = await Promise.all([
    reasonOf(home.leaseWorker(leaseOf("c"))),
    reasonOf(home.renewWorker({ ...renewal, token: renewed.token })),
    reasonOf(home.releaseWorker({ ...renewal, token: renewed.token })),
  ]);
  expect(refusals).toEqual(Array(3).fill("STORE_UNAVAILABLE"));
  expect(await home.listWorkers({ tag: "t", after: undefined, limit: 9 })).toEqual([]);
  await late.releaseWorker({ ...renewal, token: renewed.token });
  const page = { tag: "t", after: undefined, limit: 9 };
  expect((await late.listWorkers(page)).map(({ instance }) => instance)).toEqual(["a", "b"]);

  const move = moveTagTo(harness.config, "t", "default");
  await expect(move).rejects.toThrow(/stays in its database/);
  await expect(move).rejects.toBeInstanceOf(IdmintError);
  await store.setTagState("t", "DELETED", NO_CHECK);
  // Another kind could be moved, and then a snowflake made where nobody knows of these leases.
  expect(await reasonOf(store.createTag(settingsOf("t")))).toBe("INVALID_ARGUMENT");
});

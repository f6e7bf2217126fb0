// What a store in etcd hears of changes, from real members that are killed and compacted.
import { EtcdCluster } from "@idmint/testkit/etcd";
import { FREE, granted, nodeRenewalOf, settingsOf } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { openStore } from "../../../../src/store/open-store.ts";
import { etcdHarness } from "../harness.ts";
import { listening } from "./listener.ts";

test("changes by operators are heard of, and grants, leases and servers are not", async () => {
  const harness = await etcdHarness();
  const { store, listener } = await listening(harness);
  const { store: other } = await listening(harness);
  const changes: readonly (() => Promise<unknown>)[] = [
    () => other.createTag(settingsOf("t")),
    () => other.updateTag("t", { description: "changed" }, undefined),
    () => other.setTagState("t", "PAUSED", undefined),
    () => other.setTagState("t", "ACTIVE", undefined),
    () => other.advanceTag("t", 1_000n, FREE),
    () => other.accept(10n),
  ];
  for (const change of changes) {
    const before = await listener.quiet();
    await change();
    await listener.more(before);
  }
  const before = await listener.quiet();
  for (let round = 0; round < 5; round++) {
    await granted(other, "t");
    const renewal = nodeRenewalOf(`n${round}`);
    await other.changes({ since: 0n, watched: [], limit: 10, renewal });
  }
  expect(await listener.quiet()).toBe(before);
  await store.close();
  await other.createTag(settingsOf("u"));
  expect(await listener.quiet()).toBe(before);
});

test("a watch goes on after its member was killed, compacted and started again, and asks for a poll", async () => {
  await using cluster = await EtcdCluster.start();
  const harness = await etcdHarness({}, cluster);
  const { store, listener } = await listening(harness);
  await store.createTag(settingsOf("t"));
  const [member] = cluster.members;
  if (member === undefined) throw new Error("one member");
  for (let round = 0; round < 2; round++) {
    const before = await listener.quiet();
    await member.kill();
    await cluster.restart(member);
    // What was changed before the watch began again is gone from etcd's history.
    await harness.gateway.compact(await harness.gateway.revision());
    await listener.more(before);
    const begun = await listener.quiet();
    await store.updateTag("t", { description: `change ${round}` }, undefined);
    await listener.more(begun);
  }
});

test("an etcd that stops compacting while it is in use is told of, and that it does again", async () => {
  await using cluster = await EtcdCluster.start();
  const harness = await etcdHarness({}, cluster);
  const key = `${harness.config.prefix}history`;
  const poll = { since: 0n, watched: [], limit: 10 };
  const [{ store }, { store: allowed }] = [
    await listening(harness),
    { store: await openStore({ ...harness.config, allowUnsafe: ["auto_compaction"] }) },
  ];
  const [mark] = await harness.gateway.under(key);
  const old = {
    ...(JSON.parse(mark?.value ?? "{}") as object),
    at_ms: String(Date.now() - 10 ** 8),
  };
  await harness.gateway.put(key, JSON.stringify(old));
  expect((await store.changes(poll)).warning).toContain("--auto-compaction-retention");
  expect((await allowed.changes(poll)).warning).toBe("");
  // It issues on, and is not looked at with every poll.
  await store.createTag(settingsOf("t"));
  expect((await granted(store, "t")).base).toBe(1n);
  await harness.gateway.compact(await harness.gateway.revision());
  expect((await store.changes(poll)).warning).not.toBe("");
  const later = await openStore(harness.config);
  expect((await later.changes(poll)).warning).toBe("");
  await Promise.all([later.close(), allowed.close()]);
});

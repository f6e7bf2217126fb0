// What a store hears of changes while members of its etcd are cut off from each other.
import { setTimeout as pause } from "node:timers/promises";
import { EtcdCluster } from "@idmint/testkit/etcd";
import { settingsOf } from "@idmint/testkit/store-suite";
import { test } from "vitest";
import { openStore } from "../../../../src/store/open-store.ts";
import { etcdHarness } from "../harness.ts";
import { listening, SOON_MS } from "./listener.ts";

test("a watch leaves a member that is cut off from its leader", async () => {
  await using cluster = await EtcdCluster.start({ size: 3 });
  const harness = await etcdHarness({}, cluster);
  const { listener } = await listening(harness);
  let turn = 0;
  for (const member of cluster.members) {
    const others = cluster.members.filter((each) => each !== member);
    const changer = await openStore({
      ...harness.config,
      hosts: others.map(({ address }) => address),
    });
    await cluster.cutOff(member);
    // One of the three is the member of the watch, which hears of nothing there.
    await changer.createTag(settingsOf(`t${turn++}`));
    const before = await listener.quiet();
    const end = performance.now() + SOON_MS;
    while (listener.heard === before) {
      if (performance.now() > end) throw new Error("the watch stays at a member without a leader");
      await changer.createTag(settingsOf(`t${turn++}`));
      await pause(200);
    }
    cluster.heal();
    await changer.close();
    for (const each of cluster.members) await each.answering();
  }
});

// Three members of a cluster, which are killed, frozen and cut off, under a store that is used meanwhile.
import { setTimeout as pause } from "node:timers/promises";
import type { Granted } from "@idmint/core/server";
import { EtcdCluster, type EtcdMember } from "@idmint/testkit/etcd";
import {
  assertDisjoint,
  granted,
  grantedOf,
  reasonOf,
  sequenceOf,
  settingsOf,
  wish,
} from "@idmint/testkit/store-suite";
import { expect, test, vi } from "vitest";
import { Poller } from "../../poller.ts";
import { type EtcdHarness, etcdHarness } from "../harness.ts";

const PACE_MS = 15_000;

async function withThree(
  work: (cluster: EtcdCluster, harness: EtcdHarness) => Promise<void>,
  more: { readonly timeoutMs?: number } = {},
): Promise<void> {
  await using cluster = await EtcdCluster.start({ size: 3 });
  await work(cluster, await etcdHarness({ timeoutMs: PACE_MS, ...more }, cluster));
}

/** Somebody who asks for ids of a sequence, one after another, from stores of their own. */
interface Asked {
  readonly grant: Granted;
  readonly askedAt: number;
  readonly answeredAt: number;
}

/** Asks with several handles until it is stopped; what is refused is counted. */
async function keepAsking(
  harness: EtcdHarness,
  work: () => Promise<void>,
): Promise<{ asked: readonly Asked[]; refused: number }> {
  const stores = await Promise.all([harness.open(), harness.open()]);
  await stores[0]?.createTag(sequenceOf("t"));
  const asked: Asked[] = [];
  let refused = 0;
  const end = new AbortController();
  const asking = stores.map(async (store) => {
    while (!end.signal.aborted) {
      const askedAt = performance.now();
      try {
        const grant = await grantedOf(store, "t", 3);
        asked.push({ grant, askedAt, answeredAt: performance.now() });
      } catch {
        refused++;
      }
      await pause(2);
    }
  });
  try {
    await work();
  } finally {
    end.abort();
    await Promise.all(asking);
    await Promise.all(stores.map((store) => store.close()));
  }
  return { asked, refused };
}

/** No id twice, and whoever asked after an answer got larger ids. */
function assertStrict(asked: readonly Asked[]): void {
  const ranges = asked.map(({ grant: { base, count } }) => ({
    from: base,
    to: base + BigInt(count) - 1n,
  }));
  assertDisjoint(ranges);
  const answers = asked.toSorted((a, b) => a.answeredAt - b.answeredAt);
  let highest = 0n;
  let next = 0;
  for (const { grant, askedAt } of asked.toSorted((a, b) => a.askedAt - b.askedAt)) {
    for (; (answers[next]?.answeredAt ?? Infinity) < askedAt; next++) {
      const base = answers[next]?.grant.base ?? 0n;
      if (base > highest) highest = base;
    }
    expect(grant.base).toBeGreaterThan(highest);
  }
}

/** Waits until ids are granted again. */
async function someMore(harness: EtcdHarness, count: number): Promise<void> {
  const store = await harness.open();
  for (let i = 0; i < count; i++) await grantedOf(store, "t");
  await store.close();
}

test("when the leader dies, another member answers, and nobody is refused", async () => {
  await withThree(async (cluster, harness) => {
    const { asked, refused } = await keepAsking(harness, async () => {
      for (let round = 0; round < 2; round++) {
        await pause(300);
        const leader = await cluster.leader();
        await leader.kill();
        await someMore(harness, 3);
        await cluster.restart(leader);
      }
    });
    expect(refused).toBe(0);
    expect(asked.length).toBeGreaterThan(10);
    assertStrict(asked);
  });
});

test("a leader that is cut off from the others grants nothing, and the others do", async () => {
  await withThree(async (cluster, harness) => {
    const { asked, refused } = await keepAsking(harness, async () => {
      await pause(300);
      const old = await cluster.leader();
      await cluster.cutOff(old);
      await someMore(harness, 5);
      cluster.heal();
      await someMore(harness, 5);
    });
    expect(refused).toBe(0);
    assertStrict(asked);
  });
});

test("a member that is frozen costs its share of the time, and no id", async () => {
  await withThree(async (cluster, harness) => {
    const { asked } = await keepAsking(harness, async () => {
      await pause(300);
      const frozen = await cluster.leader();
      frozen.pause();
      await someMore(harness, 5);
      frozen.resume();
      await someMore(harness, 5);
    });
    assertStrict(asked);
  });
});

test("without a quorum nothing is granted and nothing told, and it goes on with one", async () => {
  await withThree(
    async (cluster, harness) => {
      const store = await harness.open();
      await store.createTag(settingsOf("t"));
      const first = await granted(store, "t");
      const [, second, third] = cluster.members as [EtcdMember, EtcdMember, EtcdMember];
      await second.kill();
      await third.kill();
      const poll = { since: 0n, watched: [], limit: 10 };
      expect(await reasonOf(store.grant([wish("t")]))).toBe("STORE_UNAVAILABLE");
      expect(await reasonOf(store.changes(poll))).toBe("STORE_UNAVAILABLE");
      expect(await reasonOf(store.getTags(["t"]))).toBe("STORE_UNAVAILABLE");
      expect(await reasonOf(harness.open())).toBe("STORE_UNAVAILABLE");
      await cluster.restart(second);
      const next = await granted(store, "t", { seenVersion: first.version });
      expect(next.base).toBeGreaterThanOrEqual(11n);
      expect((await store.changes(poll)).fenced).toBe("");
      await store.close();
    },
    { timeoutMs: 3_000 },
  );
});

/** Puts a member without data in the place of one that was killed. */
async function replace(
  { gateway }: EtcdCluster,
  lost: EtcdMember,
  memberId: string,
): Promise<void> {
  lost.wipe();
  const peerURLs = [`http://127.0.0.1:${lost.place.peerUrlPort}`];
  // etcd changes no members before the others have been connected for 5 s.
  const patience = { timeout: 30_000, interval: 500 };
  await vi.waitFor(() => gateway.post("cluster/member/remove", { ID: memberId }), patience);
  await vi.waitFor(() => gateway.post("cluster/member/add", { peerURLs }), patience);
  await lost.spawn({ args: ["--initial-cluster-state=existing"] });
  await lost.answering();
}

test("no server takes members that are cut off, die or are replaced for a store that went back", async () => {
  await withThree(async (cluster, harness) => {
    const server = await Poller.open(harness.config);
    await server.store.createTag(settingsOf("t"));
    let renewed = 0;
    const polls = async (): Promise<void> => {
      for (let poll = 0; poll < 5; poll++) {
        await server.grant().catch(() => undefined);
        const found = await server.poll().catch(() => undefined);
        expect([found?.fenced ?? "", found?.behind ?? []]).toEqual(["", []]);
        if (found?.parts[0]?.isRenewed === true) renewed++;
      }
    };
    await polls();
    await cluster.cutOff(await cluster.leader());
    await polls();
    cluster.heal();
    await polls();
    const [killed] = cluster.members as [EtcdMember];
    const { memberId } = await killed.gateway.status();
    await killed.kill();
    await polls();
    await cluster.restart(killed);
    await polls();
    await killed.kill();
    await polls();
    await replace(cluster, killed, memberId);
    await polls();
    expect(renewed).toBeGreaterThan(15);
  });
});

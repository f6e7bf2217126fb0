// A cluster set back, under servers that run and for one that starts.
import type { Store } from "@idmint/core/server";
import { EtcdCluster } from "@idmint/testkit/etcd";
import {
  granted,
  leaseOf,
  nodeRenewalOf,
  reasonOf,
  refusal,
  renewalOf,
  settingsOf,
  snowflakeOf,
} from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { openStore, storeStatus } from "../../../src/store/open-store.ts";
import { acceptAtOnce } from "../accept.ts";
import { Etcd } from "../../../src/store/etcd/session/etcd.ts";
import { markWentBack } from "../../../src/store/etcd/went-back.ts";
import { Poller } from "../poller.ts";
import { copyOf, type EtcdHarness, etcdHarness } from "./harness.ts";

interface Scene {
  readonly cluster: EtcdCluster;
  readonly harness: EtcdHarness;
  /** A server that has run since the snapshot; `t` is at 110 and `quiet` at 20. */
  readonly running: Store;
}

const PACE_MS = 15_000;

/** `keep`: what is kept when `t` and `quiet` are at 10. */
async function withScene<Kept>(
  keep: (cluster: EtcdCluster) => Promise<Kept>,
  work: (scene: Scene, kept: Kept) => Promise<void>,
): Promise<void> {
  await using cluster = await EtcdCluster.start();
  const harness = await etcdHarness({ timeoutMs: PACE_MS }, cluster);
  const running = await harness.open();
  try {
    for (const tag of ["t", "quiet"]) {
      await running.createTag(settingsOf(tag));
      await granted(running, tag);
    }
    const kept = await keep(cluster);
    for (let i = 0; i < 10; i++) await granted(running, "t");
    await granted(running, "quiet");
    await work({ cluster, harness, running }, kept);
  } finally {
    await running.close();
  }
}

async function assertFenced(store: Store): Promise<void> {
  for (const tag of ["t", "quiet"]) expect(await refusal(store, tag)).toBe("STORE_EPOCH_CHANGED");
  expect(await store.giveBack([{ tag: "t", from: 10n, to: 10n, version: 1n }])).toEqual([0]);
  const { fenced } = await store.changes({ since: 0n, watched: [], limit: 10 });
  expect(fenced).not.toBe("");
  const works = [
    store.setTagState("t", "PAUSED", undefined),
    store.createTag(settingsOf("new")),
    store.getTags(["t"]),
    store.listTags({ afterName: "", prefix: "", showDeleted: false, limit: 9 }),
  ];
  expect(new Set(await Promise.all(works.map(reasonOf)))).toEqual(new Set(["STORE_EPOCH_CHANGED"]));
}

/** Refused by the server that ran and by a fresh one; after an accept both go on, above everything issued. */
async function assertFencedUntilAccepted({ harness, running }: Scene): Promise<void> {
  await assertFenced(running);
  const fresh = await harness.open();
  try {
    await assertFenced(fresh);
    expect((await storeStatus(harness.config)).fenced).not.toBe("");
    await acceptAtOnce(harness.config, 1_000n);
    expect((await storeStatus(harness.config)).fenced).toBe("");
    for (const store of [running, fresh]) {
      for (const tag of ["t", "quiet"]) {
        expect((await granted(store, tag)).base).toBeGreaterThan(1_000n);
      }
    }
  } finally {
    await fresh.close();
  }
}

const snapshot = (cluster: EtcdCluster) => cluster.snapshot();

test("a snapshot restored as a new cluster is refused until it is accepted", async () => {
  await withScene(snapshot, async (scene, kept) => {
    await scene.cluster.restore(kept, { sameToken: false });
    await assertFencedUntilAccepted(scene);
  });
});

test("so is one that was given the old token, and so the old cluster's id", async () => {
  await withScene(snapshot, async (scene, kept) => {
    await scene.cluster.restore(kept, { sameToken: true });
    // Also before anybody who was there has looked.
    const { fenced } = await storeStatus(scene.harness.config);
    expect(fenced).toBe("the cluster was restored from a snapshot");
    await assertFencedUntilAccepted(scene);
  });
});

test("servers that are refused do nothing that would hide the restore from others", async () => {
  await withScene(snapshot, async (scene, kept) => {
    const { cluster, running } = scene;
    const poll = { since: 0n, watched: [], limit: 1, renewal: nodeRenewalOf("n") };
    const right = (await running.changes(poll)).nowMs - Date.now();
    await cluster.restore(kept, { sameToken: true });
    const status = async () =>
      cluster.gateway.post<{ raftIndex: string }>("maintenance/status", {});
    const before = Number((await status()).raftIndex);
    for (let i = 0; i < 20; i++) {
      const { fenced, nowMs, parts } = await running.changes(poll);
      expect([fenced === "", parts[0]?.isRenewed]).toEqual([false, false]);
      // The clocks in the rows of then are not asked.
      expect(Math.abs(nowMs - Date.now() - right)).toBeLessThan(5_000);
      await refusal(running, "t");
    }
    expect(Number((await status()).raftIndex) - before).toBeLessThan(10);
    await assertFencedUntilAccepted(scene);
  });
});

/** What hides a restore from everybody who was not there: writes of others raise the revision, and leases Raft's index. */
async function hide({ gateway }: Pick<EtcdHarness, "gateway">): Promise<void> {
  for (let i = 0; i < 60; i++) await gateway.post("lease/grant", { TTL: "600" });
  await writeElsewhere({ gateway });
}

/** Opens a store that sees nothing wrong by itself. */
async function blindTo(harness: EtcdHarness): Promise<void> {
  expect((await storeStatus(harness.config)).fenced).toBe("");
}

const POLL = { since: 0n, watched: [], limit: 10 };

test("a restore that others have hidden is marked by a server that was there, and newcomers refuse too", async () => {
  await withScene(snapshot, async (scene, kept) => {
    const { cluster, harness, running } = scene;
    await cluster.restore(kept, { sameToken: true });
    await hide(harness);
    await blindTo(harness);
    expect((await running.changes(POLL)).fenced).toContain("this server has seen later changes");
    const marked = "a server saw that the store went back: ";
    expect((await storeStatus(harness.config)).fenced).toContain(marked);
    await hide(harness);
    await assertFencedUntilAccepted(scene);
    const [row] = await harness.gateway.under(`${harness.config.prefix}store`);
    expect(row?.value).not.toContain("wentBack");
  });
});

/** Looks at the store, and marks it later for something that was lost. */
async function looked({ config }: EtcdHarness) {
  const etcd = new Etcd(config);
  const how = { effect: "any", fenced: "allow", prove: true } as const;
  const { standing } = await etcd.run((session) => etcd.transact(session.deadlineMs, [], how));
  return {
    etcd,
    mark: async (lost: string) =>
      etcd.run((session) => markWentBack(session, { ...standing, lost })),
  };
}

test("a mark is written over no record but that in which the loss was seen", async () => {
  await withScene(
    async () => undefined,
    async ({ harness }) => {
      const { etcd, mark } = await looked(harness);
      await mark("the first");
      await mark("the second");
      expect((await storeStatus(harness.config)).fenced).toContain("the first");
      await etcd.close();
    },
  );
});

test("a server that slept marks no store that is well", async () => {
  await withScene(snapshot, async ({ cluster, harness, running }, kept) => {
    await cluster.restore(kept, { sameToken: true });
    await hide(harness);
    // It sees the loss, and sleeps before it can mark the store.
    const { etcd, mark } = await looked(harness);
    // Another one has written meanwhile: this is not what the loss was seen in.
    const other = await harness.open();
    await other.createTag(settingsOf("later"));
    await mark("something");
    await blindTo(harness);
    await acceptAtOnce(harness.config, 1_000n);
    await mark("something");
    await blindTo(harness);
    // And one that slept through all of it.
    expect((await running.changes(POLL)).fenced).toBe("");
    for (const store of [running, other]) {
      expect((await granted(store, "t")).base).toBeGreaterThan(1_000n);
    }
    await Promise.all([etcd.close(), other.close()]);
  });
});

test("so is one whose revision was bumped beyond all that was seen", async () => {
  await withScene(snapshot, async (scene, kept) => {
    await scene.cluster.restore(kept, { sameToken: true });
    // What --bump-revision of later releases does.
    await writeElsewhere(scene.harness);
    await assertFencedUntilAccepted(scene);
  });
});

test("after an accept another restore is refused again, by servers that never saw the store", async () => {
  await withScene(snapshot, async (scene, kept) => {
    await scene.cluster.restore(kept, { sameToken: true });
    await acceptAtOnce(scene.harness.config, 1_000n);
    const second = await scene.cluster.snapshot();
    await granted(scene.running, "t");
    await scene.cluster.restore(second, { sameToken: true });
    await assertFencedUntilAccepted(scene);
  });
});

async function writeElsewhere({ gateway }: Pick<EtcdHarness, "gateway">): Promise<void> {
  for (let i = 0; i < 200; i++) await gateway.put("/elsewhere", String(i));
}

test("a data folder set back as a whole is noticed by the servers that ran", async () => {
  await withScene(copyOf, async ({ harness, running }, setBack) => {
    await setBack();
    // Others write, until the revision is above all that this server saw.
    await writeElsewhere(harness);
    const watched = [
      { tag: "t", version: 11n },
      { tag: "quiet", version: 2n },
    ];
    const { behind } = await running.changes({ since: 0n, watched, limit: 10 });
    expect(behind).toEqual(["t", "quiet"]);
    for (const { tag, version } of watched) {
      expect(await refusal(running, tag, { seenVersion: version })).toBe("STORE_EPOCH_CHANGED");
    }
  });
});

test("one that is noticed at once stays refused, however much is written after that", async () => {
  await withScene(copyOf, async ({ harness, running }, setBack) => {
    await setBack();
    await assertFenced(running);
    await writeElsewhere(harness);
    await assertFenced(running);
    await acceptAtOnce(harness.config, 1_000n);
    expect((await granted(running, "t")).base).toBeGreaterThan(1_000n);
  });
});

test("a row put back by hand is refused by who saw a later one", async () => {
  await withScene(
    async () => undefined,
    async ({ harness, running }) => {
      const key = `${harness.config.prefix}tag/t`;
      const [row] = await harness.gateway.under(key);
      const older = JSON.parse(row?.value ?? "{}") as Record<string, string>;
      await harness.gateway.put(key, JSON.stringify({ ...older, floor: "10", version: "1" }));
      expect(await refusal(running, "t", { seenVersion: 11n })).toBe("STORE_EPOCH_CHANGED");
      await harness.gateway.remove(key);
      expect(await refusal(running, "t", { seenVersion: 11n })).toBe("STORE_EPOCH_CHANGED");
    },
  );
});

test("a store without its identity grants nothing, and opens for nobody", async () => {
  await withScene(
    async () => undefined,
    async ({ harness, running }) => {
      await harness.gateway.remove(`${harness.config.prefix}store`);
      expect(await refusal(running, "t")).toBe("STORE_EPOCH_CHANGED");
      expect(await reasonOf(running.getTags(["t"]))).toBe("STORE_EPOCH_CHANGED");
      await harness.gateway.removeUnder(harness.config.prefix);
      expect(await refusal(running, "t")).toBe("STORE_EPOCH_CHANGED");
      expect(await reasonOf(openStore(harness.config))).toBe("SCHEMA_MISMATCH");
    },
  );
});

test("leases of a lost history are never renewed, nor their time given again", async () => {
  await using cluster = await EtcdCluster.start();
  const harness = await etcdHarness({ timeoutMs: PACE_MS }, cluster);
  const store = await harness.open();
  await store.createTag(snowflakeOf("t", { place: { registry: "STORE" } }));
  const before = await cluster.snapshot();
  const lease = await store.leaseWorker(leaseOf("a"));
  await cluster.restore(before, { sameToken: true });
  await acceptAtOnce(harness.config, 0n);
  expect(await reasonOf(store.renewWorker(renewalOf(lease)))).toBe("WORKER_LEASE_LOST");
  const next = await store.leaseWorker(leaseOf("b"));
  expect(next.notBeforeMs).toBeGreaterThan(lease.reservedUntilMs);
  await store.close();
});

test("an accept that was interrupted leaves the store closed until it is made again", async () => {
  await withScene(
    async () => undefined,
    async ({ harness, running }) => {
      const key = `${harness.config.prefix}store`;
      const [row] = await harness.gateway.under(key);
      const record = JSON.parse(row?.value ?? "{}") as object;
      await harness.gateway.put(key, JSON.stringify({ ...record, accepting: "interrupted" }));
      await assertFenced(running);
      expect((await storeStatus(harness.config)).fenced).toContain("run it again");
      await acceptAtOnce(harness.config, 5n);
      expect((await granted(running, "t")).base).toBe(116n);
    },
  );
});

test("a tag's key with garbage refuses that tag, and an accept names it before it closes the store", async () => {
  const harness = await etcdHarness();
  const store = await harness.open();
  const names = Array.from({ length: 30 }, (_, i) => `t${String(i).padStart(2, "0")}`);
  for (const name of names) await store.createTag(settingsOf(name));
  const server = await Poller.open(harness.config);
  await server.poll();
  await server.grant("t26");
  for (const name of ["t26", "t27"]) {
    await harness.gateway.put(`${harness.config.prefix}tag/${name}`, "nonsense");
  }
  for (let polls = 0; polls < 2; polls++) {
    expect(await server.poll()).toMatchObject({ behind: ["t26"], fenced: "" });
  }
  const fresh = await harness.open();
  expect((await granted(fresh, "t28")).base).toBe(1n);
  expect(await reasonOf(granted(fresh, "t27"))).toBe("SCHEMA_MISMATCH");
  const accepting = acceptAtOnce(harness.config, 100n);
  await expect(accepting).rejects.toMatchObject({ reason: "SCHEMA_MISMATCH" });
  await expect(accepting).rejects.toThrow(`${harness.config.prefix}tag/t27`);
  // Nothing was begun.
  expect((await granted(fresh, "t28")).base).toBe(11n);
  for (const name of ["t26", "t27"]) {
    await harness.gateway.remove(`${harness.config.prefix}tag/${name}`);
  }
  expect(await acceptAtOnce(harness.config, 100n)).toMatchObject({ tags: 28 });
  expect((await granted(fresh, "t28")).base).toBe(121n);
  await Promise.all([store.close(), fresh.close()]);
});

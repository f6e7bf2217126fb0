// Addresses that lead to an etcd of another store, or to a copy of the store.
import { setTimeout as pause } from "node:timers/promises";
import type { Store } from "@idmint/core/server";
import { TcpProxy } from "@idmint/testkit/tcp-proxy";
import { EtcdCluster, type EtcdMember } from "@idmint/testkit/etcd";
import {
  assertDisjoint,
  FREE,
  granted,
  nodeRenewalOf,
  reasonOf,
  refusal,
  settingsOf,
  wish,
} from "@idmint/testkit/store-suite";
import { expect, onTestFinished, test, vi } from "vitest";
import { loadConfig } from "../../../src/config/load.ts";
import { storeConfigOf } from "../../../src/main/stores.ts";
import { migrateStore, openStore, storeStatus } from "../../../src/store/open-store.ts";
import { acceptAtOnce } from "../accept.ts";
import { Proof, type Standing } from "../../../src/store/etcd/session/proof.ts";
import { type EtcdHarness, etcdHarness } from "./harness.ts";

const PACE_MS = 15_000;
const POLL = { since: 0n, watched: [], limit: 10 };

async function clusterOf(size: 1 | 3 = 1): Promise<EtcdCluster> {
  const cluster = await EtcdCluster.start({ size });
  onTestFinished(() => cluster.close());
  return cluster;
}

const targetOf = ({ place }: EtcdMember) => ({ host: "127.0.0.1", port: place.clientPort });

async function proxyTo(member: EtcdMember): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(targetOf(member));
  onTestFinished(() => proxy.close());
  return proxy;
}

const firstOf = ({ members: [member] }: EtcdCluster): EtcdMember => {
  if (member === undefined) throw new Error("no member");
  return member;
};

async function opened(harness: EtcdHarness, hosts: readonly string[]): Promise<Store> {
  const store = await openStore({ ...harness.config, hosts });
  onTestFinished(() => store.close());
  return store;
}

/** A store below the same prefix in another etcd, whose tag is at `floor`. */
async function otherStore(cluster: EtcdCluster, prefix: string, floor: bigint) {
  const harness = await etcdHarness({ timeoutMs: PACE_MS, prefix }, cluster);
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  await store.advanceTag("t", floor, FREE);
  await store.close();
  return harness;
}

const keysOf = async ({ gateway, config }: EtcdHarness) => gateway.under(config.prefix);

/** Waits until polls warn of something with this text. */
async function warned(store: Store, text: string): Promise<string> {
  for (let warning = ""; ; await pause(50)) {
    ({ warning = "" } = await store.changes(POLL));
    if (warning.includes(text)) return warning;
  }
}

for (const what of ["without a store", "with another store"]) {
  test(`an etcd ${what} at the address of a member is passed over and named`, async () => {
    const [cluster, foreign] = await Promise.all([clusterOf(3), clusterOf()]);
    const harness = await etcdHarness({ timeoutMs: PACE_MS }, cluster);
    const [first, second, third] = cluster.members as [EtcdMember, EtcdMember, EtcdMember];
    const proxy = await proxyTo(first);
    const store = await opened(harness, [`127.0.0.1:${proxy.port}`, second.address, third.address]);
    await store.createTag(settingsOf("t"));
    await granted(store, "t");
    const { prefix } = harness.config;
    const other = await etcdHarness({ prefix: `${prefix}elsewhere/` }, foreign);
    if (what === "with another store") await otherStore(foreign, prefix, 1_000_000n);
    const before = await foreign.gateway.under(prefix);
    proxy.pointAt(targetOf(firstOf(foreign)));
    // Each member in turn is away, so that the foreign one is asked too.
    for (const member of [second, third]) {
      await member.kill();
      for (let i = 0; i < 3; i++) await granted(store, "t");
      await cluster.restart(member);
    }
    expect((await granted(store, "t")).base).toBe(71n);
    const { fenced, parts } = await store.changes({ ...POLL, renewal: nodeRenewalOf("n") });
    expect([fenced, parts[0]?.isRenewed]).toEqual(["", true]);
    const warning = await warned(store, `127.0.0.1:${proxy.port}`);
    expect(warning).toContain("is passed over, since it is not of the store");
    expect(warning).toContain(what === "without a store" ? what : "with the store");
    expect(await foreign.gateway.under(prefix)).toEqual(before);
    proxy.pointAt(targetOf(first));
    for (let text = "?"; text !== ""; await pause(50)) {
      ({ warning: text = "" } = await store.changes(POLL));
    }
    await other.remove();
  }, 60_000);
}

test("members of two clusters are refused at a start, and all that answer are named", async () => {
  const [cluster, foreign] = await Promise.all([clusterOf(), clusterOf()]);
  const harness = await etcdHarness({}, cluster);
  const hosts = [cluster.hosts, foreign.hosts];
  const config = { ...harness.config, hosts };
  const refused = {
    reason: "STORE_REFUSED",
    message: expect.stringMatching(
      new RegExp(`${hosts[0]} is cluster .*${hosts[1]} is cluster .*store\\.expect_id`, "u"),
    ) as string,
  };
  const [storeAt] = (await keysOf(harness)).filter(({ key }) => key.endsWith("/store"));
  const { storeId } = JSON.parse(storeAt?.value ?? "{}") as { storeId: string };
  for (const other of ["without a store", "with the store "]) {
    await expect(openStore(config)).rejects.toMatchObject(refused);
    await expect(openStore(config)).rejects.toThrow(other);
    await expect(migrateStore(config, { dryRun: false })).rejects.toMatchObject(refused);
    // Whoever looks at it is told.
    const { members } = await storeStatus(config);
    expect(members).toEqual([
      expect.stringMatching(new RegExp(`${hosts[1]}.* is not of|passed over`, "u")),
    ]);
    if (other === "without a store") await otherStore(foreign, harness.config.prefix, 5n);
    else expect((await storeStatus(harness.config)).storeId).toBe(storeId);
  }
});

test("a member that is dead or silent stops no start", async () => {
  const cluster = await clusterOf(3);
  const harness = await etcdHarness({}, cluster);
  const [first, second, third] = cluster.members as [EtcdMember, EtcdMember, EtcdMember];
  const proxy = await proxyTo(first);
  const hosts = [`127.0.0.1:${proxy.port}`, second.address, third.address];
  await first.kill();
  for (const how of ["dead", "silent"]) {
    if (how === "silent") proxy.cut();
    // Whichever of them is asked first.
    for (let i = 0; i < 5; i++) {
      const startedAt = performance.now();
      const store = await openStore({ ...harness.config, hosts, timeoutMs: 4_000 });
      await store.close();
      expect(performance.now() - startedAt).toBeLessThan(4_000);
    }
    const { members } = await storeStatus({ ...harness.config, hosts });
    expect(members).toEqual([expect.stringContaining(`${hosts[0]} does not answer`)]);
  }
}, 60_000);

test("a server whose address leads to another store takes nothing from it, and goes on when it is back", async () => {
  const [cluster, foreign] = await Promise.all([clusterOf(), clusterOf()]);
  const harness = await etcdHarness({ timeoutMs: 3_000 }, cluster);
  const proxy = await proxyTo(firstOf(cluster));
  const direct = await harness.open();
  onTestFinished(() => direct.close());
  await direct.createTag(settingsOf("t"));
  const through = await opened(harness, [`127.0.0.1:${proxy.port}`]);
  await granted(through, "t");
  const ranges: { from: bigint; to: bigint }[] = [];
  let refused = new Set<string>();
  const end = new AbortController();
  const asking = [through, through, direct].map(async (store) => {
    while (!end.signal.aborted) {
      try {
        const { base, count } = await granted(store, "t");
        ranges.push({ from: base, to: base + BigInt(count) - 1n });
      } catch (error) {
        refused.add((error as { reason?: string }).reason ?? String(error));
      }
      await pause(1);
    }
  });
  // Above all that the first server was granted, and below what the second one is.
  const { base } = await granted(through, "t");
  const other = await otherStore(foreign, harness.config.prefix, base + 1_000n);
  for (let i = 0; i < 500; i++) await other.gateway.put("/elsewhere", String(i));
  const before = await keysOf(other);
  const ids = { storeId: "", otherId: "" };
  for (const [name, its] of [
    ["storeId", harness],
    ["otherId", other],
  ] as const) {
    ids[name] = (await storeStatus(its.config)).storeId;
  }
  for (let round = 0; round < 8; round++) {
    proxy.pointAt(targetOf(firstOf(foreign)));
    refused = new Set();
    await pause(150);
    const error = (await through.changes(POLL).catch((thrown: unknown) => thrown)) as Error;
    expect(error).toMatchObject({ reason: "STORE_UNAVAILABLE" });
    if (round > 0) {
      expect(error.message).toContain(ids.storeId);
      expect(error.message).toContain(`127.0.0.1:${proxy.port}`);
      expect(error.message).toContain(ids.otherId);
    }
    expect([...refused].filter((reason) => reason !== "STORE_UNAVAILABLE")).toEqual([]);
    // Every second time the connections to the other store stay as they are, as when a name changes.
    proxy.pointAt(targetOf(firstOf(cluster)), { keep: round % 2 === 1 });
    const backAt = performance.now();
    while ((await refusalOrNothing(through)) !== undefined) {
      expect(performance.now() - backAt).toBeLessThan(5_000);
      await pause(20);
    }
    expect((await through.changes(POLL)).fenced).toBe("");
  }
  end.abort();
  await Promise.all(asking);
  assertDisjoint(ranges);
  expect(await keysOf(other)).toEqual(before);
}, 120_000);

async function refusalOrNothing(store: Store): Promise<string | undefined> {
  try {
    await store.grant([wish("t")]);
    return undefined;
  } catch (error) {
    expect(error).toMatchObject({ reason: "STORE_UNAVAILABLE" });
    return "STORE_UNAVAILABLE";
  }
}

test("a transaction that is on its way when the address turns does nothing in the other store", async () => {
  const [cluster, foreign] = await Promise.all([clusterOf(), clusterOf()]);
  const harness = await etcdHarness({ timeoutMs: 3_000 }, cluster);
  const proxy = await proxyTo(firstOf(cluster));
  const store = await opened(harness, [`127.0.0.1:${proxy.port}`]);
  await store.createTag(settingsOf("t"));
  await granted(store, "t");
  const other = await otherStore(foreign, harness.config.prefix, 1_000n);
  const before = await keysOf(other);
  const proof = vi.spyOn(Proof.prototype, "prove");
  try {
    await store.changes(POLL);
    const known = (await proof.mock.results.at(-1)?.value) as Standing;
    // As if the proof had been made right before the address turned.
    proof.mockResolvedValueOnce(known);
    proxy.pointAt(targetOf(firstOf(foreign)));
    await pause(50);
    expect(await reasonOf(store.grant([wish("t")]))).toBe("STORE_UNAVAILABLE");
  } finally {
    proof.mockRestore();
  }
  expect(await keysOf(other)).toEqual(before);
  proxy.pointAt(targetOf(firstOf(cluster)));
  await pause(1_100);
  expect((await granted(store, "t")).base).toBe(11n);
});

test("a copy of the store at an address is named, and refused as soon as it is asked", async () => {
  const [cluster, copy] = await Promise.all([clusterOf(), clusterOf()]);
  const harness = await etcdHarness({ timeoutMs: 3_000 }, cluster);
  const proxy = await proxyTo(firstOf(cluster));
  // The first one is asked as long as it answers.
  const random = vi.spyOn(Math, "random").mockReturnValue(0);
  const store = await opened(harness, [cluster.hosts, `127.0.0.1:${proxy.port}`]);
  random.mockRestore();
  await store.createTag(settingsOf("t"));
  await granted(store, "t");
  await copy.restore(await cluster.snapshot(), { sameToken: false });
  proxy.pointAt(targetOf(firstOf(copy)));
  await expect(opened(harness, [cluster.hosts, `127.0.0.1:${proxy.port}`])).rejects.toMatchObject({
    reason: "STORE_REFUSED",
  });
  await warned(store, `127.0.0.1:${proxy.port} is a copy of the store`);
  await granted(store, "t");
  await firstOf(cluster).kill();
  expect(await refusal(store, "t")).toBe("STORE_EPOCH_CHANGED");
  expect((await store.changes(POLL)).fenced).toContain("restored from a snapshot or copied");
  expect(await reasonOf(store.getTags(["t"]))).toBe("STORE_EPOCH_CHANGED");
}, 60_000);

test("whoever is told which store is meant passes over others, and changes none of them", async () => {
  const [cluster, foreign] = await Promise.all([clusterOf(), clusterOf()]);
  const harness = await etcdHarness({ timeoutMs: PACE_MS }, cluster);
  const { storeId: expectId } = await storeStatus(harness.config);
  const other = await otherStore(foreign, harness.config.prefix, 5n);
  const before = await keysOf(other);
  const hosts = [...other.config.hosts, ...harness.config.hosts];
  const both = { ...harness.config, hosts, expectId };
  const { storeId, members } = await storeStatus(both);
  expect([storeId, members]).toEqual([expectId, [expect.stringContaining(foreign.hosts)]]);
  expect((await migrateStore(both, { dryRun: false })).steps).toEqual([]);
  await acceptAtOnce(both, 1n);
  await (await openStore(both)).close();
  const alone = { ...other.config, expectId, timeoutMs: 1_500 };
  const away = {
    reason: "STORE_UNAVAILABLE",
    message: expect.stringMatching(/no member of the store answers/u) as string,
  };
  await expect(acceptAtOnce(alone, 1n)).rejects.toMatchObject(away);
  await expect(storeStatus(alone)).rejects.toMatchObject(away);
  await expect(migrateStore(alone, { dryRun: false })).rejects.toMatchObject(away);
  expect(await keysOf(other)).toEqual(before);
  const env = {
    IDMINT_STORE_URL: `etcd://${hosts.join(",")}/x/`,
    IDMINT_STORE_EXPECT_ID: expectId,
  };
  expect(storeConfigOf(loadConfig({ env, flags: {} })).expectId).toBe(expectId);
});

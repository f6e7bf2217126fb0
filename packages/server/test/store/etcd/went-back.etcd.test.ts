// What servers' own rows and tags show of an etcd that was put back, and what shows nothing.
import type { StoreChanges } from "@idmint/core/server";
import { EtcdCluster } from "@idmint/testkit/etcd";
import { granted, refusal, sequenceOf, settingsOf } from "@idmint/testkit/store-suite";
import { expect, onTestFinished, test, vi } from "vitest";
import { storeStatus } from "../../../src/store/open-store.ts";
import { Etcd } from "../../../src/store/etcd/session/etcd.ts";
import { Poller } from "../poller.ts";
import { copyOf, type EtcdHarness, etcdHarness, setByHand } from "./harness.ts";

const DAY_MS = 86_400_000;
const YEARS_MS = 1_000 * DAY_MS;

interface Scene {
  readonly harness: EtcdHarness;
  readonly server: Poller;
}

/** A server that has polled; `quiet` is a tag that it never asks for. `cluster`: by default the one that the run shares. */
async function withServer(
  work: (scene: Scene) => Promise<void>,
  cluster?: EtcdCluster,
): Promise<void> {
  const harness = await etcdHarness({ timeoutMs: 15_000 }, cluster);
  const setUp = await harness.open();
  try {
    for (const tag of ["t", "quiet"]) await setUp.createTag(settingsOf(tag));
    const server = await Poller.open(harness.config);
    await server.poll();
    await work({ harness, server });
  } finally {
    await setUp.close();
  }
}

const fencedIn = ({ fenced }: StoreChanges): string => fenced;
const isRenewed = ({ parts }: StoreChanges): boolean | undefined => parts[0]?.isRenewed;

async function ownKey({ gateway, config }: EtcdHarness): Promise<string> {
  const [row] = await gateway.under(`${config.prefix}node/`);
  return row?.key ?? "";
}

async function isRefusedByNewcomers(harness: EtcdHarness): Promise<void> {
  const newcomer = await harness.open();
  expect(await refusal(newcomer, "quiet")).toBe("STORE_EPOCH_CHANGED");
  await newcomer.close();
}

/** Others use the store, until its revisions are above all that there were before it was put back. */
async function hide(harness: EtcdHarness, revision: number): Promise<void> {
  const other = await Poller.open(harness.config);
  while ((await harness.gateway.revision()) < revision + 10) await other.grant("quiet");
  expect(fencedIn(await other.poll())).toBe("");
  expect((await storeStatus(harness.config)).fenced).toBe("");
}

test("a server that slept while etcd's data were put back sees it by its own row, and tells all", async () => {
  await using cluster = await EtcdCluster.start();
  await withServer(async ({ harness, server }) => {
    const setBack = await copyOf(cluster);
    for (let polls = 0; polls < 3; polls++) expect(fencedIn(await server.poll())).toBe("");
    const revision = await harness.gateway.revision();
    await setBack();
    await hide(harness, revision);
    // Which takes away what it had, and not what is there.
    await harness.gateway.compact(await harness.gateway.revision());
    const found = await server.poll();
    expect(fencedIn(found)).toMatch(/the row of server \S+ is at \d+, after 4 was answered/u);
    expect(isRenewed(found)).toBe(false);
    await isRefusedByNewcomers(harness);
    await server.store.accept(1_000n);
    expect(fencedIn(await server.poll())).toBe("");
    expect(isRenewed(await server.poll())).toBe(true);
    await granted(server.store, "quiet");
  }, cluster);
});

test("so does one whose row has gone meanwhile, unless the history of its row is gone too", async () => {
  await using cluster = await EtcdCluster.start();
  await withServer(async ({ harness, server }) => {
    const setBack = await copyOf(cluster);
    await server.poll();
    const revision = await harness.gateway.revision();
    await setBack();
    await harness.gateway.remove(await ownKey(harness));
    await hide(harness, revision);
    expect(fencedIn(await server.poll())).toContain("is gone, and nobody forgot it");
    await isRefusedByNewcomers(harness);
    await server.store.accept(1_000n);
    const polls = [await server.poll(), await server.poll()];
    expect(polls.map(fencedIn)).toEqual(["", ""]);
    expect(isRenewed(await server.poll())).toBe(true);
  }, cluster);
});

test("a store as it was before it was accepted is marked by who knows the accepted one", async () => {
  await using cluster = await EtcdCluster.start();
  await withServer(async ({ harness, server }) => {
    const setBack = await copyOf(cluster);
    await server.store.accept(0n);
    expect(fencedIn(await server.poll())).toBe("");
    const revision = await harness.gateway.revision();
    await setBack();
    await hide(harness, revision);
    expect(fencedIn(await server.poll())).not.toBe("");
    await isRefusedByNewcomers(harness);
  }, cluster);
});

test("a row that was forgotten, or went with its lease, is made again at once", async () => {
  await using cluster = await EtcdCluster.start();
  await withServer(async ({ harness, server }) => {
    const { gateway } = harness;
    const poll = async (): Promise<void> => {
      const found = await server.poll();
      expect([fencedIn(found), isRenewed(found)]).toEqual(["", true]);
    };
    await poll();
    const id = (await ownKey(harness)).split("/").at(-1) ?? "";
    await server.store.forgetNodes([{ part: "", id, renewals: undefined }]);
    await poll();
    const { leases } = await gateway.post<{ leases: { ID: string }[] }>("lease/leases", {});
    for (const { ID } of leases) await gateway.post("lease/revoke", { ID });
    expect(await gateway.under(`${harness.config.prefix}node/`)).toEqual([]);
    await poll();
    await gateway.compact(await gateway.revision());
    await gateway.post("maintenance/defragment", {});
    await poll();
    // What was forgotten is no more to be seen.
    await server.store.forgetNodes([{ part: "", id, renewals: undefined }]);
    await gateway.compact(await gateway.revision());
    await poll();
  }, cluster);
});

test("a tag's key that is gone or went back marks the store", () =>
  withServer(async ({ harness, server }) => {
    const { gateway, config } = harness;
    const key = `${config.prefix}tag/t`;
    await server.grant("t");
    const [before] = await gateway.under(key);
    await server.grant("t");
    await server.poll();
    await gateway.put(key, before?.value ?? "");
    expect((await server.poll()).behind).toEqual(["t"]);
    expect(fencedIn(await server.poll())).toContain("the key of tag t");
    await isRefusedByNewcomers(harness);
    await server.store.accept(1_000n);
    expect(fencedIn(await server.poll())).toBe("");
    await server.grant("t");
    await gateway.remove(key);
    expect((await server.poll()).behind).toEqual(["t"]);
    await isRefusedByNewcomers(harness);
  }));

test("a floor that was set back by hand marks the store, also after others raised it again", () =>
  withServer(async ({ harness, server }) => {
    for (let grants = 0; grants < 5; grants++) await server.grant("t");
    expect((await server.poll()).behind).toEqual([]);
    await setByHand(harness, "t", { floor: "10" });
    const other = await Poller.open(harness.config);
    await other.grant("t");
    expect((await other.poll()).behind).toEqual([]);
    expect((await server.poll()).behind).toEqual(["t"]);
    expect(fencedIn(await server.poll())).toContain("tag t is at 20, after 50 was granted");
    await isRefusedByNewcomers(harness);
    await server.store.accept(1_000n);
    for (const poller of [server, other, server]) expect(fencedIn(await poller.poll())).toBe("");
    expect(await server.grant("t")).toBe(1_021n);
    expect((await server.poll()).behind).toEqual([]);
  }));

test("who finds a tag lower renews no row, which a server that starts would take for a proof", () =>
  withServer(async ({ harness, server }) => {
    for (let grants = 0; grants < 5; grants++) await server.grant("t");
    expect(isRenewed(await server.poll())).toBe(true);
    const { gateway, config } = harness;
    const rows = async () => gateway.under(`${config.prefix}node/`);
    const before = await rows();
    await setByHand(harness, "t", { floor: "10" });
    expect(isRenewed(await server.poll())).toBe(false);
    expect(await rows()).toEqual(before);
    await server.store.accept(1_000n);
    // Its versions are compared no more once it knows the new history.
    expect([await server.poll(), await server.poll()].map(isRenewed)[1]).toBe(true);
  }));

test("so does one of a period that ended", () =>
  withServer(async ({ harness, server }) => {
    const periods = { unit: "DAY", timeZone: "UTC", keepForMs: YEARS_MS } as const;
    await server.store.createTag(sequenceOf("s", { periods }));
    const wish = { kind: "sequence", count: 10, minCount: 10 } as const;
    await server.grant("s", wish);
    const now = Date.now.bind(Date);
    vi.spyOn(Date, "now").mockImplementation(() => now() + DAY_MS);
    onTestFinished(() => void vi.restoreAllMocks());
    const other = await Poller.open(harness.config);
    expect(await other.grant("s", wish)).toBe(1n);
    expect((await server.poll()).behind).toEqual([]);
    const [row] = await harness.gateway.under(`${harness.config.prefix}tag/s`);
    const { other_periods: others = "" } = JSON.parse(row?.value ?? "{}") as Record<string, string>;
    await setByHand(harness, "s", { other_periods: others.replace('"10"', '"9"') });
    expect((await server.poll()).behind).toEqual(["s"]);
    await isRefusedByNewcomers(harness);
  }));

test("what lowers a floor rightly, or begins anew, shows nothing", () =>
  withServer(async ({ harness, server }) => {
    const { store } = server;
    const isWell = async (): Promise<void> => {
      const found = await server.poll();
      expect([found.behind, fencedIn(found)]).toEqual([[], ""]);
    };
    const change = { expectedRevision: undefined };
    await server.grant("t");
    await server.grant("t");
    expect(await server.giveBack(7n)).toBe(7);
    await isWell();
    // A give-back that is done while a poll is under way, which was told of more.
    expect(await server.grant("t")).toBe(14n);
    vi.spyOn(Etcd.prototype, "transact").mockImplementationOnce(async function (
      this: Etcd,
      ...args
    ) {
      expect(await server.giveBack(5n)).toBe(5);
      return this.transact(...args);
    });
    await isWell().finally(() => vi.restoreAllMocks());
    expect(await server.grant("t")).toBe(19n);
    await store.advanceTag("t", 100n, { ...change, maxRaise: 1_000n });
    await isWell();
    await server.grant("t");
    await store.setTagState("t", "DELETED", undefined);
    await isWell();
    await store.createTag(settingsOf("t"));
    await isWell();
    await server.grant("t");
    const other = await harness.open();
    await other.accept(0n);
    await other.close();
    await isWell();
    await server.grant("t");
    await isWell();
  }));

test("a server marks no history that was accepted while it slept", () =>
  withServer(async ({ harness, server }) => {
    const { gateway, config } = harness;
    const key = `${config.prefix}tag/t`;
    const [before] = await gateway.under(key);
    for (let grants = 0; grants < 5; grants++) await server.grant("t");
    await server.poll();
    await gateway.put(key, before?.value ?? "");
    await gateway.remove(await ownKey(harness));
    const other = await harness.open();
    await other.accept(1_000n);
    const first = await server.poll();
    expect([first.behind, first.fenced]).toEqual([["t"], ""]);
    expect(isRenewed(await server.poll())).toBe(true);
    await granted(other, "t");
    await other.close();
  }));

test("a renewal that was given up, and one that overtakes another, show nothing", () =>
  withServer(async ({ harness, server }) => {
    // The first one's look is answered when the second one is done, over which it is written again.
    vi.spyOn(Etcd.prototype, "transact").mockImplementationOnce(async function (
      this: Etcd,
      ...args
    ) {
      const before = await this.transact(...args);
      await server.poll();
      return before;
    });
    const found = await server.poll().finally(() => vi.restoreAllMocks());
    expect([fencedIn(found), isRenewed(found)]).toEqual(["", true]);
    // A row that was made by a poll that had been given up, after a later one's was forgotten.
    const key = await ownKey(harness);
    const [row] = await harness.gateway.under(key);
    const its = JSON.parse(row?.value ?? "{}") as object;
    await harness.gateway.remove(key);
    await harness.gateway.put(key, JSON.stringify({ ...its, renewals: "1" }));
    const last = await server.poll();
    expect([fencedIn(last), isRenewed(last)]).toEqual(["", true]);
  }));

import { setTimeout as pause } from "node:timers/promises";
import { MAX_NODES, type Store } from "@idmint/core/server";
import {
  grantedOf,
  leaseOf,
  nodeOf,
  nodeRenewalOf,
  noonZone,
  reasonOf,
  renewalOf,
  sequenceOf,
  snowflakeOf,
  storeSuite,
} from "@idmint/testkit/store-suite";
import { expect, test, vi } from "vitest";
import { Session } from "../../../src/store/etcd/session/etcd.ts";
import { type EtcdHarness, etcdHarness } from "./harness.ts";

const DAY_MS = 86_400_000;

storeSuite("etcd", etcdHarness);

/** Polls of a server that sees two others, whose rows move and whose clocks are so far ahead. */
async function seeOthers(
  { gateway, config }: EtcdHarness,
  store: Store,
  aheadMs: number,
): Promise<void> {
  for (let poll = 0; poll < 2; poll++) {
    const value = JSON.stringify({ clock_ms: String(Date.now() + aheadMs), poll: String(poll) });
    const rows = ["p1", "p2"].map((id) => ({ key: `${config.prefix}node/${id}`, value }));
    await gateway.change(rows);
    await store.changes({ since: 0n, watched: [], limit: 1, renewal: nodeRenewalOf("own") });
  }
}

test("a server whose clock is a day ahead of two others begins no period", async () => {
  const harness = await etcdHarness();
  const store = await harness.open();
  const { timeZone } = noonZone();
  const periods = { unit: "DAY", timeZone, keepForMs: DAY_MS } as const;
  await store.createTag(sequenceOf("t", { periods }));
  const today = (await grantedOf(store, "t")).period;
  await seeOthers(harness, store, -DAY_MS);
  const { nowMs } = await store.changes({ since: 0n, watched: [], limit: 1 });
  expect(Math.abs(nowMs - (Date.now() - DAY_MS + 10_000))).toBeLessThan(5_000);
  expect((await grantedOf(store, "t")).period?.start).toBe(today?.start);
  // They are right, and this one is a day behind.
  await seeOthers(harness, store, DAY_MS);
  const next = await grantedOf(store, "t");
  expect(next.base).toBe(1n);
  expect(next.period?.start).not.toBe(today?.start);
  await store.close();
  await harness.remove();
});

test("a renewal tells the time of the server's own clock", async () => {
  const harness = await etcdHarness();
  const store = await harness.open();
  const clock = vi.spyOn(Date, "now").mockReturnValue(Date.UTC(2031, 0, 1));
  try {
    await store.changes({ since: 0n, watched: [], limit: 1, renewal: nodeRenewalOf("n") });
  } finally {
    clock.mockRestore();
  }
  const [row] = await harness.gateway.under(`${harness.config.prefix}node/`);
  expect(JSON.parse(row?.value ?? "{}")).toMatchObject({ clock_ms: String(Date.UTC(2031, 0, 1)) });
  await store.close();
  await harness.remove();
});

async function rowsOf(store: Store): Promise<readonly string[]> {
  const { parts } = await store.changes({ since: 0n, watched: [], limit: 1, nodes: true });
  return (parts[0]?.nodes ?? []).map(({ id }) => id).toSorted();
}

test("the row of a server that is gone ends with its lease, and not before", async () => {
  const harness = await etcdHarness();
  const store = await harness.open();
  const dead = await harness.open();
  const poll = { since: 0n, watched: [], limit: 1 };
  const endless = nodeOf("endless", { maxOfflineMs: undefined });
  const other = await harness.open();
  await other.changes({ ...poll, renewal: nodeRenewalOf("endless", { node: endless }) });
  const renewedAt = performance.now();
  await dead.changes({ ...poll, renewal: nodeRenewalOf("dead") });
  for (let count = 1n; ; count++) {
    const sentAt = performance.now();
    const { parts } = await store.changes({ ...poll, renewal: nodeRenewalOf("alive", { count }) });
    expect(parts[0]?.isRenewed).toBe(true);
    const rows = await rowsOf(store);
    // It was renewed for 1 s, and its lease is longer than that.
    if (sentAt - renewedAt < 1_000) expect(rows).toEqual(["alive", "dead", "endless"]);
    else expect(rows).toEqual(expect.arrayContaining(["alive", "endless"]));
    if (!rows.includes("dead")) break;
    expect(performance.now() - renewedAt).toBeLessThan(40_000);
    await pause(100);
  }
  await Promise.all([store, dead, other].map((each) => each.close()));
  await harness.remove();
});

test(`there are at most ${MAX_NODES} rows of servers; whoever has one keeps it`, async () => {
  const harness = await etcdHarness();
  const store = await harness.open();
  const isRenewed = async (id: string): Promise<boolean | undefined> => {
    const poll = { since: 0n, watched: [], limit: 1, renewal: nodeRenewalOf(id) };
    return (await store.changes(poll)).parts[0]?.isRenewed;
  };
  expect(await isRenewed("first")).toBe(true);
  const keys = Array.from(
    { length: MAX_NODES - 1 },
    (_, i) => `${harness.config.prefix}node/n${i}`,
  );
  await harness.gateway.change(keys.map((key) => ({ key, value: "{}" })));
  expect(await isRenewed("one-too-many")).toBe(false);
  expect(await isRenewed("first")).toBe(true);
  await harness.gateway.remove(keys[0] ?? "");
  expect(await isRenewed("one-too-many")).toBe(true);
  await store.close();
  await harness.remove();
});

/** Does the work, and the rival's right before it is written. */
async function overtaken<T>(work: () => Promise<T>, first: () => Promise<unknown>): Promise<T> {
  vi.spyOn(Session.prototype, "write").mockImplementationOnce(async function (
    this: Session,
    ...args
  ) {
    await first();
    return this.write(...args);
  });
  return work();
}

test("what a worker lease was decided on is what it is written over", async () => {
  const harness = await etcdHarness();
  const [store, rival] = await Promise.all([harness.open(), harness.open()]);
  await store.createTag(snowflakeOf("t", { place: { registry: "STORE" } }));
  try {
    const a = await overtaken(
      () => store.leaseWorker(leaseOf("a")),
      () => rival.leaseWorker(leaseOf("b")),
    );
    expect(a.workerId).toBe(1);
    // The instance started anew elsewhere: the old one's renewal comes too late.
    const renewal = overtaken(
      () => store.renewWorker(renewalOf(a)),
      () => rival.leaseWorker(leaseOf("a")),
    );
    expect(await reasonOf(renewal)).toBe("WORKER_LEASE_LOST");
    const paused = overtaken(
      () => store.leaseWorker(leaseOf("c")),
      () => rival.setTagState("t", "PAUSED", undefined),
    );
    expect(await reasonOf(paused)).toBe("TAG_PAUSED");
  } finally {
    vi.restoreAllMocks();
  }
  await Promise.all([store.close(), rival.close()]);
  await harness.remove();
});

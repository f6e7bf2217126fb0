// Accepts of many tags, in several transactions, and what polls are told of them.
import type { Store, Tag } from "@idmint/core/server";
import { setTimeout as pause } from "node:timers/promises";
import { EtcdCluster } from "@idmint/testkit/etcd";
import { granted, NO_CHECK, reasonOf, settingsOf } from "@idmint/testkit/store-suite";
import { expect, test, vi } from "vitest";
import { Session } from "../../../src/store/etcd/session/etcd.ts";
import { type EtcdHarness, etcdHarness, setByHand } from "./harness.ts";

const PACE_MS = 15_000;

/** Every transaction of a store is made by `how`, until mocks are restored. */
function writingBy(
  how: (
    write: () => ReturnType<Session["write"]>,
    ops: Parameters<Session["write"]>[0],
  ) => ReturnType<Session["write"]>,
): void {
  // oxlint-disable-next-line typescript/unbound-method
  const { write } = Session.prototype;
  vi.spyOn(Session.prototype, "write").mockImplementation(function (this: Session, ...args) {
    return how(() => write.apply(this, args), args[0]);
  });
}

/** Whether these are operations of an accept that raise tags. */
function writesTags(ops: Parameters<Session["write"]>[0]): boolean {
  return ops.some((op) => "txn" in op && op.txn.success.some((its) => "txn" in its));
}

/** Puts tags beside one that was made, as if each had been made by a call of its own. */
async function makeMany(
  { gateway, config: { prefix } }: EtcdHarness,
  store: Store,
  names: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<void> {
  const [first = "", ...rest] = names;
  const { revision } = await store.createTag(settingsOf(first));
  const [made] = await gateway.under(`${prefix}tag/${first}`);
  const row = JSON.parse(made?.value ?? "{}") as object;
  const placeOf = (at: number): string => String(Number(revision) + at + 1);
  await gateway.change(
    rest.flatMap((name, at) => [
      {
        key: `${prefix}tag/${name}`,
        value: JSON.stringify({ ...row, ...more, name, revision: placeOf(at) }),
      },
      { key: `${prefix}change/${placeOf(at).padStart(19, "0")}`, value: name },
    ]),
  );
  await gateway.put(`${prefix}revision`, placeOf(rest.length - 1));
}

/** All changes after a revision, in pages. */
async function toldAfter(store: Store, first: bigint, limit: number): Promise<readonly Tag[]> {
  const all: Tag[] = [];
  for (let since = first; ;) {
    const { changed, more, next, revision } = await store.changes({ since, watched: [], limit });
    expect(changed.length).toBeLessThanOrEqual(limit);
    all.push(...changed);
    if (!more) {
      expect(next ?? revision).toBe(revision);
      return all;
    }
    expect(next).toBeGreaterThan(since);
    since = next ?? since;
  }
}

test("an accept of many tags tells each change once, in their order, also one that was made again", async () => {
  await using cluster = await EtcdCluster.start();
  const harness = await etcdHarness({ timeoutMs: PACE_MS }, cluster);
  const { prefix } = harness.config;
  const { gateway } = harness;
  const store = await harness.open();
  const names = Array.from({ length: 2_500 }, (_, i) => `t${String(i).padStart(4, "0")}`);
  await makeMany(harness, store, names);
  const { revision: before } = await store.changes({ since: 0n, watched: [], limit: 1 });
  // Some packs are written, and not all.
  let packs = 0;
  writingBy(async (write, ops) => {
    if (writesTags(ops) && packs++ === 2) throw new Error("interrupted");
    return write();
  });
  await expect(store.accept(7n)).rejects.toThrow("the store failed");
  vi.restoreAllMocks();
  expect((await gateway.under(`${prefix}pack/`)).length).toBeGreaterThan(0);
  expect(await gateway.under(`${prefix}change/`)).toHaveLength(2_500);
  // Nothing of it is told while the store is closed.
  expect(await toldAfter(store, 0n, 1_000)).toEqual([]);
  // It had places for more tags than there are now, and its packs ended at other ones.
  for (const name of names.splice(1_000, 3)) await gateway.remove(`${prefix}tag/${name}`);
  expect(await store.accept(7n)).toEqual({ tags: 2_497 });
  const told = await toldAfter(store, before, 999);
  expect(told.map(({ name }) => name)).toEqual(names);
  expect(told.map(({ revision }) => revision)).toEqual(
    names.map((_, at) => before + BigInt(at + 1)),
  );
  expect(await gateway.under(`${prefix}change/`)).toEqual([]);
  // Those of the accept before are gone after the next one.
  expect(await store.accept(1n)).toEqual({ tags: 2_497 });
  expect((await toldAfter(store, 0n, 1_000)).map(({ name }) => name)).toEqual(names);
  await store.close();
});

test("rows that are long are accepted too, though etcd takes few of them in one transaction", async () => {
  const harness = await etcdHarness();
  const store = await harness.open();
  const names = Array.from({ length: 1_000 }, (_, i) => `t${String(i).padStart(4, "0")}`);
  // 1,000 of them are more than the 1.5 MiB of one request.
  await makeMany(harness, store, names, { description: "x".repeat(2_000) });
  expect(await store.accept(7n)).toEqual({ tags: 1_000 });
  expect((await toldAfter(store, 1_000n, 1_000)).map(({ name }) => name)).toEqual(names);
  expect((await granted(store, "t0999")).base).toBe(8n);
  await store.close();
});

test("what operators changed after an accept is told once, at its own place", async () => {
  const harness = await etcdHarness();
  const store = await harness.open();
  const names = ["a", "b", "c", "d"];
  for (const name of names) await store.createTag(settingsOf(name));
  await store.accept(1n);
  // The last one's place is the pack's own.
  for (const name of ["b", "d"]) await store.setTagState(name, "PAUSED", NO_CHECK);
  await store.setTagState("b", "DELETED", NO_CHECK);
  await store.createTag(settingsOf("e"));
  for (const limit of [1, 2, 3, 100]) {
    const told = await toldAfter(store, 4n, limit);
    expect(told.map(({ name, state }) => `${name} ${state}`)).toEqual([
      "a ACTIVE",
      "c ACTIVE",
      "d PAUSED",
      "b DELETED",
      "e ACTIVE",
    ]);
  }
  expect((await toldAfter(store, 6n, 2)).map(({ name }) => name)).toEqual(["c", "d", "b", "e"]);
  // A row that a hand put back is told at the place that it had.
  await setByHand(harness, "a", { revision: "1" });
  expect((await toldAfter(store, 4n, 100)).map(({ name }) => name)).toContain("a");
  await store.accept(1n);
  expect((await toldAfter(store, 9n, 2)).map(({ name }) => name)).toEqual([...names, "e"]);
  await store.close();
});

test("a tag that a hand writes during an accept stops it, and is taken by the next", async () => {
  const harness = await etcdHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("a"));
  await store.createTag(settingsOf("c"));
  for (const name of ["a", "b"]) {
    const { prefix } = harness.config;
    const [made] = await harness.gateway.under(`${prefix}tag/a`);
    const value = JSON.stringify({
      ...(JSON.parse(made?.value ?? "{}") as object),
      name,
      floor: "500",
    });
    writingBy(async (write, ops) => {
      if (writesTags(ops)) await harness.gateway.put(`${prefix}tag/${name}`, value);
      return write();
    });
    expect(await reasonOf(store.accept(7n))).toBe("STORE_UNAVAILABLE");
    vi.restoreAllMocks();
    await store.accept(7n);
    expect((await granted(store, name)).base).toBe(508n);
  }
  await store.close();
});

test("a row that was copied to another tag's key is named before the store is closed", async () => {
  const harness = await etcdHarness();
  const { prefix } = harness.config;
  const store = await harness.open();
  await store.createTag(settingsOf("a"));
  const [made] = await harness.gateway.under(`${prefix}tag/a`);
  await harness.gateway.put(`${prefix}tag/b`, made?.value ?? "");
  await expect(store.accept(7n)).rejects.toThrow(`${prefix}tag/b`);
  expect((await granted(store, "a")).base).toBe(1n);
  await harness.gateway.remove(`${prefix}tag/b`);
  expect(await store.accept(7n)).toEqual({ tags: 1 });
  await store.close();
});

test("an accept has a time of its own, so that the handle of a server leaves no store closed", async () => {
  const harness = await etcdHarness({ timeoutMs: 2_000 });
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  writingBy(async (write) => {
    await pause(1_200);
    return write();
  });
  expect(await store.accept(7n)).toEqual({ tags: 1 });
  vi.restoreAllMocks();
  expect((await granted(store, "t")).base).toBe(8n);
  await store.close();
});

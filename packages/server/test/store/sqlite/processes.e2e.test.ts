// Several processes on one file, killed at random, and a disk that is full.
import { statSync } from "node:fs";
import { assertDisjoint, granted, settingsOf } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { GrantChild, until } from "../children.ts";
import { sqliteHarness } from "../harness.ts";

test("processes on one file, one killed every while, never get the same id, and lose at most one grant each", async () => {
  const harness = await sqliteHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  const children = [0, 1, 2].map(() => new GrantChild(harness.config, "t"));
  const dead: GrantChild[] = [];
  for (let kill = 0; kill < 8; kill++) {
    const victim = children[kill % 3] as GrantChild;
    await victim.reached(30);
    await victim.kill();
    dead.push(victim);
    children[kill % 3] = new GrantChild(harness.config, "t");
  }
  await Promise.all(children.map((child) => child.kill()));
  dead.push(...children);
  const ranges = dead.flatMap((child) => child.ranges);
  assertDisjoint(ranges);
  for (const child of dead) expect([...child.refused]).toEqual([]);
  // Each kill may have cut off one grant after its commit and before its line.
  const { base } = await granted(store, "t");
  const lost = Number(base) - 1 - ranges.length * 10;
  expect(lost).toBeGreaterThanOrEqual(0);
  expect(lost).toBeLessThanOrEqual(dead.length * 10);
  await store.close();
  await harness.remove();
});

test("a disk that is full grants nothing that it did not store", async () => {
  const harness = await sqliteHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  await granted(store, "t");
  // Room for some commits in the -wal; those that do not fit any more fail.
  const child = new GrantChild(harness.config, "t", { limitKiB: 96 });
  // A store that answered grants it could not commit would never refuse.
  await until(
    () => (child.refused.get("STORE_UNAVAILABLE") ?? 0) >= 20 || child.ranges.length > 3_000,
  );
  await child.kill();
  assertDisjoint(child.ranges);
  expect(child.ranges.length).toBeGreaterThan(3);
  expect([...child.refused.keys()]).toEqual(["STORE_UNAVAILABLE"]);
  const after = await granted(store, "t");
  assertDisjoint([
    { from: 1n, to: 10n },
    ...child.ranges,
    { from: after.base, to: after.base + 9n },
  ]);
  expect(after.base).toBeGreaterThan(child.ranges.at(-1)?.to ?? 0n);
  await store.close();
  await harness.remove();
});

test("the -wal stays small however much is granted by however many", async () => {
  const harness = await sqliteHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  const children = [0, 1].map(() => new GrantChild(harness.config, "t"));
  await Promise.all(children.map((child) => child.reached(2_000)));
  expect(statSync(`${harness.config.path}-wal`).size).toBeLessThan(40 * 1024 * 1024);
  await Promise.all(children.map((child) => child.kill()));
  await store.close();
  await harness.remove();
});

import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../../../src/config/load.ts";
import { groupFoldersOf } from "../../../../src/main/stores.ts";
import { migrateStore, openStore, storeStatus } from "../../../../src/store/open-store.ts";
import { writersOf } from "../../../../src/store/sqlite/file/folders.ts";

test.each([
  ["one's own", 1_000, 0o40700, "nobody"],
  ["one's own that others read", 1_000, 0o40755, "nobody"],
  ["root's", 0, 0o40755, "nobody"],
  ["a group's", 1_000, 0o40770, "group"],
  ["root's with a group, as of an fsGroup", 0, 0o42775, "group"],
  ["everybody's", 1_000, 0o40777, "everybody"],
  ["everybody's with the sticky bit, as /tmp", 0, 0o41777, "everybody"],
  ["another user's", 1_001, 0o40700, "another user"],
] as const)("a folder that is %s", (_what, uid, mode, writers) => {
  expect(writersOf({ uid, mode }, 1_000)).toBe(writers);
  expect(writersOf({ uid, mode }, undefined)).toBe("nobody");
});

function storeIn(mode: number) {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-folder-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, mode);
  const file = path.join(folder, "idmint.db");
  return {
    folder,
    store: {
      backend: "sqlite",
      path: file,
      create: true,
      allowUnsafe: [],
      timeoutMs: 60_000,
    } as const,
  };
}

test("a store is neither made nor opened where everybody may write, unless that is allowed by name", async () => {
  const { folder, store } = storeIn(0o777);
  await expect(migrateStore(store, { dryRun: false })).rejects.toMatchObject({
    reason: "STORE_UNSAFE",
    metadata: { settings: "shared_folder" },
  });
  const allowed = { ...store, allowUnsafe: ["shared_folder"] } as const;
  await migrateStore(allowed, { dryRun: false });
  await expect(openStore(store)).rejects.toMatchObject({ reason: "STORE_UNSAFE" });
  expect((await storeStatus(store)).unsafe).toEqual(["shared_folder"]);
  await (await openStore(allowed)).close();
  chmodSync(folder, 0o755);
  await (await openStore(store)).close();
});

test("a store is opened where a group may write, and that is told", async () => {
  const { folder, store } = storeIn(0o770);
  await migrateStore(store, { dryRun: false });
  await (await openStore(store)).close();
  const configOf = () => loadConfig({ env: {}, flags: { "store-url": `sqlite:${store.path}` } });
  expect(groupFoldersOf(configOf())).toEqual([folder]);
  chmodSync(folder, 0o700);
  expect(groupFoldersOf(configOf())).toEqual([]);
});

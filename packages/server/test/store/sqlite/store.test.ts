import { mkdirSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { IdmintError } from "@idmint/core";
import { MAX_NODES } from "@idmint/core/server";
import {
  granted,
  nodeRenewalOf,
  reasonOf,
  refusal,
  settingsOf,
  storeSuite,
  wish,
} from "@idmint/testkit/store-suite";
import { expect, test, vi } from "vitest";
import { migrateStore, openStore, storeStatus } from "../../../src/store/open-store.ts";
import { nameOfNetworkFileSystem } from "../../../src/store/sqlite/file/files.ts";
import { sqlInAnotherProcess } from "../children.ts";
import { sqliteHarness } from "../harness.ts";

// Every handle starts a thread, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 30_000 });

storeSuite("sqlite", sqliteHarness);

test("opening makes no file, and neither does a migration that is not told to", async () => {
  const harness = await sqliteHarness();
  const config = { ...harness.config, path: path.join(harness.folder, "other"), create: false };
  expect(await reasonOf(openStore(config))).toBe("SCHEMA_MISMATCH");
  expect(await reasonOf(migrateStore(config, { dryRun: false }))).toBe("SCHEMA_MISMATCH");
  expect(await reasonOf(storeStatus(config))).toBe("SCHEMA_MISMATCH");
  expect(statSync(config.path, { throwIfNoEntry: false })).toBeUndefined();
  await harness.remove();
});

test("a dry run tells the steps and makes nothing", async () => {
  const harness = await sqliteHarness();
  const config = { ...harness.config, path: path.join(harness.folder, "other") };
  const report = await migrateStore(config, { dryRun: true });
  expect(report).toMatchObject({ from: 0, to: report.steps.length, created: true });
  expect(report.steps[0]?.sql).toContain("CREATE TABLE tag");
  expect(statSync(config.path, { throwIfNoEntry: false })).toBeUndefined();
  await harness.remove();
});

test("a second migration finds nothing to do, and keeps what is there", async () => {
  const harness = await sqliteHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  await granted(store, "t");
  const report = await migrateStore(harness.config, { dryRun: false });
  expect(report).toEqual({ from: report.to, to: report.to, steps: [], created: false });
  expect((await granted(store, "t")).base).toBe(11n);
  await store.close();
  await harness.remove();
});

test("a file with columns of a newer release is served, and keeps them through every change", async () => {
  const harness = await sqliteHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  sqlInAnotherProcess(
    harness.config.path,
    `ALTER TABLE tag ADD COLUMN newer INTEGER NOT NULL DEFAULT 0; UPDATE tag SET newer = 7;
    INSERT INTO migration VALUES (99, 'of a newer release', 'x', 1, 0)`,
  );
  await granted(store, "t");
  await store.updateTag("t", { description: "changed" }, undefined);
  const later = await harness.open();
  expect(later.schemaVersion).toBe(99);
  await later.setTagState("t", "PAUSED", undefined);
  await Promise.all([store.close(), later.close()]);
  const file = new DatabaseSync(harness.config.path);
  const row = file.prepare("SELECT description, state, newer FROM tag").get();
  expect(row).toEqual({ description: "changed", state: "PAUSED", newer: 7 });
  file.close();
  await harness.remove();
});

test("an empty file, a newer schema and a changed step are refused", async () => {
  const harness = await sqliteHarness();
  const empty = { ...harness.config, path: path.join(harness.folder, "empty") };
  writeFileSync(empty.path, "");
  expect(await reasonOf(openStore(empty))).toBe("SCHEMA_MISMATCH");
  const newer = "INSERT INTO migration VALUES (99, 'future', 'x', 99, 0)";
  sqlInAnotherProcess(harness.config.path, newer);
  expect(await reasonOf(openStore(harness.config))).toBe("SCHEMA_MISMATCH");
  expect(await reasonOf(migrateStore(harness.config, { dryRun: false }))).toBe("SCHEMA_MISMATCH");
  const changed = "DELETE FROM migration WHERE number = 99; UPDATE migration SET checksum = 'y'";
  sqlInAnotherProcess(harness.config.path, changed);
  expect(await reasonOf(openStore(harness.config))).toBe("SCHEMA_MISMATCH");
  await harness.remove();
});

test("a file that is no database is told, and not written to", async () => {
  const harness = await sqliteHarness();
  const config = { ...harness.config, path: path.join(harness.folder, "text") };
  writeFileSync(config.path, "not a database, ".repeat(1_000));
  const works = [() => openStore(config), () => migrateStore(config, { dryRun: false })];
  for (const work of works) {
    await expect(work()).rejects.toMatchObject({
      reason: "STORE_REFUSED",
      retryAfterMs: undefined,
      message: expect.stringContaining(`${config.path} is no SQLite database`) as string,
    });
  }
  expect(statSync(config.path).size).toBe(16_000);
  await harness.remove();
});

test("only the owner may read the files of a store", async () => {
  const harness = await sqliteHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  for (const suffix of ["", "-wal", "-shm", ".witness"]) {
    expect(statSync(`${harness.config.path}${suffix}`).mode & 0o077).toBe(0);
  }
  await store.close();
  await harness.remove();
});

test("missing folders of a new store are made", async () => {
  const harness = await sqliteHarness();
  const config = { ...harness.config, path: path.join(harness.folder, "a", "b", "store") };
  await migrateStore(config, { dryRun: false });
  const store = await openStore(config);
  await store.createTag(settingsOf("t"));
  await store.close();
  await harness.remove();
});

test("a tag of another kind is refused", async () => {
  const harness = await sqliteHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  sqlInAnotherProcess(harness.config.path, "UPDATE tag SET kind = 'sequence'");
  expect(await refusal(store, "t")).toBe("WRONG_KIND");
  await store.close();
  await harness.remove();
});

test("the file systems of networks are known by their numbers, local ones are not among them", () => {
  const numbers = [0x6969, 0xff534d42, 0xff534d42 | 0, 0x65735546, 0x01021997];
  expect(numbers.map(nameOfNetworkFileSystem)).toEqual(["NFS", "CIFS", "CIFS", "FUSE", "9P"]);
  for (const local of [0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630]) {
    expect(nameOfNetworkFileSystem(local)).toBeUndefined();
  }
});

test("an unknown name of a risk is refused", async () => {
  const harness = await sqliteHarness();
  const work = openStore({ ...harness.config, allowUnsafe: ["everything"] });
  expect(await reasonOf(work)).toBe("INVALID_ARGUMENT");
  await harness.remove();
});

test("while another process holds the lock the event loop runs on, and calls fail in time", async () => {
  const harness = await sqliteHarness({ timeoutMs: 900 });
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  // A second connection in this process holds the write lock, as another process would.
  const { DatabaseSync } = await import("node:sqlite");
  const other = new DatabaseSync(harness.config.path);
  other.exec("BEGIN IMMEDIATE");
  let ticks = 0;
  const ticker = setInterval(() => ticks++, 10);
  const startedAt = performance.now();
  expect(await reasonOf(store.grant([wish("t")]))).toBe("STORE_UNAVAILABLE");
  const tookMs = performance.now() - startedAt;
  clearInterval(ticker);
  expect(tookMs).toBeGreaterThan(500);
  expect(tookMs).toBeLessThan(2_500);
  expect(ticks).toBeGreaterThan(20);
  // Reading needs no lock.
  expect((await store.getTags(["t"])).length).toBe(1);
  other.exec("ROLLBACK");
  other.close();
  expect((await granted(store, "t")).base).toBe(1n);
  await store.close();
  await harness.remove();
});

test("a thread that dies leaves its requests unknown, and another one takes over", async () => {
  const harness = await sqliteHarness();
  const workers: Worker[] = [];
  const onWorker = (worker: Worker): void => {
    workers.push(worker);
  };
  process.on("worker", onWorker);
  const store = await harness.open();
  process.off("worker", onWorker);
  await store.createTag(settingsOf("t"));
  await granted(store, "t");
  const lost = store.grant([wish("t")]).then(
    () => "answered",
    (error: unknown) => (error instanceof IdmintError ? error.reason : String(error)),
  );
  await workers[0]?.terminate();
  expect(["answered", "STORE_UNAVAILABLE"]).toContain(await lost);
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  expect((await granted(store, "t")).base).toBeGreaterThan(10n);
  await store.close();
  await harness.remove();
});

test("more requests than may wait are refused at once", async () => {
  const harness = await sqliteHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  const works = Array.from({ length: 10_050 }, async () => {
    try {
      await store.getTags([]);
      return "ok";
    } catch (error) {
      return error instanceof IdmintError ? error.reason : "other";
    }
  });
  const outcomes = await Promise.all(works);
  expect(
    outcomes.filter((outcome) => outcome === "STORE_UNAVAILABLE").length,
  ).toBeGreaterThanOrEqual(50);
  expect(outcomes).not.toContain("other");
  await store.close();
  await harness.remove();
});

test("a folder that cannot hold a store is told so", async () => {
  const harness = await sqliteHarness();
  const config = { ...harness.config, path: path.join(harness.folder, "folder") };
  mkdirSync(config.path);
  const works = [() => openStore(config), () => migrateStore(config, { dryRun: false })];
  for (const work of works) {
    await expect(work()).rejects.toThrow(/^INVALID_ARGUMENT: store.url names a folder/);
  }
  await harness.remove();
});

test(`there are at most ${MAX_NODES} rows of servers; whoever has one keeps it`, async () => {
  const harness = await sqliteHarness();
  const store = await harness.open();
  sqlInAnotherProcess(
    harness.config.path,
    `WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < ${MAX_NODES - 1})
     INSERT INTO node SELECT 'n' || i, '', '', '', '', 0, NULL, 1, '', 0, 0, 0 FROM r`,
  );
  const isRenewed = async (id: string): Promise<boolean | undefined> => {
    const poll = { since: 0n, watched: [], limit: 1, renewal: nodeRenewalOf(id) };
    return (await store.changes(poll)).parts[0]?.isRenewed;
  };
  expect([await isRenewed("last"), await isRenewed("one-more")]).toEqual([true, false]);
  expect(await isRenewed("n1")).toBe(true);
  await store.close();
  await harness.remove();
});

test("an accept has a time of its own, also by the handle of a server", async () => {
  const harness = await sqliteHarness({ timeoutMs: 900 });
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  const other = new DatabaseSync(harness.config.path);
  other.exec("BEGIN IMMEDIATE");
  const accepted = store.accept(1n);
  await pause(1_500);
  other.exec("ROLLBACK");
  expect(await accepted).toEqual({ tags: 1 });
  other.close();
  await store.close();
  await harness.remove();
});

// Another store, or none, under the name of the store that a server belongs to.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Worker } from "node:worker_threads";
import type { IdmintError } from "@idmint/core";
import type { Store } from "@idmint/core/server";
import {
  granted,
  nodeRenewalOf,
  reasonOf,
  refusal,
  settingsOf,
  tokenOf,
  wish,
} from "@idmint/testkit/store-suite";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  migrateStore,
  openStore,
  type SqliteConfig,
  storeStatus,
} from "../../../src/store/open-store.ts";
import { acceptAtOnce } from "../accept.ts";
import { StorePins } from "../../../src/store/pins/pin.ts";
import { monotonicMs, peekStoreId } from "../../../src/store/sqlite/file/connection.ts";
import { openDatabase } from "../../../src/store/sqlite/open.ts";
import { run, sqlInAnotherProcess, SwapChild } from "../children.ts";
import { sqliteHarness } from "../harness.ts";

// Every handle starts a thread, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 30_000 });

type Which = "ours" | "other";

/** Two stores, in folders of which one at a time lies at the place that servers know. */
class Place {
  readonly config: SqliteConfig;
  readonly ids: Record<Which, string> = { ours: "", other: "" };
  readonly #folder: string;
  #at: Which | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
    this.config = {
      backend: "sqlite",
      path: path.join(folder, "here", "store.sqlite"),
      create: true,
      allowUnsafe: [],
      // Whatever is refused here is refused for what lies there, not for a slow machine.
      timeoutMs: 20_000,
    };
  }

  /** The floor of `t` is at 10 in ours and at 50,010 in the other. */
  static async make(): Promise<Place> {
    const harness = await sqliteHarness();
    onTestFinished(() => harness.remove());
    const place = new Place(harness.folder);
    for (const which of ["other", "ours"] as const) {
      place.pointAt(which);
      mkdirSync(path.dirname(place.config.path), { recursive: true });
      await migrateStore(place.config, { dryRun: false });
      const store = await openStore(place.config);
      await store.createTag(settingsOf("t"));
      if (which === "other") await granted(store, "t", { count: 50_000, minCount: 50_000 });
      await granted(store, "t");
      await store.close();
      place.ids[which] = (await storeStatus(place.config)).storeId;
    }
    return place;
  }

  folderOf(which: Which): string {
    return path.join(this.#folder, which === this.#at ? "here" : which);
  }

  fileOf(which: Which): string {
    return path.join(this.folderOf(which), "store.sqlite");
  }

  pointAt(which: Which | undefined): void {
    if (which === this.#at) return;
    const here = path.join(this.#folder, "here");
    if (this.#at !== undefined) renameSync(here, path.join(this.#folder, this.#at));
    const there = which === undefined ? undefined : this.folderOf(which);
    this.#at = which;
    if (there === undefined) return;
    mkdirSync(there, { recursive: true });
    renameSync(there, here);
  }

  /** All that lies in the folder of a store, so that nothing can be written there unseen. */
  contentsOf(which: Which): Record<string, string> {
    const folder = this.folderOf(which);
    const names = readdirSync(folder).toSorted();
    return Object.fromEntries(
      names.map((name) => [name, readFileSync(path.join(folder, name), "latin1")]),
    );
  }
}

function foreign({ ids }: Place): object {
  const metadata = { store_id: ids.other, pinned: ids.ours };
  return { reason: "STORE_UNAVAILABLE", retryable: true, metadata };
}

function callsOf(store: Store): (() => Promise<unknown>)[] {
  return [
    () => store.grant([wish("t")]),
    () =>
      store.changes({
        since: 0n,
        watched: [],
        limit: 10,
        renewal: nodeRenewalOf("n", { count: 2n }),
      }),
    () => store.getTags(["t"]),
    () => store.createTag(settingsOf("new")),
    () => store.addToken(tokenOf("a")),
    () => store.readTokens(undefined),
  ];
}

test("of another store nothing is believed, nothing is written there, and the right one is taken up again", async () => {
  const place = await Place.make();
  const store = await openStore(place.config);
  onTestFinished(() => store.close());
  const { base } = await granted(store, "t");
  place.pointAt("other");
  const before = place.contentsOf("other");
  for (const call of callsOf(store)) await expect(call()).rejects.toMatchObject(foreign(place));
  expect(place.contentsOf("other")).toEqual(before);
  place.pointAt("ours");
  expect(await granted(store, "t")).toMatchObject({ base: base + 10n, epoch: 1n });
  const fresh = await openStore(place.config);
  expect(await granted(fresh, "t")).toMatchObject({ base: base + 20n, epoch: 1n });
  await fresh.close();
});

test("the file of another store in the place of ours alone is away too, until ours is moved back", async () => {
  const place = await Place.make();
  const store = await openStore(place.config);
  onTestFinished(() => store.close());
  const { base } = await granted(store, "t");
  const aside = path.join(place.folderOf("other"), "aside");
  renameSync(place.fileOf("ours"), aside);
  renameSync(place.fileOf("other"), place.fileOf("ours"));
  const before = readFileSync(place.fileOf("ours"), "latin1");
  for (const call of callsOf(store)) await expect(call()).rejects.toMatchObject(foreign(place));
  expect(readFileSync(place.fileOf("ours"), "latin1")).toBe(before);
  renameSync(place.fileOf("ours"), place.fileOf("other"));
  renameSync(aside, place.fileOf("ours"));
  expect(await granted(store, "t")).toMatchObject({ base: base + 10n, epoch: 1n });
});

test("a store that is gone for a while is away, and goes on by itself when it is back", async () => {
  const place = await Place.make();
  const store = await openStore(place.config);
  onTestFinished(() => store.close());
  await granted(store, "t");
  for (let again = 0; again < 3; again++) {
    place.pointAt(undefined);
    for (const call of callsOf(store)) {
      await expect(call()).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE", retryable: true });
    }
    expect(readdirSync(path.dirname(place.folderOf("ours")))).not.toContain("here");
    place.pointAt("ours");
    expect(await granted(store, "t")).toMatchObject({ base: 21n + 10n * BigInt(again), epoch: 1n });
  }
});

test("a copy of our store in its place is refused, and stays so when ours is back", async () => {
  const place = await Place.make();
  const store = await openStore(place.config);
  onTestFinished(() => store.close());
  await granted(store, "t");
  place.pointAt(undefined);
  run("cp", "-r", place.folderOf("ours"), path.dirname(place.config.path));
  expect(await refusal(store, "t")).toBe("STORE_EPOCH_CHANGED");
  rmSync(path.dirname(place.config.path), { recursive: true });
  place.pointAt("ours");
  expect(await refusal(store, "t")).toBe("STORE_EPOCH_CHANGED");
  await acceptAtOnce(place.config, 1_000n);
  expect((await granted(store, "t")).base).toBeGreaterThan(1_000n);
});

function expecting(storeId: string): StorePins {
  return new StorePins({
    known: { stores: new Map([["", storeId]]) },
    settle: async (_place, id) => id,
  });
}

test("a store that is expected by its id is waited for", async () => {
  const place = await Place.make();
  place.pointAt("other");
  // Whoever opened it to serve it would change this.
  sqlInAnotherProcess(place.config.path, "PRAGMA journal_mode = DELETE");
  const before = place.contentsOf("other");
  const open = () => openStore(place.config, expecting(place.ids.ours));
  await expect(open()).rejects.toMatchObject(foreign(place));
  expect(place.contentsOf("other")).toEqual(before);
  place.pointAt(undefined);
  await expect(open()).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE", retryable: true });
  expect(await reasonOf(openStore(place.config))).toBe("SCHEMA_MISMATCH");
  place.pointAt("ours");
  const store = await open();
  await granted(store, "t");
  await store.close();
});

test("another store whose id is in its -wal alone is told when it is open", async () => {
  const place = await Place.make();
  const folder = path.join(place.folderOf("other"), "..", "newer");
  mkdirSync(folder);
  const config = { ...place.config, path: path.join(folder, "store.sqlite") };
  // Whoever has the file open keeps the -wal from being written back when others close it.
  const holder = new DatabaseSync(config.path);
  onTestFinished(() => holder.close());
  holder.exec("PRAGMA journal_mode = WAL; SELECT 1 FROM sqlite_schema");
  await migrateStore(config, { dryRun: false });
  expect(peekStoreId(config.path)).toBeUndefined();
  const { storeId } = await storeStatus(config);
  await expect(openStore(config, expecting(place.ids.ours))).rejects.toMatchObject({
    metadata: { store_id: storeId, pinned: place.ids.ours },
  });
});

test("another store that was opened before it was known is left when ours is back", async () => {
  const place = await Place.make();
  const { database } = openDatabase(place.config, { storeId: place.ids.ours });
  place.pointAt(undefined);
  database.reopen();
  const here = path.dirname(place.config.path);
  mkdirSync(here);
  const holder = new DatabaseSync(place.config.path);
  holder.exec("PRAGMA journal_mode = WAL; SELECT 1 FROM sqlite_schema");
  await migrateStore(place.config, { dryRun: false });
  const read = (): string => database.read(monotonicMs() + 5_000, (_, fenced) => fenced);
  expect(read).toThrow(/another store answers/);
  holder.close();
  renameSync(here, path.join(here, "..", "newer"));
  place.pointAt("ours");
  expect(read()).toBe("");
  database.close();
});

test("what is pinned first stays, whoever else finds another store meanwhile", async () => {
  const place = await Place.make();
  const settled = new StorePins({
    known: { stores: new Map() },
    settle: async () => place.ids.other,
  });
  const work = openStore(place.config, settled);
  await expect(work).rejects.toMatchObject({
    reason: "STORE_UNAVAILABLE",
    metadata: { store_id: place.ids.ours, pinned: place.ids.other },
  });
});

test("a thread that takes over belongs to the same store", async () => {
  const place = await Place.make();
  const workers: Worker[] = [];
  const onWorker = (worker: Worker): void => void workers.push(worker);
  process.on("worker", onWorker);
  const store = await openStore(place.config);
  process.off("worker", onWorker);
  onTestFinished(() => store.close());
  await granted(store, "t");
  place.pointAt("other");
  await workers[0]?.terminate();
  await expect
    .poll(() => store.grant([wish("t")]).catch((error: unknown) => error), { timeout: 5_000 })
    .toMatchObject({ cause: { message: expect.stringContaining(place.ids.other) as string } });
  place.pointAt("ours");
  await expect
    .poll(() => store.grant([wish("t")]).catch((error: unknown) => error), { timeout: 5_000 })
    .toMatchObject([{ outcome: "granted", base: 21n }]);
});

test("a store whose files change places while they are opened is opened anew, and neither is harmed", async () => {
  const place = await Place.make();
  const { database } = openDatabase(place.config, { storeId: place.ids.ours });
  database.reopen();
  const before = place.contentsOf("other");
  // oxlint-disable-next-line typescript/unbound-method
  const { exec } = DatabaseSync.prototype;
  const opened = vi.spyOn(DatabaseSync.prototype, "exec").mockImplementation(function (
    this: DatabaseSync,
    sql: string,
  ) {
    // SQLite has the database file open by now, and nothing else.
    if (sql.startsWith("PRAGMA busy_timeout")) place.pointAt("other");
    exec.call(this, sql);
  });
  const read = (): string => database.read(monotonicMs() + 5_000, (_, fenced) => fenced);
  expect(read).toThrow(/moved while they were opened/);
  opened.mockRestore();
  expect(place.contentsOf("other")["store.sqlite"]).toBe(before["store.sqlite"]);
  place.pointAt("ours");
  expect(read()).toBe("");
  database.close();
  for (const which of ["ours", "other"] as const) {
    place.pointAt(which);
    const whole = await openStore(place.config);
    expect((await granted(whole, "t")).base).toBe(which === "ours" ? 11n : 50_011n);
    await whole.close();
  }
});

test("however fast two stores change places, their own is never taken for one that went back", async () => {
  const place = await Place.make();
  const { database } = openDatabase(place.config, { storeId: place.ids.ours });
  const here = path.dirname(place.config.path);
  const [ours, other] = [path.join(here, "..", "ours"), place.folderOf("other")];
  const swaps = new SwapChild(here, ours, other);
  let used = 0;
  const wrong = new Set<string>();
  const end = performance.now() + 4_000;
  while (performance.now() < end) {
    try {
      if (database.write(monotonicMs() + 1_000, () => true)) used++;
    } catch (error) {
      const { reason, message } = error as IdmintError;
      if (reason !== "STORE_UNAVAILABLE") wrong.add(message);
    }
  }
  await swaps.stop();
  expect(used).toBeGreaterThan(20);
  expect([...wrong]).toEqual([]);
  expect(database.read(monotonicMs() + 1_000, (_, fenced) => fenced)).toBe("");
  database.close();
  place.pointAt("other");
  const whole = await openStore(place.config);
  expect((await granted(whole, "t")).base).toBe(50_011n);
  await whole.close();
});

test("a witness of another store says nothing of ours: the store is away until its own is back", async () => {
  const place = await Place.make();
  const store = await openStore(place.config);
  onTestFinished(() => store.close());
  await granted(store, "t");
  const witness = `${place.config.path}.witness`;
  const foreign = path.join(place.folderOf("other"), "store.sqlite.witness");
  renameSync(witness, `${witness}.kept`);
  copyFileSync(foreign, witness);
  expect(await reasonOf(store.grant([wish("t")]))).toBe("STORE_UNAVAILABLE");
  renameSync(`${witness}.kept`, witness);
  expect(await store.grant([wish("t")])).toMatchObject([{ outcome: "granted" }]);
});

// The file of a store set back, under servers that run and for one that starts.
import type { Store } from "@idmint/core/server";
import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import {
  granted,
  leaseOf,
  reasonOf,
  refusal,
  renewalOf,
  settingsOf,
  snowflakeOf,
} from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { migrateStore, openStore, storeStatus } from "../../../src/store/open-store.ts";
import { acceptAtOnce } from "../accept.ts";
import { GrantChild, run, sqlInAnotherProcess } from "../children.ts";
import { type SqliteHarness, sqliteHarness } from "../harness.ts";

interface Scene {
  readonly harness: SqliteHarness;
  /** A whole copy of the database file from when `t` was at 10 and `quiet` at 10. */
  readonly backup: string;
  /** A server that has run since; `t` is at 110 and `quiet` at 20. */
  readonly running: Store;
}

async function withScene(work: (scene: Scene) => Promise<void>): Promise<void> {
  const harness = await sqliteHarness();
  const first = await harness.open();
  for (const tag of ["t", "quiet"]) {
    await first.createTag(settingsOf(tag));
    await granted(first, tag);
  }
  await first.close();
  const backup = path.join(harness.folder, "backup");
  run("cp", harness.config.path, backup);
  const running = await harness.open();
  for (let i = 0; i < 10; i++) await granted(running, "t");
  await granted(running, "quiet");
  try {
    await work({ harness, backup, running });
  } finally {
    await running.close();
    await harness.remove();
  }
}

/** Everything refuses for `store`, whatever it saw before. */
async function assertFenced(store: Store): Promise<void> {
  expect(await refusal(store, "t")).toBe("STORE_EPOCH_CHANGED");
  expect(await refusal(store, "quiet")).toBe("STORE_EPOCH_CHANGED");
  const poll = store.changes({ since: 0n, watched: [], limit: 10 });
  const fenced = await poll.then(
    (changes) => changes.fenced,
    (error: unknown) => String(error),
  );
  expect(fenced).not.toBe("");
  const works = [
    store.createTag(settingsOf("new")),
    store.setTagState("t", "PAUSED", undefined),
    store.getTags(["t"]),
    store.listTags({ afterName: "", prefix: "", showDeleted: false, limit: 9 }),
  ];
  expect(new Set(await Promise.all(works.map(reasonOf)))).toEqual(new Set(["STORE_EPOCH_CHANGED"]));
  expect(await store.giveBack([{ tag: "t", from: 10n, to: 10n, version: 1n }])).toEqual([0]);
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
      const { fenced } = await store.changes({ since: 0n, watched: [], limit: 10 });
      expect(fenced).toBe("");
    }
  } finally {
    await fresh.close();
  }
}

test("a copy put in place by rename is refused until it is accepted", async () => {
  await withScene(async (scene) => {
    run("mv", scene.backup, scene.harness.config.path);
    await assertFencedUntilAccepted(scene);
  });
});

test("a copy put in place of deleted files is refused until it is accepted", async () => {
  await withScene(async (scene) => {
    const { path: file } = scene.harness.config;
    for (const name of [file, `${file}-wal`, `${file}-shm`]) rmSync(name);
    run("cp", scene.backup, file);
    await assertFencedUntilAccepted(scene);
  });
});

test("a copy written into the file, with -wal and -shm deleted, is refused until it is accepted", async () => {
  await withScene(async (scene) => {
    const { path: file } = scene.harness.config;
    run("cp", scene.backup, file);
    for (const name of [`${file}-wal`, `${file}-shm`]) rmSync(name);
    await assertFencedUntilAccepted(scene);
  });
});

test("a copy written into the file after its -wal was written back is refused until it is accepted", async () => {
  await withScene(async (scene) => {
    const { path: file } = scene.harness.config;
    sqlInAnotherProcess(file, "PRAGMA wal_checkpoint(TRUNCATE)");
    run("cp", scene.backup, file);
    await assertFencedUntilAccepted(scene);
  });
});

test("an older file under a newer -wal is refused for the rows that went back, until it is accepted", async () => {
  await withScene(async (scene) => {
    const { path: file } = scene.harness.config;
    // `quiet` is older than the -wal that is begun now, so only the file has its last grant.
    sqlInAnotherProcess(file, "PRAGMA wal_checkpoint(TRUNCATE)");
    sqlInAnotherProcess(file, "UPDATE store SET progress = progress");
    run("cp", scene.backup, file);
    await assertFencedUntilAccepted(scene);
  });
});

test("a server that stops after its files were replaced leaves those that are there as they are", async () => {
  await withScene(async ({ harness, backup, running }) => {
    const { path: file } = harness.config;
    run("cp", backup, file);
    for (const name of [`${file}-wal`, `${file}-shm`]) rmSync(name);
    await running.close();
    run("cmp", backup, file);
    const fresh = await harness.open();
    await assertFenced(fresh);
    await fresh.close();
  });
});

test("a -wal deleted under a running server is refused until it is accepted", async () => {
  await withScene(async (scene) => {
    rmSync(`${scene.harness.config.path}-wal`);
    await assertFenced(scene.running);
    await acceptAtOnce(scene.harness.config, 1_000n);
    expect((await granted(scene.running, "t")).base).toBeGreaterThan(1_000n);
  });
});

test("a -shm deleted under a running server, which no lock would survive, is refused", async () => {
  await withScene(async ({ harness, running }) => {
    rmSync(`${harness.config.path}-shm`);
    await assertFenced(running);
  });
});

test("an older state brought back through SQLite itself is refused until it is accepted", async () => {
  await withScene(async (scene) => {
    const restore = `ATTACH '${scene.backup}' AS old;
      BEGIN;
      DELETE FROM main.tag; INSERT INTO main.tag SELECT * FROM old.tag;
      UPDATE main.store SET progress = (SELECT progress FROM old.store);
      COMMIT;`;
    sqlInAnotherProcess(scene.harness.config.path, restore);
    await assertFencedUntilAccepted(scene);
  });
});

test("one row set back through SQLite itself is refused by whoever reads it first", async () => {
  await withScene(async ({ harness, running }) => {
    await running.close();
    const sql = "UPDATE tag SET floor = 10, version = 1 WHERE name = 'quiet'";
    sqlInAnotherProcess(harness.config.path, sql);
    const fresh = await harness.open();
    await assertFenced(fresh);
    await fresh.close();
  });
});

test("a floor that is set back by hand, its version kept, is refused by whoever reads it first", async () => {
  await withScene(async ({ harness, running }) => {
    await running.giveBack([{ tag: "quiet", from: 15n, to: 20n, version: 3n }]);
    await running.advanceTag("quiet", 2n ** 33n, {
      maxRaise: 2n ** 34n,
      expectedRevision: undefined,
    });
    await running.close();
    const whole = await harness.open();
    await granted(whole, "quiet");
    await whole.close();
    sqlInAnotherProcess(harness.config.path, "UPDATE tag SET floor = 10 WHERE name = 'quiet'");
    const fresh = await harness.open();
    await assertFenced(fresh);
    await fresh.close();
    await acceptAtOnce(harness.config, 1_000n);
    const later = await harness.open();
    await granted(later, "quiet");
    await later.close();
  });
});

test("a copy written into the file while no server ran is refused by a fresh one until it is accepted", async () => {
  await withScene(async (scene) => {
    await scene.running.close();
    run("cp", scene.backup, scene.harness.config.path);
    const fresh = await scene.harness.open();
    await assertFenced(fresh);
    await acceptAtOnce(scene.harness.config, 1_000n);
    expect((await granted(fresh, "t")).base).toBe(1_011n);
    await fresh.close();
    const later = await scene.harness.open();
    expect((await granted(later, "t")).base).toBe(1_021n);
    await later.close();
  });
});

test("a copy from before an accept is refused although its witness has fewer changes of that history", async () => {
  await withScene(async ({ harness, backup, running }) => {
    await running.close();
    await acceptAtOnce(harness.config, 5n);
    run("cp", backup, harness.config.path);
    const fresh = await harness.open();
    await assertFenced(fresh);
    await acceptAtOnce(harness.config, 1_000n);
    expect((await granted(fresh, "t")).base).toBe(1_011n);
    await fresh.close();
  });
});

test("a copy under another name is refused", async () => {
  await withScene(async ({ harness, backup }) => {
    const copy = await openStore({ ...harness.config, path: backup });
    await assertFenced(copy);
    await copy.close();
  });
});

test("a file made where a deleted store was is refused: its ids would be issued again", async () => {
  await withScene(async ({ harness, running }) => {
    await running.close();
    rmSync(harness.config.path);
    const again = migrateStore(harness.config, { dryRun: false });
    expect(await reasonOf(again)).toBe("STORE_EPOCH_CHANGED");
    expect(existsSync(harness.config.path)).toBe(false);
    rmSync(`${harness.config.path}.witness`);
    await migrateStore(harness.config, { dryRun: false });
    const fresh = await harness.open();
    expect(await refusal(fresh, "t")).toBe("TAG_NOT_FOUND");
    await fresh.close();
  });
});

test("a server whose file is gone refuses, and makes no new one", async () => {
  await withScene(async ({ harness, running }) => {
    const { path: file } = harness.config;
    for (const name of [file, `${file}-wal`, `${file}-shm`]) rmSync(name);
    for (let again = 0; again < 2; again++) {
      expect(await reasonOf(granted(running, "t"))).toBe("STORE_UNAVAILABLE");
    }
    expect(existsSync(file)).toBe(false);
    expect(await reasonOf(openStore(harness.config))).toBe("SCHEMA_MISMATCH");
    expect(existsSync(file)).toBe(false);
  });
});

test("a missing or unreadable witness is written anew, and does not stop the store", async () => {
  await withScene(async ({ harness, running }) => {
    const witness = `${harness.config.path}.witness`;
    rmSync(witness);
    await granted(running, "t");
    await running.changes({ since: 0n, watched: [], limit: 1 });
    await granted(running, "t");
    expect(existsSync(witness)).toBe(true);
    run("truncate", "-s", "0", witness);
    const fresh = await harness.open();
    await granted(fresh, "t");
    await fresh.close();
    await running.close();
    run("cp", path.join(harness.folder, "backup"), harness.config.path);
    const later = await harness.open();
    await assertFenced(later);
    await later.close();
  });
});

test("a process killed at any moment leaves a store that goes on", async () => {
  const harness = await sqliteHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  await store.close();
  for (let i = 0; i < 6; i++) {
    const child = new GrantChild(harness.config, "t");
    await child.reached(20 + i * 7);
    await child.kill();
    const fresh = await harness.open();
    const { base } = await granted(fresh, "t");
    expect(base).toBeGreaterThan(child.ranges.at(-1)?.to ?? 0n);
    await fresh.close();
  }
  await harness.remove();
});

test("an older copy is told by leases alone, and what it forgot is reserved by nobody again", async () => {
  const harness = await sqliteHarness();
  const place = { registry: "STORE" } as const;
  const first = await harness.open();
  await first.createTag(snowflakeOf("t", { place }));
  const lease = await first.leaseWorker(leaseOf("a"));
  await first.close();
  const backup = path.join(harness.folder, "backup");
  run("cp", harness.config.path, backup);
  const running = await harness.open();
  const reserveUntilMs = lease.nowMs + 9_000;
  const renewed = await running.renewWorker(renewalOf(lease, { reserveUntilMs }));
  const forgotten = await running.leaseWorker(leaseOf("b"));
  run("mv", backup, harness.config.path);
  const fresh = await harness.open();
  for (const store of [running, fresh]) {
    const works = [
      store.leaseWorker(leaseOf("c")),
      store.renewWorker(renewalOf(lease)),
      store.renewWorker(renewalOf({ ...lease, ...renewed })),
      store.releaseWorker(renewalOf(lease)),
      store.listWorkers({ tag: "t", after: undefined, limit: 1 }),
    ];
    const reasons = new Set(await Promise.all(works.map(reasonOf)));
    expect(reasons).toEqual(new Set(["STORE_EPOCH_CHANGED"]));
  }
  await acceptAtOnce(harness.config, 0n);
  for (const held of [lease, { ...lease, ...renewed }, forgotten]) {
    expect(await reasonOf(fresh.renewWorker(renewalOf(held)))).toBe("WORKER_LEASE_LOST");
  }
  for (const instance of ["x", "a", "b"]) {
    const next = await fresh.leaseWorker(leaseOf(instance));
    expect(next.notBeforeMs).toBeGreaterThan(renewed.reservedUntilMs + 60_000);
  }
  await Promise.all([running.close(), fresh.close()]);
  await harness.remove();
});

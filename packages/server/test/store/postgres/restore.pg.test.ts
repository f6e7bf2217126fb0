// The database set back, under servers that run and for one that starts. pg_dump is not among the binaries of npm, so the
// dumps here are what it writes: the rows as text, loaded by INSERT in a transaction of their own.
import type { Store } from "@idmint/core/server";
import { createTestDatabase, TestDatabase } from "@idmint/testkit/postgres";
import {
  granted,
  leaseOf,
  reasonOf,
  refusal,
  renewalOf,
  settingsOf,
  snowflakeOf,
  wish,
} from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { migrateStore, openStore, storeStatus } from "../../../src/store/open-store.ts";
import { acceptAtOnce } from "../accept.ts";
import { migrations } from "../../../src/store/postgres/migrations/index.ts";
import { type PostgresHarness, postgresHarness } from "../harness.ts";

interface Scene {
  readonly harness: PostgresHarness;
  /** Statements that load the rows of each table as they were when `t` and `quiet` were at 10. */
  readonly dump: Readonly<Record<"migration" | "store" | "tag", string>>;
  /** A server that has run since; `t` is at 110 and `quiet` at 20. */
  readonly running: Store;
}

async function dumpOf(database: TestDatabase, table: string): Promise<string> {
  const rows = await database.query(`SELECT r::text AS row FROM idmint.${table} AS r`);
  return rows
    .map(
      ({ row }) =>
        `INSERT INTO idmint.${table} SELECT ($dump$${String(row)}$dump$::idmint.${table}).*;`,
    )
    .join("\n");
}

async function withScene(work: (scene: Scene) => Promise<void>): Promise<void> {
  const harness = await postgresHarness();
  const running = await harness.open();
  try {
    for (const tag of ["t", "quiet"]) {
      await running.createTag(settingsOf(tag));
      await granted(running, tag);
    }
    const { database } = harness;
    const dump = {
      migration: await dumpOf(database, "migration"),
      store: await dumpOf(database, "store"),
      tag: await dumpOf(database, "tag"),
    };
    for (let i = 0; i < 10; i++) await granted(running, "t");
    await granted(running, "quiet");
    await work({ harness, dump, running });
  } finally {
    await running.close();
    await harness.remove();
  }
}

async function assertRefused(store: Store): Promise<void> {
  for (const tag of ["t", "quiet"]) expect(await refusal(store, tag)).toBe("STORE_EPOCH_CHANGED");
  expect(await store.giveBack([{ tag: "t", from: 10n, to: 10n, version: 1n }])).toEqual([0]);
  const pause = store.setTagState("t", "PAUSED", undefined);
  expect(await reasonOf(pause)).toBe("STORE_EPOCH_CHANGED");
}

async function assertFenced(store: Store): Promise<void> {
  await assertRefused(store);
  const { fenced } = await store.changes({ since: 0n, watched: [], limit: 10 });
  expect(fenced).not.toBe("");
  const works = [
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

test("a dump loaded into emptied tables is refused until it is accepted", async () => {
  await withScene(async (scene) => {
    const { store, tag } = scene.dump;
    const { database } = scene.harness;
    await database.query(`BEGIN; TRUNCATE idmint.store, idmint.tag; ${store} ${tag} COMMIT`);
    await assertFencedUntilAccepted(scene);
  });
});

test("a dump that drops and makes the schema is refused until it is accepted", async () => {
  await withScene(async (scene) => {
    const { migration, store, tag } = scene.dump;
    const schema = migrations.map(({ sql }) => sql).join("\n");
    await scene.harness.database.query(
      `BEGIN; DROP SCHEMA idmint CASCADE; CREATE SCHEMA idmint; ${schema} ${migration} ${store} ${tag} COMMIT`,
    );
    await assertFencedUntilAccepted(scene);
  });
});

test("a dump loaded into a new database of the same name is refused until it is accepted", async () => {
  await withScene(async (scene) => {
    const { harness } = scene;
    const { database } = harness;
    await database.close();
    const server = new URL(database.url);
    server.pathname = "/postgres";
    const again = await TestDatabase.create(server.href, database.name);
    await migrateStore(harness.config, { dryRun: false });
    const { store, tag } = scene.dump;
    await again.query(`BEGIN; TRUNCATE idmint.store, idmint.tag; ${store} ${tag} COMMIT`);
    // The connections of the server that ran were cut with the database; its first call may be spent on finding out.
    await scene.running.getTags(["t"]).catch(() => undefined);
    await assertFencedUntilAccepted(scene);
  });
});

test("a dump of the tags alone is refused, tag by tag, until it is accepted", async () => {
  await withScene(async ({ harness, dump, running }) => {
    await harness.database.query(`BEGIN; TRUNCATE idmint.tag; ${dump.tag} COMMIT`);
    const fresh = await harness.open();
    for (const store of [running, fresh]) {
      await assertRefused(store);
      const watched = [{ tag: "quiet", version: 1n }];
      const { behind, changedByHand } = await store.changes({ since: 0n, watched, limit: 10 });
      expect([behind, changedByHand]).toEqual([["quiet"], ["quiet"]]);
    }
    await acceptAtOnce(harness.config, 1_000n);
    expect((await granted(fresh, "quiet")).base).toBe(1_011n);
    expect((await granted(running, "t")).base).toBe(1_011n);
    await fresh.close();
  });
});

test("a store whose rows are gone is refused", async () => {
  await withScene(async ({ harness, running }) => {
    await harness.database.query("TRUNCATE idmint.store");
    await assertRefused(running);
    const fresh = await harness.open();
    await assertRefused(fresh);
    await fresh.close();
  });
});

test("a copy of the database within the cluster is refused until it is accepted", async () => {
  const harness = await postgresHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  await store.createTag(settingsOf("quiet"));
  for (const tag of ["t", "quiet"]) await granted(store, tag);
  await store.close();
  const other = await createTestDatabase();
  const server = new URL(other.url);
  server.pathname = "/postgres";
  await other.close();
  const [row] = await harness.database.query("SELECT current_database() AS name");
  const admin = await TestDatabase.create(server.href, `${other.name}_admin`);
  await admin.query(`CREATE DATABASE "${other.name}" TEMPLATE "${String(row?.["name"])}"`);
  const copy = await openStore({ ...harness.config, url: other.url });
  await assertFenced(copy);
  await copy.accept(1_000n);
  expect((await granted(copy, "t")).base).toBe(1_011n);
  await copy.close();
  await admin.query(`DROP DATABASE "${other.name}" WITH (FORCE)`);
  await admin.close();
  await harness.remove();
});

test("a row changed by hand is refused", async () => {
  await withScene(async ({ harness, running }) => {
    await harness.database.query("UPDATE idmint.tag SET floor = 10 WHERE name = 'quiet'");
    expect(await refusal(running, "quiet")).toBe("STORE_EPOCH_CHANGED");
    expect((await granted(running, "t")).base).toBe(111n);
  });
});

test("a table that somebody's ALTER TABLE wrote anew is refused, and the reason says what may have done it", async () => {
  await withScene(async ({ harness, running }) => {
    await harness.database.query(
      "ALTER TABLE idmint.tag ADD COLUMN id uuid DEFAULT gen_random_uuid()",
    );
    const [grant] = await running.grant([wish("t")]);
    expect(grant).toMatchObject({
      reason: "STORE_EPOCH_CHANGED",
      detail: expect.stringContaining("ALTER TABLE") as string,
    });
    await acceptAtOnce(harness.config, 1_000n);
    expect((await granted(running, "t")).base).toBeGreaterThan(1_000n);
  });
});

for (const upkeep of [
  "VACUUM (FREEZE) idmint.store, idmint.tag",
  "VACUUM (FULL) idmint.store, idmint.tag",
  "VACUUM (FULL, FREEZE) idmint.store, idmint.tag",
  "CLUSTER idmint.tag USING tag_pkey",
  "REINDEX SCHEMA idmint",
  "ALTER TABLE idmint.tag SET (fillfactor = 60)",
]) {
  test(`${upkeep} leaves the store as it was`, async () => {
    await withScene(async ({ harness, running }) => {
      await harness.database.query(upkeep);
      const fresh = await harness.open();
      expect((await fresh.changes({ since: 0n, watched: [], limit: 1 })).fenced).toBe("");
      expect((await granted(fresh, "quiet")).base).toBe(21n);
      expect((await granted(running, "t")).base).toBe(111n);
      await fresh.close();
    });
  });
}

test("workers that a dump of their table brought back are refused until they are accepted", async () => {
  await withScene(async ({ harness, running }) => {
    const { database } = harness;
    await running.createTag(snowflakeOf("s", { place: { registry: "STORE" } }));
    const wish = { tag: "s" };
    const lease = await running.leaseWorker(leaseOf("a", wish));
    const dump = await dumpOf(database, "worker");
    const reserveUntilMs = lease.nowMs + 9_000;
    const renewed = await running.renewWorker(renewalOf(lease, { ...wish, reserveUntilMs }));
    await database.query(`BEGIN; DELETE FROM idmint.worker; ${dump} COMMIT`);
    const held = { ...lease, ...renewed };
    const works = [
      running.leaseWorker(leaseOf("a", wish)),
      running.renewWorker(renewalOf(lease, wish)),
      running.renewWorker(renewalOf(held, wish)),
    ];
    const reasons = new Set(await Promise.all(works.map(reasonOf)));
    expect(reasons).toEqual(new Set(["STORE_EPOCH_CHANGED"]));
    await acceptAtOnce(harness.config, 0n);
    for (const each of [lease, held]) {
      const work = running.renewWorker(renewalOf(each, wish));
      expect(await reasonOf(work)).toBe("WORKER_LEASE_LOST");
    }
    const next = await running.leaseWorker(leaseOf("a", wish));
    expect(next.notBeforeMs).toBeGreaterThan(renewed.reservedUntilMs + 60_000);
  });
});

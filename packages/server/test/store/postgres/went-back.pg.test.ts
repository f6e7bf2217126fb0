// A database that is put back in place, the same cluster on the same timeline: what servers' own rows show, and what they do.
import type { StoreChanges } from "@idmint/core/server";
import { granted, refusal, settingsOf } from "@idmint/testkit/store-suite";
import { setTimeout as sleep } from "node:timers/promises";
import { TestPostgres } from "@idmint/testkit/postgres";
import { expect, test } from "vitest";
import { migrateStore } from "../../../src/store/open-store.ts";
import { type PostgresHarness, postgresHarness } from "../harness.ts";
import { Poller } from "../poller.ts";

interface Scene {
  readonly harness: PostgresHarness;
  readonly server: Poller;
}

async function withServer(work: (scene: Scene) => Promise<void>): Promise<void> {
  const harness = await postgresHarness();
  const setUp = await harness.open();
  try {
    await setUp.createTag(settingsOf("t"));
    const server = await Poller.open(harness.config);
    await server.poll();
    await work({ harness, server });
  } finally {
    await setUp.close();
    await harness.remove();
  }
}

const fencedIn = ({ fenced }: StoreChanges): string => fenced;

test("a server's own row that is lower than it was marks the store, for newcomers too", () =>
  withServer(async ({ harness, server }) => {
    const { database } = harness;
    for (let polls = 0; polls < 3; polls++) expect(fencedIn(await server.poll())).toBe("");
    // What a data directory of before the last polls has: other rows may have moved since.
    await database.query("UPDATE idmint.node SET renewals = renewals - 2");
    expect(fencedIn(await server.poll())).toContain("the row of server");
    expect(await refusal(server.store, "t")).toBe("STORE_EPOCH_CHANGED");
    const newcomer = await harness.open();
    expect(await refusal(newcomer, "t")).toBe("STORE_EPOCH_CHANGED");
    const next = database.query("SELECT idmint.next_max_normal_sequence('t', 1)");
    await expect(next).rejects.toThrow("accepted");
    await newcomer.accept(0n);
    expect(fencedIn(await server.poll())).toBe("");
    await granted(newcomer, "t");
    await newcomer.close();
  }));

test("a server that is started again marks the store by its old row, which it does not renew before", () =>
  withServer(async ({ harness, server }) => {
    for (let polls = 0; polls < 3; polls++) expect(fencedIn(await server.poll())).toBe("");
    const well = await Poller.open(harness.config, server);
    const found = await well.poll();
    expect([found.fenced, found.parts[0]?.hasEarlier]).toEqual(["", true]);
    await harness.database.query("UPDATE idmint.node SET renewals = renewals - 1");
    const again = await Poller.open(harness.config, well);
    const lost = await again.poll();
    expect(fencedIn(lost)).toContain("the row of server");
    expect([lost.parts[0]?.isRenewed, lost.parts[0]?.hasEarlier ?? false]).toEqual([false, false]);
    expect(await refusal(server.store, "t")).toBe("STORE_EPOCH_CHANGED");
  }));

test("a row that is gone marks the store, unless it was forgotten", () =>
  withServer(async ({ harness, server }) => {
    const { database } = harness;
    await database.query("DELETE FROM idmint.node");
    // The first poll finds it gone, and the next one makes it again.
    const polls = [await server.poll(), await server.poll()];
    expect(polls.map(fencedIn)).toEqual(["", ""]);
    expect(polls.map(({ parts }) => parts[0]?.isRenewed)).toEqual([false, true]);
    await database.query("TRUNCATE idmint.node");
    expect(fencedIn(await server.poll())).toContain("nobody forgot it");
    await server.store.accept(0n);
    expect(fencedIn(await server.poll())).toBe("");
    // An older trace is none of what was forgotten since.
    await server.poll();
    await database.query("DELETE FROM idmint.node");
    await database.query("UPDATE idmint.node_gone SET renewals = renewals - 1");
    expect(fencedIn(await server.poll())).toContain("nobody forgot it");
  }));

test("a store as it was before it was accepted is marked by who knows the accepted one", () =>
  withServer(async ({ harness, server }) => {
    const { database } = harness;
    const before = await database.query("SELECT incarnation FROM idmint.store");
    await server.store.accept(0n);
    expect(fencedIn(await server.poll())).toBe("");
    await database.query(
      `UPDATE idmint.store SET incarnation = '${String(before[0]?.["incarnation"])}', written_by = pg_current_xact_id()::xid`,
    );
    expect(fencedIn(await server.poll())).toContain("before it was accepted");
    const newcomer = await harness.open();
    expect(await refusal(newcomer, "t")).toBe("STORE_EPOCH_CHANGED");
    await newcomer.close();
  }));

test("a tag's row that went back marks the store, and one that was changed by hand refuses its tag alone", () =>
  withServer(async ({ harness, server }) => {
    const { database } = harness;
    await server.store.createTag(settingsOf("other"));
    await server.grant("t");
    await server.grant("t");
    await database.query("UPDATE idmint.tag SET version = version - 1 WHERE name = 't'");
    const { behind, fenced } = await server.poll();
    expect([behind, fenced]).toEqual([["t"], ""]);
    await granted(server.store, "other");
    await database.query(
      "UPDATE idmint.tag SET written_by = pg_current_xact_id()::xid WHERE name = 't'",
    );
    expect(fencedIn(await server.poll())).toContain("tag t");
    expect(await refusal(server.store, "other")).toBe("STORE_EPOCH_CHANGED");
  }));

test("a server marks no history that was accepted while it slept", () =>
  withServer(async ({ harness, server }) => {
    const { database } = harness;
    for (let grants = 0; grants < 5; grants++) await server.grant("t");
    await server.poll();
    await database.query("UPDATE idmint.node SET renewals = renewals - 1");
    await database.query(
      "UPDATE idmint.tag SET version = 1, written_by = pg_current_xact_id()::xid",
    );
    await server.store.accept(0n);
    const polls = [await server.poll(), await server.poll(), await server.poll()];
    expect(polls.map(fencedIn)).toEqual(["", "", ""]);
    expect(polls.map(({ parts }) => parts[0]?.isRenewed)).toEqual([true, true, true]);
  }));

// IDMINT_LONG=1 crashes it 200 times.
const CRASHES = process.env["IDMINT_LONG"] === "1" ? 200 : 4;

test(
  "a crash takes no renewal that was answered, so it marks nothing",
  async () => {
    await using postgres = await TestPostgres.start({ durable: true });
    const { url } = await postgres.createDatabase();
    const config = { backend: "postgres", url, allowUnsafe: [] } as const;
    await migrateStore(config, { dryRun: false });
    const servers = [await Poller.open(config), await Poller.open(config)];
    await servers[0]?.store.createTag(settingsOf("t"));
    for (const server of servers) await server.poll();
    for (let crash = 0; crash < CRASHES; crash++) {
      const works = { isOver: false };
      const working = servers.map(async (server) => {
        while (!works.isOver) {
          await Promise.allSettled([server.poll(), server.grant("t")]);
        }
      });
      await sleep(50 + 10 * (crash % 20));
      await postgres.stop("immediate");
      works.isOver = true;
      await Promise.all(working);
      await postgres.start();
      for (const server of servers) {
        const { fenced, parts } = await until(() => server.poll());
        expect([crash, fenced, parts[0]?.isRenewed]).toEqual([crash, "", true]);
      }
    }
    for (const server of servers) await server.grant("t");
  },
  CRASHES * 5_000 + 60_000,
);

/** The first answer, of a database that takes a moment to be there again. */
async function until<T>(ask: () => Promise<T>): Promise<T> {
  for (const end = performance.now() + 30_000; ;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > end) throw error;
      await sleep(50);
    }
  }
}

test("a tag that is made again after an accept is not taken for one of its name that the store lost", () =>
  withServer(async ({ harness, server }) => {
    for (let grants = 0; grants < 5; grants++) await server.grant();
    expect(fencedIn(await server.poll())).toBe("");
    // The backup that is put back is of before the tag, and this server is silent while it is accepted.
    await harness.database.query("DELETE FROM idmint.tag");
    const operator = await harness.open();
    try {
      await operator.accept(0n);
      expect(fencedIn(await server.poll())).toBe("");
      server.saw(await operator.createTag(settingsOf("t")));
      for (let polls = 0; polls < 2; polls++) {
        const { behind, fenced } = await server.poll();
        expect([behind, fenced]).toEqual([[], ""]);
      }
    } finally {
      await operator.close();
    }
  }));

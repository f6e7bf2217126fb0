// A store that is put back in place: what one process knows of it, and how all the others learn of it.
import { renameSync, rmSync } from "node:fs";
import path from "node:path";
import type { Store, StoreChanges } from "@idmint/core/server";
import { granted, reasonOf, refusal, settingsOf } from "@idmint/testkit/store-suite";
import { expect, onTestFinished, test, vi } from "vitest";
import { storeStatus } from "../../../src/store/open-store.ts";
import { acceptAtOnce } from "../accept.ts";
import { backUp, putBack } from "./backups.ts";
import { sqlInAnotherProcess } from "../children.ts";
import { type SqliteHarness, sqliteHarness } from "../harness.ts";
import { Poller } from "../poller.ts";

// Every handle starts a thread, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 30_000 });

interface Scene {
  readonly server: Poller;
  readonly sql: (text: string) => void;
  readonly harness: SqliteHarness;
  /** Another process's store, or one of a later start; closed at the end. */
  readonly another: () => Promise<Store>;
}

async function withServer(work: (scene: Scene) => Promise<void>): Promise<void> {
  const harness = await sqliteHarness();
  onTestFinished(() => harness.remove());
  const another = async (): Promise<Store> => {
    const store = await harness.open();
    onTestFinished(() => store.close());
    return store;
  };
  const setUp = await another();
  await setUp.createTag(settingsOf("t"));
  await setUp.createTag(settingsOf("other"));
  const server = await Poller.open(harness.config);
  await server.poll();
  const sql = (text: string): void => void sqlInAnotherProcess(harness.config.path, text);
  await work({ harness, server, sql, another });
}

const fencedIn = ({ fenced }: StoreChanges): string => fenced;

/** All refuse, until an accept. */
async function assertMarked({ harness, another, server }: Scene, why: string): Promise<void> {
  const newcomer = await another();
  for (const tag of ["t", "other"]) {
    expect(await refusal(newcomer, tag)).toBe("STORE_EPOCH_CHANGED");
    expect(await refusal(server.store, tag)).toBe("STORE_EPOCH_CHANGED");
  }
  expect(await reasonOf(newcomer.createTag(settingsOf("new")))).toBe("STORE_EPOCH_CHANGED");
  expect((await storeStatus(harness.config)).fenced).toContain(why);
  await acceptAtOnce(harness.config, 1_000n);
  expect(fencedIn(await server.poll())).toBe("");
  expect(fencedIn(await server.poll())).toBe("");
  expect((await granted(newcomer, "t")).base).toBeGreaterThan(1_000n);
}

test("a server's own row that is lower than it was marks the store, for newcomers too", () =>
  withServer(async (scene) => {
    const { server, sql } = scene;
    for (let polls = 0; polls < 3; polls++) expect(fencedIn(await server.poll())).toBe("");
    // What a file of before the last polls has, after others went on with it.
    sql("UPDATE node SET renewals = renewals - 2");
    const found = await server.poll();
    expect(fencedIn(found)).toContain("the row of server");
    expect(found.parts[0]?.isRenewed).toBe(false);
    await assertMarked(scene, "the row of server");
  }));

test("a server that is started again marks the store by its old row, which it does not renew before", () =>
  withServer(async (scene) => {
    const { harness, server, sql } = scene;
    for (let polls = 0; polls < 3; polls++) expect(fencedIn(await server.poll())).toBe("");
    const well = await Poller.open(harness.config, server);
    const found = await well.poll();
    expect([found.fenced, found.parts[0]?.hasEarlier]).toEqual(["", true]);
    sql("UPDATE node SET renewals = renewals - 1");
    const again = await Poller.open(harness.config, well);
    const lost = await again.poll();
    expect(fencedIn(lost)).toContain("the row of server");
    expect([lost.parts[0]?.isRenewed, lost.parts[0]?.hasEarlier ?? false]).toEqual([false, false]);
    await assertMarked({ ...scene, server: again }, "the row of server");
  }));

test("a row that is gone marks the store, unless it was forgotten", () =>
  withServer(async (scene) => {
    const { server, sql } = scene;
    sql("DELETE FROM node");
    const found = await server.poll();
    expect([found.fenced, found.parts[0]?.isRenewed]).toEqual(["", true]);
    await server.poll();
    // An older trace is none of what was forgotten since.
    sql("DELETE FROM node; UPDATE node_gone SET renewals = renewals - 1");
    expect(fencedIn(await server.poll())).toContain("nobody forgot it");
    await assertMarked(scene, "nobody forgot it");
  }));

test("traces of removed rows are kept for the last 10,000", () =>
  withServer(async ({ sql, server }) => {
    sql(`DELETE FROM node; DELETE FROM node_gone;
      INSERT INTO node_gone (number, id, renewals) VALUES (1, 'old', 1), (2, 'kept', 1), (10000, 'last', 1);
      INSERT INTO node VALUES ('x', 'x', '', '1', '', 0, NULL, 7, '', 0, 0, 0); DELETE FROM node;
      CREATE TABLE seen AS SELECT group_concat(number || id || renewals) AS said FROM node_gone;
      UPDATE store SET revision = revision / (SELECT said = '2kept1,10000last1,10001x7' FROM seen)`);
    expect(fencedIn(await server.poll())).toContain("nobody forgot it");
  }));

test("a tag's row that went back or is gone marks the store", () =>
  withServer(async (scene) => {
    const { server, sql } = scene;
    for (let grants = 0; grants < 3; grants++) await server.grant("t");
    await server.poll();
    sql("UPDATE tag SET version = version - 1 WHERE name = 't'");
    const { behind, fenced } = await server.poll();
    expect(behind).toEqual(["t"]);
    expect(fenced).toContain("tag t");
    await assertMarked(scene, "tag t");
  }));

test("a server marks no history that was accepted while it slept", () =>
  withServer(async ({ harness, server, sql }) => {
    for (let grants = 0; grants < 5; grants++) await server.grant("t");
    await server.poll();
    await server.poll();
    sql("UPDATE node SET renewals = 1; UPDATE tag SET version = 1 WHERE name = 't'");
    await acceptAtOnce(harness.config, 1_000n);
    const polls = [await server.poll(), await server.poll(), await server.poll()];
    expect(polls.map(fencedIn)).toEqual(["", "", ""]);
    expect(polls.map(({ parts }) => parts[0]?.isRenewed)).toEqual([true, true, true]);
  }));

test("what one process has seen of a store marks it, so that all refuse, also those that start", () =>
  withServer(async (scene) => {
    const { server, harness } = scene;
    const backup = backUp(harness);
    for (let grants = 0; grants < 3; grants++) await server.grant("t");
    // Together with its witness, before that took its turn: newcomers cannot tell.
    putBack(harness, backup);
    expect(await refusal(server.store, "other")).toBe("STORE_EPOCH_CHANGED");
    await assertMarked(scene, "this server has seen later changes");
  }));

/** Asks with one handle, and lets the server claim what it was granted; then accepts without a gap. */
async function acceptedAsking({ server, another }: Scene, last: bigint): Promise<Store> {
  const operator = await another();
  expect(await operator.askForClaims("nonce", 60_000)).toMatchObject({ outcome: "asked" });
  // A server whose files were replaced finds that out first.
  const polled = await server.poll().catch(() => server.poll());
  expect(polled.parts[0]?.ask).toBe("nonce");
  const claimant = { id: "s", instance: "s", address: "", sinceMs: 0, isWhole: true };
  const claims = [{ tag: "t", period: "", last }];
  const said = { nonce: "nonce", claimant, claims, page: 0, isLast: true };
  expect(await server.store.claim(said)).toBe("heard");
  const asked = { nonce: "nonce", look: 0, isTrusted: false };
  const accepted = await operator.accept(0n, undefined, undefined, undefined, asked);
  expect(accepted.claims).toMatchObject({ claimants: [{ id: "s", hasSpoken: true }], lost: 0 });
  return operator;
}

async function grantedBefore({ server }: Scene): Promise<bigint> {
  let last = 0n;
  for (let grants = 0; grants < 30; grants++) last = (await server.grant("t")) + 9n;
  await server.poll();
  return last;
}

test("a floor that a hand set back is accepted above what a server was granted, without a gap", () =>
  withServer(async (scene) => {
    const last = await grantedBefore(scene);
    scene.sql("UPDATE tag SET floor = 10 WHERE name = 't'");
    const operator = await acceptedAsking(scene, last);
    expect((await granted(operator, "t")).base).toBe(last + 1n);
    expect(fencedIn(await scene.server.poll())).toBe("");
  }));

test("a store that is marked hears what servers were granted, and stays marked until it is accepted", () =>
  withServer(async (scene) => {
    const { server, sql, harness } = scene;
    const last = await grantedBefore(scene);
    await server.poll();
    sql("UPDATE node SET renewals = 1; UPDATE tag SET floor = 10, version = 1 WHERE name = 't'");
    expect(fencedIn(await server.poll())).toContain("the row of server");
    const operator = await acceptedAsking(scene, last);
    expect((await storeStatus(harness.config)).fenced).toBe("");
    expect((await granted(operator, "t")).base).toBe(last + 1n);
  }));

test("a copy in the store's place hears them too", () =>
  withServer(async (scene) => {
    const { harness, server, sql } = scene;
    sql("PRAGMA wal_checkpoint(TRUNCATE)");
    const backup = backUp(harness);
    const last = await grantedBefore(scene);
    const name = path.basename(harness.config.path);
    for (const suffix of ["-wal", "-shm"])
      rmSync(`${harness.config.path}${suffix}`, { force: true });
    renameSync(path.join(backup, name), harness.config.path);
    expect(await refusal(server.store, "t")).toBe("STORE_EPOCH_CHANGED");
    const operator = await acceptedAsking(scene, last);
    expect((await granted(operator, "t")).base).toBeGreaterThan(last);
  }));

// A primary whose commits wait for its standby, under servers that poll: what is recorded, what counts as answered, and which
// promoted standby is accepted without an operator.
import type { Store } from "@idmint/core/server";
import { TestPostgresPair } from "@idmint/testkit/postgres-pair";
import { granted, reasonOf, settingsOf, wish } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import {
  migrateStore,
  type PostgresConfig,
  storeStatus,
} from "../../../../src/store/open-store.ts";
import { acceptAtOnce } from "../../accept.ts";
import { until } from "../../children.ts";
import { Poller } from "../../poller.ts";

function configOf(pair: TestPostgresPair, more: Partial<PostgresConfig> = {}): PostgresConfig {
  const times = { timeoutMs: 1_000, connectTimeoutMs: 1_000 };
  return { backend: "postgres", url: pair.url(), allowUnsafe: [], ...times, ...more };
}

async function recorded(pair: TestPostgresPair): Promise<string> {
  const [row] = await pair.primary.query("SELECT standbys FROM idmint.store");
  return String(row?.["standbys"]);
}

/** A synchronous pair whose standby is recorded, with a server that has polled and granted. */
async function scene(pair: TestPostgresPair): Promise<Poller> {
  const config = configOf(pair);
  await migrateStore(config, { dryRun: false });
  const server = await Poller.open(config);
  await server.store.createTag(settingsOf("t"));
  await until(async () => {
    await server.poll();
    return (await recorded(pair)) === "b";
  });
  expect(await server.grant()).toBe(1n);
  return server;
}

test("a synchronous standby that was promoted is accepted by itself, and nothing is given twice", async () => {
  await using pair = await TestPostgresPair.start("synchronous");
  const server = await scene(pair);
  const other = await Poller.open(configOf(pair));
  for (let i = 0; i < 3; i++) await other.poll();
  await server.poll();
  for (let i = 1; i < 10; i++) expect(await server.grant()).toBe(BigInt(i * 10 + 1));
  await pair.primary.stop("kill");
  await pair.promote();
  const tookMs = await server.accepted(10_000);
  console.log(`accepted ${Math.round(tookMs ?? Number.NaN)} ms after the promotion`);
  expect(tookMs).toBeLessThan(5_000);
  expect(await server.grant()).toBe(101n);
  expect(await other.accepted(5_000)).toBeDefined();
  expect(await other.grant()).toBe(111n);
  // The new primary has no standby yet, so nothing is recorded.
  expect(await recorded(pair)).toBe("");
  await pair.rejoin();
  await until(async () => {
    await server.poll().catch(() => undefined);
    return (await recorded(pair)) === "a";
  });
  await server.poll();
  await pair.primary.stop("kill");
  await pair.promote();
  expect(await server.accepted(10_000)).toBeDefined();
  expect(await server.grant()).toBe(121n);
});

test("a commit whose wait ends without a word, since the setting was emptied, is not answered", async () => {
  await using pair = await TestPostgresPair.start("synchronous");
  const server = await scene(pair);
  const resume = await pair.stallStandby();
  try {
    const work = reasonOf(server.store.grant([wish("t")]));
    await until(async () => {
      const waits = await pair.primary.query(
        "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
      );
      return waits.length > 0;
    });
    // PostgreSQL ends all waits, with success and no warning.
    await pair.setStandbyNames("");
    expect(await work).toBe("STORE_UNAVAILABLE");
    expect(await reasonOf(server.store.grant([wish("t")]))).toBe("STORE_UNSAFE");
  } finally {
    resume();
  }
  await pair.setStandbyNames("b");
  await until(async () => (await reasonOrNone(server.store)) === "");
});

async function reasonOrNone(store: Store): Promise<string> {
  try {
    await store.grant([wish("t")]);
    return "";
  } catch (thrown) {
    return (thrown as { reason: string }).reason;
  }
}

test("a cancelled wait and a standby that stalls are lost with the primary, and the promoted standby has the rest", async () => {
  await using pair = await TestPostgresPair.start("synchronous");
  const server = await scene(pair);
  await server.poll();
  await pair.stallStandby();
  const work = reasonOf(server.store.grant([wish("t")]));
  await until(async () => (await pair.cancelWaits()) > 0);
  expect(await work).toBe("STORE_UNAVAILABLE");
  // The row of the cancelled commit shows by now, and what others make of it is not answered either.
  const startedAt = performance.now();
  expect(await reasonOf(server.store.grant([wish("t")]))).toBe("STORE_UNAVAILABLE");
  expect(await reasonOf(server.store.getTags(["t"]))).toBe("STORE_UNAVAILABLE");
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  // A poll tells what there is, and says that its row may be lost.
  const { parts } = await server.poll();
  expect(parts.map(({ isRenewed }) => isRenewed)).toEqual([false]);
  await pair.primary.stop("kill");
  await pair.promote();
  expect(await server.accepted(10_000)).toBeDefined();
  expect(await server.grant()).toBe(11n);
});

test("waits for a standby that are given up do not pile up in the server", async () => {
  await using pair = await TestPostgresPair.start("synchronous");
  await scene(pair);
  const hasty = await Poller.open(configOf(pair, { timeoutMs: 300 }));
  const resume = await pair.stallStandby();
  for (let i = 0; i < 12; i++) {
    expect(await reasonOf(hasty.store.grant([wish("t")]))).toBe("STORE_UNAVAILABLE");
  }
  const waits = (): Promise<readonly unknown[]> =>
    pair.primary.query("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  await until(async () => (await waits()).length === 0);
  resume();
  await until(async () => (await reasonOrNone(hasty.store)) === "");
});

test("a backup of the standby, with the standby's name and record, is refused for good", async () => {
  await using pair = await TestPostgresPair.start("synchronous");
  const server = await scene(pair);
  await server.poll();
  await pair.standby.stop("fast");
  const restore = pair.standby.backUp();
  await pair.standby.start({ standby: true });
  // Another server takes ids that this one never hears of; it only polls on.
  const other = await Poller.open(configOf(pair));
  await until(async () => (await reasonOrNone(other.store)) === "");
  await until(async () => {
    const { parts } = await server.poll();
    return parts[0]?.isRenewed === true;
  });
  await pair.primary.stop("kill");
  await pair.standby.stop("fast");
  restore();
  await pair.standby.start({ standby: true });
  await pair.promote();
  expect(await recorded(pair)).toBe("b");
  expect(await server.accepted(3_000)).toBeUndefined();
  expect(await recorded(pair)).toBe("");
});

test("an asynchronous standby is never accepted by itself, whatever it has", async () => {
  await using pair = await TestPostgresPair.start("asynchronous");
  const config = configOf(pair);
  await migrateStore(config, { dryRun: false });
  const server = await Poller.open(config);
  await server.store.createTag(settingsOf("t"));
  for (let i = 0; i < 3; i++) await server.poll();
  await server.grant();
  await pair.caughtUp();
  await pair.primary.stop("kill");
  await pair.promote();
  expect(await server.accepted(3_000)).toBeUndefined();
  expect(await reasonOrRefusal(server.store)).toBe("STORE_EPOCH_CHANGED");
  await acceptAtOnce(config, 50n, { oldPrimaryIsStopped: true });
  expect((await granted(server.store, "t")).base).toBe(61n);
});

test("what servers said before a fail-over is not taken for what they say after it", async () => {
  await using pair = await TestPostgresPair.start("asynchronous");
  const config = configOf(pair);
  await migrateStore(config, { dryRun: false });
  const server = await Poller.open(config);
  await server.store.createTag(settingsOf("t"));
  await server.poll();
  const ask = (nonce: string) => server.store.askForClaims(nonce, 60_000);
  const take = (nonce: string) =>
    server.store.accept(0n, undefined, undefined, undefined, { nonce, look: 0, isTrusted: false });
  expect(await ask("one")).toMatchObject({ outcome: "asked" });
  await pair.caughtUp();
  // The standby has the ask, and nothing of what follows.
  await pair.stallStandby();
  const base = await server.grant();
  expect(await server.speak("one")).toBe("heard");
  await pair.primary.stop("kill");
  await pair.promote();
  await until(async () => (await server.speak("one").catch(() => "")) === "not-asked");
  expect(await reasonOf(take("one"))).toBe("STORE_UNAVAILABLE");
  expect(await ask("two")).toMatchObject({ outcome: "asked" });
  expect(await server.speak("two")).toBe("heard");
  expect((await take("two")).claims).toMatchObject({ raised: 1 });
  const [tag] = await server.store.getTags(["t"]);
  expect(tag?.floor).toBeGreaterThanOrEqual(base);
});

async function reasonOrRefusal(store: Store): Promise<string> {
  const [grant] = await store.grant([wish("t")]);
  return grant?.outcome === "refused" ? grant.reason : "";
}

test("a server that started after the fail-over accepts nothing, and one that misses something objects for all", async () => {
  await using pair = await TestPostgresPair.start("synchronous");
  const server = await scene(pair);
  await server.poll();
  await pair.primary.stop("kill");
  await pair.promote();
  const fresh = await Poller.open(configOf(pair));
  expect(await fresh.accepted(2_500)).toBeUndefined();
  // As if this server had seen a grant that is not there.
  await pair.primary.query(
    "UPDATE idmint.tag SET version = version - 1, written_by = pg_current_xact_id()::xid",
  );
  expect(await server.accepted(2_500)).toBeUndefined();
  expect(await recorded(pair)).toBe("");
  expect((await storeStatus(configOf(pair))).fenced).not.toBe("");
});

test("a server whose URL names one host, and one that waits for nobody, cannot undermine the others", async () => {
  await using pair = await TestPostgresPair.start("synchronous");
  const server = await scene(pair);
  const single = { ...configOf(pair), url: pair.primary.url() };
  const alone = await Poller.open(single);
  expect(await reasonOf(alone.store.grant([wish("t")]))).toBe("STORE_UNSAFE");
  expect(await reasonOf(alone.poll())).toBe("STORE_UNSAFE");
  await pair.setStandbyNames("");
  expect(await reasonOf(server.store.grant([wish("t")]))).toBe("STORE_UNSAFE");
  // Giving the standby up for good is for an operator.
  await acceptAtOnce(configOf(pair), 0n);
  expect(await recorded(pair)).toBe("");
  expect((await granted(server.store, "t")).base).toBe(11n);
  expect((await granted(alone.store, "t")).base).toBe(21n);
});

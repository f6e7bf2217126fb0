// A store whose URL names several hosts: real servers that stream, are promoted, and come back.
import type { Store } from "@idmint/core/server";
import { TestPostgres } from "@idmint/testkit/postgres";
import { TestPostgresPair } from "@idmint/testkit/postgres-pair";
import { granted, reasonOf, refusal, settingsOf, wish } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { migrateStore, openStore, type PostgresConfig } from "../../../../src/store/open-store.ts";
import { acceptAtOnce } from "../../accept.ts";
import { until } from "../../children.ts";

function configOf(url: string): PostgresConfig {
  return { backend: "postgres", url, allowUnsafe: [], connectTimeoutMs: 1_000 };
}

async function messageOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "",
    (error: unknown) => (error as Error).message,
  );
}

/** What a grant was refused with; empty when it was granted. */
async function whyNot(store: Store): Promise<string> {
  try {
    const [grant] = await store.grant([wish("t")]);
    return grant?.outcome === "refused" ? grant.reason : "";
  } catch (thrown) {
    return (thrown as { reason: string }).reason;
  }
}

test("grants come from the primary, whichever host it is, and from the promoted standby once it is accepted", async () => {
  await using pair = await TestPostgresPair.start("asynchronous");
  const config = configOf(pair.url());
  await migrateStore(config, { dryRun: false });
  const swapped = pair.url().replace(/@(.*),(.*)\//, "@$2,$1/");
  const stores = await Promise.all([config, configOf(swapped)].map((each) => openStore(each)));
  const [store, other] = stores as [Store, Store];
  await store.createTag(settingsOf("t"));
  expect((await granted(store, "t")).base).toBe(1n);
  expect((await granted(other, "t")).base).toBe(11n);
  await pair.caughtUp();
  await pair.primary.stop("kill");
  expect(await whyNot(store)).toBe("STORE_UNAVAILABLE");
  await pair.promote();
  for (const each of stores)
    await until(async () => (await whyNot(each)) === "STORE_EPOCH_CHANGED");
  await store.accept(1_000n);
  for (const each of stores) expect((await granted(each, "t")).base).toBeGreaterThan(1_000n);
  await Promise.all(stores.map((each) => each.close()));
});

test("an old primary that comes back beside the new one is refused, also while all is well with the new one", async () => {
  await using pair = await TestPostgresPair.start("asynchronous");
  const config = configOf(pair.url());
  await migrateStore(config, { dryRun: false });
  const store = await openStore(config);
  await store.createTag(settingsOf("t"));
  await granted(store, "t");
  await pair.caughtUp();
  const old = pair.primary;
  await pair.promote();
  // The connections are to the old one, and it still grants; the next look at the hosts shows both.
  await until(async () => (await whyNot(store)) === "STORE_REFUSED");
  expect(await messageOf(openStore(config))).toContain("are both primaries");
  await old.stop("kill");
  await until(async () => (await whyNot(store)) === "STORE_EPOCH_CHANGED");
  await store.accept(1_000n);
  expect((await granted(store, "t")).base).toBeGreaterThan(1_000n);
  await old.start();
  await until(async () => (await whyNot(store)) === "STORE_REFUSED");
  await store.close();
});

test("a URL with standbys only, or hosts of two clusters, is refused in words", async () => {
  await using pair = await TestPostgresPair.start("asynchronous");
  await using alien = await TestPostgres.start({ durable: true, isForeign: true });
  const { primary, standby } = pair;
  const only = openStore(configOf(standby.url()));
  expect(await messageOf(only)).toContain("PostgreSQL is a standby, or still recovering");
  const free = alien.port;
  const two = `postgres://postgres@127.0.0.1:${primary.port},127.0.0.1:${alien.port}/postgres`;
  expect(await reasonOf(openStore(configOf(two)))).toBe("STORE_REFUSED");
  expect(await messageOf(openStore(configOf(two)))).toContain("names two clusters");
  await alien.stop("fast");
  const away = `postgres://postgres@127.0.0.1:${standby.port},127.0.0.1:${free}/postgres`;
  expect(await reasonOf(openStore(configOf(away)))).toBe("STORE_UNAVAILABLE");
  expect(await messageOf(openStore(configOf(away)))).toMatch(
    /is a standby, or takes no writes; 127\.0\.0\.1:\d+ does not answer; promote one/,
  );
  const twice = `postgres://postgres@127.0.0.1:${primary.port},localhost:${primary.port}/postgres`;
  expect(await messageOf(openStore(configOf(twice)))).toContain("are one server; name it once");
});

test("a primary that is frozen is left for the promoted one in the time of one statement", async () => {
  await using pair = await TestPostgresPair.start("asynchronous");
  const config = { ...configOf(pair.url()), timeoutMs: 1_000 };
  await migrateStore(config, { dryRun: false });
  const store = await openStore(config);
  await store.createTag(settingsOf("t"));
  await pair.caughtUp();
  const old = pair.primary;
  old.freeze();
  try {
    await pair.promote();
    const startedAt = performance.now();
    await until(async () => (await whyNot(store)) === "STORE_EPOCH_CHANGED");
    // One grant that times out, one look at the hosts; the rest is for a busy machine.
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    const fresh = await openStore(config);
    expect(await refusal(fresh, "t")).toBe("STORE_EPOCH_CHANGED");
    await fresh.close();
  } finally {
    old.thaw();
  }
  await store.close();
});

test("a store is accepted only when its old primary is known to be stopped", async () => {
  await using pair = await TestPostgresPair.start("asynchronous");
  const config = configOf(pair.url());
  await migrateStore(config, { dryRun: false });
  await pair.caughtUp();
  const old = pair.primary;
  await pair.promote();
  expect(await messageOf(acceptAtOnce(config, 5n))).toContain("are both primaries");
  expect(await messageOf(acceptAtOnce(config, 5n, { oldPrimaryIsStopped: true }))).toContain(
    "are both primaries",
  );
  old.freeze();
  expect(await messageOf(acceptAtOnce(config, 5n))).toMatch(
    new RegExp(`127.0.0.1:${old.port} does not answer.*--old-primary-is-stopped`),
  );
  old.thaw();
  await old.stop("kill");
  expect(await reasonOf(acceptAtOnce(config, 5n))).toBe("STORE_REFUSED");
  expect(await acceptAtOnce(config, 5n, { oldPrimaryIsStopped: true })).toMatchObject({ tags: 0 });
  await pair.rejoin();
  expect(await acceptAtOnce(config, 5n)).toMatchObject({ tags: 0 });
});

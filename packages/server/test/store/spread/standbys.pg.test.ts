// A store in two databases, one of which has a standby: the other goes on while that one fails over.
import type { Grant, Store } from "@idmint/core/server";
import { createTestDatabase } from "@idmint/testkit/postgres";
import { TestPostgresPair } from "@idmint/testkit/postgres-pair";
import { reasonOf, settingsOf, wish } from "@idmint/testkit/store-suite";
import { expect, onTestFinished, test } from "vitest";
import {
  addToSpread,
  migrateStore,
  type PostgresConfig,
  type SpreadConfig,
} from "../../../src/store/open-store.ts";
import { acceptAtOnce } from "../accept.ts";
import { homeOf } from "../../../src/store/spread/home.ts";
import { until } from "../children.ts";
import { Poller } from "../poller.ts";

const NAMES = ["alone", "pair"];

/** A tag that is at home in that database. */
function tagAt(home: string): string {
  const names = Array.from({ length: 100 }, (_, at) => `t${at}`);
  return names.find((name) => homeOf(NAMES, name) === home) ?? "";
}

async function grantOne(store: Store, tag: string): Promise<Grant> {
  const [grant] = await store.grant([wish(tag)]);
  if (grant === undefined) throw new Error("no answer");
  return grant;
}

async function scene(pair: TestPostgresPair): Promise<{ server: Poller; config: SpreadConfig }> {
  const database = await createTestDatabase();
  onTestFinished(() => database.close());
  const times = { timeoutMs: 1_000, connectTimeoutMs: 1_000 };
  const common: Omit<PostgresConfig, "url"> = {
    backend: "postgres",
    allowUnsafe: ["fsync", "full_page_writes"],
    ...times,
  };
  const config: SpreadConfig = {
    backend: "spread",
    databases: new Map([
      ["alone", { ...common, url: database.url }],
      ["pair", { ...common, url: pair.url() }],
    ]),
  };
  await migrateStore(config, { dryRun: false });
  await addToSpread(config);
  const server = await Poller.open(config);
  for (const home of NAMES) await server.store.createTag(settingsOf(tagAt(home)));
  return { server, config };
}

test("a promoted standby of one database is accepted by itself, and tags of the other go on meanwhile", async () => {
  await using pair = await TestPostgresPair.start("synchronous");
  const { server } = await scene(pair);
  await until(async () => {
    await server.poll();
    const [row] = await pair.primary.query("SELECT standbys FROM idmint.store");
    return row?.["standbys"] === "b";
  });
  expect(await server.grant(tagAt("pair"))).toBe(1n);
  await server.poll();
  expect(await server.grant(tagAt("pair"))).toBe(11n);
  await pair.primary.stop("kill");
  expect(await reasonOf(server.grant(tagAt("pair")))).toBe("STORE_UNAVAILABLE");
  expect(await server.grant(tagAt("alone"))).toBe(1n);
  await pair.promote();
  await until(async () => {
    await server.poll();
    return server.accepts === 1;
  });
  expect(await server.accepted(1_000)).toBeDefined();
  expect(await server.grant(tagAt("pair"))).toBe(21n);
  expect(await server.grant(tagAt("alone"))).toBe(11n);
});

test("a standby that may miss grants is for an operator, who accepts with a gap", async () => {
  await using pair = await TestPostgresPair.start("asynchronous");
  const { server, config } = await scene(pair);
  await server.poll();
  expect(await server.grant(tagAt("pair"))).toBe(1n);
  await pair.caughtUp();
  await pair.primary.stop("kill");
  await pair.promote();
  // A database that does not answer is away. Once it answers, it is another one than the accepted.
  await until(async () => (await server.poll()).fenced.includes("database pair:"));
  expect(await server.accepted(3_000)).toBeUndefined();
  const { outcome } = await grantOne(server.store, tagAt("pair"));
  expect(outcome).toBe("refused");
  await acceptAtOnce(config, 1_000n, { oldPrimaryIsStopped: true });
  expect(await server.accepted(5_000)).toBeDefined();
  expect(server.accepts).toBe(0);
  expect(await server.grant(tagAt("pair"))).toBeGreaterThan(1_010n);
});

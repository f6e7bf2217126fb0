// What the log has of an etcd that lets the server in no more.
import { serverEnv } from "@idmint/testkit";
import { EtcdCluster } from "@idmint/testkit/etcd";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { startServer } from "../../src/main/app.ts";
import { makeStore } from "../../src/main/stores.ts";
import { asRoot, enableAuth } from "../store/etcd/users.ts";
import { sleep } from "../support.ts";
import { busyWith } from "./busy.ts";

const TAGS = 20;
/** Longer than the grace after an outage, and 20 polls. */
const OUTAGE_MS = 4_000;

test("a password that is refused is a few lines, though 20 tags want ids all the time", async () => {
  await using cluster = await EtcdCluster.start();
  await enableAuth(cluster.gateway, "/idmint/");
  const log: string[] = [];
  const flags = {
    "store-url": `etcd://${cluster.hosts}/idmint/`,
    "store-user": "idmint",
    "allow-unsafe-store": "auto_compaction",
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-format": "json",
    "poll-interval": "200ms",
  };
  const env = { ...serverEnv(), IDMINT_STORE_PASSWORD: "of-idmint" };
  const config = loadConfig({ env, flags, defaults: {} });
  await makeStore(config);
  const server = await startServer(config, { logSink: { write: (line) => log.push(line) } });
  onTestFinished(() => server.close());
  const busy = await busyWith(server.grpcAddress, TAGS);
  const changePassword = (password: string): Promise<void> =>
    asRoot(cluster, "auth/user/changepw", { name: "idmint", password });
  await sleep(500);
  const before = log.length;
  await changePassword("another");
  await sleep(OUTAGE_MS);
  await expect.poll(() => busy.counted.refused, { timeout: 30_000 }).toBeGreaterThan(TAGS);
  expect(server.node.status()).toMatchObject({
    reachable: false,
    stateReason: expect.stringContaining("check store.user, and the password") as string,
  });
  await changePassword("of-idmint");
  await expect.poll(() => server.node.status().reachable, { timeout: 10_000 }).toBe(true);
  await sleep(1_500);
  await busy.end();
  const lines = log
    .slice(before)
    .map((line) => (JSON.parse(line) as { msg: string }).msg)
    .filter((msg) => msg !== "audit");
  expect(lines).toContain("the store answers again");
  expect(lines.length, lines.join("\n")).toBeLessThanOrEqual(4);
  expect(log.join()).not.toContain('"stack"');
  expect(log.join()).not.toMatch(/of-idmint|"another"/u);
});

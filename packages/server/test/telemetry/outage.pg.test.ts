// What the log has of an outage of a real database under load.
import { serverEnv } from "@idmint/testkit";
import { TestPostgres } from "@idmint/testkit/postgres";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { startServer } from "../../src/main/app.ts";
import { makeStore } from "../../src/main/stores.ts";
import { sleep } from "../support.ts";
import { busyWith } from "./busy.ts";

const TAGS = 50;
/** Longer than the grace after an outage, and 20 polls. */
const OUTAGE_MS = 4_000;

test("an outage under load is a few lines, though 50 tags want ids all the time", async () => {
  await using database = await TestPostgres.start();
  const log: string[] = [];
  const flags = {
    "store-url": database.url(),
    "allow-unsafe-store": "fsync,full_page_writes",
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-format": "json",
    "poll-interval": "200ms",
  };
  const config = loadConfig({ env: serverEnv(), flags, defaults: {} });
  await makeStore(config);
  const server = await startServer(config, { logSink: { write: (line) => log.push(line) } });
  onTestFinished(() => server.close());
  const busy = await busyWith(server.grpcAddress, TAGS);
  await sleep(500);
  const before = log.length;
  await database.stop("immediate");
  await sleep(OUTAGE_MS);
  await expect.poll(() => busy.counted.refused, { timeout: 30_000 }).toBeGreaterThan(TAGS);
  await database.start();
  await expect.poll(() => server.node.status().reachable, { timeout: 10_000 }).toBe(true);
  await sleep(1_500);
  await busy.end();
  // Rows of the audit trail tell of the tags, and may come late.
  const lines = log
    .slice(before)
    .map((line) => (JSON.parse(line) as { msg: string }).msg)
    .filter((msg) => msg !== "audit");
  expect(lines).toContain("the store does not answer; serving ids from memory");
  expect(lines).toContain("the store answers again");
  expect(lines.length, lines.join("\n")).toBeLessThanOrEqual(4);
  expect(log.join()).not.toContain('"stack"');
});

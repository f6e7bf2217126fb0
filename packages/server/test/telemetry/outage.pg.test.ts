// What the log has of an outage of a real database under load.
import {
  CreateTagRequest,
  GenerateIdsRequest,
  IdServiceService,
  TagServiceService,
} from "@idmint/proto";
import { serverEnv } from "@idmint/testkit";
import { TestPostgres } from "@idmint/testkit/postgres";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { startServer } from "../../src/main/app.ts";
import { makeStore } from "../../src/main/stores.ts";
import { call, clientsOf, sleep } from "../support.ts";

const TAGS = 50;
const OUTAGE_MS = 8_000;

test("an outage under load is a few lines, though 50 tags want ids all the time", async () => {
  await using database = await TestPostgres.start();
  const log: string[] = [];
  const flags = {
    "store-url": database.url(),
    "allow-unsafe-store": "fsync,full_page_writes",
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-format": "json",
  };
  const config = loadConfig({ env: serverEnv(), flags, defaults: {} });
  await makeStore(config);
  const server = await startServer(config, { logSink: { write: (line) => log.push(line) } });
  onTestFinished(() => server.close());
  const { ids, tags } = clientsOf(server.grpcAddress);
  const names = Array.from({ length: TAGS }, (_, at) => `t${at}`);
  for (const name of names) {
    // Segments are small, so that each call needs the store.
    const kind = { $case: "segment", value: { min: 10, max: 10 } } as const;
    await call(
      tags,
      TagServiceService.createTag,
      CreateTagRequest.fromPartial({ tag: { name, kind } }),
    );
  }
  const counted = { served: 0, refused: 0 };
  const over = new AbortController();
  const busy = names.map(async (tag) => {
    while (!over.signal.aborted) {
      const request = GenerateIdsRequest.fromPartial({ tag, count: 10 });
      const asked = call(ids, IdServiceService.generateIds, request);
      await asked.then(
        () => counted.served++,
        () => counted.refused++,
      );
      await sleep(20);
    }
  });
  await sleep(500);
  const before = log.length;
  await database.stop("immediate");
  await sleep(OUTAGE_MS);
  await database.start();
  await expect.poll(() => server.node.status().reachable, { timeout: 10_000 }).toBe(true);
  await sleep(1_500);
  over.abort();
  await Promise.all(busy);
  expect(counted.refused).toBeGreaterThan(TAGS);
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

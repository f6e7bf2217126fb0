// The metrics of a server in two processes, asked of their parent.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { serverEnv } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { startProcesses } from "../../src/main/serving.ts";
import { makeStore } from "../../src/main/stores.ts";
import { clientsOf, createTag, generateId } from "../support.ts";
import { scrape } from "./scrape.ts";

const CALLERS = 4;
const CALLS = 5;

test("the parent tells the metrics of all processes, and their sum is what was done", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-metrics-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const flags = {
    "store-url": `sqlite:${path.join(folder, "idmint.db")}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
    processes: "2",
  };
  const config = loadConfig({ env: serverEnv(), flags, defaults: {} });
  await makeStore({ ...config, processes: 1 });
  const server = await startProcesses(config);
  onTestFinished(() => server.close());
  await createTag(clientsOf(server.grpcAddress), "orders");
  for (let caller = 0; caller < CALLERS; caller++) {
    // Each has connections of its own, which go to the process that has the fewest.
    const clients = clientsOf(server.grpcAddress);
    for (let calls = 0; calls < CALLS; calls++) await generateId(clients, "orders", 20_000);
  }
  const series = [...(await scrape(server.httpAddress))];
  const sumOf = (start: string): number =>
    series.filter(([key]) => key.startsWith(start)).reduce((sum, [, value]) => sum + value, 0);
  expect(sumOf("idmint_process_up")).toBe(2);
  expect(sumOf("idmint_ids_issued_total")).toBe(CALLERS * CALLS);
  for (const process of [1, 2]) {
    const its = series.filter(([key]) => key.includes(`process="${process}"`));
    const calls = its.find(([key]) => key.startsWith("idmint_calls_total"));
    expect(calls?.[1]).toBeGreaterThan(0);
  }
});

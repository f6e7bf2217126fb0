// Several processes that stop: all of them answer for the delay, and the parent says for all that they are not ready.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { serverEnv } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { startProcesses } from "../../src/main/serving.ts";
import { makeStore } from "../../src/main/stores.ts";
import { clientsOf, createTag, generateId } from "../support.ts";

test("processes that stop answer for the delay, and end when their parent is told to hurry", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-drained-processes-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const flags = {
    "store-url": `sqlite:${path.join(folder, "idmint.db")}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
    "drain-delay": "10min",
    processes: "2",
  };
  const config = loadConfig({ env: serverEnv(), flags, defaults: {} });
  await makeStore({ ...config, processes: 1 });
  const server = await startProcesses(config);
  onTestFinished(() => server.kill?.());
  const { grpcAddress, httpAddress } = server;
  const before = clientsOf(grpcAddress);
  await createTag(before, "orders");
  expect(server.hurry()).toBe(false);
  const closed = server.close();
  const probe = await fetch(`http://${httpAddress}/readyz`);
  expect([probe.status, await probe.json()]).toMatchObject([
    503,
    { state: "DRAINING", processes: { total: 2 } },
  ]);
  // Whoever comes meanwhile is answered by either of them.
  await Promise.all(
    [before, clientsOf(grpcAddress), clientsOf(grpcAddress)].map((its) =>
      generateId(its, "orders"),
    ),
  );
  expect(server.hurry()).toBe(true);
  expect(server.hurry()).toBe(false);
  await closed;
});

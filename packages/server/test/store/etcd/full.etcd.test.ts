// A server whose etcd takes no writes any more.
import { serverEnv } from "@idmint/testkit";
import { EtcdCluster } from "@idmint/testkit/etcd";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../../src/config/load.ts";
import { startServer } from "../../../src/main/app.ts";
import { makeStore } from "../../../src/main/stores.ts";
import type { ServerEvent } from "../../../src/service/events.ts";

test("a server on a full etcd says at once that it is degraded and which kinds are, and takes calls", async () => {
  await using cluster = await EtcdCluster.start({ args: ["--quota-backend-bytes=4000000"] });
  const flags = {
    "store-url": `etcd://${cluster.hosts}/full/`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
  };
  const config = loadConfig({ env: serverEnv(), flags });
  await makeStore(config);
  const events: ServerEvent[] = [];
  const server = await startServer(config, { onEvent: (event) => events.push(event) });
  onTestFinished(() => server.close());
  const readiness = async () => {
    const answer = await fetch(`http://${server.httpAddress}/readyz`);
    return [answer.status, await answer.json()];
  };
  expect(await readiness()).toEqual([200, { ready: true, state: "SERVING" }]);
  const { gateway } = cluster;
  const big = "x".repeat(400_000);
  // One after the other: etcd looks at its quota before it takes a write, and takes many at once.
  const fill = async () => {
    for (let puts = 0; puts < 100; puts++) await gateway.put("/elsewhere", big);
  };
  await expect(fill()).rejects.toThrow(/space exceeded/u);
  const patience = { timeout: 60_000 };
  await expect
    .poll(() => server.node.status(), patience)
    .toMatchObject({
      reachable: true,
      state: "DEGRADED",
      stateReason: expect.stringMatching(
        /^sequences are refused, and other kinds go on .*NOSPACE.*docs\/etcd\.md/u,
      ) as string,
    });
  expect(await readiness()).toEqual([200, { ready: true, state: "DEGRADED" }]);
  expect(events.filter(({ type }) => type === "store-warning")).toHaveLength(1);
  await gateway.compact(await gateway.revision());
  await gateway.post("maintenance/defragment", {});
  const { alarms } = await gateway.post<{ alarms: object[] }>("maintenance/alarm", {});
  for (const alarm of alarms) {
    await gateway.post("maintenance/alarm", { action: "DEACTIVATE", ...alarm });
  }
  await expect.poll(() => server.node.status().state, patience).toBe("SERVING");
});

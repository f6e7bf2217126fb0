// A server whose way to its etcd turns to another store and back, beside a server that has the etcd directly.
import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { EtcdCluster } from "../src/etcd/index.ts";
import type { Activity } from "../src/fleet/load-config.ts";
import { judge } from "../src/fleet/uniqueness.ts";
import { until } from "../src/fleet/until.ts";
import { TcpProxy } from "../src/tcp-proxy.ts";
import { EXPECTED } from "./chaos.ts";
import { isLong, startFleet } from "./fleet-support.ts";

const ROUNDS = isLong ? 30 : 3;
const AWAY_MS = 2_000;
const TAG = "orders";
const SEGMENT = { min: 500, max: 500 };
const ACTIVITIES: readonly Activity[] = [
  { kind: "id", perSecond: 50 },
  { kind: "segments", perSecond: 20, count: 100, parallel: 4 },
];

async function clusterOf(): Promise<EtcdCluster> {
  const cluster = await EtcdCluster.start();
  onTestFinished(() => cluster.close());
  return cluster;
}

function targetOf({ members: [member] }: EtcdCluster): { host: string; port: number } {
  return { host: "127.0.0.1", port: member?.place.clientPort ?? 0 };
}

test(
  "a server whose address leads to another etcd gives out nothing of it, and goes on with its own",
  { timeout: (ROUNDS * 20 + 120) * 1_000 },
  async () => {
    const [cluster, foreign] = await Promise.all([clusterOf(), clusterOf()]);
    const proxy = await TcpProxy.start(targetOf(cluster));
    onTestFinished(() => proxy.close());
    const fleet = await startFleet({
      servers: 2,
      storeUrl: `etcd://${cluster.hosts}/ids`,
      envOf: [{ IDMINT_STORE_URL: `etcd://127.0.0.1:${proxy.port}/ids` }, {}],
    });
    const [turned, direct] = fleet.servers;
    if (turned === undefined || direct === undefined) throw new Error("no servers");
    await direct.api.createTag({ name: TAG, ...SEGMENT });
    const callers = await Promise.all(
      fleet.addresses.map((address) =>
        fleet.startCallers("grpc", {
          tag: TAG,
          addresses: [address],
          activities: ACTIVITIES,
          deadlineMs: 2_000,
        }),
      ),
    );
    await Promise.all(callers.map((child) => child.waitForOutput("first answer")));

    // The other store's tag is further on than this server's last grant, and the direct server is further on still.
    const other = await startFleet({ servers: 1, storeUrl: `etcd://${foreign.hosts}/ids` });
    proxy.cut();
    const top = await direct.api.id(TAG);
    await other.first.api.createTag({ name: TAG, start: top + 5_000n, ...SEGMENT });
    await other.close();
    for (let i = 0; i < 3_000; i++) await foreign.gateway.put("/elsewhere", String(i));
    await until(
      "the direct server is further on",
      async () => {
        return (await direct.api.id(TAG)) > top + 15_000n;
      },
      { withinMs: 60_000 },
    );
    const before = await foreign.gateway.under("/ids/tag/");
    for (let round = 0; round < ROUNDS; round++) {
      proxy.pointAt(targetOf(foreign));
      proxy.mend();
      await pause(AWAY_MS);
      proxy.pointAt(targetOf(cluster), { keep: round % 2 === 1 });
      const backAt = performance.now();
      await until("it issues again", async () => (await turned.api.id(TAG)) > 0n);
      console.log(`back ${round + 1}: an id after ${Math.round(performance.now() - backAt)} ms`);
      await pause(500);
    }
    const reports = await Promise.all(callers.map((child) => fleet.stopCallers(child)));
    const errors = reports.flatMap((report) => Object.keys(report.errors));
    expect(errors.filter((name) => !EXPECTED.has(name))).toEqual([]);
    expect(await foreign.gateway.under("/ids/tag/")).toEqual(before);
    const { received, repeated, repeats } = judge(callers.map((child) => fleet.recordsOf(child)));
    console.log(`${received} ids`);
    expect([repeated, repeats]).toEqual([0, []]);
    const said = turned.process.stdout + turned.process.stderr;
    expect(said).toContain("is passed over, since it is not of the store");
    expect(said).not.toContain("has a new history");
  },
);

// One of three servers on an etcd is an hour behind: it issues what the others do.
import { setTimeout as pause } from "node:timers/promises";
import { PeriodUnit } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { EtcdCluster } from "../../../src/etcd/index.ts";
import { wallClockEnv } from "../../../src/faketime.ts";
import type { FleetServer } from "../../../src/fleet/fleet.ts";
import { until } from "../../../src/fleet/until.ts";
import { startFleet } from "../../fleet-support.ts";

const HOUR_MS = 3_600_000;

/** A time zone in which today began less than an hour ago: for a clock that is an hour behind it is yesterday. */
function zoneOfMidnight(): { readonly timeZone: string; readonly today: string } {
  const now = new Date();
  const utc = now.getUTCHours();
  const ahead = utc <= 12 ? -utc : 24 - utc;
  const timeZone = ahead === 0 ? "UTC" : `Etc/GMT${ahead > 0 ? "-" : "+"}${Math.abs(ahead)}`;
  const today = new Date(now.getTime() + ahead * HOUR_MS).toISOString().slice(0, 10);
  return { timeZone, today };
}

test("a server that is an hour behind issues in the present period, and holds nobody up", async () => {
  const cluster = await EtcdCluster.start();
  onTestFinished(() => cluster.close());
  const fleet = await startFleet({
    servers: 3,
    storeUrl: `etcd://${cluster.hosts}/idmint`,
    envOf: [{}, {}, wallClockEnv(-HOUR_MS)],
  });
  const [right, , behind] = fleet.servers as [FleetServer, FleetServer, FleetServer];
  const { timeZone, today } = zoneOfMidnight();
  const daily = { period: PeriodUnit.DAY, timeZone };
  await right.api.createSequence("days", daily);
  await right.api.createSequence("others", daily);
  await right.api.createTag({ name: "orders" });
  // The median of the clocks is told by rows that a server saw moving.
  await pause(3_000);
  const first = await behind.api.generateId("days");
  expect([first.id, first.period]).toEqual([1n, today]);
  const second = await right.api.generateId("days");
  expect([second.id, second.period]).toEqual([2n, today]);
  expect((await behind.api.generateId("days")).id).toBe(3n);
  const ids = await Promise.all(fleet.servers.map(({ api }) => api.id("orders")));
  expect(new Set(ids).size).toBe(3);
  // It follows changes, and its row is alive for the others, longer than a lease of etcd lasts without renewal.
  await right.api.send(right.api.tags.pauseTag.bind(right.api.tags), {
    name: "orders",
    etag: "",
    validateOnly: false,
  });
  const isRefused = async (): Promise<boolean> =>
    behind.api.id("orders").then(
      () => false,
      () => true,
    );
  await until("the server that is behind follows the change", isRefused, { withinMs: 10_000 });
  // Also one that begins again with such a clock, and that begins a period as the first of all.
  await behind.stop();
  await behind.start();
  await pause(3_000);
  expect((await behind.api.generateId("others")).period).toBe(today);
  const { nodes } = right.api;
  const request = { pageSize: 100, pageToken: "" };
  // Where the one before could not take leave in time, its row counts as alive until it has stood still for 10 s.
  const areThree = async (): Promise<boolean> => {
    const listed = await right.api.send(nodes.listNodes.bind(nodes), request);
    return listed.nodes.filter(({ alive }) => alive).length === 3;
  };
  await until("three servers are alive", areThree, { withinMs: 20_000 });
});

import { setTimeout as pause } from "node:timers/promises";
import { EtcdCluster } from "../../src/etcd/index.ts";
import { COMMON } from "../tags.ts";
import type { Site, Stage, StoreFault } from "./site.ts";
import { accept, refused } from "./accept.ts";

/** Three servers on an etcd of three members. */
export async function etcdStage(): Promise<Stage> {
  const cluster = await EtcdCluster.start({ size: 3 });
  const ports = cluster.members.map(({ place }) => place.clientPort);
  return {
    name: "etcd",
    storeUrl: urlOf(ports),
    servers: 3,
    hasLedger: false,
    ports,
    urlBy: urlOf,
    env: {},
    tags: COMMON,
    faults: faultsOf(cluster),
    [Symbol.asyncDispose]: () => cluster.close(),
  };
}

function urlOf(ports: readonly number[]): string {
  return `etcd://${ports.map((port) => `127.0.0.1:${port}`).join(",")}/nemesis`;
}

/** A leader that is gone or cut off is missed until another one is elected, and servers have turned to it. */
function faultsOf(cluster: EtcdCluster): Readonly<Record<string, StoreFault>> {
  return {
    "kill-etcd-leader": (site, dice) =>
      site.away("kill-etcd-leader", async () => {
        const leader = await cluster.leader();
        await leader.kill();
        await pause(dice.int(0, 2_000));
        await cluster.restart(leader);
      }),
    "kill-etcd-member": (site, dice) =>
      site.away("kill-etcd-member", async () => {
        const member = dice.pick(cluster.members);
        await member.kill();
        await pause(dice.int(0, 2_000));
        await cluster.restart(member);
      }),
    "freeze-etcd-member": (site, dice) =>
      site.away("freeze-etcd-member", async () => {
        const member = dice.pick(cluster.members);
        member.pause();
        await pause(dice.pick([300, 1_500, 4_000]));
        member.resume();
      }),
    "cut-off-etcd-leader": (site, dice) =>
      site.away("cut-off-etcd-leader", async () => {
        await cluster.cutOff(await cluster.leader());
        await pause(dice.int(1_000, 4_000));
        cluster.heal();
      }),
    "restore-etcd": (site, dice) => restore(site, cluster, dice.int(500, 3_000)),
  };
}

/** A snapshot is put back: servers refuse it until it is accepted with a gap. */
async function restore(site: Site, cluster: EtcdCluster, forMs: number): Promise<void> {
  const snapshot = await cluster.snapshot();
  await pause(forMs);
  const isOver = site.note("back", "restore-etcd");
  await cluster.restore(snapshot, { sameToken: true });
  await refused(site);
  await accept(site);
  await site.issues();
  isOver();
}

// An etcd of three members that are killed one after the other, whose leader is cut off, and which is set back to a snapshot,
// under servers and SDKs.
import { setTimeout as pause } from "node:timers/promises";
import { IdmintError } from "@idmint/client";
import { expect, onTestFinished, test } from "vitest";
import { EtcdCluster } from "../../src/etcd/index.ts";
import type { Child } from "../../src/fleet/child.ts";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { answeredAfter, faultsOf, readHistory } from "../../src/fleet/history.ts";
import type { Activity, LoadReport } from "../../src/fleet/load-config.ts";
import { judge } from "../../src/fleet/uniqueness.ts";
import { until } from "../../src/fleet/until.ts";
import { EXPECTED } from "../chaos.ts";
import { isLong, startFleet } from "../fleet-support.ts";

/** How often a member is killed, and how long it stays away. */
const KILLS = isLong ? 12 : 2;
const EVERY_MS = isLong ? 10_000 : 5_000;
const AWAY_MS = 2_000;
const CUT_OFF_MS = isLong ? 30_000 : 8_000;
const [BILLS, ORDERS] = ["bills", "orders"] as const;
const GAP = 1_000_000n;
/** They last for longer than any outage here, so that no SDK notices one. */
const SEGMENT = 50_000;
const SDK_SEGMENT = 5_000;
const MAY_FAIL = new Set([...EXPECTED, "FAILED_PRECONDITION STORE_EPOCH_CHANGED"]);
const SDKS: readonly (readonly Activity[])[] = [
  [{ kind: "next", perSecond: 60 }],
  [{ kind: "next", perSecond: 60, parallel: 8 }],
  [{ kind: "sync", perSecond: 60 }],
  [{ kind: "take", perSecond: 10, count: 7 }],
];

interface Scene {
  readonly cluster: EtcdCluster;
  readonly fleet: Fleet;
  /** Callers of the sequence, from the beginning to the end. */
  readonly history: Child;
}

async function startSdks({ fleet }: Scene): Promise<readonly Child[]> {
  const sdks = await Promise.all(
    SDKS.map((activities) => {
      const segments = { min: SDK_SEGMENT, max: SDK_SEGMENT };
      return fleet.startCallers("sdk", { tag: ORDERS, activities, ...segments, deadlineMs: 5_000 });
    }),
  );
  await Promise.all(sdks.map((child) => child.waitForOutput("first answer")));
  return sdks;
}

async function stage(): Promise<Scene> {
  const cluster = await EtcdCluster.start({ size: 3 });
  onTestFinished(() => cluster.close());
  const storeUrl = `etcd://${cluster.hosts}/chaos`;
  const fleet = await startFleet({ servers: 3, storeUrl });
  const { api } = fleet.first;
  await api.createSequence(BILLS);
  await api.createTag({ name: ORDERS, min: SEGMENT, max: SEGMENT });
  const history = await fleet.startCallers("history", {
    tag: BILLS,
    activities: [
      { kind: "id", perSecond: 40 },
      { kind: "id", perSecond: 40, parallel: 8 },
      { kind: "segments", perSecond: 10, count: 7, parallel: 2 },
    ],
    deadlineMs: 5_000,
  });
  await history.waitForOutput("first answer");
  return { cluster, fleet, history };
}

async function stopAll({ fleet }: Scene, sdks: readonly Child[]): Promise<readonly LoadReport[]> {
  return Promise.all(sdks.map((child) => fleet.stopCallers(child)));
}

/** How long after now the first id of the sequence is issued. */
async function issuedAgain({ fleet, history }: Scene): Promise<number> {
  const since = process.hrtime.bigint();
  const after = (): number => answeredAfter(readHistory([fleet.recordsOf(history)]), since);
  return until("ids are issued", () => (after() < Infinity ? after() : undefined), {
    withinMs: 60_000,
    everyMs: 100,
  });
}

async function killInTurn(scene: Scene): Promise<void> {
  const { cluster } = scene;
  for (let round = 0; round < KILLS; round++) {
    const startedAt = performance.now();
    // Now and then the leader.
    const any = cluster.members[round % cluster.members.length];
    const member = round % 2 === 0 ? await cluster.leader() : any;
    if (member === undefined) throw new Error("no member");
    await member.kill();
    const againMs = Math.round(await issuedAgain(scene));
    console.log(`kill ${round + 1}: the next id of the sequence after ${againMs} ms`);
    await pause(AWAY_MS);
    await cluster.restart(member);
    await pause(Math.max(0, EVERY_MS - (performance.now() - startedAt)));
  }
}

async function cutOffLeader(scene: Scene): Promise<void> {
  await scene.cluster.cutOff(await scene.cluster.leader());
  const againMs = Math.round(await issuedAgain(scene));
  console.log(`leader cut off: the next id of the sequence after ${againMs} ms`);
  await pause(CUT_OFF_MS);
  scene.cluster.heal();
  await issuedAgain(scene);
}

async function refuses(server: FleetServer): Promise<boolean> {
  try {
    await server.api.id(BILLS, 5_000);
    return false;
  } catch (thrown) {
    return thrown instanceof IdmintError && thrown.reason === "STORE_EPOCH_CHANGED";
  }
}

test(
  "an etcd whose members die and are cut off loses nothing, and one that is set back is fenced until it is accepted",
  { timeout: (KILLS * 20 + 240) * 1_000 },
  async () => {
    const scene = await stage();
    const { cluster, fleet, history } = scene;
    const before = await cluster.snapshot();
    const sdks = await startSdks(scene);
    await killInTurn(scene);
    await cutOffLeader(scene);
    const reports = await stopAll(scene, sdks);
    expect(reports.map(({ errors, samples }) => [errors, samples])).toEqual(
      SDKS.map(() => [{}, []]),
    );

    const others = await startSdks(scene);
    await cluster.restore(before, { sameToken: true });
    const restoredAt = performance.now();
    await Promise.all(
      fleet.servers.map((server) =>
        until(`${server.name} refuses`, () => refuses(server), { withinMs: 30_000 }),
      ),
    );
    console.log(`restored: all refuse after ${Math.round(performance.now() - restoredAt)} ms`);
    // So does a server that never saw the store.
    const fresh = await fleet.anotherServer("fresh");
    fresh.spawn();
    await until("a fresh server refuses", () => refuses(fresh), { withinMs: 60_000 });
    await fresh.stop();
    fresh.api[Symbol.dispose]();
    // A command that hears nothing in time is given again, as its exit code says.
    const accept = (): Promise<string> =>
      fleet.cli("store", "accept", "--gap", String(GAP), "--yes");
    await until("an operator accepts it", accept, { withinMs: 60_000 });
    await issuedAgain(scene);
    await pause(2_000);

    const [told, ...later] = await stopAll(scene, [history, ...others]);
    const errors = [told, ...later].flatMap((report) => Object.keys(report?.errors ?? {}));
    expect(errors.filter((name) => !MAY_FAIL.has(name))).toEqual([]);
    const answers = readHistory([fleet.recordsOf(history)]);
    expect(faultsOf(answers)).toEqual({ repeats: [], inversions: [] });
    const { received, repeated, repeats } = judge(
      [...sdks, ...others].map((child) => fleet.recordsOf(child)),
    );
    console.log(`${answers.length} answers of the sequence, ${received} ids by SDKs`);
    expect([repeated, repeats]).toEqual([0, []]);
  },
);

// An etcd whose leaders are killed, whose members are replaced, and which is compacted and defragmented, under servers that
// must not take any of that for a store that went back. IDMINT_LONG=1 kills 100 leaders.
import { setTimeout as pause } from "node:timers/promises";
import { IdmintError } from "@idmint/core";
import { EtcdCluster, type EtcdMember } from "@idmint/testkit/etcd";
import { granted, settingsOf } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { storeStatus } from "../../../src/store/open-store.ts";
import { Poller } from "../poller.ts";
import { etcdHarness } from "./harness.ts";

const KILLS = process.env["IDMINT_LONG"] === "1" ? 100 : 3;
const SERVERS = 3;
/** Of all servers; each has one of its own too, of which it gives ids back. */
const TAGS = ["a", "b", "c"] as const;
const COUNT = 10n;
/** Longest that a fault may keep the store from its servers. */
const AWAY_MS = 60_000;

interface Tally {
  polls: number;
  outages: number;
  readonly alarms: string[];
  /** By tag, without those that were given back. */
  readonly ids: Set<string>;
  repeats: number;
  isOver: boolean;
}

function use(tally: Tally, tag: string, first: bigint, count: bigint): void {
  for (let id = first; id < first + count; id++) {
    const key = `${tag} ${id}`;
    if (tally.ids.has(key)) tally.repeats++;
    tally.ids.add(key);
  }
}

/** Does something again and again until the end; what the store does not answer is an outage. */
async function repeat(
  tally: Tally,
  everyMs: number,
  work: (turn: number) => Promise<void>,
): Promise<void> {
  for (let turn = 0; !tally.isOver; turn++) {
    try {
      await work(turn);
    } catch (thrown) {
      if (thrown instanceof IdmintError && thrown.retryable) tally.outages++;
      else tally.alarms.push(String(thrown));
    }
    await pause(everyMs);
  }
}

/** Polls, takes ids, and gives the ends of some back, as a server does in its time. */
async function serve(server: Poller, own: string, tally: Tally): Promise<void> {
  const polling = repeat(tally, 10, async () => {
    const { fenced, behind } = await server.poll();
    tally.polls++;
    if (fenced !== "" || behind.length > 0) tally.alarms.push(`${fenced} ${behind.join()}`);
  });
  const granting = repeat(tally, 5, async (turn) => {
    const tag = TAGS[turn % 6] ?? own;
    const first = await server.grant(tag);
    const unused = tag === own ? 9n : 0n;
    // An unknown outcome is a gap.
    use(tally, tag, first, COUNT - unused);
    // Polls that were told of all ids are under way when some of them go back.
    if (unused > 0n) await pause(20);
    if (unused > 0n) await server.giveBack(unused);
    if (turn % 60 === 0) await advance(server, tag, first + 100n);
  });
  await Promise.all([polling, granting]);
}

async function advance({ store }: Poller, tag: string, floor: bigint): Promise<void> {
  await store.advanceTag(tag, floor, { maxRaise: 1_000n, expectedRevision: undefined });
}

/** Waits until the servers have polled again. */
async function polled(tally: Tally): Promise<void> {
  const from = tally.polls;
  const more = () => tally.polls - from;
  await expect.poll(more, { timeout: AWAY_MS }).toBeGreaterThan(2 * SERVERS);
}

async function leaderOf(cluster: EtcdCluster): Promise<EtcdMember> {
  const leader = () => cluster.leader().catch(() => undefined);
  await expect.poll(leader, { timeout: AWAY_MS }).toBeDefined();
  return (await leader()) ?? leaderOf(cluster);
}

test(
  "leaders that die, members that are replaced, compaction and defragmentation are no alarm",
  { timeout: (KILLS * 10 + 180) * 1_000 },
  async () => {
    await using cluster = await EtcdCluster.start({ size: 3 });
    const harness = await etcdHarness({ timeoutMs: 2_000 }, cluster);
    const servers: Poller[] = [];
    for (let at = 0; at < SERVERS; at++) servers.push(await Poller.open(harness.config));
    const owns = servers.map((_, at) => `own-${at}`);
    for (const tag of [...TAGS, ...owns]) await servers[0]?.store.createTag(settingsOf(tag));
    const tally: Tally = {
      polls: 0,
      outages: 0,
      alarms: [],
      ids: new Set(),
      repeats: 0,
      isOver: false,
    };
    const work = Promise.all(servers.map((server, at) => serve(server, owns[at] ?? "", tally)));
    try {
      for (let kill = 0; kill < KILLS; kill++) {
        const leader = await leaderOf(cluster);
        await leader.kill();
        await polled(tally);
        await cluster.restart(leader);
        if (kill % 5 === 1) await cluster.gateway.compact(await cluster.gateway.revision());
        if (kill % 5 === 1) await leader.gateway.post("maintenance/defragment", {});
        if (kill % 10 === 2) await cluster.replace(cluster.members[kill % 3] ?? leader);
        await polled(tally);
      }
    } finally {
      tally.isOver = true;
      await work;
    }
    const { polls, outages, ids, alarms, repeats } = tally;
    console.log(`${KILLS} leaders killed: ${ids.size} ids, ${polls} polls, ${outages} outages`);
    expect([alarms, repeats]).toEqual([[], 0]);
    expect((await storeStatus(harness.config)).fenced).toBe("");
    const fresh = await Poller.open(harness.config);
    await granted(fresh.store, "a");
    expect((await fresh.poll()).fenced).toBe("");
  },
);

// Sequences in a Redis behind three Sentinels, whose master is killed under load while its replicas lag: no id twice, none
// out of order as long as one master counts, and ids again soon after the promotion.
import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFailed, onTestFinished } from "vitest";
import { type Answer, answeredAfter } from "../../../src/fleet/history.ts";
import { type Member, type RedisSettings, SentinelGroup } from "../../../src/redis/index.ts";
import { isLong, ownPostgres, seededRandom, someTests, startFleet } from "../../fleet-support.ts";
import { createSequence, judge, startCallers, TAG } from "./redis-callers.ts";

const KILLS = isLong ? 10 : 1;
const MAX_LAG_MS = 2_000;
/** Ids again within so long after a replica was promoted. */
const RECOVERY_MS = 5_000;

/** The last id that a Redis counted. */
async function counted({ redis }: Member): Promise<bigint> {
  const cur = await redis.command("HGET", `idmint:{${TAG}}`, "cur");
  return typeof cur === "string" ? BigInt(cur) : 0n;
}

interface Promotion {
  readonly lagMs: number;
  /** Answered ids that the promoted replica had not heard of. */
  readonly behind: bigint;
  /** How many were promoted: two when two Sentinels led a fail-over at the same time. Then two masters counted. */
  readonly masters: number;
  /** When the master was killed, when the first replica was promoted, and when all was well again. */
  readonly from: bigint;
  readonly at: bigint;
  readonly to: bigint;
}

/** The addresses that these lines of Sentinels' logs tell to be promoted. */
function promotedIn(log: string): ReadonlySet<string> {
  const lines = log.matchAll(/\+(?:promoted-slave slave \S+|switch-master \S+ \S+ \S+) (\S+ \d+)/g);
  return new Set([...lines].map(([, address = ""]) => address));
}

interface Told {
  readonly promotions: readonly Promotion[];
  readonly history: readonly Answer[];
}

/** Kills the master again and again under load, and judges. Order is wanted of all, or as long as one master counted. */
async function killMasters(
  kills: number,
  maxLagMs: number,
  { settings = {}, isFenced }: { readonly settings?: RedisSettings; readonly isFenced: boolean },
): Promise<Told> {
  const postgres = await ownPostgres();
  const { url } = await postgres.createDatabase();
  const group = await SentinelGroup.start({ settings });
  onTestFinished(() => group.close());
  onTestFailed(() => console.log(group.sentinels.map(({ log }) => log).join("\n")));
  const env = { IDMINT_REDIS_URLS: `a=${group.url}` };
  const fleet = await startFleet({ servers: 3, storeUrl: url, env });
  await createSequence(fleet);
  const callers = await startCallers(fleet);
  const { seed, below } = seededRandom();
  const promotions: Promotion[] = [];
  for (let kill = 0; kill < kills; kill++) {
    // The first one lags as far as it may.
    const lagMs = kill === 0 ? maxLagMs : 200 + below(maxLagMs - 200);
    promotions.push(await killOnce(group, lagMs));
  }
  const unfenced = isFenced ? [] : promotions.filter(({ masters }) => masters > 1);
  const isOrdered = ({ asked, answered }: Answer): boolean =>
    !unfenced.some(({ from, to }) => answered > from && asked < to);
  const { history, errors } = await judge(fleet, callers, isOrdered);
  const told = promotions.map(({ lagMs, behind, masters, at }) => {
    return { lagMs, behind, masters, ms: Math.round(answeredAfter(history, at)) };
  });
  console.log(`seed ${seed}: ${history.length} answers`, errors, told);
  expect(history.length).toBeGreaterThan(kills * 1_000);
  return { promotions, history };
}

async function killOnce(group: SentinelGroup, lagMs: number): Promise<Promotion> {
  group.lagMs = lagMs;
  await pause(lagMs + 1_000);
  const told = group.sentinels.map(({ log }) => log.length);
  const before = await counted(await group.master());
  const from = process.hrtime.bigint();
  const promoted = await group.killMaster();
  const at = process.hrtime.bigint();
  const behind = before - (await counted(promoted));
  await pause(RECOVERY_MS);
  // It comes back as the master that it was, empty, and nobody may follow it.
  group.lagMs = 0;
  await group.restartKilled();
  await group.settled();
  const logs = group.sentinels.map(({ log }, index) => log.slice(told[index]));
  const masters = promotedIn(logs.join("\n")).size;
  return { lagMs, behind, masters, from, at, to: process.hrtime.bigint() };
}

const storm = someTests(1, 2);

storm(
  "the master is killed behind three Sentinels, with replicas that lag: no id twice, ids again soon",
  { timeout: (KILLS * 60 + 180) * 1_000 },
  async () => {
    const { promotions, history } = await killMasters(KILLS, MAX_LAG_MS, { isFenced: false });
    for (const { at } of promotions) expect(answeredAfter(history, at)).toBeLessThan(RECOVERY_MS);
    // A replica that was promoted in spite of its lag had not heard of ids that were answered.
    expect(promotions.some(({ behind }) => behind > 0n)).toBe(true);
  },
);

storm(
  "with min-replicas-to-write no two masters count: nothing is out of order, whoever is promoted",
  { timeout: (KILLS * 60 + 180) * 1_000 },
  async () => {
    const settings = { "min-replicas-to-write": "1", "min-replicas-max-lag": "2" };
    await killMasters(KILLS, 500, { settings, isFenced: true });
  },
);

import { setTimeout as pause } from "node:timers/promises";
import { runCli } from "../../src/fleet/child.ts";
import { TestPostgresPair } from "../../src/postgres-pair.ts";
import { TestPostgres } from "../../src/postgres.ts";
import { SentinelGroup } from "../../src/redis/index.ts";
import { COMMON, COUNTED_ELSEWHERE } from "../tags.ts";
import { acceptUnlessProved } from "./accept.ts";
import type { Site, Stage, StoreFault } from "./site.ts";

/** A second and an older master cannot count then, so that order is promised. */
const FENCED = { "min-replicas-to-write": "1", "min-replicas-max-lag": "2" };
const REDIS_TAG = "fast-bills";

/**
 * Three servers on a PostgreSQL whose standby is synchronous; a Redis of three behind three Sentinels; and two databases for ticket
 * tags.
 */
export async function postgresStage(): Promise<Stage> {
  // One after the other: their files are prepared by whoever comes first.
  const pair = await TestPostgresPair.start("synchronous", {
    settings: { max_connections: "200" },
  });
  const [redis, tickets] = await Promise.all([
    SentinelGroup.start({ settings: FENCED }),
    TestPostgres.start({ durable: true }),
  ]);
  const [one, two] = [await tickets.createDatabase("one"), await tickets.createDatabase("two")];
  const env = {
    IDMINT_REDIS_URLS: `a=${redis.url}`,
    IDMINT_TICKET_URLS: `one=${one.url},two=${two.url}`,
  };
  return {
    name: "postgres",
    storeUrl: pair.url(),
    servers: 3,
    hasLedger: true,
    ports: [pair.primary.port, pair.standby.port],
    urlBy: ([a = 0, b = 0]) => `postgres://postgres@127.0.0.1:${a},127.0.0.1:${b}/postgres`,
    env,
    tags: [...COMMON, ...COUNTED_ELSEWHERE],
    prepare: async () => {
      const { code, stderr } = await runCli(["ticket", "migrate"], env);
      if (code !== 0) throw new Error(stderr);
    },
    faults: { ...pairFaults(pair), ...redisFaults(redis), "ticket-database": ticketFault(tickets) },
    [Symbol.asyncDispose]: async () => {
      await pair.close();
      await redis.close();
      await tickets.close();
    },
  };
}

function pairFaults(pair: TestPostgresPair): Readonly<Record<string, StoreFault>> {
  return {
    "fail-over": async (site) => {
      await site.away("fail-over", async () => {
        await pair.primary.stop("kill");
        // guarantees.md: servers refuse a promoted standby until it is accepted, by themselves where nothing can be lost. They drop
        // what they hold of it, so a program that was started meanwhile has nothing of any tag.
        const isAccepted = site.note("back", "fail-over");
        await pair.promote();
        await acceptUnlessProved(site, "--old-primary-is-stopped");
        isAccepted();
      });
      // Commits wait for the new standby from some moment of this on.
      await site.away("rejoin", () => pair.rejoin());
    },
    "lost-grants": (site, dice) => lostGrants(site, pair, dice.int(300, 1_500)),
    "crash-store": (site) =>
      site.away("crash-store", async () => {
        await pair.primary.stop("immediate");
        await pair.primary.start();
      }),
    "freeze-store": (site, dice) =>
      site.away("freeze-store", async () => {
        pair.primary.freeze();
        await pause(dice.pick([300, 1_500, 4_000]));
        pair.primary.thaw();
      }),
    "stall-standby": (site, dice) =>
      site.away("stall-standby", async () => {
        await pair.caughtUp();
        const resume = await pair.stallStandby();
        await pause(dice.int(500, 3_000));
        resume();
      }),
    "cancel-waits": (site, dice) =>
      site.away("cancel-waits", async () => {
        await pair.caughtUp();
        const resume = await pair.stallStandby();
        for (let round = dice.int(2, 6); round > 0; round--) {
          await pause(200);
          await pair.cancelWaits();
        }
        resume();
      }),
  };
}

/** A standby that lacks what was acknowledged is promoted: servers refuse it until it is accepted with a gap. */
async function lostGrants(site: Site, pair: TestPostgresPair, forMs: number): Promise<void> {
  const isOver = site.note("back", "lost-grants");
  await pair.setStandbyNames("");
  await pair.caughtUp();
  await pair.stallStandby();
  await pause(forMs);
  await pair.primary.stop("kill");
  await pair.promote();
  // On a slow machine nothing may have been granted meanwhile.
  await acceptUnlessProved(site, "--old-primary-is-stopped");
  await pair.rejoin();
  await site.issues();
  isOver();
}

function redisFaults(group: SentinelGroup): Readonly<Record<string, StoreFault>> {
  const redis = { needs: "redis", tag: REDIS_TAG };
  return {
    "kill-redis-master": (site) =>
      site.away(
        "kill-redis-master",
        async () => {
          await group.killMaster();
          await site.issues(REDIS_TAG);
          await group.restartKilled();
          await group.settled();
        },
        redis,
      ),
    "empty-redis": (site) =>
      site.away(
        "empty-redis",
        async () => {
          await (await group.master()).redis.command("FLUSHALL");
        },
        redis,
      ),
    // Shorter than Sentinels wait: they would promote another one, and the old one would still count for a moment.
    "freeze-redis-master": (site, dice) =>
      site.away(
        "freeze-redis-master",
        async () => {
          const { redis: its } = await group.master();
          its.pause();
          await pause(dice.int(100, 600));
          its.resume();
        },
        redis,
      ),
  };
}

/** One server of tickets has both databases: while it is away there are no tickets. */
function ticketFault(tickets: TestPostgres): StoreFault {
  const run = async (): Promise<void> => {
    await tickets.stop("immediate");
    await tickets.start();
  };
  return (site) => site.away("ticket-database", run, { needs: "tickets", tag: "tickets" });
}

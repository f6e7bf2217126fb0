// Sequences that count in Redis, while Redis, the store and the servers fail: no id twice, none out of order in real time,
// and ids again soon after what failed is back.
import { setTimeout as pause } from "node:timers/promises";
import { IdmintError } from "@idmint/client";
import { RedisSnowflakeKind, Tag } from "@idmint/proto";
import { expect } from "vitest";
import type { Api } from "../../../src/fleet/api.ts";
import type { Fleet } from "../../../src/fleet/fleet.ts";
import { answeredAfter } from "../../../src/fleet/history.ts";
import { judge as judgeRecords } from "../../../src/fleet/uniqueness.ts";
import { until } from "../../../src/fleet/until.ts";
import type { TestPostgres } from "../../../src/postgres.ts";
import { EXPECTED } from "../../chaos.ts";
import { disturbServers } from "../../disturb.ts";
import {
  isLong,
  ownPostgres,
  seededRandom,
  someOf,
  someTests,
  startFleet,
} from "../../fleet-support.ts";
import { createSequence, judge, startCallers, TAG } from "./redis-callers.ts";
import { RedisStage } from "./redis-stage.ts";

const ROUNDS = isLong ? 5 : 1;
/** Ids again within so long after Redis is back. */
const RECOVERY_MS = 5_000;
const FROZEN_MS = isLong ? 10_000 : 2_000;
interface Scene {
  readonly fleet: Fleet;
  readonly postgres: TestPostgres;
  readonly redis: RedisStage;
}

/** A fault that ends; answers when what failed was back, in nanoseconds. */
interface Fault {
  readonly name: string;
  readonly run: (scene: Scene) => Promise<void>;
}

const redisFaults: readonly Fault[] = [
  { name: "an older snapshot", run: ({ redis }) => redis.goBackToSnapshot(500) },
  // Longer than the marks take to the store and to the other servers.
  { name: "older data without a restart", run: ({ redis }) => redis.reload(5_000) },
  { name: "the end of the log cut", run: ({ redis }) => redis.loseEndOfLog(700) },
  { name: "FLUSHALL", run: ({ redis }) => redis.empty() },
  { name: "a fail-over to a lagging replica", run: ({ redis }) => redis.failOver(500) },
  { name: `frozen for ${FROZEN_MS} ms`, run: ({ redis }) => redis.freeze(FROZEN_MS) },
  { name: "out of memory", run: ({ redis }) => redis.runOutOfMemory(1_000) },
];

async function startScene(env: Readonly<Record<string, string>>): Promise<Scene> {
  const postgres = await ownPostgres();
  const redis = await RedisStage.start();
  const { url } = await postgres.createDatabase();
  const fleet = await startFleet({
    servers: 3,
    storeUrl: url,
    env: { IDMINT_REDIS_URLS: redis.url, ...env },
  });
  await createSequence(fleet);
  return { fleet, postgres, redis };
}

const storm = someTests(2, 4);

storm(
  "Redis goes back, is emptied, fails over, freezes and runs out of memory: no id twice, none out of order",
  { timeout: (ROUNDS * 70 + 120) * 1_000 },
  async () => {
    const scene = await startScene({});
    const { fleet } = scene;
    const callers = await startCallers(fleet);
    const ends: { readonly name: string; readonly back: bigint }[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const { name, run } of someOf(4, redisFaults)) {
        await run(scene);
        ends.push({ name, back: process.hrtime.bigint() });
        await pause(2_000);
      }
    }
    await pause(RECOVERY_MS - 2_000);
    const { history, errors } = await judge(fleet, callers);
    const recovered = ends.map(({ name, back }) => ({
      name,
      ms: Math.round(answeredAfter(history, back)),
    }));
    console.log(`${history.length} answers`, errors, recovered);
    for (const { name, ms } of recovered) expect(ms, name).toBeLessThan(RECOVERY_MS);
    expect(history.length).toBeGreaterThan(ends.length * 20);
  },
);

storm(
  "with only PostgreSQL down it goes on up to the maximum and then fails fast; with both down a stale Redis is not believed",
  { timeout: (ROUNDS * 70 + 120) * 1_000 },
  async () => {
    const scene = await startScene({
      IDMINT_REDIS_RAISE_BELOW: "2s",
      IDMINT_REDIS_RAISE_BY: "3s",
    });
    const { fleet, postgres, redis } = scene;
    const callers = await startCallers(fleet);
    const spans: { from: bigint; to: bigint; back: bigint }[] = [];
    const downs: { readonly from: bigint; readonly to: bigint }[] = [];
    const failedFastMs: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await pause(3_000);
      await postgres.stop("fast");
      const down = process.hrtime.bigint();
      const { api } = fleet.first;
      // A batch that does not fit is refused whole, and a smaller one may fit after it: so several in a row.
      const refusedInMs = async (): Promise<number | undefined> => {
        const start = performance.now();
        for (let call = 0; call < 10; call++) {
          if ((await reasonOf(api)) !== "MAX_NOT_RAISED") return undefined;
        }
        return (performance.now() - start) / 10;
      };
      const patience = { withinMs: 90_000, everyMs: 50 };
      failedFastMs.push(Math.round(await until("the maximum is used up", refusedInMs, patience)));
      for (const child of callers) await child.waitForOutput("refused UNAVAILABLE MAX_NOT_RAISED");
      downs.push({ from: down, to: process.hrtime.bigint() });
      await postgres.start();
      await pause(3_000);
      await redis.current.command("SAVE");
      await pause(500);
      await postgres.stop("fast");
      await redis.current.kill();
      await redis.current.start();
      const from = process.hrtime.bigint();
      await pause(3_000);
      const to = process.hrtime.bigint();
      await postgres.start();
      spans.push({ from, to, back: process.hrtime.bigint() });
      await pause(2_000);
    }
    await pause(RECOVERY_MS - 2_000);
    const { history, errors } = await judge(fleet, callers);
    const recovered = spans.map(({ back }) => Math.round(answeredAfter(history, back)));
    const wentOn = downs.map(
      ({ from, to }) =>
        history.filter(({ asked, answered }) => asked > from && answered < to).length,
    );
    console.log(
      `${history.length} answers`,
      errors,
      `answers while PostgreSQL was down: ${wentOn.join(", ")}; a refusal took ${failedFastMs.join(", ")} ms; back after ${recovered.join(", ")} ms`,
    );
    for (const answers of wentOn) expect(answers).toBeGreaterThan(100);
    for (const ms of failedFastMs) expect(ms).toBeLessThan(1_000);
    for (const ms of recovered) expect(ms).toBeLessThan(RECOVERY_MS);
    for (const { from, to } of spans) {
      const believed = history.filter(({ asked, answered }) => asked > from && answered < to);
      expect(believed).toEqual([]);
    }
  },
);

/** Why a call is refused; empty when it is answered. */
async function reasonOf(api: Api): Promise<string> {
  try {
    await api.id(TAG);
    return "";
  } catch (thrown) {
    if (thrown instanceof IdmintError) return thrown.reason;
    throw thrown;
  }
}

storm(
  "servers on Redis are killed and frozen, and Redis is emptied meanwhile: no id twice, none out of order",
  { timeout: (ROUNDS * 70 + 120) * 1_000 },
  async () => {
    const { fleet, redis } = await startScene({});
    const { seed, below } = seededRandom();
    const callers = await startCallers(fleet);
    const steps = await disturbServers(fleet, {
      forMs: isLong ? 60_000 : 6_000,
      frozenMs: [300, 1_500],
      below,
      between: async () => {
        if (below(6) !== 0) return undefined;
        await redis.empty();
        return "FLUSHALL";
      },
    });
    const { history, errors } = await judge(fleet, callers);
    console.log(`seed ${seed}: ${steps.join("; ")}; ${history.length} answers`, errors);
    expect(history.length).toBeGreaterThan(100);
  },
);

storm(
  "snowflakes of Redis: no id twice, whatever happens to Redis and the servers, and ids again soon",
  { timeout: (ROUNDS * 70 + 120) * 1_000 },
  async () => {
    const scene = await startScene({});
    const { fleet } = scene;
    const { api } = fleet.first;
    const kind = { $case: "redisSnowflake", value: RedisSnowflakeKind.create() } as const;
    const tag = { ...Tag.create(), name: "events", kind };
    await api.send(api.tags.createTag.bind(api.tags), { tag, validateOnly: false });
    const callers = await fleet.startCallers("grpc", {
      tag: "events",
      activities: [
        { kind: "id", perSecond: 200, parallel: 16 },
        { kind: "segments", perSecond: 50, count: 1_500, parallel: 8 },
        { kind: "list", perSecond: 20, count: 100, parallel: 4 },
      ],
      deadlineMs: 1_000,
    });
    await callers.waitForOutput("first answer");
    const recovered: Record<string, number> = {};
    for (let round = 0; round < ROUNDS; round++) {
      for (const { name, run } of someOf(3, redisFaults)) {
        await run(scene);
        const start = performance.now();
        const isBack = (): Promise<boolean> =>
          api.id("events").then(
            () => true,
            () => false,
          );
        await until(`ids after ${name}`, isBack, { withinMs: 20_000, everyMs: 20 });
        recovered[name] = Math.round(performance.now() - start);
        expect(recovered[name], name).toBeLessThan(RECOVERY_MS);
        const last = fleet.servers.at(-1)!;
        await last.kill();
        await last.start();
      }
    }
    const { errors } = await fleet.stopCallers(callers);
    const verdict = judgeRecords(fleet.records);
    console.log(`${verdict.received} ids`, errors, recovered);
    expect(verdict.repeats).toEqual([]);
    expect(verdict.repeated).toBe(0);
    expect(verdict.distinct).toBeGreaterThan(10_000);
    const known = new Set([
      ...EXPECTED,
      "UNAVAILABLE MAX_NOT_RAISED",
      "UNAVAILABLE CLOCK_MOVED_BACKWARDS",
    ]);
    expect(Object.keys(errors).filter((name) => !known.has(name))).toEqual([]);
  },
);

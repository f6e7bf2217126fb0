import { SequenceBackend } from "@idmint/proto";
import { TestPostgres } from "../../src/postgres.ts";
import { RedisServer } from "../../src/redis/server.ts";
import { type Benchmark, type Effort, interleaved, samplesOf } from "../lib/benchmark.ts";
import type { Called, Calls } from "../lib/callers.ts";
import { cores } from "../lib/cpus.ts";
import { type Figure, ratioAtLeast, ratioAtMost } from "../lib/figure.ts";
import { Subject } from "../lib/process.ts";
import { script, startFloor, startIdmint } from "../lib/servers.ts";

const MANY = 64;
const TIMEOUT_MS = 120_000;

/** Callers in a process of their own, on the generator's core. */
function asking(effort: Effort, calls: Omit<Calls, "seconds">): () => Promise<Called> {
  const seconds = effort.quick ? 0.2 : effort.seconds;
  const command = script("lib/callers.ts", JSON.stringify({ ...calls, seconds }));
  return async () => {
    await using callers = new Subject("the callers", [...cores.generator, ...command]);
    const output = await callers.toEnd(TIMEOUT_MS);
    return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as Called;
  };
}

const perSecond = (called: Called): number => called.perSecond;
const p50 = (called: Called): number => called.p50;

/** Strictly increasing ids, each durable in PostgreSQL before it is answered. */
export const sequencePostgres: Benchmark = {
  name: "sequence-postgres",
  title: "Strictly increasing ids, in PostgreSQL",
  run: async (effort) => {
    // Commits that reach the disk, as in production.
    await using postgres = await TestPostgres.start({ durable: true });
    const storeUrl = (await postgres.createDatabase()).url;
    const peerUrl = (await postgres.createDatabase()).url;
    await postgres.query("CREATE TABLE counter (n bigint)", databaseOf(peerUrl));
    await postgres.query("INSERT INTO counter VALUES (0)", databaseOf(peerUrl));
    await using idmint = await startIdmint({ storeUrl });
    const tag = await idmint.makeSequence();
    const ours = { address: idmint.address, name: tag };
    const theirs = { way: "update", address: peerUrl, name: "counter" } as const;
    const results = await interleaved(effort, {
      sdk: asking(effort, { way: "sdk", ...ours, callers: MANY }),
      grpc: asking(effort, { way: "grpc", ...ours, callers: MANY }),
      update: asking(effort, { ...theirs, callers: MANY }),
      sdkAlone: asking(effort, { way: "sdk", ...ours, callers: 1 }),
      updateAlone: asking(effort, { ...theirs, callers: 1 }),
    });
    const peer = "one UPDATE an id, 16 connections";
    return [
      {
        id: "sequence-postgres.64.ids",
        text: `next() of the SDK, ${MANY} callers`,
        unit: "ids/s",
        peer,
        samples: samplesOf(results.sdk, results.update, perSecond),
        bar: ratioAtLeast(8),
      },
      {
        id: "sequence-postgres.64.generate-id",
        text: `GenerateId without the SDK, ${MANY} callers`,
        unit: "ids/s",
        peer,
        samples: samplesOf(results.grpc, results.update, perSecond),
      },
      {
        id: "sequence-postgres.1.p50",
        text: "next() of the SDK, 1 caller: median",
        unit: "µs",
        peer: "one UPDATE",
        samples: samplesOf(results.sdkAlone, results.updateAlone, p50),
      },
    ];
  },
};

/** Strictly increasing ids that Redis counts below a maximum of the store. */
export const sequenceRedis: Benchmark = {
  name: "sequence-redis",
  title: "Strictly increasing ids, in Redis",
  run: async (effort) => {
    await using redis = await RedisServer.start();
    await using floor = await startFloor();
    await using idmint = await startIdmint({ env: { IDMINT_REDIS_URLS: redis.url } });
    // A step that is not used up within a second: what is measured is counting, not raising.
    const tag = await idmint.makeSequence({ backend: SequenceBackend.REDIS, step: 100_000_000 });
    const ours = { address: idmint.address, name: tag };
    const bare = { address: redis.url, name: "bare" };
    const results = await interleaved(effort, {
      sdk: asking(effort, { way: "sdk", ...ours, callers: MANY }),
      grpc: asking(effort, { way: "grpc", ...ours, callers: MANY }),
      hincrby: asking(effort, { way: "hincrby", ...bare, callers: MANY }),
      sdkAlone: asking(effort, { way: "sdk", ...ours, callers: 1 }),
      grpcAlone: asking(effort, { way: "grpc", ...ours, callers: 1 }),
      script: asking(effort, { way: "script", ...bare, callers: 1 }),
      call: asking(effort, { way: "grpc", address: floor.address, name: tag, callers: 1 }),
    });
    const parts = results.script.map((called, round) => {
      const call = results.call[round];
      if (call === undefined) throw new RangeError("a round without its call");
      return { ...called, p50: called.p50 + call.p50 };
    });
    const peer = "HINCRBY, pipelined by ioredis";
    const latency = { unit: "µs", peer: "a bare script, and one call of bare grpc-js" };
    return [
      {
        id: "sequence-redis.64.ids",
        text: `next() of the SDK, ${MANY} callers`,
        unit: "ids/s",
        peer,
        samples: samplesOf(results.sdk, results.hincrby, perSecond),
        bar: ratioAtLeast(0.6),
      },
      {
        id: "sequence-redis.64.generate-id",
        text: `GenerateId without the SDK, ${MANY} callers`,
        unit: "ids/s",
        peer,
        samples: samplesOf(results.grpc, results.hincrby, perSecond),
      },
      {
        id: "sequence-redis.1.p50",
        text: "GenerateId, 1 caller: median",
        ...latency,
        samples: samplesOf(results.grpcAlone, parts, p50),
        bar: ratioAtMost(1.3),
      },
      {
        id: "sequence-redis.1.sdk-p50",
        text: "next() of the SDK, 1 caller: median",
        ...latency,
        samples: samplesOf(results.sdkAlone, parts, p50),
        bar: ratioAtMost(1.3),
      },
    ] satisfies readonly Figure[];
  },
};

function databaseOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

import { TestPostgres } from "../../src/postgres.ts";
import { amountOf, type Benchmark, type Effort, interleaved, samplesOf } from "../lib/benchmark.ts";
import { DelayProxy } from "../lib/delay-proxy.ts";
import { atLeast, atMost, ratioAtMost } from "../lib/figure.ts";
import { GENERATE_ID, generateIdMessage, type Idmint, startIdmint } from "../lib/servers.ts";

const DELAY_MS = 500;
const CALLS_PER_SECOND = 5_000;
/** Two seconds' worth at that rate, so that each end of a segment is a load of its own. */
const SEGMENT = 10_000;
const SEGMENT_SECONDS = SEGMENT / CALLS_PER_SECOND;
const SHAPE = { connections: 10, streams: 32 };

/** A store that answers half a second late is not noticed while segments are loaded ahead of use. */
export const storeLatency: Benchmark = {
  name: "store-latency",
  title: "A slow store",
  run: async (effort) => {
    const { quick } = effort;
    const ends = quick ? 1 : 10;
    // Commits that reach the disk, as in production.
    await using postgres = await TestPostgres.start({ durable: true });
    await using proxy = await DelayProxy.start({ host: "127.0.0.1", port: postgres.port });
    const { name } = await postgres.createDatabase();
    const storeUrl = `postgres://postgres@127.0.0.1:${proxy.port}/${name}`;
    await using idmint = await startIdmint({ storeUrl });
    const tag = await idmint.makeTag({ min: SEGMENT, max: SEGMENT });
    await idmint.load({
      path: GENERATE_ID,
      message: generateIdMessage(tag),
      ...SHAPE,
      ...amountOf({ seconds: 2, quick }),
    });
    const results = await interleaved(
      // Each round takes twenty seconds, and has 100,000 calls to take a percentile of.
      { rounds: Math.min(3, effort.rounds) },
      {
        slow: () => measure(effort, idmint, tag, ends, proxy, DELAY_MS),
        fast: () => measure(effort, idmint, tag, ends, proxy, 0),
      },
    );
    const text = `GenerateId at ${CALLS_PER_SECOND.toLocaleString("en-US")} calls/s, ${ends} segment ends, store ${DELAY_MS} ms away`;
    const failures = results.slow.map((slow) => ({ ours: slow.failures }));
    return [
      {
        id: "store-latency.p999",
        text: `${text}: 99.9th percentile`,
        unit: "ms",
        peer: "store near",
        samples: samplesOf(results.slow, results.fast, (result) => result.p999),
        bar: ratioAtMost(1.2),
      },
      {
        id: "store-latency.p99",
        text: `${text}: 99th percentile`,
        unit: "ms",
        peer: "store near",
        samples: samplesOf(results.slow, results.fast, (result) => result.p99),
      },
      {
        id: "store-latency.errors",
        text: `${text}: errors`,
        unit: "calls",
        samples: failures,
        bar: atMost(0),
      },
      {
        id: "store-latency.loads",
        text: `${text}: segments loaded meanwhile`,
        unit: "loads",
        samples: results.slow.map(({ loads }) => ({ ours: loads })),
        ...(quick ? {} : { bar: atLeast(10) }),
      },
    ];
  },
};

async function measure(
  { quick }: Effort,
  idmint: Idmint,
  tag: string,
  ends: number,
  proxy: DelayProxy,
  delayMs: number,
): Promise<{ p99: number; p999: number; failures: number; loads: number }> {
  proxy.delayMs = delayMs;
  try {
    const before = { issued: await idmint.issuedIds(), loads: await idmint.loadsOf(tag) };
    const result = await idmint.load({
      path: GENERATE_ID,
      message: generateIdMessage(tag),
      ...SHAPE,
      seconds: quick ? 1 : SEGMENT_SECONDS * (ends + 1),
      callsPerSecond: CALLS_PER_SECOND,
    });
    const issued = (await idmint.issuedIds()) - before.issued;
    const loads = (await idmint.loadsOf(tag)) - before.loads;
    return { ...result, loads, failures: Math.max(0, result.answered - issued) };
  } finally {
    proxy.delayMs = 0;
  }
}

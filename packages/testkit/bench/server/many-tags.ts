import { type Benchmark, interleaved, samplesOf } from "../lib/benchmark.ts";
import { cores } from "../lib/cpus.ts";
import { atLeast, atMost, type Figure, ratioAtLeast } from "../lib/figure.ts";
import type { ManyTagsLoad, ManyTagsResult } from "../lib/many-tags-load.ts";
import { Subject } from "../lib/process.ts";
import { type Idmint, script, startIdmint } from "../lib/servers.ts";
import type { StoreCounts } from "./counting-server.ts";

const SHAPE = { connections: 8, streams: 32 };
/** A store that is slow for a while refuses none of so few. */
const QUICK = { connections: 2, streams: 8 };
const MEGABYTE = 1_000_000;
const GENERATOR_TIMEOUT_MS = 600_000;

/** Very many tags, each asked now and then. */
export const manyTags: Benchmark = {
  name: "many-tags",
  title: "100,000 tags",
  run: async (effort) => {
    const tags = effort.quick ? 200 : 100_000;
    const command = script("server/counting-server.ts");
    await using idmint = await startIdmint({ command });
    effort.say(`  makes ${tags.toLocaleString("en-US")} tags`);
    const shape = effort.quick ? QUICK : SHAPE;
    const base = { address: idmint.address, seconds: effort.seconds, once: false, ...shape };
    const many = { ...base, call: "generate", prefix: "many-", tags } as const;
    const one = { ...base, call: "generate", prefix: "one-", tags: 1 } as const;
    await drive({ ...many, call: "create" });
    await drive({ ...one, call: "create" });
    const idle = idmint.subject.rssBytes;
    const before = await idmint.subject.ask<StoreCounts>({});
    const first = await drive({ ...many, once: true });
    const loaded = await idmint.subject.ask<StoreCounts>({});
    await drive(one);
    await drive(many);
    const results = await interleaved(effort, { many: () => drive(many), one: () => drive(one) });
    const after = await idmint.subject.ask<StoreCounts>({});
    return [
      ...figuresOf(tags, idle, idmint, results),
      {
        id: "many-tags.loads-per-round-trip",
        text: `loads a round trip to the store, each of ${tags.toLocaleString("en-US")} tags asked once`,
        unit: "loads",
        samples: [loadsPerRoundTrip(before, loaded)],
        bar: atLeast(50),
      },
      {
        id: "many-tags.first",
        text: `each of ${tags.toLocaleString("en-US")} tags asked for the first time`,
        unit: "calls/s",
        samples: [{ ours: first.callsPerSecond }],
      },
      {
        id: "many-tags.later-round-trips",
        text: "round trips to the store while tags are asked at random",
        unit: "round trips",
        samples: [{ ours: after.roundTrips - loaded.roundTrips }],
      },
    ];
  },
};

function figuresOf(
  tags: number,
  idle: number,
  idmint: Idmint,
  results: Readonly<Record<"many" | "one", readonly ManyTagsResult[]>>,
): readonly Figure[] {
  const text = `${tags.toLocaleString("en-US")} tags asked at random`;
  return [
    {
      id: "many-tags.calls",
      text,
      unit: "calls/s",
      peer: "one tag",
      samples: samplesOf(results.many, results.one, (result) => result.callsPerSecond),
      bar: ratioAtLeast(0.7),
    },
    {
      id: "many-tags.p99",
      text: `${text}: 99th percentile`,
      unit: "ms",
      peer: "one tag",
      samples: samplesOf(results.many, results.one, (result) => result.p99),
    },
    {
      id: "many-tags.rss",
      text: `${text}: memory (RSS) afterwards`,
      unit: "MB",
      samples: [{ ours: idmint.subject.rssBytes / MEGABYTE }],
      bar: atMost(350),
    },
    {
      id: "many-tags.rss-before",
      text: "the same server before it was asked for ids",
      unit: "MB",
      samples: [{ ours: idle / MEGABYTE }],
    },
  ];
}

function loadsPerRoundTrip(before: StoreCounts, after: StoreCounts): { ours: number } {
  return { ours: (after.loads - before.loads) / (after.roundTrips - before.roundTrips) };
}

async function drive(load: ManyTagsLoad): Promise<ManyTagsResult> {
  const command = script("lib/many-tags-load.ts", JSON.stringify(load));
  await using generator = new Subject("the generator", [...cores.generator, ...command]);
  const output = await generator.toEnd(GENERATOR_TIMEOUT_MS);
  const result = JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as ManyTagsResult;
  if (result.refused > 0) throw new Error(`${result.refused} calls were refused`);
  return result;
}

import type { SnowflakeLayout } from "@idmint/proto";
import {
  type Benchmark,
  type Effort,
  interleaved,
  ownSamples,
  samplesOf,
} from "../lib/benchmark.ts";
import { cores } from "../lib/cpus.ts";
import { atLeast, atMost, type Figure, ratioAtLeast } from "../lib/figure.ts";
import { Subject } from "../lib/process.ts";
import { type Idmint, script, startIdmint } from "../lib/servers.ts";
import type { MadeHere } from "./snowflake-child.ts";
import { costOf, secondsOf } from "./warm-path.ts";

const TIMEOUT_MS = 60_000;
const DAY_MS = 86_400_000;

/** 4,096 ids a millisecond: what most people mean by a snowflake. */
const CLASSIC = { timeBits: 41, workerBits: 10, sequenceBits: 12 };
/** Numbers below 2^53 with 2^20 ids in 10 milliseconds, for 16 months from yesterday on. */
const numberLayout = (): Partial<SnowflakeLayout> => ({
  timeUnit: { seconds: 0n, nanos: 10_000_000 },
  timeOrigin: new Date(Date.now() - DAY_MS),
  timeBits: 32,
  workerBits: 1,
  sequenceBits: 20,
});
/** As long as CLASSIC, and so many ids a millisecond that what they cost is measured and not how many there may be. */
const WIDE = { timeBits: 41, workerBits: 2, sequenceBits: 20 };

const LIBRARIES = ["@sapphire/snowflake", "nodejs-snowflake", "flake-idgen"] as const;

/**
 * Ids of kind snowflake, made in the SDK's process under a worker id that a server leases and keeps renewing. Each is
 * measured on a tag of its own, where the worker ids of those before are in nobody's way.
 */
export const snowflake: Benchmark = {
  name: "snowflake",
  title: "Snowflakes made in process",
  run: async (effort) => {
    await using idmint = await startIdmint();
    const tagOf = tagsOf(idmint);
    const { classic, numbers } = await interleaved(effort, {
      classic: async () => makeIds(idmint, "bigint", await tagOf(CLASSIC), effort),
      numbers: async () => makeIds(idmint, "number", await tagOf(numberLayout()), effort),
    });
    const seconds = secondsOf(effort);
    const costs = await interleaved(effort, {
      ours: async () => costOf(idmint, await tagOf(WIDE), "ours:nextStringSync", seconds),
      "@sapphire/snowflake": () => costOf(idmint, "", "text:@sapphire/snowflake", seconds),
      "nodejs-snowflake": () => costOf(idmint, "", "text:nodejs-snowflake", seconds),
      "flake-idgen": () => costOf(idmint, "", "text:flake-idgen", seconds),
    });
    return [
      {
        id: "snowflake.limit",
        text: "nextSync, 41-10-12, at its limit of 4,096 a millisecond",
        unit: "ids/s",
        samples: ownSamples(classic, ids),
        bar: atLeast(4_090_000),
      },
      {
        id: "snowflake.number",
        text: "nextNumberSync, 32-1-20 of 10 ms",
        unit: "ids/s",
        samples: ownSamples(numbers, ids),
        bar: atLeast(25_000_000),
      },
      {
        id: "snowflake.not-above",
        text: "ids that were not above the one before, in all of these runs",
        unit: "ids",
        samples: [{ ours: [...classic, ...numbers].reduce((sum, run) => sum + run.notAbove, 0) }],
        bar: atMost(0),
      },
      ...LIBRARIES.map((library): Figure => ({
        id: `snowflake.${library}`,
        text: `${library}, as a flat string`,
        unit: "ns an id",
        peer: "idmint nextStringSync, 41-2-20",
        samples: samplesOf(costs[library], costs.ours, (ns) => ns),
        bar: ratioAtLeast(1),
      })),
    ];
  },
};

const ids = ({ idsPerSecond }: MadeHere): number => idsPerSecond;

/** Makes a tag of a layout, each time another one. */
function tagsOf(idmint: Idmint): (layout: Partial<SnowflakeLayout>) => Promise<string> {
  let made = 0;
  return async (layout) => {
    const name = `snowflake-${++made}`;
    await idmint.api.createSnowflake(name, layout);
    return name;
  };
}

async function makeIds(
  idmint: Idmint,
  way: "bigint" | "number",
  tag: string,
  { seconds }: Effort,
): Promise<MadeHere> {
  const args = [way, idmint.address, tag, String(seconds)];
  const command = [...cores.generator, ...script("sdk/snowflake-child.ts", ...args)];
  await using child = new Subject(`snowflakes as ${way}`, command);
  const output = await child.toEnd(TIMEOUT_MS);
  return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as MadeHere;
}

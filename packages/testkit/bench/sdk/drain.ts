import { type Benchmark, interleaved, ownSamples, samplesOf } from "../lib/benchmark.ts";
import { cores } from "../lib/cpus.ts";
import { atLeast, atMost, type Figure } from "../lib/figure.ts";
import { Subject } from "../lib/process.ts";
import { script, startIdmint } from "../lib/servers.ts";
import type { Drained } from "./drain-child.ts";

/** What an SDK loads at once by default, when it is asked for as much as this. */
const LARGEST_SEGMENT = 1_000_000;
const TIMEOUT_MS = 60_000;
/** A client that starts cold, with default options, is watched for longer than it takes to reach its rate. */
const LEAST_SECONDS = 4;

/**
 * A client that takes ids without a pause, from a server that runs. Beside it the least that the same can cost on this
 * machine, which tells a slow SDK from a slow machine: a bar that is missed at a ratio near 1 is missed by the machine.
 */
export const drain: Benchmark = {
  name: "sdk-drain",
  title: "The SDK drained against a live server",
  run: async (effort) => {
    await using idmint = await startIdmint();
    const seconds = effort.quick ? effort.seconds : Math.max(LEAST_SECONDS, effort.seconds);
    // A tag that nobody asked for before, and a client that knows nothing of the rate to come.
    const measure = (kind: string) => async () =>
      drainOnce("drain-child", [kind, idmint.address, await idmint.makeTag(), String(seconds)]);
    const least = (kind: string) => async () => {
      const [tag, segment] = [await idmint.makeTag(), String(LARGEST_SEGMENT)];
      return drainOnce("drain-floor", [kind, idmint.address, tag, String(seconds), segment]);
    };
    const results = await interleaved(effort, {
      number: measure("number"),
      leastNumber: least("number"),
      bigint: measure("bigint"),
      leastBigint: least("bigint"),
      awaited: measure("awaited"),
      leastAwaited: least("awaited"),
    });
    const figure = (
      kind: "number" | "bigint" | "awaited",
      least: readonly Drained[],
      text: string,
      bar: number,
    ): Figure => ({
      id: `sdk-drain.${kind}`,
      text: `${text}, default options`,
      unit: "ids/s",
      peer: "values of a counter, and calls of bare grpc-js",
      samples: samplesOf(results[kind], least, ({ idsPerSecond }) => idsPerSecond),
      bar: atLeast(bar),
    });
    const all = [...results.number, ...results.bigint, ...results.awaited];
    return [
      figure("number", results.leastNumber, "nextNumberSync drained", 150_000_000),
      figure("bigint", results.leastBigint, "nextSync drained", 120_000_000),
      figure("awaited", results.leastAwaited, "next awaited one by one", 20_000_000),
      {
        id: "sdk-drain.cold",
        text: "nextNumberSync, default options: from cold to 100 M ids/s (or the whole run)",
        unit: "s",
        samples: ownSamples(results.number, ({ seconds, secondsToRate }) =>
          secondsToRate < 0 ? seconds : secondsToRate,
        ),
        bar: atMost(2),
      },
      {
        id: "sdk-drain.repeats",
        text: "ids that came twice, in all of these runs",
        unit: "stretches",
        samples: [{ ours: all.reduce((sum, { repeats }) => sum + repeats, 0) }],
        bar: atMost(0),
      },
    ];
  },
};

async function drainOnce(
  file: "drain-child" | "drain-floor",
  args: readonly string[],
): Promise<Drained> {
  const command = [...cores.generator, ...script(`sdk/${file}.ts`, ...args)];
  await using child = new Subject(`${file} of ${args[0]}`, command);
  const output = await child.toEnd(TIMEOUT_MS);
  return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as Drained;
}

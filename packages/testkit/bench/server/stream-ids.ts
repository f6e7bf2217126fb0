import { amountOf, type Benchmark, interleaved, ownSamples, samplesOf } from "../lib/benchmark.ts";
import { cores } from "../lib/cpus.ts";
import { type Figure, ratioAtLeast } from "../lib/figure.ts";
import { Subject } from "../lib/process.ts";
import {
  GENERATE_ID,
  generateIdMessage,
  type Idmint,
  script,
  startIdmint,
} from "../lib/servers.ts";
import type { StreamLoad, StreamResult } from "../lib/stream-load.ts";
import { type Shape, type Unary, textOf, warmUp } from "./unary.ts";

const IN_FLIGHT = 256;
/** As bunches of calls make them in a program that has one stream for all of them. */
const BATCH = 32;
const GENERATOR_TIMEOUT_MS = 120_000;
const SHAPES = {
  wide: { connections: 8, streams: 16 },
  narrow: { connections: 1, streams: 32 },
} as const satisfies Record<string, Shape>;

/** What is known of requests on a stream and of calls alike. */
type Measured = Pick<Unary, "answered" | "callsPerSecond" | "p99" | "cpuUs" | "generatorCpuUs">;

/** Many small requests on one stream, against a call for each. */
export const streamIds: Benchmark = {
  name: "stream-ids",
  title: "Many requests on one stream",
  run: async (effort) => {
    await using idmint = await startIdmint();
    const tag = await idmint.makeTag();
    const message = generateIdMessage(tag);
    const streamed = () => measuredStream(idmint, tag, effort.seconds);
    const unary = (shape: Shape) => ({ path: GENERATE_ID, message, ...shape });
    const call = (shape: Shape) => () => idmint.load({ ...unary(shape), ...amountOf(effort) });
    await warmUp(effort, unary(SHAPES.wide), [idmint]);
    if (!effort.quick) await streamed();
    const issuedBefore = await idmint.issuedIds();
    const results = await interleaved<"streamed" | "wide" | "narrow", Measured>(effort, {
      streamed,
      wide: call(SHAPES.wide),
      narrow: call(SHAPES.narrow),
    });
    const issued = (await idmint.issuedIds()) - issuedBefore;
    const answered = Object.values(results)
      .flat()
      .reduce((sum, result) => sum + result.answered, 0);
    if (issued < answered) throw new Error(`${answered - issued} of ${answered} ids are missing`);
    return [
      ...figuresOf(results.streamed, results.wide, SHAPES.wide),
      ...figuresOf(results.streamed, results.narrow, SHAPES.narrow),
      {
        id: "stream-ids.generator",
        text: `${TEXT}: generator's processor time`,
        unit: "µs an id",
        samples: ownSamples(results.streamed, (result) => result.generatorCpuUs),
      },
      {
        id: "stream-ids.generate-id-generator",
        text: `GenerateId, ${textOf(SHAPES.wide)}: generator's processor time`,
        unit: "µs an id",
        samples: ownSamples(results.wide, (result) => result.generatorCpuUs),
      },
    ];
  },
};

const TEXT = `StreamIds, one stream, ${IN_FLIGHT} requests of one id in flight, ${BATCH} or more a write`;

function figuresOf(
  streamed: readonly Measured[],
  unary: readonly Measured[],
  shape: Shape,
): readonly Figure[] {
  const id = `stream-ids.${shape.connections}x${shape.streams}`;
  const peer = `GenerateId, ${textOf(shape)}`;
  return [
    {
      id: `${id}.ids`,
      text: TEXT,
      unit: "ids/s",
      peer,
      samples: samplesOf(streamed, unary, ({ callsPerSecond }) => callsPerSecond),
      bar: ratioAtLeast(2.5),
    },
    {
      id: `${id}.cpu`,
      text: `${TEXT}: server's processor time`,
      unit: "µs an id",
      peer,
      samples: samplesOf(streamed, unary, ({ cpuUs }) => cpuUs),
    },
    {
      id: `${id}.p99`,
      text: `${TEXT}: 99th percentile`,
      unit: "ms",
      peer,
      samples: samplesOf(streamed, unary, ({ p99 }) => p99),
    },
  ];
}

/** One stream with many requests in flight, each of one id. */
export function measuredStream(idmint: Idmint, tag: string, seconds: number): Promise<Measured> {
  const { address } = idmint;
  const load: StreamLoad = { address, tag, inFlight: IN_FLIGHT, batch: BATCH, seconds };
  return idmint.whileItRuns(async () => {
    const command = script("lib/stream-load.ts", JSON.stringify(load));
    await using generator = new Subject("the generator", [...cores.generator, ...command]);
    const output = await generator.toEnd(GENERATOR_TIMEOUT_MS);
    return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as StreamResult;
  });
}

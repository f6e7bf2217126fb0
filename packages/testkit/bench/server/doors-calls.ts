import { AllocateSegmentRequest } from "@idmint/proto";
import { amountOf, type Benchmark, interleaved, samplesOf } from "../lib/benchmark.ts";
import { type Figure, ratioAtLeast, ratioAtMost } from "../lib/figure.ts";
import type { Load } from "../lib/h2load.ts";
import {
  ALLOCATE_SEGMENT,
  GENERATE_ID,
  generateIdMessage,
  type Idmint,
  startIdmint,
} from "../lib/servers.ts";
import { measuredStream } from "./stream-ids.ts";
import { type Shape, type Unary, warmUp } from "./unary.ts";

type Door = "fast" | "grpc-js";

const SHAPE: Shape = { connections: 8, streams: 16 };
const BLOCK = 1_000;
const LIBRARY = "the grpc-js door";
/** A name that no tag may have: it is refused for what it asks. */
const NO_NAME = "no name of a tag";

/** Starts a server for each door, at once. */
export async function startDoors(
  options: Parameters<typeof startIdmint>[0] = {},
): Promise<Readonly<Record<Door, Idmint>> & AsyncDisposable> {
  const start = (door: Door): Promise<Idmint> =>
    startIdmint({ ...options, env: { ...options.env, IDMINT_GRPC_DOOR: door } });
  const [fast, library] = await Promise.all([start("fast"), start("grpc-js")]);
  return {
    fast,
    "grpc-js": library,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([fast[Symbol.asyncDispose](), library[Symbol.asyncDispose]()]);
    },
  };
}

/** Segments, streams and refusals by the fast door. */
export const doorsCalls: Benchmark = {
  name: "doors-calls",
  title: "Other calls, by the fast door",
  run: async (effort) => {
    await using servers = await startDoors();
    const { fast, "grpc-js": library } = servers;
    const tag = await fast.makeTag();
    await library.makeTag();
    const request = { tag, count: BLOCK, after: 0n, instance: "" };
    const loads = {
      one: { path: GENERATE_ID, message: generateIdMessage(tag) },
      segment: {
        path: ALLOCATE_SEGMENT,
        message: AllocateSegmentRequest.encode(request).finish(),
      },
      refused: { path: GENERATE_ID, message: generateIdMessage(NO_NAME) },
    };
    const all = (load: Pick<Load, "path" | "message">) => ({
      ...load,
      ...SHAPE,
      ...amountOf(effort),
    });
    const streamed = (idmint: Idmint) => measuredStream(idmint, tag, effort.seconds);
    for (const load of [loads.one, loads.segment]) {
      await warmUp(effort, { ...load, ...SHAPE }, [fast, library]);
    }
    if (!effort.quick) await Promise.all([streamed(fast), streamed(library)]);
    const calls = await interleaved<string, Unary>(effort, {
      segment: () => fast.load(all(loads.segment)),
      one: () => fast.load(all(loads.one)),
      librarySegment: () => library.load(all(loads.segment)),
      refused: () => fast.loadAnyway(all(loads.refused)),
      libraryOne: () => library.load(all(loads.one)),
    });
    const streams = await interleaved(effort, {
      ours: () => streamed(fast),
      library: () => streamed(library),
    });
    return [...unaryFigures(calls), ...streamFigures(streams)];
  },
};

const rate = ({ callsPerSecond }: { readonly callsPerSecond: number }): number => callsPerSecond;

function unaryFigures({
  segment = [],
  one = [],
  librarySegment = [],
  refused = [],
  libraryOne = [],
}: Readonly<Record<string, readonly Unary[]>>): readonly Figure[] {
  const text = `AllocateSegment of ${BLOCK.toLocaleString("en-US")} ids by the fast door, 8 × 16`;
  return [
    {
      id: "doors-calls.segment",
      text,
      unit: "calls/s",
      peer: "GenerateId by the fast door",
      samples: samplesOf(segment, one, rate),
      bar: ratioAtLeast(0.9),
    },
    {
      id: "doors-calls.segment-grpc-js",
      text: `${text}: against grpc-js`,
      unit: "calls/s",
      peer: LIBRARY,
      samples: samplesOf(segment, librarySegment, rate),
    },
    {
      id: "doors-calls.refused",
      text: "processor time of a refused GenerateId by the fast door, 8 × 16",
      unit: "µs a call",
      peer: `a served one, ${LIBRARY}`,
      samples: samplesOf(refused, libraryOne, ({ cpuUs }) => cpuUs),
      bar: ratioAtMost(1 / 3),
    },
  ];
}

function streamFigures({
  ours,
  library,
}: Readonly<
  Record<"ours" | "library", readonly Awaited<ReturnType<typeof measuredStream>>[]>
>): readonly Figure[] {
  const text = "StreamIds by the fast door, one stream, 256 requests of one id in flight";
  return [
    {
      id: "doors-calls.stream",
      text,
      unit: "ids/s",
      peer: LIBRARY,
      samples: samplesOf(ours, library, rate),
      bar: ratioAtLeast(3),
    },
    {
      id: "doors-calls.stream-cpu",
      text: `${text}: server's processor time`,
      unit: "µs an id",
      peer: LIBRARY,
      samples: samplesOf(ours, library, ({ cpuUs }) => cpuUs),
    },
  ];
}

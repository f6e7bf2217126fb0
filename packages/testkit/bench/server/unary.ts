import { AllocateSegmentRequest, GenerateIdsRequest } from "@idmint/proto";
import {
  amountOf,
  type Benchmark,
  type Effort,
  interleaved,
  ownSamples,
  samplesOf,
} from "../lib/benchmark.ts";
import { atMost, type Figure, ratioAtLeast, ratioAtMost } from "../lib/figure.ts";
import type { Load, LoadResult } from "../lib/h2load.ts";
import {
  ALLOCATE_SEGMENT,
  GENERATE_ID,
  GENERATE_IDS,
  generateIdMessage,
  type Idmint,
  type Server,
  startFloor,
  startGoFloor,
  startIdmint,
} from "../lib/servers.ts";

/** What came of calls of one kind. */
export type Unary = LoadResult & { readonly cpuUs: number };

/** How callers come. */
export interface Shape {
  readonly connections: number;
  readonly streams: number;
}

const SHAPES: readonly Shape[] = [
  { connections: 1, streams: 32 },
  { connections: 8, streams: 16 },
  { connections: 128, streams: 1 },
];
/** The shape of the figures that have only one. */
const SHAPE: Shape = { connections: 8, streams: 16 };
const BLOCK = 1_000;
const BARE = "bare grpc-js";
const GO = "bare grpc-go";

const nameOf = ({ connections, streams }: Shape): string => `${connections}x${streams}`;
/** `8 × 16` */
export const textOf = ({ connections, streams }: Shape): string => `${connections} × ${streams}`;
const callsPerSecond = (result: Unary): number => result.callsPerSecond;
const p99 = (result: Unary): number => result.p99;
const cpuUs = (result: Unary): number => result.cpuUs;

/** One call, one id, against servers that do nothing else. */
export const generateId: Benchmark = {
  name: "generate-id",
  title: "One id a call",
  run: async (effort) => {
    await using bare = await startFloor();
    await using go = await startGoFloor();
    if (go === undefined) effort.say("  bare grpc-go is left out: there is no Go on this machine");
    await using idmint = await startIdmint();
    const message = generateIdMessage(await idmint.makeTag());
    const figures: Figure[] = [];
    for (const shape of SHAPES) {
      const load = { path: GENERATE_ID, message, ...shape };
      const floors = { bare, ...(go === undefined ? {} : { go }) };
      await warmUp(effort, load, [idmint, ...Object.values(floors)]);
      const issuedBefore = await idmint.issuedIds();
      const measures = Object.entries<Server>({ ours: idmint, ...floors }).map(
        ([name, server]) => [name, () => server.load({ ...load, ...amountOf(effort) })] as const,
      );
      const { ours = [], ...peers } = await interleaved<string, Unary>(
        effort,
        Object.fromEntries(measures),
      );
      // h2load does not see gRPC's status, but an id that was not issued was not answered.
      const issued = (await idmint.issuedIds()) - issuedBefore;
      const answered = ours.reduce((sum, result) => sum + result.answered, 0);
      if (issued < answered) throw new Error(`${answered - issued} of ${answered} calls failed`);
      figures.push(...generateIdFigures(shape, ours, peers));
    }
    return figures;
  },
};

function generateIdFigures(
  shape: Shape,
  ours: readonly Unary[],
  { bare = [], go }: Readonly<Record<string, readonly Unary[]>>,
): readonly Figure[] {
  const id = `generate-id.${nameOf(shape)}`;
  const text = `GenerateId, ${textOf(shape)}`;
  return [
    {
      id: `${id}.calls`,
      text,
      unit: "calls/s",
      peer: BARE,
      samples: samplesOf(ours, bare, callsPerSecond),
      bar: ratioAtLeast(3),
    },
    {
      id: `${id}.p99`,
      text: `${text}: 99th percentile`,
      unit: "ms",
      peer: BARE,
      samples: samplesOf(ours, bare, p99),
      bar: ratioAtMost(1.5),
    },
    {
      id: `${id}.cpu`,
      text: `${text}: server's processor time`,
      unit: "µs a call",
      peer: BARE,
      samples: samplesOf(ours, bare, cpuUs),
      bar: atMost(27),
    },
    ...(go === undefined ? [] : goFigures(id, text, ours, go)),
    {
      id: `${id}.generator`,
      text: `${text}: generator's processor time`,
      unit: "µs a call",
      samples: ownSamples(ours, (result) => result.generatorCpuUs),
    },
  ];
}

/** What the same call costs on another platform: shown, since no server on Node.js reaches it. */
function goFigures(
  id: string,
  text: string,
  ours: readonly Unary[],
  go: readonly Unary[],
): readonly Figure[] {
  return [
    {
      id: `${id}.go`,
      text: `${text}: against grpc-go`,
      unit: "calls/s",
      peer: GO,
      samples: samplesOf(ours, go, callsPerSecond),
    },
    {
      id: `${id}.go-p99`,
      text: `${text}: 99th percentile, against grpc-go`,
      unit: "ms",
      peer: GO,
      samples: samplesOf(ours, go, p99),
    },
    {
      id: `${id}.go-cpu`,
      text: `${text}: server's processor time, against grpc-go`,
      unit: "µs a call",
      peer: GO,
      samples: samplesOf(ours, go, cpuUs),
    },
  ];
}

/** A block of ids for a caller that issues them itself. */
export const allocateSegment: Benchmark = {
  name: "allocate-segment",
  title: "A segment a call",
  run: async (effort) => {
    await using floor = await startFloor();
    await using idmint = await startIdmint();
    const tag = await idmint.makeTag();
    const one = { path: GENERATE_ID, message: generateIdMessage(tag), ...SHAPE };
    const request = { tag, count: BLOCK, after: 0n, instance: "" };
    const message = AllocateSegmentRequest.encode(request).finish();
    const block = { path: ALLOCATE_SEGMENT, message, ...SHAPE };
    await warmUp(effort, block, [idmint, floor]);
    await warmUp(effort, one, [floor]);
    const before = { loads: await idmint.loadsOf(tag), issued: await idmint.issuedIds() };
    const results = await interleaved(effort, {
      ours: () => idmint.load({ ...block, ...amountOf(effort) }),
      same: () => floor.load({ ...block, ...amountOf(effort) }),
      one: () => floor.load({ ...one, ...amountOf(effort) }),
    });
    const answered = results.ours.reduce((sum, result) => sum + result.answered, 0);
    const blocks = ((await idmint.issuedIds()) - before.issued) / BLOCK;
    if (blocks < answered) throw new Error(`${answered - blocks} of ${answered} calls failed`);
    const loads = (await idmint.loadsOf(tag)) - before.loads;
    const text = `AllocateSegment of ${BLOCK.toLocaleString("en-US")} ids, 8 × 16`;
    return [
      {
        id: "allocate-segment.calls",
        text,
        unit: "calls/s",
        peer: `${BARE}, GenerateId`,
        samples: samplesOf(results.ours, results.one, callsPerSecond),
        bar: ratioAtLeast(0.85),
      },
      {
        id: "allocate-segment.same-messages",
        text: `${text}: the same messages from the floor`,
        unit: "calls/s",
        peer: `${BARE}, AllocateSegment`,
        samples: samplesOf(results.ours, results.same, callsPerSecond),
      },
      {
        id: "allocate-segment.cpu",
        text: `${text}: server's processor time`,
        unit: "µs a call",
        peer: BARE,
        samples: samplesOf(results.ours, results.same, cpuUs),
      },
      {
        id: "allocate-segment.statements",
        text: `${text}: store statements`,
        unit: "a call",
        samples: [{ ours: loads / answered }],
        // One statement brings what thousands of calls use up; one a call would be 1.
        bar: atMost(0.001),
      },
    ];
  },
};

/** A thousand ids a call as ranges, against one id a call of the same method. */
export const generateIds: Benchmark = {
  name: "generate-ids",
  title: "Many ids a call",
  run: async (effort) => {
    await using idmint = await startIdmint();
    const tag = await idmint.makeTag();
    const loadOf = (count: number) => ({
      path: GENERATE_IDS,
      message: GenerateIdsRequest.encode({ tag, count, asList: false }).finish(),
      ...SHAPE,
    });
    await warmUp(effort, loadOf(BLOCK), [idmint]);
    const results = await interleaved(effort, {
      many: () => measureIds(idmint, loadOf(BLOCK), BLOCK, effort),
      one: () => measureIds(idmint, loadOf(1), 1, effort),
    });
    const text = "GenerateIds of 1,000 ids as ranges, 8 × 16";
    return [
      {
        id: "generate-ids.calls",
        text,
        unit: "calls/s",
        peer: "GenerateIds of one",
        samples: samplesOf(results.many, results.one, callsPerSecond),
        bar: ratioAtLeast(0.8),
      },
      {
        id: "generate-ids.ids",
        text: `${text}: ids`,
        unit: "ids/s",
        samples: ownSamples(results.many, (result) => result.callsPerSecond * BLOCK),
      },
    ];
  },
};

async function measureIds(
  idmint: Idmint,
  load: { path: string; message: Uint8Array } & Shape,
  count: number,
  effort: Effort,
): Promise<Unary> {
  const before = await idmint.issuedIds();
  const result = await idmint.load({ ...load, ...amountOf(effort) });
  const calls = ((await idmint.issuedIds()) - before) / count;
  if (calls < result.answered) throw new Error(`${result.answered - calls} calls failed`);
  return result;
}

/** Long enough for the compiler to have seen everything, and for buffers to have grown to the rate. */
export async function warmUp(
  { seconds, quick }: Pick<Effort, "seconds" | "quick">,
  load: Omit<Load, "address">,
  servers: readonly Server[],
): Promise<void> {
  if (quick) return;
  for (const server of servers) await server.load({ ...load, seconds: Math.min(2, seconds) });
}

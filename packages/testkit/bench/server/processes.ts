import { availableParallelism } from "node:os";
import { amountOf, type Benchmark, interleaved, samplesOf } from "../lib/benchmark.ts";
import { type Figure, ratioAtLeast, ratioAtMost } from "../lib/figure.ts";
import { GENERATE_ID, generateIdMessage, type Idmint, startIdmint } from "../lib/servers.ts";
import { type Shape, textOf, type Unary, warmUp } from "./unary.ts";

const PROCESSES = 2;
const SHAPES: readonly Shape[] = [
  { connections: 8, streams: 16 },
  { connections: 32, streams: 4 },
];
const ONE = "--processes 1";
const CORES = availableParallelism();
/** Whether there is a core for each process and one for the generator. */
const HAS_ROOM = CORES > PROCESSES;
/** What two processes make of the cores they have, whoever else uses these. */
const GAIN = 1.6;

/** Two processes behind one address, against one. Nobody is pinned. */
export const processes: Benchmark = {
  name: "processes",
  title: "Several processes behind one address",
  run: async (effort) => {
    await using two = await startIdmint({ processes: PROCESSES, isPinned: false });
    await using one = await startIdmint({ processes: 1, isPinned: false });
    const tags = { two: await two.makeTag(), one: await one.makeTag() };
    const figures: Figure[] = [];
    for (const shape of SHAPES) {
      const loads = {
        two: { path: GENERATE_ID, message: generateIdMessage(tags.two), ...shape, isPinned: false },
        one: { path: GENERATE_ID, message: generateIdMessage(tags.one), ...shape, isPinned: false },
      };
      await warmUp(effort, loads.two, [two]);
      await warmUp(effort, loads.one, [one]);
      const results = await interleaved(effort, {
        two: () => measure(two, { ...loads.two, ...amountOf(effort) }),
        one: () => measure(one, { ...loads.one, ...amountOf(effort) }),
      });
      figures.push(...figuresOf(shape, results));
    }
    return figures;
  },
};

function figuresOf(
  shape: Shape,
  { two, one }: Readonly<Record<"two" | "one", readonly Unary[]>>,
): readonly Figure[] {
  const id = `processes.${shape.connections}x${shape.streams}`;
  const text = `--processes ${PROCESSES}, GenerateId, ${textOf(shape)}`;
  const where = HAS_ROOM ? `${CORES} cores` : `${CORES} cores, of which the generator takes a part`;
  const of = (pick: (result: Unary) => number) => samplesOf(two, one, pick);
  return [
    {
      id: `${id}.calls`,
      text: `${text}: calls, on ${where}`,
      unit: "calls/s",
      peer: ONE,
      samples: of((result) => result.callsPerSecond),
      // Where two processes and the generator share two cores, there are not two cores to use.
      bar: ratioAtLeast(HAS_ROOM ? GAIN : 1),
    },
    {
      id: `${id}.cpu`,
      text: `${text}: processor time of all its processes`,
      unit: "µs a call",
      peer: ONE,
      samples: of((result) => result.cpuUs),
      // Twice the cores are GAIN × the calls while a call takes no more than this.
      bar: ratioAtMost(PROCESSES / GAIN),
    },
    {
      id: `${id}.cores`,
      text: `${text}: cores in use by its processes`,
      unit: "cores",
      peer: ONE,
      samples: of((result) => (result.cpuUs * result.callsPerSecond) / 1e6),
    },
    {
      id: `${id}.generator`,
      text: `${text}: cores in use by the generator`,
      unit: "cores",
      peer: ONE,
      samples: of((result) => (result.generatorCpuUs * result.callsPerSecond) / 1e6),
    },
    {
      id: `${id}.p99`,
      text: `${text}: 99th percentile`,
      unit: "ms",
      peer: ONE,
      samples: of((result) => result.p99),
    },
  ];
}

async function measure(idmint: Idmint, load: Parameters<Idmint["load"]>[0]): Promise<Unary> {
  const before = await idmint.issuedIds();
  const result = await idmint.load(load);
  const issued = (await idmint.issuedIds()) - before;
  if (issued < result.answered) throw new Error(`${result.answered - issued} calls failed`);
  return result;
}

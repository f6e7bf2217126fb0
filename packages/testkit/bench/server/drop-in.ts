import { amountOf, type Benchmark, type Effort, interleaved, samplesOf } from "../lib/benchmark.ts";
import { type Figure, ratioAtLeast, ratioAtMost } from "../lib/figure.ts";
import { runLoad } from "../lib/h2load.ts";
import { GENERATE_ID, generateIdMessage, type Idmint, startIdmint } from "../lib/servers.ts";
import type { Unary } from "./unary.ts";

/** Callers of Leaf and Tinyid have a connection for each call that is under way. */
const SHAPE = { connections: 32, streams: 1 };
/** How gRPC is fastest. */
const STREAMS = { connections: 8, streams: 16 };
const STEP = 100;

/** Leaf's and Tinyid's paths, against GenerateId of the same server over as many connections. */
export const dropIn: Benchmark = {
  name: "drop-in",
  title: "Leaf's and Tinyid's paths",
  run: async (effort) => {
    await using idmint = await startIdmint({
      env: { IDMINT_HTTP_LEAF: "true", IDMINT_HTTP_TINYID: "true" },
    });
    const tag = await idmint.makeTag({ tinyidStep: STEP });
    const grpc = (shape: typeof SHAPE) => async () =>
      idmint.load({ ...call, ...shape, ...amountOf(effort) });
    const call = { path: GENERATE_ID, message: generateIdMessage(tag) };
    const simple = `?bizType=${tag}&token=any`;
    const paths = {
      leaf: asking(idmint, `/api/segment/get/${tag}`, 1, effort),
      tinyid: asking(idmint, `/tinyid/id/nextIdSimple${simple}`, 1, effort),
      segment: asking(idmint, `/tinyid/id/nextSegmentIdSimple${simple}`, STEP, effort),
    };
    const measures = { ...paths, grpc: grpc(SHAPE), streams: grpc(STREAMS) };
    // Long enough for the compiler to have seen everything.
    if (!effort.quick) for (const measure of Object.values(measures)) await measure();
    const results = await interleaved<string, Unary>(effort, measures);
    const { leaf = [], tinyid = [], segment = [], grpc: one = [], streams = [] } = results;
    const peers = { one, streams };
    return [
      ...figuresOf("leaf", "Leaf's /api/segment/get", leaf, peers),
      ...figuresOf("tinyid", "Tinyid's nextIdSimple", tinyid, peers),
      ...figuresOf("tinyid-segment", "Tinyid's nextSegmentIdSimple", segment, peers),
    ];
  },
};

/** Asks for one path; each answer has so many ids. Both answer HTTP 200 to calls that they refuse, so the ids are counted. */
function asking(idmint: Idmint, path: string, ids: number, effort: Effort): () => Promise<Unary> {
  const load = { address: idmint.httpAddress, path, message: undefined, ...SHAPE };
  return async () => {
    const before = await idmint.issuedIds();
    const result = await idmint.whileItRuns(() => runLoad({ ...load, ...amountOf(effort) }));
    const answered = ((await idmint.issuedIds()) - before) / ids;
    const refused = result.answered - answered;
    if (result.failed > 0 || refused > 0) throw new Error(`${path}: ${refused} calls failed`);
    return result;
  };
}

function figuresOf(
  id: string,
  text: string,
  ours: readonly Unary[],
  { one, streams }: { readonly one: readonly Unary[]; readonly streams: readonly Unary[] },
): readonly Figure[] {
  const peer = "GenerateId over gRPC";
  return [
    {
      id: `drop-in.${id}.calls`,
      text: `${text}, 32 connections`,
      unit: "calls/s",
      peer,
      samples: samplesOf(ours, one, ({ callsPerSecond }) => callsPerSecond),
      bar: ratioAtLeast(0.8),
    },
    {
      id: `drop-in.${id}.streams`,
      text: `${text}: against 8 connections with 16 streams`,
      unit: "calls/s",
      peer,
      samples: samplesOf(ours, streams, ({ callsPerSecond }) => callsPerSecond),
      bar: ratioAtLeast(0.8),
    },
    {
      id: `drop-in.${id}.p99`,
      text: `${text}: 99th percentile`,
      unit: "ms",
      peer,
      samples: samplesOf(ours, one, ({ p99 }) => p99),
      bar: ratioAtMost(2),
    },
    {
      id: `drop-in.${id}.cpu`,
      text: `${text}: server's processor time`,
      unit: "µs a call",
      peer,
      samples: samplesOf(ours, one, ({ cpuUs }) => cpuUs),
    },
  ];
}

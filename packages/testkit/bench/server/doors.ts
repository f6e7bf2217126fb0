import { amountOf, type Benchmark, interleaved, ownSamples, samplesOf } from "../lib/benchmark.ts";
import { atMost, type Figure, ratioAtLeast, ratioAtMost } from "../lib/figure.ts";
import {
  GENERATE_ID,
  generateIdMessage,
  type Server,
  startGoFloor,
  startRustFloor,
} from "../lib/servers.ts";
import { startDoors } from "./doors-calls.ts";
import { type Shape, textOf, type Unary, warmUp } from "./unary.ts";

type Peer = "grpc-js" | "go" | "rust";

const PEERS: Readonly<Record<Peer, string>> = {
  "grpc-js": "idmint behind grpc-js",
  go: "bare grpc-go",
  rust: "bare tonic, one thread",
};

/** What is wanted of the fast door for each shape; a peer that is not named is shown. */
interface Wanted extends Shape {
  readonly calls: Partial<Record<Peer, number>>;
  /** Most of grpc-go's processor time for a call. */
  readonly goCpu?: number;
  /** Milliseconds. */
  readonly p99?: number;
}

const SHAPES: readonly Wanted[] = [
  {
    connections: 8,
    streams: 16,
    calls: { rust: 0.9, go: 1.5, "grpc-js": 5 },
    goCpu: 0.6,
    p99: 5,
  },
  { connections: 1, streams: 32, calls: { rust: 1 }, p99: 2 },
  { connections: 128, streams: 1, calls: { go: 1 } },
];

/** The same call through both doors of idmint, and of bare servers on other platforms. */
export const doors: Benchmark = {
  name: "doors",
  title: "One id a call, by the fast door",
  run: async (effort) => {
    await using go = await startGoFloor();
    // Its build takes minutes.
    await using rust = effort.quick ? undefined : await startRustFloor();
    await using both = await startDoors();
    const { fast, "grpc-js": library } = both;
    for (const [name, floor] of Object.entries({ go, rust })) {
      if (floor === undefined) effort.say(`  ${name} is left out`);
    }
    const message = generateIdMessage(await fast.makeTag());
    await library.makeTag();
    const servers = Object.entries({ ours: fast, "grpc-js": library, go, rust }).filter(
      (entry): entry is [string, Server] => entry[1] !== undefined,
    );
    const figures: Figure[] = [];
    for (const shape of SHAPES) {
      const { connections, streams } = shape;
      const load = { path: GENERATE_ID, message, connections, streams };
      await warmUp(
        effort,
        load,
        servers.map(([, server]) => server),
      );
      const results = await interleaved<string, Unary>(
        effort,
        Object.fromEntries(
          servers.map(([name, server]) => [
            name,
            () => server.load({ ...load, ...amountOf(effort) }),
          ]),
        ),
      );
      figures.push(...figuresOf(shape, results));
    }
    return figures;
  },
};

function figuresOf(
  { connections, streams, calls, goCpu, p99 }: Wanted,
  { ours = [], ...peers }: Readonly<Record<string, readonly Unary[]>>,
): readonly Figure[] {
  const id = `doors.${connections}x${streams}`;
  const text = `GenerateId by the fast door, ${textOf({ connections, streams })}`;
  const against = Object.entries(peers).map(([name, theirs]): Figure => {
    const bar = calls[name as Peer];
    return {
      id: `${id}.${name}`,
      text: `${text}: against ${PEERS[name as Peer]}`,
      unit: "calls/s",
      peer: PEERS[name as Peer],
      samples: samplesOf(ours, theirs, (result) => result.callsPerSecond),
      ...(bar === undefined ? {} : { bar: ratioAtLeast(bar) }),
    };
  });
  const cpu = Object.entries(peers).map(([name, theirs]): Figure => ({
    id: `${id}.${name}-cpu`,
    text: `${text}: server's processor time, against ${PEERS[name as Peer]}`,
    unit: "µs a call",
    peer: PEERS[name as Peer],
    samples: samplesOf(ours, theirs, (result) => result.cpuUs),
    ...(name === "go" && goCpu !== undefined ? { bar: ratioAtMost(goCpu) } : {}),
  }));
  return [
    ...against,
    ...cpu,
    {
      id: `${id}.p99`,
      text: `${text}: 99th percentile`,
      unit: "ms",
      samples: ownSamples(ours, (result) => result.p99),
      ...(p99 === undefined ? {} : { bar: atMost(p99) }),
    },
  ];
}

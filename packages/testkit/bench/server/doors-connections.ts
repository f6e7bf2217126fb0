import { setTimeout as pause } from "node:timers/promises";
import { amountOf, type Benchmark, interleaved, ownSamples, samplesOf } from "../lib/benchmark.ts";
import { cores } from "../lib/cpus.ts";
import { atMost, type Figure, ratioAtLeast } from "../lib/figure.ts";
import type { IdleLoad } from "../lib/idle-load.ts";
import { Subject } from "../lib/process.ts";
import {
  GENERATE_ID,
  generateIdMessage,
  type Idmint,
  script,
  startIdmint,
} from "../lib/servers.ts";
import { startDoors } from "./doors-calls.ts";
import { type Shape, type Unary, warmUp } from "./unary.ts";

const SHAPE: Shape = { connections: 8, streams: 16 };
const LIBRARY = "the grpc-js door";
const PROCESSES = 2;

const WAYS = [
  ["tls", "GenerateId through TLS by the fast door, 8 × 16", { isSecure: true }],
  [
    "processes",
    `GenerateId by the fast door, --processes ${PROCESSES}, nobody pinned, 8 × 16`,
    { processes: PROCESSES, isPinned: false },
  ],
] as const;

/** Both doors through TLS, and both behind several processes. */
export const doorsShared: Benchmark = {
  name: "doors-shared",
  title: "Both doors through TLS, and with several processes",
  run: async (effort) => {
    const figures: Figure[] = [];
    // Several processes take seconds to start, and another benchmark shows that they do.
    for (const [id, text, options] of effort.quick ? WAYS.slice(0, 1) : WAYS) {
      await using servers = await startDoors(options);
      const { fast, "grpc-js": library } = servers;
      const message = generateIdMessage(await fast.makeTag());
      await library.makeTag();
      const isPinned = id !== "processes";
      const load = { path: GENERATE_ID, message, ...SHAPE, isPinned };
      await warmUp(effort, load, [fast, library]);
      const results = await interleaved<"ours" | "library", Unary>(effort, {
        ours: () => fast.load({ ...load, ...amountOf(effort) }),
        library: () => library.load({ ...load, ...amountOf(effort) }),
      });
      figures.push(
        {
          id: `doors-shared.${id}`,
          text,
          unit: "calls/s",
          peer: LIBRARY,
          samples: samplesOf(results.ours, results.library, ({ callsPerSecond }) => callsPerSecond),
          ...(id === "tls" ? { bar: ratioAtLeast(2) } : {}),
        },
        {
          id: `doors-shared.${id}-cpu`,
          text: `${text}: processor time`,
          unit: "µs a call",
          peer: LIBRARY,
          samples: samplesOf(results.ours, results.library, ({ cpuUs }) => cpuUs),
        },
        {
          id: `doors-shared.${id}-p99`,
          text: `${text}: 99th percentile`,
          unit: "ms",
          peer: LIBRARY,
          samples: samplesOf(results.ours, results.library, ({ p99 }) => p99),
        },
      );
    }
    return figures;
  },
};

/** So many that what each costs is seen beside what the server has anyway; handshakes of TLS take the generator's time. */
const IDLE = { plain: 10_000, secure: 2_000, quick: 20 } as const;
/** Garbage of what opened the connections is collected meanwhile, and connections are looked at. */
const SETTLE_MS = 3_000;

/** What connections cost on which nothing is called. */
export const doorsIdle: Benchmark = {
  name: "doors-idle",
  title: "Idle connections of the fast door",
  run: async (effort) => {
    const kinds = effort.quick ? (["plain"] as const) : (["plain", "secure"] as const);
    const figures: Figure[] = [];
    for (const kind of kinds) {
      const connections = effort.quick ? IDLE.quick : IDLE[kind];
      const bytes: number[] = [];
      // A server that had connections before has their memory: each round has its own.
      for (let round = 0; round < effort.rounds; round++) {
        bytes.push(await bytesOfIdle(kind === "secure", connections, effort.quick ? 0 : SETTLE_MS));
      }
      figures.push({
        id: `doors-idle.${kind}`,
        text: `memory (RSS) of an idle connection of the fast door${kind === "secure" ? " through TLS" : ""}, of ${connections.toLocaleString("en-US")}`,
        unit: "KB",
        samples: ownSamples(bytes, (value) => value / 1_024),
        ...(kind === "plain" ? { bar: atMost(12) } : {}),
      });
    }
    return figures;
  },
};

async function bytesOfIdle(
  isSecure: boolean,
  connections: number,
  settleMs: number,
): Promise<number> {
  await using idmint: Idmint = await startIdmint({
    isSecure,
    env: { IDMINT_GRPC_DOOR: "fast", IDMINT_LIMITS_CONNECTIONS: String(2 * connections) },
  });
  const message = generateIdMessage(await idmint.makeTag());
  await idmint.load({ path: GENERATE_ID, message, ...SHAPE, calls: 2_000 });
  await pause(settleMs);
  const before = idmint.subject.rssBytes;
  const load: IdleLoad = { address: idmint.address, isSecure, connections };
  const command = [...cores.generator, ...script("lib/idle-load.ts", JSON.stringify(load))];
  await using generator = new Subject("idle-load", command);
  await generator.saying(/^open$/m, 120_000);
  await pause(settleMs);
  return (idmint.subject.rssBytes - before) / connections;
}

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Api } from "../../src/fleet/api.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { type Benchmark, interleaved, samplesOf } from "../lib/benchmark.ts";
import { BUILT_CLI } from "../lib/build.ts";
import { cores } from "../lib/cpus.ts";
import { atMost, ratioAtMost } from "../lib/figure.ts";
import { Subject } from "../lib/process.ts";
import { assertFlags } from "../lib/servers.ts";

type Door = "fast" | "grpc-js";

const IDLE_MS = 5_000;
const LIBRARY = "the grpc-js door";

/** From the start of the process to the first id in a caller's hands, on a fresh SQLite store; and what it needs idle. */
export const start: Benchmark = {
  name: "start",
  title: "Start",
  run: async (effort) => {
    const idleMs = effort.quick ? 200 : IDLE_MS;
    const { fast, library } = await interleaved(effort, {
      fast: () => startOnce("fast", idleMs),
      library: () => startOnce("grpc-js", idleMs),
    });
    const toFirstId = "start of the process to the first id, SQLite";
    return [
      {
        id: "start.first-id",
        text: toFirstId,
        unit: "s",
        samples: fast.map((started) => ({ ours: started.seconds })),
        bar: atMost(0.8),
      },
      {
        id: "start.first-id-grpc-js",
        text: `${toFirstId}: against grpc-js`,
        unit: "s",
        peer: LIBRARY,
        samples: samplesOf(fast, library, ({ seconds }) => seconds),
        bar: ratioAtMost(0.6),
      },
      {
        id: "start.idle-rss",
        text: "memory (RSS) of an idle server, SQLite",
        unit: "MB",
        peer: LIBRARY,
        samples: samplesOf(fast, library, ({ rssBytes }) => rssBytes / 1e6),
        bar: atMost(110),
      },
    ];
  },
};

interface Started {
  readonly seconds: number;
  readonly rssBytes: number;
}

async function startOnce(door: Door, idleMs: number): Promise<Started> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-bench-"));
  const address = `127.0.0.1:${await freePort()}`;
  const env = {
    IDMINT_STORE_URL: `sqlite:${path.join(folder, "idmint.db")}`,
    IDMINT_GRPC_DOOR: door,
    IDMINT_GRPC_ADDRESS: address,
    IDMINT_HTTP_ADDRESS: `127.0.0.1:${await freePort()}`,
  };
  try {
    using api = new Api(address);
    const command = [...cores.server, process.execPath, BUILT_CLI, "start-dev"];
    const begin = performance.now();
    await using idmint = new Subject("idmint", command, { env });
    const id = await firstId(api, idmint);
    const seconds = (performance.now() - begin) / 1_000;
    if (id < 1n) throw new Error(`${id} is no id`);
    assertFlags(idmint.output);
    await pause(idleMs);
    return { seconds, rssBytes: idmint.rssBytes };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Asks as soon as somebody listens, and again while the tag is being made. */
async function firstId(api: Api, idmint: Subject): Promise<bigint> {
  await idmint.saying(/listens for gRPC/);
  return api.id("demo");
}

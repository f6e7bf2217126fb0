import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Api } from "../../src/fleet/api.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { type Benchmark, interleaved, samplesOf } from "../lib/benchmark.ts";
import { BUILT_CLI, UNBUNDLED_CLI } from "../lib/build.ts";
import { cores } from "../lib/cpus.ts";
import { atMost, ratioAtMost } from "../lib/figure.ts";
import { Subject } from "../lib/process.ts";
import { assertFlags } from "../lib/servers.ts";

const IDLE_MS = 5_000;

/** The server as it is published, and as it was at first: a file for each module, and grpc-js. */
const PUBLISHED = { door: "fast", program: BUILT_CLI } as const;
const PLAIN = { door: "grpc-js", program: UNBUNDLED_CLI } as const;
const PEER = "the grpc-js door, not bundled";

/** From the start of the process to the first id in a caller's hands, on a fresh SQLite store; and what it needs idle. */
export const start: Benchmark = {
  name: "start",
  title: "Start",
  run: async (effort) => {
    const idleMs = effort.quick ? 200 : IDLE_MS;
    const { published, plain } = await interleaved(effort, {
      published: () => startOnce(PUBLISHED, idleMs),
      plain: () => startOnce(PLAIN, idleMs),
    });
    const toFirstId = "start of the process to the first id, SQLite";
    return [
      {
        id: "start.first-id",
        text: toFirstId,
        unit: "s",
        samples: published.map((started) => ({ ours: started.seconds })),
        bar: atMost(0.8),
      },
      {
        id: "start.first-id-grpc-js",
        text: `${toFirstId}: against grpc-js`,
        unit: "s",
        peer: PEER,
        samples: samplesOf(published, plain, ({ seconds }) => seconds),
        bar: ratioAtMost(0.6),
      },
      {
        id: "start.idle-rss",
        text: "memory (RSS) of an idle server, SQLite",
        unit: "MB",
        peer: PEER,
        samples: samplesOf(published, plain, ({ rssBytes }) => rssBytes / 1e6),
        bar: atMost(110),
      },
      {
        id: "start.idle-anonymous",
        text: "memory of an idle server without pages of files, SQLite",
        unit: "MB",
        peer: PEER,
        samples: samplesOf(published, plain, ({ anonymousBytes }) => anonymousBytes / 1e6),
      },
    ];
  },
};

interface Started {
  readonly seconds: number;
  readonly rssBytes: number;
  readonly anonymousBytes: number;
}

async function startOnce(
  { door, program }: typeof PUBLISHED | typeof PLAIN,
  idleMs: number,
): Promise<Started> {
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
    const command = [...cores.server, process.execPath, program, "start-dev"];
    const begin = performance.now();
    await using idmint = new Subject("idmint", command, { env });
    const id = await firstId(api, idmint);
    const seconds = (performance.now() - begin) / 1_000;
    if (id < 1n) throw new Error(`${id} is no id`);
    assertFlags(idmint.output);
    await pause(idleMs);
    const { rssBytes, anonymousBytes } = idmint;
    return { seconds, rssBytes, anonymousBytes };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Asks as soon as somebody listens, and again while the tag is being made. */
async function firstId(api: Api, idmint: Subject): Promise<bigint> {
  await idmint.saying(/listens for gRPC/);
  return api.id("demo");
}

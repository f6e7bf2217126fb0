import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { freePort } from "../../src/fleet/ports.ts";
import { until } from "../../src/fleet/until.ts";
import { amountOf, type Benchmark, interleaved, samplesOf } from "../lib/benchmark.ts";
import { ratioAtLeast } from "../lib/figure.ts";
import {
  GENERATE_ID,
  generateIdMessage,
  type Idmint,
  startFloor,
  startIdmint,
} from "../lib/servers.ts";
import { type Shape, textOf, type Unary, warmUp } from "./unary.ts";

const SHAPE: Shape = { connections: 8, streams: 16 };
const SCRAPE_EVERY_MS = 1_000;
const TRACED = "0.01";
const callsPerSecond = (result: Unary): number => result.callsPerSecond;
const cpuUs = (result: Unary): number => result.cpuUs;

/** A server that tells everything of itself, against the same one that tells nothing. */
export const telemetry: Benchmark = {
  name: "telemetry",
  title: "Metrics and traces",
  run: async (effort) => {
    await using collector = await startCollector();
    const httpAddress = `127.0.0.1:${await freePort()}`;
    await using on = await startIdmint({
      env: {
        IDMINT_HTTP_ADDRESS: httpAddress,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
        OTEL_TRACES_SAMPLER_ARG: TRACED,
      },
    });
    await using off = await startIdmint({ env: { IDMINT_METRICS_COLLECT: "off" } });
    await using floor = await startFloor();
    const loadOf = async (idmint: Idmint) => ({
      path: GENERATE_ID,
      message: generateIdMessage(await idmint.makeTag()),
      ...SHAPE,
    });
    const [onLoad, offLoad] = [await loadOf(on), await loadOf(off)];
    await warmUp(effort, onLoad, [on]);
    await warmUp(effort, offLoad, [off, floor]);
    const scraper = new Scraper(`http://${httpAddress}/metrics`);
    const results = await interleaved(effort, {
      on: () => scraper.during(() => on.load({ ...onLoad, ...amountOf(effort) })),
      off: () => off.load({ ...offLoad, ...amountOf(effort) }),
      floor: () => floor.load({ ...offLoad, ...amountOf(effort) }),
    });
    const answered = results.on.reduce((sum, result) => sum + result.answered, 0);
    // Otherwise nothing was measured.
    await collector.hasSpans(answered);
    const text = `GenerateId, ${textOf(SHAPE)}, metrics scraped each second, 1 % of calls traced`;
    return [
      {
        id: "telemetry.calls",
        text,
        unit: "calls/s",
        peer: "metrics and traces off",
        samples: samplesOf(results.on, results.off, callsPerSecond),
        bar: ratioAtLeast(0.95),
      },
      {
        id: "telemetry.floor",
        text: `${text}: against the floor`,
        unit: "calls/s",
        peer: "bare grpc-js",
        samples: samplesOf(results.on, results.floor, callsPerSecond),
      },
      {
        id: "telemetry.cpu",
        text: `${text}: server's processor time`,
        unit: "µs a call",
        peer: "metrics and traces off",
        samples: samplesOf(results.on, results.off, cpuUs),
      },
    ];
  },
};

/** Scrapes while something runs: at its beginning, and then once a second. */
class Scraper {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async during<T>(run: () => Promise<T>): Promise<T> {
    let scraping = this.#scrape();
    const timer = setInterval(() => {
      scraping = scraping.then(() => this.#scrape());
    }, SCRAPE_EVERY_MS);
    try {
      return await run();
    } finally {
      clearInterval(timer);
      await scraping;
    }
  }

  async #scrape(): Promise<void> {
    const answer = await fetch(this.#url);
    const text = await answer.text();
    if (answer.status !== 200 || !text.includes("idmint_ids_issued_total"))
      throw new Error(`a scrape was answered with ${answer.status}: ${text.slice(0, 200)}`);
  }
}

/** Takes whatever an exporter sends. */
async function startCollector() {
  let bytes = 0;
  const server = createServer((request, response) => {
    request.on("data", (piece: Buffer) => {
      if (request.url === "/v1/traces") bytes += piece.length;
    });
    request.on("end", () => response.writeHead(200).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    /** Fails unless spans came in, where enough calls were made that some of them were traced. */
    hasSpans: async (calls: number): Promise<void> => {
      if (calls < SURELY_TRACED) return;
      await until("spans arrive", () => bytes > 0, { withinMs: SPANS_WITHIN_MS });
    },
    [Symbol.asyncDispose]: async (): Promise<void> => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Of so many calls one is traced but for a chance of one in a million million. */
const SURELY_TRACED = 3_000;
/** Spans go out every five seconds. */
const SPANS_WITHIN_MS = 15_000;

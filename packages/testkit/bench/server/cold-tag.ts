import type { Benchmark } from "../lib/benchmark.ts";
import { atMost } from "../lib/figure.ts";
import { GENERATE_ID, generateIdMessage, startFloor, startIdmint } from "../lib/servers.ts";

const CONNECTIONS = 128;
const CALLS_EACH = 10;

/** All callers at once on a tag that nobody asked for before. */
export const coldTag: Benchmark = {
  name: "cold-tag",
  title: "A cold tag",
  run: async (effort) => {
    await using idmint = await startIdmint();
    await using floor = await startFloor();
    const load = {
      path: GENERATE_ID,
      connections: CONNECTIONS,
      streams: 1,
      calls: CONNECTIONS * CALLS_EACH,
    };
    // The code is warm, the tag is not.
    const warm = generateIdMessage(await idmint.makeTag());
    for (let i = 0; i < (effort.quick ? 1 : 5); i++) {
      await idmint.load({ ...load, message: warm });
      await floor.load({ ...load, message: warm });
    }
    const samples: { ours: number; peer: number }[] = [];
    const failures: { ours: number }[] = [];
    for (let round = 0; round < effort.rounds; round++) {
      const message = generateIdMessage(await idmint.makeTag());
      const before = await idmint.issuedIds();
      const result = await idmint.load({ ...load, message });
      const issued = (await idmint.issuedIds()) - before;
      const peer = await floor.load({ ...load, message });
      samples.push({ ours: result.p999, peer: peer.p999 });
      failures.push({ ours: load.calls - Math.min(result.answered, issued) });
    }
    const text = `first ${load.calls.toLocaleString("en-US")} calls on a tag, ${CONNECTIONS} connections at once`;
    return [
      {
        id: "cold-tag.p999",
        text: `${text}: 99.9th percentile`,
        unit: "ms",
        peer: "bare grpc-js",
        samples,
        bar: atMost(100),
      },
      {
        id: "cold-tag.errors",
        text: `${text}: errors`,
        unit: "calls",
        samples: failures,
        bar: atMost(0),
      },
    ];
  },
};

// A server behind the fast door that says what its heap gained between two messages. Prints its gRPC address; its argument is
// the folder of its store. Run it with --expose-gc, and with so much room for young objects that none are collected.
import path from "node:path";
import { PerformanceObserver } from "node:perf_hooks";
import { setImmediate as turn } from "node:timers/promises";
import { startDev } from "../../src/main/dev.ts";

/** What was gained since the message before. */
export interface Gained {
  readonly heapBytes: number;
  readonly outsideBytes: number;
  /** Collections meanwhile: with any, nothing is known. */
  readonly collections: number;
}

const { server } = await startDev({
  env: {},
  flags: {
    "grpc-door": "fast",
    "store-url": `sqlite:${path.join(process.argv[2] ?? "", "idmint.db")}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
  },
});
let collections = 0;
new PerformanceObserver((list) => (collections += list.getEntries().length)).observe({
  entryTypes: ["gc"],
});
let before = { heap: 0, outside: 0 };

process.on("message", (message: "begin" | "end") => void answer(message));

async function answer(message: "begin" | "end"): Promise<void> {
  if (message === "end") {
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    // What tells of collections comes later.
    await turn();
    await turn();
    process.send?.({
      heapBytes: heapUsed - before.heap,
      outsideBytes: arrayBuffers - before.outside,
      collections,
    } satisfies Gained);
    return;
  }
  globalThis.gc?.();
  // What tells of collections comes later.
  await turn();
  await turn();
  collections = 0;
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  before = { heap: heapUsed, outside: arrayBuffers };
  process.send?.("begun");
}

console.log(server.grpcAddress);

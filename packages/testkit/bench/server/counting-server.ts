// idmint's server with a store that counts what is asked of it. Configured by IDMINT_… variables, as `idmint serve` is.
import type { CallArgs } from "@idmint/core/server";
import { setV8Flags } from "@idmint/server/v8-flags";

/** What the store was asked so far. */
export interface StoreCounts {
  /** Calls that grant ids: each is one round trip. */
  readonly roundTrips: number;
  /** Loads of tags in them. */
  readonly loads: number;
}

// As the command line does: before anything else is compiled.
setV8Flags();
const { wrapStore } = await import("@idmint/core/server");
const { loadConfig, openStore, runUntilSignal, startServer, storeConfigOf } =
  await import("@idmint/server");

const config = loadConfig({ env: process.env });
const store = await openStore(storeConfigOf(config));
let roundTrips = 0;
let loads = 0;
const counting = wrapStore(store, (name, args, inner) => {
  if (name === "grant") {
    roundTrips++;
    const [requests] = args as CallArgs["grant"];
    loads += requests.length;
  }
  return inner[name](...args);
});
const server = await startServer(config, { store: counting });
process.on("message", () => {
  const counts: StoreCounts = { roundTrips, loads };
  process.send?.(counts);
});
// Nobody else keeps the process from ending once the server is closed.
process.channel?.unref();
await runUntilSignal(server);

import { IdmintError } from "@idmint/core";
import { makeStore, type ServerParts, startServer } from "./app.ts";
import { type ConfigSources, loadConfig } from "./config/load.ts";
import { OPTIONS } from "./config/table.ts";
import { assertFree } from "./main/address.ts";
import type { RunningServer } from "./main/running.ts";

/** A server for trying things out, and what to tell whoever started it. */
export interface DevServer {
  readonly server: RunningServer;
  /** Words for people: where it listens, and what to type next. Ends without a newline. */
  readonly banner: string;
}

/** The tag that is there from the start. */
const DEMO_TAG = "demo";

/**
 * Starts a server with everything made on the spot: a SQLite store (./.idmint/idmint.db by default) and the tag `demo`.
 * Rejects when an address is taken, before anything is made, and says how to take another one.
 */
export async function startDev(
  sources: ConfigSources,
  parts: ServerParts = {},
): Promise<DevServer> {
  const defaults = { "log.format": "text", ...sources.defaults };
  const config = loadConfig({ ...sources, defaults });
  await assertFree(config.grpcAddress, OPTIONS.grpcAddress.key);
  await assertFree(config.httpAddress, OPTIONS.httpAddress.key);
  await makeStore(config);
  const server = await startServer(config, parts);
  try {
    await makeDemoTag(server);
  } catch (error) {
    await server.close();
    throw error;
  }
  return { server, banner: bannerOf(server, config.storeUrl) };
}

async function makeDemoTag(server: RunningServer): Promise<void> {
  const kind = {
    kind: "segment" as const,
    start: 0n,
    min: 0,
    max: 0,
    holdForMs: undefined,
    maxAgeMs: undefined,
  };
  const description = "made by start-dev, for trying things out";
  const draft = { name: DEMO_TAG, description, order: undefined, ceiling: 0n, kind };
  try {
    await server.tags.create(draft, []);
  } catch (thrown) {
    // Somebody gave it other settings; it is there, which is all that is wanted.
    if (IdmintError.from(thrown).reason !== "TAG_EXISTS") throw thrown;
  }
}

function bannerOf({ grpcAddress, httpAddress }: RunningServer, storeUrl: string): string {
  return `idmint listens for gRPC on ${grpcAddress}, for probes on http://${httpAddress}
Store: ${storeUrl}

Mint an id:
  grpcurl -plaintext -d '{"tag":"${DEMO_TAG}"}' ${grpcAddress} idmint.v1.IdService/GenerateId
  idmint id next ${DEMO_TAG}
Make a tag of your own:
  idmint tag create orders --kind segment
See the whole API:
  grpcurl -plaintext ${grpcAddress} describe idmint.v1.IdService

Ctrl-C stops it; ids that were not used go back to the store.`;
}

import { invalidField } from "@idmint/core";
import { servesConsole, servesHttpApi } from "../config/http.ts";
import { type ConfigSources, loadConfig } from "../config/load.ts";
import type { Config } from "../config/table.ts";
import { hasConsole } from "../http/console.ts";
import { StoreWait } from "../service/upstream/store-wait.ts";
import { emitter } from "../service/events.ts";
import { logEvents } from "../telemetry/log-events.ts";
import { createLogger } from "../telemetry/logger.ts";
import { type ServerParts, startServer } from "./app.ts";
import { DEMO_TAG } from "./following.ts";
import { assertFree } from "./neighbours.ts";
import type { Serving } from "./running.ts";
import { startProcesses } from "./serving.ts";
import { makeStore } from "./stores.ts";
import { realSystem } from "./system.ts";

/** A server for trying things out, and what to tell whoever started it. */
export interface DevServer {
  readonly server: Serving;
  /** What to print: where the server listens, and what to type next. Ends without a newline. */
  readonly banner: string;
}

/**
 * Starts a server and makes what it needs: a SQLite store (./.idmint/idmint.db by default) and the tag `demo`. Rejects
 * when an address is taken, before it makes anything, and says how to choose another address.
 */
export async function startDev(
  sources: ConfigSources,
  parts: ServerParts = {},
): Promise<DevServer> {
  // Nobody stands in front of it, and somebody waits at a terminal.
  const defaults = { "log.format": "text", drain_delay: "0ms", ...sources.defaults };
  const config = loadConfig({ ...sources, defaults });
  await assertFree(config);
  await prepare(config, parts);
  const server = await startServed(config, parts);
  return { server, banner: bannerOf(server, config) };
}

/** Makes the store, before there is a server that could log why it has to wait for it. */
async function prepare(config: Config, { signal, logSink }: ServerParts): Promise<void> {
  const log = createLogger({ level: config.logLevel, format: config.logFormat }, logSink);
  const emit = emitter([logEvents(log.logger, () => realSystem.clock.now())]);
  try {
    const storeWait = new StoreWait({ ...realSystem, emit }, config.storeStartTimeoutMs, signal);
    await storeWait.of(() => makeStore(config));
  } finally {
    await log.flush();
  }
}

async function startServed(config: Config, parts: ServerParts): Promise<Serving> {
  if (config.processes === 1) return startServer(config, { ...parts, makesDemoTag: true });
  const { signal, ...others } = parts;
  if (Object.keys(others).length === 0) {
    return startProcesses(config, { makesDemoTag: true, signal });
  }
  throw invalidField("processes", "must be 1 with parts, which other processes cannot have");
}

const GENERATE_ID = "/idmint.v1.IdService/GenerateId";

function bannerOf({ grpcAddress, adminAddress, httpAddress }: Serving, config: Config): string {
  const http = `${config.httpTls === "on" ? "https" : "http"}://${httpAddress}`;
  const admin = adminAddress === "" ? "" : `, for administrators on ${adminAddress}`;
  const also = httpAddress === "" ? "" : `, for HTTP on ${http}`;
  const curl = servesHttpApi(config)
    ? `\n  curl --json '{"tag":"${DEMO_TAG}"}' ${http}${GENERATE_ID}`
    : "";
  const pages = hasConsole() && servesConsole(config) ? `\nConsole: ${http}/console/` : "";
  return `idmint listens for gRPC on ${grpcAddress}${admin}${also}${pages}
Store: ${config.storeUrl}
Whoever reaches it may do everything, until you make a token: idmint token create --help

Mint an id:
  grpcurl -plaintext -d '{"tag":"${DEMO_TAG}"}' ${grpcAddress} idmint.v1.IdService/GenerateId${curl}
  idmint id next ${DEMO_TAG}
Make a tag of your own:
  idmint tag create orders --kind segment
See the whole API:
  grpcurl -plaintext ${grpcAddress} describe idmint.v1.IdService

Ctrl-C stops it; ids that were not used go back to the store.`;
}

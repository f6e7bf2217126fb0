import type { Clock } from "@idmint/core";
import type { Api } from "../../api/api.ts";
import type { PlainHandlers } from "../../api/drop-in/plain-ids.ts";
import { forCallers } from "../../api/split.ts";
import { type Config, OPTIONS } from "../../config/table.ts";
import { isLoopback } from "../../config/types.ts";
import { HttpCalls, type CallsPorts } from "../../http/calls.ts";
import { connectRoute } from "../../http/connect.ts";
import { consoleRoute } from "../../http/console.ts";
import { HttpDoor } from "../../http/door.ts";
import { leafRoute } from "../../http/leaf-route.ts";
import { tinyidRoute } from "../../http/tinyid-route.ts";
import { type Probes, probeRoutes } from "../../http/probes.ts";
import type { Route } from "../../http/route.ts";
import { nodeTimers } from "../../timers.ts";
import { listen } from "../neighbours.ts";

type HttpPorts = Pick<CallsPorts, "access" | "counters" | "emit"> & {
  readonly api: Api;
  readonly plain: PlainHandlers;
  readonly clock: Clock;
  readonly wallClock: () => number;
  readonly probes: Probes;
  readonly telemetry: Pick<CallsPorts, "callTimes" | "tracing">;
};

/**
 * Listens for HTTP, unless the configuration wants none. One of several processes has none either: its parent answers, at
 * `parentAddress`.
 */
export async function openHttp(
  config: Config,
  ports: HttpPorts,
  parentAddress: string | undefined,
): Promise<{ readonly http: HttpDoor | undefined; readonly httpAddress: string }> {
  const { httpAddress, limitConnections: maxConnections } = config;
  if (parentAddress !== undefined) return { http: undefined, httpAddress: parentAddress };
  if (httpAddress === "none") return { http: undefined, httpAddress: "" };
  const http = new HttpDoor(
    routesOf(config, ports),
    { ...httpAddress, maxConnections },
    nodeTimers,
  );
  return { http, httpAddress: await listen(http, OPTIONS.httpAddress, httpAddress) };
}

/** Whether calls are taken over HTTP, and with them the console: not where others could read them on their way. */
export function servesApi({ httpAddress, insecure }: Config): boolean {
  return httpAddress !== "none" && (insecure || isLoopback(httpAddress));
}

/** What is served over HTTP. The first route that takes a path answers it. */
function routesOf(config: Config, { probes, telemetry, ...its }: HttpPorts): readonly Route[] {
  const { callTimes, tracing } = telemetry;
  const api = config.adminAddress === undefined ? its.api : forCallers(its.api);
  const calls = new HttpCalls({ ...its, api, callTimes, tracing, timers: nodeTimers });
  if (!servesApi(config)) return probeRoutes(probes);
  const dropIn = { calls, handlers: its.plain, wallClock: its.wallClock };
  return [
    ...probeRoutes(probes),
    connectRoute(calls),
    ...(config.httpLeaf ? [leafRoute(dropIn)] : []),
    ...(config.httpTinyid ? [tinyidRoute(dropIn)] : []),
    consoleRoute(),
  ];
}

import type { Clock } from "@idmint/core";
import type { Api } from "../../api/api.ts";
import type { PlainHandlers } from "../../api/plain-ids.ts";
import { forCallers } from "../../api/split.ts";
import { servesConsole, servesHttpApi } from "../../config/http.ts";
import { type Config, OPTIONS } from "../../config/table.ts";
import { HttpCalls, type CallsPorts } from "../../http/calls.ts";
import { connectRoute } from "../../http/connect.ts";
import { consoleRoute } from "../../http/console.ts";
import type { HttpSource } from "../../http/connections.ts";
import { HttpDoor } from "../../http/door.ts";
import { leafRoute } from "../../http/leaf-route.ts";
import { isLeafPath } from "../../http/leaf.ts";
import { tinyidRoute } from "../../http/tinyid-route.ts";
import { isTinyidPath } from "../../http/tinyid.ts";
import { unservedRoute } from "../../http/unserved-route.ts";
import { Hosts } from "../../http/hosts.ts";
import { type Probes, probeRoutes } from "../../http/probes.ts";
import type { Route } from "../../http/route.ts";
import type { Access } from "../../service/access/access.ts";
import type { Emit } from "../../service/events.ts";
import { nodeTimers } from "../../timers.ts";
import { listen } from "../neighbours.ts";
import { tlsOf } from "./grpc.ts";

type HttpPorts = Pick<CallsPorts, "counters" | "emit"> & {
  readonly access: Access;
  readonly api: Api;
  readonly plain: PlainHandlers;
  readonly clock: Clock;
  readonly wallClock: () => number;
  readonly probes: Probes;
  readonly telemetry: Pick<CallsPorts, "callTimes" | "tracing">;
};

/** Listens for HTTP, unless the configuration wants none. */
export async function openHttp(
  config: Config,
  ports: HttpPorts,
  sources: { readonly http: HttpSource } | undefined,
): Promise<{ readonly http: HttpDoor | undefined; readonly httpAddress: string }> {
  const { httpAddress } = config;
  if (httpAddress === "none") return { http: undefined, httpAddress: "" };
  const http = await createHttpDoor(config, routesOf(config, ports), ports, sources?.http);
  return { http, httpAddress: await listen(http, OPTIONS.httpAddress, httpAddress) };
}

/** Makes the door of HTTP; it is closed until `listen`. */
export function createHttpDoor(
  config: Config,
  routes: readonly Route[],
  { clock, emit }: { readonly clock: Clock; readonly emit: Emit },
  source?: HttpSource,
): Promise<HttpDoor> {
  const { httpAddress, limitConnections: maxConnections } = config;
  const { host, port } = httpAddress === "none" ? { host: "", port: 0 } : httpAddress;
  const options = {
    host,
    port,
    source,
    maxConnections,
    maxConnectionAgeMs: config.limitConnectionAgeMs,
    takesCommonNames: config.accessCommonNames,
    hosts: new Hosts([...config.httpHosts, ...ownNames(config)]),
    tls: config.httpTls === "on" ? tlsOf(config) : undefined,
    onRefused: (peer: string, why: string): void => emit({ type: "connection-refused", peer, why }),
  };
  const onBadReload = (cause: unknown): void =>
    emit({ type: "internal-error", where: "reload of the TLS files", cause });
  return HttpDoor.create(routes, options, { clock, timers: nodeTimers, onBadReload });
}

/** Hosts by which the configuration itself calls this server. */
function ownNames({ httpAddress, grpcAddress, nodeAdvertise }: Config): readonly string[] {
  const addresses = [httpAddress === "none" ? undefined : httpAddress, grpcAddress, nodeAdvertise];
  return addresses.flatMap((each) => (each === undefined ? [] : [each.host.toLowerCase()]));
}

/** What is served over HTTP. The first route that takes a path answers it. */
function routesOf(config: Config, { probes, telemetry, ...its }: HttpPorts): readonly Route[] {
  const { callTimes, tracing } = telemetry;
  const hasAdmin = config.adminAddress === undefined || config.httpAdmin === "on";
  const api = hasAdmin ? its.api : forCallers(its.api);
  const calls = new HttpCalls({ ...its, api, callTimes, tracing, timers: nodeTimers });
  const dropIn = { calls, handlers: its.plain, access: its.access, wallClock: its.wallClock };
  return [
    ...probeRoutes(probes),
    ...(servesHttpApi(config) ? [connectRoute(calls)] : []),
    config.httpLeaf ? leafRoute(dropIn) : unservedRoute(isLeafPath, OPTIONS.httpLeaf),
    config.httpTinyid ? tinyidRoute(dropIn) : unservedRoute(isTinyidPath, OPTIONS.httpTinyid),
    ...(servesConsole(config) ? [consoleRoute()] : []),
  ];
}

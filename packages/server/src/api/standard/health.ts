import { IdmintError } from "@idmint/core";
import {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthListRequest,
  HealthListResponse,
} from "@idmint/proto/health";
import type { Health } from "../../service/health.ts";
import { callerOf } from "../caller.ts";
import { type Handler, handlerOf, type HandlerPorts, watchHandlerOf } from "../method.ts";
import { NEEDS } from "../need.ts";

const SERVICE = "grpc.health.v1.Health";
/** The server as a whole. */
const SERVER = "";
/**
 * Serves as long as it can answer. An orchestrator that restarts what does not live must ask this name: a server that is
 * drained, overloaded or without its store does not serve, and a restart would take away the ids that it still has.
 */
const LIVENESS = "liveness";

/**
 * grpc.health.v1, for the server as a whole and for each of `services`, which share one state, and for `liveness`. Answered to
 * everybody, also while the server drains.
 */
export function healthHandlers(
  health: Health,
  services: readonly string[],
  ports: HandlerPorts,
): readonly Handler[] {
  const known: ReadonlySet<string> = new Set([SERVER, ...services, LIVENESS]);
  const statusOf = (service: string): HealthCheckResponse => {
    const serves = health.isServing || service === LIVENESS;
    return { status: serves ? ServingStatus.SERVING : ServingStatus.NOT_SERVING };
  };
  return [
    handlerOf(
      SERVICE,
      {
        name: "Check",
        request: HealthCheckRequest,
        response: HealthCheckResponse,
        need: NEEDS.nothing,
        call: ({ service }) => {
          if (known.has(service)) return statusOf(service);
          throw new IdmintError("SERVICE_NOT_FOUND", "there is no such service; List names them");
        },
        whileDraining: true,
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "List",
        request: HealthListRequest,
        response: HealthListResponse,
        need: NEEDS.nothing,
        call: () => ({
          statuses: Object.fromEntries([...known].map((name) => [name, statusOf(name)])),
        }),
        whileDraining: true,
      },
      ports,
    ),
    watchHandlerOf(SERVICE, {
      name: "Watch",
      request: HealthCheckRequest,
      response: HealthCheckResponse,
      need: NEEDS.nothing,
      open: ({ service }, { peer, send, end }) => {
        const isKnown = known.has(service);
        const changes = isKnown && service !== LIVENESS;
        const changed = changes ? () => send(statusOf(service)) : () => undefined;
        const stop = health.watch({ peer, caller: callerOf(peer), changed, end });
        // An unknown service may be known after an update, so the protocol keeps the stream open.
        send(isKnown ? statusOf(service) : { status: ServingStatus.SERVICE_UNKNOWN });
        return stop;
      },
    }),
  ];
}

import { IdmintError } from "@idmint/core";
import type { Admission } from "../service/admission/admission.ts";
import type { Counters } from "../service/counters.ts";
import type { AuditList } from "../service/audit/list.ts";
import type { AuditTrail } from "../service/audit/trail.ts";
import type { Drain } from "../service/drain.ts";
import type { DecodeService } from "../service/issue/decode.ts";
import type { IdService } from "../service/issue/ids.ts";
import type { Health } from "../service/health.ts";
import type { OwnFigures } from "../service/figures/parts.ts";
import type { PlainIds } from "../service/issue/plain-ids.ts";
import type { NodeService } from "../service/node.ts";
import type { Emit } from "../service/events.ts";
import type { WorkerService } from "../service/worker-ids/service.ts";
import type { IssuingService } from "../service/tags/issuing.ts";
import type { CapacityService } from "../service/tags/capacity.ts";
import type { LookupIdService } from "../service/tags/lookup-id.ts";
import type { TagService } from "../service/tags/service.ts";
import type { TrafficService } from "../service/traffic.ts";
import { capacityHandler } from "./capacity.ts";
import type { Access } from "../service/access/access.ts";
import type { TokenService } from "../service/access/tokens.ts";
import { accessHandlers } from "./access-service.ts";
import { auditHandler } from "./audit-service.ts";
import { decodeHandler } from "./decode.ts";
import { healthHandlers } from "./standard/health.ts";
import { ledgerHandlers } from "./ledger.ts";
import { figuresHandler, type FleetOfFigures } from "./nodes/figures.ts";
import { idHandlers } from "./id-service.ts";
import { type PlainHandlers, plainHandlers } from "./plain-ids.ts";
import type { Authorise, Handler, HandlerPorts, ServerTold } from "./method.ts";
import { nodeHandlers, trafficHandlers } from "./nodes/node-service.ts";
import { reflectionHandlers } from "./standard/reflection.ts";
import { tagHandlers } from "./tag-service.ts";
import { workerHandlers } from "./worker-service.ts";

/** The one table of handlers, keyed by the method's path. Doors register it; none of them adds to it. */
export type Api = ReadonlyMap<string, Handler>;

/** Everybody may do everything; rules take this place. */
export const allowAll: Authorise = () => undefined;

interface ApiServices extends Gates {
  readonly ids: IdService;
  readonly decoder: DecodeService;
  readonly capacity: CapacityService;
  readonly lookups: LookupIdService;
  readonly tags: TagService;
  readonly workers: WorkerService;
  readonly node: NodeService;
  readonly health: Health;
  readonly issuing: IssuingService;
  readonly own: OwnFigures;
  readonly fleet: FleetOfFigures;
  readonly traffic: TrafficService;
  readonly tokens: TokenService;
  readonly access: Pick<Access, "rightsOf">;
  readonly wallClock: () => number;
  readonly auditList: AuditList;
}

/** What every call passes, whatever it is about. */
interface Gates {
  readonly admission: Admission;
  readonly drain: Drain;
  readonly audit: AuditTrail;
  readonly authorise: Authorise;
  readonly counters: Counters;
  readonly emit: Emit;
}

export function createApi(services: ApiServices): Api {
  const { ids, decoder, tags, workers, node, issuing, traffic, tokens, wallClock } = services;
  const told = (): ServerTold => ({ nodesVersion: node.nodesVersion, nodeId: node.id });
  const ports = { ...portsOf(services), told };
  const handlers = [
    ...idHandlers(ids, ports),
    auditHandler(services.auditList, ports),
    decodeHandler(decoder, ports),
    ...tagHandlers(tags, ports),
    capacityHandler(services.capacity, ports),
    ...ledgerHandlers(services.lookups, ports),
    ...workerHandlers(workers, { ...ports, wallClock }),
    ...nodeHandlers(node, issuing, ports),
    figuresHandler(services.own, services.fleet, ports),
    ...trafficHandlers(traffic, node, ports),
    ...accessHandlers(tokens, services.access, ports),
  ];
  const names = new Set(handlers.map(({ path }) => path.split("/")[1] ?? ""));
  const others = [...healthHandlers(services.health, [...names], ports), ...reflectionHandlers()];
  return new Map([...handlers, ...others].map((handler) => [handler.path, handler]));
}

/** Rows for routes that answer bare numbers, behind the same gates. They are none of the API, and no door of gRPC has them. */
export function createPlainHandlers(ids: PlainIds, gates: Gates): PlainHandlers {
  return plainHandlers(ids, portsOf(gates));
}

function portsOf({ admission, audit, authorise, drain, counters, emit }: Gates): HandlerPorts {
  return { audit, authorise: audited(authorise, audit), drain, admission, counters, emit };
}

/** The same, and the audit trail is told of everybody who is refused. Makes nothing for calls that are allowed. */
function audited(inner: Authorise, audit: Pick<AuditTrail, "refused">): Authorise {
  return (context, path, request, rule) => {
    try {
      const permission = inner(context, path, request, rule);
      return permission instanceof Promise
        ? permission.catch(refusing(audit, context, path, request, rule))
        : permission;
    } catch (thrown) {
      return refusing(audit, context, path, request, rule)(thrown);
    }
  };
}

function refusing(
  audit: Pick<AuditTrail, "refused">,
  ...[context, path, request, rule]: Parameters<Authorise>
): (thrown: unknown) => never {
  return (thrown) => {
    const error = IdmintError.from(thrown);
    if (error.reason === "UNAUTHENTICATED" || error.reason === "PERMISSION_DENIED") {
      const name = rule.about(request);
      audit.refused(context, path, name === "" ? "" : `tag/${name}`, error);
    }
    throw thrown;
  };
}

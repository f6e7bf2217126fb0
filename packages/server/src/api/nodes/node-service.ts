import { durationOf, type IdmintError, invalidField } from "@idmint/core";
import {
  DrainNodeRequest,
  DrainNodeResponse,
  ForgetNodeRequest,
  ForgetNodeResponse,
  GetIssuingRequest,
  GetIssuingResponse,
  GetNodeStatusRequest,
  GetNodeStatusResponse,
  GetNodeTimeRequest,
  GetNodeTimeResponse,
  ListNodesRequest,
  ListNodesResponse,
  type Node,
  NodeState,
  ResumeIssuingRequest,
  ResumeIssuingResponse,
  SetNodeWeightRequest,
  SetNodeWeightResponse,
  StopIssuingRequest,
  StopIssuingResponse,
  StoreBackend,
  StoreState,
  UndrainNodeRequest,
  UndrainNodeResponse,
} from "@idmint/proto";
import type { ListedNode, NodeService, NodeStatus } from "../../service/node.ts";
import type { IssuingService } from "../../service/tags/issuing.ts";
import type { TrafficAnswer, TrafficService } from "../../service/traffic.ts";
import type { BackendName } from "../../store/shared/backends.ts";
import { effectOf } from "../tag-service.ts";
import { type Handler, handlerOf, type HandlerPorts } from "../method.ts";
import { NEEDS } from "../need.ts";

const SERVICE = "idmint.v1.NodeService";

const STORE_BACKENDS: Readonly<Record<BackendName, StoreBackend>> = {
  sqlite: StoreBackend.SQLITE,
  postgres: StoreBackend.POSTGRES,
  etcd: StoreBackend.ETCD,
};

/** Answered while the server drains too: that is when people ask. */
export function nodeHandlers(
  node: NodeService,
  issuing: IssuingService,
  ports: HandlerPorts,
): readonly Handler[] {
  return [
    ...issuingHandlers(issuing, ports),
    handlerOf(
      SERVICE,
      {
        name: "GetNodeStatus",
        request: GetNodeStatusRequest,
        response: GetNodeStatusResponse,
        need: NEEDS.observeAll,
        call: () => statusOf(node),
        whileDraining: true,
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "GetNodeTime",
        request: GetNodeTimeRequest,
        response: GetNodeTimeResponse,
        need: NEEDS.nothing,
        call: () => ({ time: new Date(node.time()), nodeId: node.id }),
        whileDraining: true,
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "ListNodes",
        request: ListNodesRequest,
        response: ListNodesResponse,
        need: NEEDS.known,
        call: (request) => {
          const { nodes, nextPageToken, nodesVersion } = node.list(request);
          return { nodes: nodes.map(nodeOf), nextPageToken, nodesVersion, nodeId: node.id };
        },
        whileDraining: true,
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "ForgetNode",
        request: ForgetNodeRequest,
        response: ForgetNodeResponse,
        need: NEEDS.adminAll,
        call: async ({ nodeId, validateOnly }, _, by) => {
          await node.forget(nodeId, { validateOnly, by });
          return {};
        },
      },
      ports,
    ),
  ];
}

function issuingHandlers(issuing: IssuingService, ports: HandlerPorts): readonly Handler[] {
  return [
    handlerOf(
      SERVICE,
      {
        name: "StopIssuing",
        request: StopIssuingRequest,
        response: StopIssuingResponse,
        need: NEEDS.adminAll,
        isBrake: true,
        call: async ({ validateOnly }, _, by) => {
          const { stoppedAtMs, effect } = await issuing.stop({ validateOnly, by });
          return { stoppedTime: timeOf(stoppedAtMs), ...effectOf(effect) };
        },
        whileDraining: true,
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "ResumeIssuing",
        request: ResumeIssuingRequest,
        response: ResumeIssuingResponse,
        need: NEEDS.adminAll,
        call: async ({ validateOnly }, _, by) => {
          await issuing.resume({ validateOnly, by });
          return {};
        },
        whileDraining: true,
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "GetIssuing",
        request: GetIssuingRequest,
        response: GetIssuingResponse,
        need: NEEDS.observeAll,
        call: async () => {
          const { stoppedAtMs, effect } = await issuing.get();
          const stoppedTime = timeOf(stoppedAtMs);
          const { isInEffect: inEffect, isHeldForEver: heldForEver } = effect;
          return { stoppedTime, ...effectOf(effect), inEffect, heldForEver };
        },
        whileDraining: true,
      },
      ports,
    ),
  ];
}

/**
 * Answered while the server drains too: a drained server can be undrained through itself.
 */
export function trafficHandlers(
  traffic: TrafficService,
  node: NodeService,
  ports: HandlerPorts,
): readonly Handler[] {
  const whileDraining = true;
  const answer = ({ nodes, lagging, laggingCount }: TrafficAnswer): DrainNodeResponse => ({
    nodes: nodes.map((seen) => nodeOf(node.listed(seen))),
    laggingNodes: lagging.map((seen) => nodeOf(node.listed(seen))),
    laggingNodeCount: laggingCount,
  });
  return [
    handlerOf(
      SERVICE,
      {
        name: "SetNodeWeight",
        request: SetNodeWeightRequest,
        response: SetNodeWeightResponse,
        need: NEEDS.adminAll,
        call: async ({ node: named, weight, validateOnly }, context, by) => {
          if (weight === undefined) {
            throw invalidField("weight", "is required; 0 is a weight too", "FIELD_REQUIRED");
          }
          return answer(await traffic.set({ node: named, weight }, { validateOnly, by }, context));
        },
        whileDraining,
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "DrainNode",
        request: DrainNodeRequest,
        response: DrainNodeResponse,
        need: NEEDS.adminAll,
        call: async ({ node: named, validateOnly }, context, by) =>
          answer(
            await traffic.set({ node: named, isDraining: true }, { validateOnly, by }, context),
          ),
        whileDraining,
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "UndrainNode",
        request: UndrainNodeRequest,
        response: UndrainNodeResponse,
        need: NEEDS.adminAll,
        call: async ({ node: named, validateOnly }, context, by) =>
          answer(
            await traffic.set({ node: named, isDraining: false }, { validateOnly, by }, context),
          ),
        whileDraining,
      },
      ports,
    ),
  ];
}

function nodeOf({ row, seenAtMs, isAlive, traffic }: ListedNode): Node {
  const { id, instance, address, version, zone, startedAtMs, maxOfflineMs } = row;
  return {
    nodeId: id,
    instance,
    address,
    version,
    zone,
    startTime: startedAtMs === 0 ? undefined : new Date(startedAtMs),
    heardTime: new Date(seenAtMs),
    alive: isAlive,
    maxOffline: maxOfflineMs === undefined ? undefined : durationOf(maxOfflineMs),
    weight: traffic.weight,
    draining: traffic.isDraining,
  };
}

export function statusOf(node: NodeService): GetNodeStatusResponse {
  const status = node.status();
  return {
    nodeId: status.nodeId,
    version: status.version,
    state: NodeState[status.state],
    stateReason: status.stateReason,
    startTime: new Date(status.startedAtMs),
    store: {
      backend: storeBackend(status),
      state: storeState(status),
      schemaVersion: status.schemaVersion,
      fenceReason: status.fenced,
      place: status.place,
    },
    bufferedTags: status.bufferedTags,
    issuedIds: BigInt(status.issuedIds),
    wastedIds: BigInt(status.wastedIds),
    ticketDatabases: status.ticketDatabases.map(({ name, error }) => ({
      name,
      state: ticketState(error),
      reason: error?.message ?? "",
    })),
    stoppedTime: timeOf(status.stoppedAtMs),
  };
}

/** UNSPECIFIED for one that the API has no name for: an embedder's own. */
function storeBackend({ backend }: NodeStatus): StoreBackend {
  const known: Readonly<Record<string, StoreBackend>> = STORE_BACKENDS;
  return known[backend] ?? StoreBackend.UNSPECIFIED;
}

function storeState({ fenced, reachable }: NodeStatus): StoreState {
  if (fenced !== "") return StoreState.FENCED;
  return reachable ? StoreState.GRANTING : StoreState.UNREACHABLE;
}

function ticketState(error: IdmintError | undefined): StoreState {
  if (error === undefined) return StoreState.GRANTING;
  return error.retryable ? StoreState.UNREACHABLE : StoreState.FENCED;
}

function timeOf(ms: number | undefined): Date | undefined {
  return ms === undefined ? undefined : new Date(ms);
}

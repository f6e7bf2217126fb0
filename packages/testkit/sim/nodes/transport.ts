import { IdmintError } from "@idmint/core";
import {
  AllocateSegmentRequest,
  AllocateSegmentResponse,
  GenerateIdsRequest,
  GenerateIdsResponse,
  GetNodeTimeRequest,
  GetNodeTimeResponse,
  LeaseWorkerRequest,
  LeaseWorkerResponse,
  ListNodesRequest,
  ListNodesResponse,
  ReleaseSegmentRequest,
  ReleaseSegmentResponse,
  ReleaseWorkerLeaseRequest,
  ReleaseWorkerLeaseResponse,
  RenewWorkerLeaseRequest,
  RenewWorkerLeaseResponse,
} from "@idmint/proto";
import {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus,
} from "@idmint/proto/health";
import type { Transport } from "../../../client/src/servers/channel.ts";
import { failureOf } from "../../../client/src/servers/errors.ts";
import { type Rpc, RpcFailure } from "../world/rpc.ts";
import type { World } from "../world/world.ts";

/** How a message is written; the generated code of each has it. */
export interface Codec<Message> {
  encode(message: Message): { finish(): Uint8Array };
  decode(bytes: Uint8Array): Message;
}

/** A method as its caller sees it. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly request: Codec<Request>;
  readonly response: Codec<Response>;
}

export function method<Request, Response>(
  path: string,
  request: Codec<Request>,
  response: Codec<Response>,
): Method<Request, Response> {
  return { path, request, response };
}

const IDS = "/idmint.v1.IdService";
const WORKERS = "/idmint.v1.WorkerService";
const NODES = "/idmint.v1.NodeService";

export const METHODS = {
  allocate: method(`${IDS}/AllocateSegment`, AllocateSegmentRequest, AllocateSegmentResponse),
  generate: method(`${IDS}/GenerateIds`, GenerateIdsRequest, GenerateIdsResponse),
  release: method(`${IDS}/ReleaseSegment`, ReleaseSegmentRequest, ReleaseSegmentResponse),
  lease: method(`${WORKERS}/LeaseWorker`, LeaseWorkerRequest, LeaseWorkerResponse),
  renew: method(`${WORKERS}/RenewWorkerLease`, RenewWorkerLeaseRequest, RenewWorkerLeaseResponse),
  giveUp: method(
    `${WORKERS}/ReleaseWorkerLease`,
    ReleaseWorkerLeaseRequest,
    ReleaseWorkerLeaseResponse,
  ),
  time: method(`${NODES}/GetNodeTime`, GetNodeTimeRequest, GetNodeTimeResponse),
  nodes: method(`${NODES}/ListNodes`, ListNodesRequest, ListNodesResponse),
  health: method("/grpc.health.v1.Health/Check", HealthCheckRequest, HealthCheckResponse),
};

const MAX_LISTED = 1_000;

/** Who calls. */
export interface Caller {
  readonly rpc: Rpc;
  readonly world: World;
  /** What proves it. */
  readonly authorization?: string | undefined;
  readonly onStart?: ((cancel: () => void) => () => void) | undefined;
}

/** Makes a call, once. Rejects with IdmintError. */
export async function callOnce<Request, Response>(
  { rpc, world, authorization, onStart }: Caller,
  to: string,
  { path, request, response }: Method<Request, Response>,
  message: Request,
  timeoutMs: number,
): Promise<Response> {
  try {
    const bytes = request.encode(message).finish();
    return response.decode(
      await rpc.call(world, { to, path, bytes, timeoutMs, authorization, onStart }),
    );
  } catch (thrown) {
    if (!(thrown instanceof RpcFailure)) throw thrown;
    throw failureOf(to, timeoutMs, thrown);
  }
}

export interface SimTransportPorts extends Pick<Caller, "rpc" | "world"> {
  /** Asked for each request. */
  readonly authorization: () => string | undefined;
}

/** The SDK's way to servers, in the place of grpc-js. */
export function simTransport({ authorization, ...ports }: SimTransportPorts): Transport {
  const inFlight = new Set<() => void>();
  let isClosed = false;
  const onStart = (cancel: () => void): (() => void) => {
    inFlight.add(cancel);
    return () => inFlight.delete(cancel);
  };
  const call =
    <Request, Response>(its: Method<Request, Response>) =>
    async (endpoint: string, request: Request, timeoutMs: number): Promise<Response> => {
      if (isClosed) throw new IdmintError("CLIENT_CLOSED", "the client was closed");
      const caller = { ...ports, authorization: authorization(), onStart };
      return callOnce(caller, endpoint, its, request, timeoutMs);
    };
  const isServing: Transport["isServing"] = async (endpoint, timeoutMs) => {
    try {
      const answer = await call(METHODS.health)(endpoint, { service: "" }, timeoutMs);
      return answer.status === HealthCheckResponse_ServingStatus.SERVING;
    } catch {
      return undefined;
    }
  };
  return {
    allocate: call(METHODS.allocate),
    generate: call(METHODS.generate),
    release: call(METHODS.release),
    lease: call(METHODS.lease),
    renewLease: call(METHODS.renew),
    releaseLease: call(METHODS.giveUp),
    isServing,
    identify: async (endpoint, timeoutMs) => {
      const [node, serving] = await Promise.all([
        call(METHODS.time)(endpoint, {}, timeoutMs).catch(() => undefined),
        isServing(endpoint, timeoutMs),
      ]);
      if (node === undefined || serving === undefined) return undefined;
      return { nodeId: node.nodeId, isServing: serving };
    },
    listNodes: async (endpoint, timeoutMs) => {
      try {
        const request = { pageSize: MAX_LISTED, pageToken: "" };
        const answer = await call(METHODS.nodes)(endpoint, request, timeoutMs);
        const { nodeId, nodes, nodesVersion } = answer;
        const servers = nodes.map((node) => ({
          nodeId: node.nodeId,
          address: node.address,
          zone: node.zone,
          weight: node.weight,
          isDraining: node.draining,
          isAlive: node.alive,
          heardAtMs: node.heardTime?.getTime() ?? 0,
        }));
        return { nodeId, version: nodesVersion, servers };
      } catch {
        return undefined;
      }
    },
    forget: () => undefined,
    close: () => {
      isClosed = true;
      for (const cancel of inFlight) cancel();
    },
  };
}

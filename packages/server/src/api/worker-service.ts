import { durationOf, type RenewedWorkerLease } from "@idmint/core";
import type { Worker as DomainWorker } from "@idmint/core/server";
import {
  LeaseWorkerRequest,
  LeaseWorkerResponse,
  ListWorkersRequest,
  ListWorkersResponse,
  ReleaseWorkerLeaseRequest,
  ReleaseWorkerLeaseResponse,
  RenewWorkerLeaseRequest,
  RenewWorkerLeaseResponse,
  type Worker,
} from "@idmint/proto";
import type { WorkerService } from "../service/worker-ids/service.ts";
import { wholeMillisecondsOf } from "./duration.ts";
import { type ProtoKind, protoKindOf } from "./kind-values.ts";
import {
  type Handler,
  handlerOf,
  type HandlerPorts,
  type Method,
  type ServerTold,
} from "./method.ts";
import { NEEDS } from "./need.ts";

const SERVICE = "idmint.v1.WorkerService";

export function workerHandlers(
  workers: WorkerService,
  ports: HandlerPorts & {
    readonly wallClock: () => number;
    readonly told: () => ServerTold;
  },
): readonly Handler[] {
  const row = <Request, Response>(method: Method<Request, Response>): Handler =>
    handlerOf(SERVICE, method, ports);
  return [
    row({
      name: "LeaseWorker",
      request: LeaseWorkerRequest,
      response: LeaseWorkerResponse,
      need: NEEDS.issue,
      about: ({ tag }) => tag,
      call: async ({ tag, instance, dataCenter, reserveAhead }, context) => {
        const reserveAheadMs = wholeMillisecondsOf(reserveAhead);
        return leased(
          await workers.lease({ tag, instance, dataCenter, reserveAheadMs }, context),
          ports.told(),
        );
      },
    }),
    row({
      name: "RenewWorkerLease",
      request: RenewWorkerLeaseRequest,
      response: RenewWorkerLeaseResponse,
      need: NEEDS.issue,
      about: ({ tag }) => tag,
      call: async ({ reserveAhead, ...fields }, context) =>
        renewed(
          await workers.renew(
            { ...fields, reserveAheadMs: wholeMillisecondsOf(reserveAhead) },
            context,
          ),
          ports.told(),
        ),
      // Who makes ids under a lease needs a moment to go to another server.
      whileDraining: true,
    }),
    row({
      name: "ReleaseWorkerLease",
      request: ReleaseWorkerLeaseRequest,
      response: ReleaseWorkerLeaseResponse,
      need: NEEDS.issue,
      about: ({ tag }) => tag,
      call: async (key, context) => {
        await workers.release(key, context);
        return {};
      },
      whileDraining: true,
    }),
    row({
      name: "ListWorkers",
      request: ListWorkersRequest,
      response: ListWorkersResponse,
      need: NEEDS.observe,
      about: ({ tag }) => tag,
      call: async (query, context) => pageOf(await workers.list(query, context), ports.wallClock()),
    }),
  ];
}

function leased(
  lease: Awaited<ReturnType<WorkerService["lease"]>>,
  told: ServerTold,
): LeaseWorkerResponse {
  const { dataCenter, workerId, notBeforeMs, kind } = lease;
  const { value } = protoKindOf(kind) as Extract<ProtoKind, { $case: "snowflake" }>;
  return {
    ...renewed(lease, told),
    dataCenter,
    workerId,
    notBeforeMs: BigInt(notBeforeMs),
    snowflake: value,
  };
}

function renewed(lease: RenewedWorkerLease, told: ServerTold): RenewWorkerLeaseResponse {
  const { token, ttlMs, extension, reservedUntilMs, nowMs, epoch } = lease;
  return {
    token,
    ttl: durationOf(ttlMs),
    extension,
    reservedUntilMs: BigInt(reservedUntilMs),
    nowMs: BigInt(nowMs),
    epoch,
    ...told,
  };
}

function pageOf(
  { workers, nextPageToken }: Awaited<ReturnType<WorkerService["list"]>>,
  nowMs: number,
): ListWorkersResponse {
  return { workers: workers.map((worker) => workerOf(worker, nowMs)), nextPageToken };
}

/** Whether a lease has ended is told by this server's clock, for people to look at. */
function workerOf(worker: DomainWorker, nowMs: number): Worker {
  const { dataCenter, workerId, instance, extension, reservedUntilMs, expiresAtMs } = worker;
  return {
    dataCenter,
    workerId,
    instance,
    extension,
    reservedUntilTime: new Date(reservedUntilMs),
    expireTime: new Date(expiresAtMs),
    leased: expiresAtMs > nowMs,
  };
}

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
import { protoKindOf } from "./convert-kind.ts";
import { wholeMillisecondsOf } from "./duration.ts";
import { type Handler, handlerOf, type HandlerPorts } from "./method.ts";

const SERVICE = "idmint.v1.WorkerService";

export function workerHandlers(
  workers: WorkerService,
  ports: HandlerPorts & { readonly wallClock: () => number },
): readonly Handler[] {
  return [
    handlerOf(
      SERVICE,
      {
        name: "LeaseWorker",
        request: LeaseWorkerRequest,
        response: LeaseWorkerResponse,
        call: async ({ tag, instance, dataCenter, reserveAhead }, context) => {
          const reserveAheadMs = wholeMillisecondsOf(reserveAhead);
          return leased(
            await workers.lease({ tag, instance, dataCenter, reserveAheadMs }, context),
          );
        },
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "RenewWorkerLease",
        request: RenewWorkerLeaseRequest,
        response: RenewWorkerLeaseResponse,
        call: async ({ reserveAhead, ...wish }, context) =>
          renewed(
            await workers.renew(
              { ...wish, reserveAheadMs: wholeMillisecondsOf(reserveAhead) },
              context,
            ),
          ),
        // Who makes ids under a lease needs a moment to go to another server.
        whileDraining: true,
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "ReleaseWorkerLease",
        request: ReleaseWorkerLeaseRequest,
        response: ReleaseWorkerLeaseResponse,
        call: async (key, context) => {
          await workers.release(key, context);
          return {};
        },
        whileDraining: true,
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "ListWorkers",
        request: ListWorkersRequest,
        response: ListWorkersResponse,
        call: async (query, context) => {
          const page = await workers.list(query, context);
          const nowMs = ports.wallClock();
          const shown = page.workers.map((worker) => workerOf(worker, nowMs));
          return { workers: shown, nextPageToken: page.nextPageToken };
        },
      },
      ports,
    ),
  ];
}

function leased(lease: Awaited<ReturnType<WorkerService["lease"]>>): LeaseWorkerResponse {
  const { dataCenter, workerId, notBeforeMs, kind } = lease;
  const settings = protoKindOf(kind);
  return {
    ...renewed(lease),
    dataCenter,
    workerId,
    notBeforeMs: BigInt(notBeforeMs),
    snowflake: settings.$case === "snowflake" ? settings.value : undefined,
  };
}

function renewed(lease: RenewedWorkerLease): RenewWorkerLeaseResponse {
  const { token, ttlMs, extension, reservedUntilMs, nowMs, epoch } = lease;
  return {
    token,
    ttl: durationOf(ttlMs),
    extension,
    reservedUntilMs: BigInt(reservedUntilMs),
    nowMs: BigInt(nowMs),
    epoch,
  };
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

import {
  durationOf,
  type HolderPorts,
  IdmintError,
  millisecondsOf,
  type RenewedWorkerLease,
  type WorkerLease,
  type WorkerLeaseKey,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import type { ClockPolicy, SnowflakeKind } from "@idmint/core/kinds";
import {
  ClockPolicy as WirePolicy,
  type LeaseWorkerResponse,
  type SnowflakeKind as WireKind,
} from "@idmint/proto";
import type { Endpoints } from "../servers/endpoints.ts";
import type { Route } from "../servers/fleet.ts";

const POLICIES: ReadonlyMap<number, ClockPolicy> = new Map([
  [WirePolicy.REFUSE, "REFUSE" as const],
  [WirePolicy.EXTENSION, "EXTENSION" as const],
  [WirePolicy.BACKUP_WORKER, "BACKUP_WORKER" as const],
]);
/** How long giving a lease back may take, in milliseconds. */
const RELEASE_TIMEOUT_MS = 500;
/** Renewals in the time of one reservation; a try may take until the next one is due. */
const RENEWALS_PER_RESERVATION = 3;

/** A lease and the settings of its tag, as they were when it was leased. */
export interface LeaseAnswer {
  readonly lease: WorkerLease;
  readonly kind: SnowflakeKind;
}

type Registry = HolderPorts["registry"];

/**
 * The registry of worker ids of one tag, as core's lease holder wants it, over WorkerService.
 *
 * INVARIANT: ids are made with the settings that came with their lease. Each answer to a lease carries the settings. A lease
 * with other settings than those the source was made with is refused with WRONG_KIND. A renewal in another epoch counts as
 * a lost lease, because the settings may differ there.
 */
export class LeaseCalls implements Registry {
  readonly #endpoints: Endpoints;
  readonly #route: Route;
  /** The endpoint that answered last. Leases are given back to it. */
  #endpoint = "";
  #first: LeaseAnswer | undefined;
  #kind: string | undefined;
  #epoch = 0n;

  constructor(endpoints: Endpoints, route: Route) {
    this.#endpoints = endpoints;
    this.#route = route;
  }

  /** Leases a worker id before the tag's settings are known; the next `leaseWorker` answers this lease. */
  async begin(request: WorkerLeaseRequest): Promise<SnowflakeKind> {
    const first = await this.#lease(request);
    this.#first = first;
    this.#kind = JSON.stringify(first.kind);
    return first.kind;
  }

  /** Gives back the lease of `begin` that nobody will use. */
  async abandon(tag: string): Promise<void> {
    const lease = this.#first?.lease;
    if (lease !== undefined) await this.releaseWorker({ ...lease, tag });
  }

  async leaseWorker(request: WorkerLeaseRequest): Promise<WorkerLease> {
    const { lease, kind } = this.#first ?? (await this.#lease(request));
    this.#first = undefined;
    if (JSON.stringify(kind) !== this.#kind) {
      const text = `the settings of tag "${request.tag}" have changed; the SDK looks them up again`;
      throw new IdmintError("WRONG_KIND", text, { metadata: { tag: request.tag } });
    }
    this.#epoch = lease.epoch;
    return lease;
  }

  renewWorker(renewal: WorkerRenewal): Promise<RenewedWorkerLease> {
    const { tag, dataCenter, workerId, token, extension } = renewal;
    const request = {
      tag,
      dataCenter,
      workerId,
      token,
      extension,
      reserveUntilMs: BigInt(renewal.reserveUntilMs),
      reserveAhead: durationOf(renewal.reserveAheadMs),
    };
    const timeoutMs = renewal.reserveAheadMs / RENEWALS_PER_RESERVATION;
    return this.#endpoints.renewLease(this.#route, request, timeoutMs, ({ answer, endpoint }) => {
      this.#endpoint = endpoint;
      if (answer.epoch === this.#epoch) return reservationOf(answer);
      const text = `tag "${tag}" was changed by an operator; the SDK leases a worker id again`;
      throw new IdmintError("WORKER_LEASE_LOST", text, { metadata: { tag } });
    });
  }

  releaseWorker({ tag, dataCenter, workerId, token }: WorkerLeaseKey): Promise<void> {
    const request = { tag, dataCenter, workerId, token };
    return this.#endpoints.releaseLease(this.#endpoint, request, RELEASE_TIMEOUT_MS);
  }

  #lease({ tag, instance, dataCenter, reserveAheadMs }: WorkerLeaseRequest): Promise<LeaseAnswer> {
    const request = { tag, instance, dataCenter, reserveAhead: durationOf(reserveAheadMs) };
    return this.#endpoints.lease(this.#route, request, ({ answer, endpoint }) => {
      this.#endpoint = endpoint;
      return leaseAnswerOf(tag, answer);
    });
  }
}

function leaseAnswerOf(tag: string, answer: LeaseWorkerResponse): LeaseAnswer {
  const { dataCenter, workerId, notBeforeMs, snowflake } = answer;
  const kind = snowflake === undefined ? undefined : snowflakeKindOf(snowflake);
  if (kind === undefined) {
    const text = `the server leased a worker id of tag "${tag}" with settings that this SDK does not know`;
    throw new IdmintError("INTERNAL", text, { metadata: { tag } });
  }
  const place = { dataCenter, workerId, notBeforeMs: Number(notBeforeMs) };
  return { lease: { ...reservationOf(answer), ...place }, kind };
}

function reservationOf(
  answer: Pick<
    LeaseWorkerResponse,
    "epoch" | "extension" | "nowMs" | "reservedUntilMs" | "token" | "ttl"
  >,
): RenewedWorkerLease {
  const { token, extension, epoch } = answer;
  return {
    token,
    ttlMs: millisecondsOf(answer.ttl) ?? 0,
    extension,
    reservedUntilMs: Number(answer.reservedUntilMs),
    nowMs: Number(answer.nowMs),
    epoch,
  };
}

/** Settings from a server's answer, where none is missing; undefined when one is missing or unknown. */
function snowflakeKindOf(wire: WireKind): SnowflakeKind | undefined {
  const { layout, dataCenter } = wire;
  const clockPolicy = POLICIES.get(wire.clockPolicy);
  const clockWaitMs = millisecondsOf(wire.clockWait);
  const timeUnitMs = millisecondsOf(layout?.timeUnit);
  const timeOriginMs = layout?.timeOrigin?.getTime();
  if (layout === undefined || clockPolicy === undefined || clockWaitMs === undefined)
    return undefined;
  if (timeUnitMs === undefined || timeOriginMs === undefined) return undefined;
  const { timeBits, extensionBits, dataCenterBits, workerBits, sequenceBits } = layout;
  return {
    kind: "snowflake",
    layout: {
      timeUnitMs,
      timeOriginMs,
      timeBits,
      extensionBits,
      dataCenterBits,
      workerBits,
      sequenceBits,
    },
    dataCenter,
    clockPolicy,
    clockWaitMs,
    // An SDK need not know where servers keep leases.
    registry: "STORE",
  };
}

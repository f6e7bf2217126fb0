import {
  assertNoViolations,
  DEFAULT_RESERVE_AHEAD_MS,
  type FieldViolation,
  type IdmintError,
  instanceViolation,
  MAX_WORKER_BITS,
  type RenewedWorkerLease,
  reserveAheadViolation,
  tagNameViolation,
  type WorkerLease,
  type WorkerLeaseKey,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import type { Worker, WorkerRegistry } from "@idmint/core/server";
import type { AdminGate } from "../admin-gate.ts";
import type { Patience } from "../call.ts";
import { decodePageToken, encodePageToken, pageLimitOf, pageSizeViolation } from "../page-token.ts";

/** The end of the calendar of the API: no time is reserved beyond it. */
const MAX_TIME_MS = 253_402_300_799_999;
const MAX_DATA_CENTER = 65_535;
const MAX_WORKER_ID = 2 ** MAX_WORKER_BITS - 1;
const MAX_EXTENSION = 255;
/** Most reads of the registry for one page. */
const MAX_READS = 1_000;

/** Fields of a request as they came: `undefined` for those that were left out. */
export interface LeaseFields extends Omit<WorkerLeaseRequest, "reserveAheadMs"> {
  /** NaN: no whole number of milliseconds. */
  readonly reserveAheadMs: number | undefined;
}

export interface RenewalFields extends Omit<WorkerRenewal, "reserveUntilMs" | "reserveAheadMs"> {
  readonly reserveUntilMs: bigint;
  readonly reserveAheadMs: number | undefined;
}

/** Which workers are to be listed. */
export interface WorkerQuery {
  readonly tag: string;
  readonly pageSize: number;
  readonly pageToken: string;
  /** Undefined: of all worker ids. */
  readonly workerId?: number | undefined;
}

interface IdQuery {
  readonly tag: string;
  readonly after: { readonly dataCenter: number } | undefined;
  readonly workerId: number;
  readonly limit: number;
}

/** A page of workers, by data center and worker id. */
export interface WorkerPage {
  readonly workers: readonly Worker[];
  readonly nextPageToken: string;
}

/** A tag with worker ids: the settings that ids are made by, and who leases worker ids of which epoch. */
interface TagWorkers {
  readonly kind: SnowflakeKind;
  readonly registry: WorkerRegistry;
  readonly epoch: bigint;
  /** Why the tag may not issue now; undefined when it may. */
  readonly refusal: () => IdmintError | undefined;
}

/** Where the workers of a tag are. Rejects when it may not issue, or has none; those of a paused tag may be listed. */
export type WorkersOf = (
  tag: string,
  call: Patience,
  what: "lease" | "list",
) => Promise<TagWorkers>;

/** Leases worker ids to those who make ids themselves. Each call is tried once and bounded in time. */
export class WorkerService {
  readonly #workersOf: WorkersOf;
  readonly #gate: AdminGate;

  constructor(ports: { workersOf: WorkersOf; gate: AdminGate }) {
    this.#workersOf = ports.workersOf;
    this.#gate = ports.gate;
  }

  /** A lease, with the settings of the tag that ids are made by. */
  async lease(
    fields: LeaseFields,
    call: Patience,
  ): Promise<WorkerLease & { readonly kind: SnowflakeKind }> {
    const { reserveAheadMs = DEFAULT_RESERVE_AHEAD_MS, ...rest } = fields;
    assertNoViolations(
      tagNameViolation("tag", fields.tag),
      instanceViolation("instance", fields.instance),
      reserveAheadViolation("reserve_ahead", reserveAheadMs),
    );
    // The settings are those of the epoch that the lease is asked for in.
    const workers = await this.#workersOf(fields.tag, call, "lease");
    const { kind, epoch } = workers;
    const request = { ...rest, reserveAheadMs, epoch };
    const lease = await this.#reserved(workers, (registry) => registry.leaseWorker(request));
    return { ...lease, kind };
  }

  async renew(fields: RenewalFields, call: Patience): Promise<RenewedWorkerLease> {
    const { reserveAheadMs = DEFAULT_RESERVE_AHEAD_MS, reserveUntilMs, ...rest } = fields;
    const isTime = reserveUntilMs >= 0n && reserveUntilMs <= MAX_TIME_MS;
    assertNoViolations(
      ...keyViolations(fields),
      rangeViolation("extension", fields.extension, MAX_EXTENSION),
      reserveAheadViolation("reserve_ahead", reserveAheadMs),
      isTime
        ? undefined
        : {
            field: "reserve_until_ms",
            description: `must be 0 to ${MAX_TIME_MS}, in milliseconds since 1970, got ${reserveUntilMs}`,
            reason: "VALUE_OUT_OF_RANGE",
          },
    );
    const renewal = { ...rest, reserveUntilMs: Number(reserveUntilMs), reserveAheadMs };
    const workers = await this.#workersOf(fields.tag, call, "lease");
    return this.#reserved(workers, (registry) => registry.renewWorker(renewal));
  }

  /**
   * INVARIANT: no time is answered that was asked for before this server obeyed a stop, and reserved after: others count
   * from its obedience for how long callers may still use what they were answered.
   */
  async #reserved<T>(
    { registry, refusal }: TagWorkers,
    ask: (registry: WorkerRegistry) => Promise<T>,
  ): Promise<T> {
    const answer = await this.#gate.run(() => ask(registry));
    const late = refusal();
    if (late !== undefined) throw late;
    return answer;
  }

  async release(key: WorkerLeaseKey, call: Patience): Promise<void> {
    assertNoViolations(...keyViolations(key));
    const { registry } = await this.#workersOf(key.tag, call, "lease");
    await this.#gate.run(() => registry.releaseWorker(key));
  }

  async list(query: WorkerQuery, call: Patience): Promise<WorkerPage> {
    const { tag, pageSize, pageToken, workerId } = query;
    const list = ["workers", tag, String(workerId ?? "all")];
    const after = placeOf(decodePageToken(pageToken, list));
    assertNoViolations(
      tagNameViolation("tag", tag),
      workerId === undefined ? undefined : rangeViolation("worker_id", workerId, MAX_WORKER_ID),
      pageSizeViolation(pageSize),
      after === "no place"
        ? {
            field: "page_token",
            description: "belongs to another list: send it with the same tag and worker_id",
            reason: "INVALID_PAGE_TOKEN",
          }
        : undefined,
    );
    if (after === "no place") throw new Error("a violation went missing");
    const { registry } = await this.#workersOf(tag, call, "list");
    const limit = pageLimitOf(pageSize);
    if (workerId !== undefined) {
      const { workers, next } = await this.#withId(registry, { tag, after, workerId, limit });
      const nextPageToken = next === undefined ? "" : encodePageToken(`${next}:${workerId}`, list);
      return { workers, nextPageToken };
    }
    // One more than asked for tells whether there is a next page.
    const found = await this.#gate.run(() =>
      registry.listWorkers({ tag, after, limit: limit + 1 }),
    );
    const workers = found.slice(0, limit);
    const last = workers.at(-1);
    if (found.length <= limit || last === undefined) return { workers, nextPageToken: "" };
    const nextPageToken = encodePageToken(`${last.dataCenter}:${last.workerId}`, list);
    return { workers, nextPageToken };
  }

  /**
   * The workers with one worker id, from data center to data center, without a look at all others. `next`: the data center
   * after which the next page begins.
   */
  async #withId(
    registry: WorkerRegistry,
    { tag, after, workerId, limit }: IdQuery,
  ): Promise<{ readonly workers: readonly Worker[]; readonly next: number | undefined }> {
    const workers: Worker[] = [];
    let dataCenter = after === undefined ? 0 : after.dataCenter + 1;
    for (let reads = 0; reads < MAX_READS && workers.length < limit; reads++) {
      const before = { dataCenter, workerId: workerId - 1 };
      // Each depends on the one before.
      const [found] = await this.#gate.run(() =>
        registry.listWorkers({ tag, after: before, limit: 1 }),
      );
      if (found === undefined) return { workers, next: undefined };
      const isIt = found.workerId === workerId;
      if (isIt) workers.push(found);
      dataCenter = found.dataCenter + (isIt || found.workerId > workerId ? 1 : 0);
    }
    return { workers, next: dataCenter - 1 };
  }
}

function keyViolations(key: WorkerLeaseKey): readonly (FieldViolation | undefined)[] {
  return [
    tagNameViolation("tag", key.tag),
    rangeViolation("data_center", key.dataCenter, MAX_DATA_CENTER),
    rangeViolation("worker_id", key.workerId, MAX_WORKER_ID),
    key.token >= 1n
      ? undefined
      : {
          field: "token",
          description: "is required: the token of the answer before",
          reason: "FIELD_REQUIRED",
        },
  ];
}

function rangeViolation(field: string, value: number, max: number): FieldViolation | undefined {
  if (value >= 0 && value <= max) return undefined;
  const description = `must be 0 to ${max}, as it was answered, got ${value}`;
  return { field, description, reason: "VALUE_OUT_OF_RANGE" };
}

/** What a page of the list begins after. */
function placeOf(
  text: string | undefined,
): { dataCenter: number; workerId: number } | undefined | "no place" {
  if (text === "") return undefined;
  const [, dataCenter, workerId] = /^(\d{1,5}):(\d{1,7})$/.exec(text ?? "") ?? [];
  if (dataCenter === undefined) return "no place";
  return { dataCenter: Number(dataCenter), workerId: Number(workerId) };
}

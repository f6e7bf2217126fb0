// Registries of worker ids, for suites and walks.
import {
  maxIdOf,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
  type WorkerLease,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import type {
  AcceptStore,
  TagSettings,
  TagStore,
  Worker,
  WorkerRegistry,
} from "@idmint/core/server";

/** A registry with the tags its workers are of, as if in a server of its own. */
export type OpenRegistry = WorkerRegistry &
  TagStore &
  AcceptStore & {
    close(): Promise<void>;
  };

/** A fresh, empty registry for one test. */
export interface RegistryHarness {
  /** Where its tags have their workers. */
  readonly place: Pick<SnowflakeKind, "registry" | "redisServer">;
  /** Opens another handle. */
  open(): Promise<OpenRegistry>;
  /** Moves what all rows of workers say of time into the past, as if so many milliseconds had gone by. */
  pass(ms: number): Promise<void>;
  /** Removes the registry; its handles are closed by then. */
  remove(): Promise<void>;
}

export const TTL_MS: number = 30_000;
export const AHEAD_MS: number = 3_000;
/** The furthest that a reservation leads the registry's clock beyond what was asked ahead. */
export const LEAD_MS: number = 10_000;
/** Registries answer by their own clock, and tests run for a while. */
export const SLACK_MS: number = 15_000;

/** Settings of a tag of kind snowflake: 3 data centers' bits, 2 of workers, 1 of extension, unless told otherwise. */
export function snowflakeOf(
  name: string,
  harness: Pick<RegistryHarness, "place">,
  more: Partial<Omit<SnowflakeKind, "kind" | "layout">> & Partial<SnowflakeLayout> = {},
): TagSettings {
  const { dataCenter, clockPolicy, clockWaitMs, registry, redisServer, ...bits } = more;
  const layout: SnowflakeLayout = {
    ...SNOWFLAKE_PRESETS["41-10-12"],
    extensionBits: harness.place.registry === "STORE" ? 1 : 0,
    dataCenterBits: 3,
    workerBits: 2,
    ...bits,
  };
  const place = {
    ...harness.place,
    ...(registry === undefined ? {} : { registry }),
    ...(redisServer === undefined ? {} : { redisServer }),
  };
  return {
    name,
    description: "",
    order: "UNORDERED",
    ceiling: maxIdOf(layout),
    kind: {
      kind: "snowflake",
      layout,
      dataCenter: dataCenter ?? 0,
      clockPolicy: clockPolicy ?? "REFUSE",
      clockWaitMs: clockWaitMs ?? 5,
      ...place,
    },
  };
}

export function leaseOf(
  instance: string,
  more: Partial<WorkerLeaseRequest> = {},
): WorkerLeaseRequest {
  return { tag: "t", instance, dataCenter: undefined, reserveAheadMs: AHEAD_MS, ...more };
}

export function renewalOf(
  lease: Pick<WorkerLease, "dataCenter" | "workerId" | "token" | "extension" | "nowMs">,
  more: Partial<WorkerRenewal> = {},
): WorkerRenewal {
  const { dataCenter, workerId, token, extension, nowMs } = lease;
  const reserveAheadMs = AHEAD_MS;
  const reserveUntilMs = nowMs + reserveAheadMs;
  const key = { tag: "t", dataCenter, workerId, token };
  return { ...key, extension, reserveUntilMs, reserveAheadMs, ...more };
}

/** Registers a case. */
export type WorkerSuite = (
  title: string,
  run: (
    registry: OpenRegistry,
    harness: RegistryHarness,
    open: () => Promise<OpenRegistry>,
  ) => Promise<void>,
) => void;

export async function all(registry: WorkerRegistry, tag = "t"): Promise<readonly Worker[]> {
  return registry.listWorkers({ tag, after: undefined, limit: 1_000 });
}

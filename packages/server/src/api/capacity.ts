import { durationOf } from "@idmint/core";
import type { Horizon, LimitName } from "@idmint/core/server";
import {
  type CapacityLimit,
  CapacityLimitKind,
  GetTagCapacityRequest,
  GetTagCapacityResponse,
} from "@idmint/proto";
import type { Capacity, CapacityService } from "../service/tags/capacity.ts";
import { type Handler, handlerOf, type HandlerPorts } from "./method.ts";
import { NEEDS } from "./need.ts";

const KINDS: Readonly<Record<LimitName, CapacityLimitKind>> = {
  CEILING: CapacityLimitKind.CEILING,
  INT32: CapacityLimitKind.INT32,
  SAFE_INTEGER: CapacityLimitKind.SAFE_INTEGER,
  TIME_BITS: CapacityLimitKind.TIME_BITS,
  REDIS_MAX: CapacityLimitKind.REDIS_MAX,
};

/** The row of GetTagCapacity. */
export function capacityHandler(capacity: CapacityService, ports: HandlerPorts): Handler {
  return handlerOf(
    "idmint.v1.TagService",
    {
      name: "GetTagCapacity",
      request: GetTagCapacityRequest,
      response: GetTagCapacityResponse,
      need: NEEDS.observe,
      about: ({ name }) => name,
      call: async ({ name }, context) => answerOf(await capacity.capacity(name, context)),
    },
    ports,
  );
}

function answerOf({ rate, horizons, workerIds }: Capacity): GetTagCapacityResponse {
  return {
    idsPerSecond: rate?.idsPerSecond,
    watched: rate === undefined ? undefined : durationOf(Math.round(rate.watchedMs)),
    limits: horizons.map(limitOf),
    workers: workerIds,
  };
}

function limitOf({ limit, lastId = 0n, left, runsOutAtMs }: Horizon): CapacityLimit {
  const runOutTime = runsOutAtMs === undefined ? undefined : new Date(runsOutAtMs);
  return { kind: KINDS[limit], lastId, idsLeft: left, runOutTime };
}

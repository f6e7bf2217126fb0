import {
  AllocateSegmentRequest,
  AllocateSegmentResponse,
  GenerateIdRequest,
  GenerateIdResponse,
  GenerateIdsRequest,
  GenerateIdsResponse,
  ReleaseSegmentRequest,
  ReleaseSegmentResponse,
} from "@idmint/proto";
import type { Allocation, IdService, ManyIds } from "../service/ids.ts";
import { durationOf, orderOf, segmentsOf } from "./convert.ts";
import { type Handler, handlerOf, type HandlerPorts } from "./method.ts";

const SERVICE = "idmint.v1.IdService";

export function idHandlers(ids: IdService, ports: HandlerPorts): readonly Handler[] {
  return [
    handlerOf(
      SERVICE,
      {
        name: "GenerateId",
        request: GenerateIdRequest,
        response: GenerateIdResponse,
        call: ({ tag }, context) => ids.generateId(tag, context),
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "GenerateIds",
        request: GenerateIdsRequest,
        response: GenerateIdsResponse,
        call: (request, context) => map(ids.generateIds(request, context), manyIds),
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "AllocateSegment",
        request: AllocateSegmentRequest,
        response: AllocateSegmentResponse,
        call: (request, context) => map(ids.allocateSegment(request, context), allocation),
      },
      ports,
    ),
    handlerOf(
      SERVICE,
      {
        name: "ReleaseSegment",
        request: ReleaseSegmentRequest,
        response: ReleaseSegmentResponse,
        call: (request) => ({ reclaimedCount: ids.releaseSegment(request) }),
        // What an SDK gives back while this server stops can still go back to the store.
        whileDraining: true,
      },
      ports,
    ),
  ];
}

function manyIds({ segments, ids, epoch }: ManyIds): GenerateIdsResponse {
  return { segments: segmentsOf(segments), ids: [...ids], epoch };
}

function allocation(answer: Allocation): AllocateSegmentResponse {
  return {
    segments: segmentsOf(answer.segments),
    epoch: answer.epoch,
    releaseToken: answer.releaseToken,
    maxAge: durationOf(answer.maxAgeMs),
    order: orderOf(answer.order),
  };
}

function map<T, U>(value: T | Promise<T>, change: (value: T) => U): U | Promise<U> {
  return value instanceof Promise ? value.then(change) : change(value);
}

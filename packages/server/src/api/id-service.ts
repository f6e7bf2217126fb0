import { durationOf, invalidField, periodText } from "@idmint/core";
import {
  type AllocateSegmentResponse,
  type GenerateIdResponse,
  GenerateIdsRequest,
  GenerateIdsResponse,
  ReleaseSegmentRequest,
  ReleaseSegmentResponse,
  type StreamIdsRequest,
  type StreamIdsResponse,
} from "@idmint/proto";
import type { Patience } from "../service/call.ts";
import type { Allocation, IdService, ManyIds, OneId } from "../service/issue/ids.ts";
import { allocateSegmentRequest, allocateSegmentResponse } from "./codec/allocate-segment.ts";
import { generateIdRequest, generateIdResponse } from "./codec/generate-id.ts";
import { streamIdsRequest, streamIdsResponse } from "./codec/stream-ids.ts";
import { orderOf, periodOf, segmentsOf } from "./convert.ts";
import {
  type Handler,
  handlerOf,
  type HandlerPorts,
  type Method,
  type ServerTold,
  streamHandlerOf,
} from "./method.ts";
import { NEEDS } from "./need.ts";

const SERVICE = "idmint.v1.IdService";
/** Whoever has a stream chose its server already. */
const UNTOLD: ServerTold = { nodesVersion: 0, nodeId: "" };

export function idHandlers(
  ids: IdService,
  ports: HandlerPorts & { readonly told: () => ServerTold },
): readonly Handler[] {
  const { told } = ports;
  const row = <Request, Response>(method: Method<Request, Response>): Handler =>
    handlerOf(SERVICE, method, ports);
  return [
    row({
      name: "GenerateId",
      request: generateIdRequest,
      response: generateIdResponse,
      need: NEEDS.issue,
      about: ({ tag }) => tag,
      call: ({ tag, name }, context) => map(ids.generateId(tag, context, name), oneId),
      cost: ({ tag }) => ({ tag, ids: 1 }),
    }),
    row({
      name: "GenerateIds",
      request: GenerateIdsRequest,
      response: GenerateIdsResponse,
      need: NEEDS.issue,
      about: ({ tag }) => tag,
      call: (request, context) =>
        map(ids.generateIds(request, context), (many) => manyIds(many, told())),
      cost: ({ tag, count }) => ({ tag, ids: count }),
    }),
    row({
      name: "AllocateSegment",
      request: allocateSegmentRequest,
      response: allocateSegmentResponse,
      need: NEEDS.issue,
      about: ({ tag }) => tag,
      call: (request, context) =>
        map(ids.allocateSegment(request, context, context.principal?.name), (answer) =>
          allocation(answer, told()),
        ),
      cost: ({ tag, count }) => ({ tag, ids: count }),
    }),
    row({
      name: "ReleaseSegment",
      request: ReleaseSegmentRequest,
      response: ReleaseSegmentResponse,
      need: NEEDS.issue,
      about: ({ tag }) => tag,
      call: (request) => map(ids.releaseSegment(request), (reclaimedCount) => ({ reclaimedCount })),
      // What an SDK gives back while this server stops can still go back to the store.
      whileDraining: true,
    }),
    streamHandler(ids, ports),
  ];
}

function streamHandler(ids: IdService, ports: HandlerPorts): Handler {
  return streamHandlerOf(
    SERVICE,
    {
      name: "StreamIds",
      request: streamIdsRequest,
      response: streamIdsResponse,
      need: NEEDS.issue,
      about: ({ tag }) => tag,
      open: (context) => streamOf(ids, context),
      complete: tagsKept,
      cost: ({ tag, count }) => ({ tag, ids: Math.max(1, count) }),
      refusal: ({ call }, error): StreamIdsResponse => ({
        call,
        result: { $case: "error", value: error },
      }),
    },
    ports,
  );
}

/** A tag holds until another one is named. */
function tagsKept(): (request: StreamIdsRequest) => StreamIdsRequest {
  let last = "";
  return (request) => {
    const { call, tag, count, name } = request;
    if (tag === "") return { call, tag: last, count, name };
    last = tag;
    return request;
  };
}

function streamOf(
  ids: IdService,
  patience: Patience,
): (request: StreamIdsRequest) => StreamIdsResponse | Promise<StreamIdsResponse> {
  return ({ call, tag, count, name }) => {
    if (count === 0 || count === 1) {
      return map(ids.generateId(tag, patience, name), (one): StreamIdsResponse => ({
        call,
        result: { $case: "one", value: oneId(one) },
      }));
    }
    if (name !== "") {
      const text = "must be empty with a count above 1: one name makes one id";
      throw invalidField("name", text, "FIELD_CONFLICT");
    }
    const many = ids.generateIds({ tag, count, asList: false, textsAnyway: true }, patience);
    return map(many, (several): StreamIdsResponse => ({
      call,
      result: { $case: "many", value: manyIds(several, UNTOLD) },
    }));
  };
}

function oneId({ id, text, epoch, period }: OneId): GenerateIdResponse {
  if (period === undefined) return { id, epoch, period: "", text, periodEndTime: undefined };
  const answer = periodOf(period);
  return { id, epoch, text: text === "" ? periodText(answer.period, id) : text, ...answer };
}

function manyIds(
  { segments, ids, texts, epoch, period }: ManyIds,
  told: ServerTold,
): GenerateIdsResponse {
  const written = { ids: [...ids], texts: [...texts] };
  return { segments: segmentsOf(segments), ...written, epoch, ...told, ...periodOf(period) };
}

function allocation(answer: Allocation, told: ServerTold): AllocateSegmentResponse {
  return {
    segments: segmentsOf(answer.segments),
    epoch: answer.epoch,
    releaseToken: answer.releaseToken,
    maxAge: durationOf(answer.maxAgeMs),
    order: orderOf(answer.order),
    maxCount: answer.maxCount,
    ...told,
  };
}

function map<T, U>(value: T | Promise<T>, change: (value: T) => U): U | Promise<U> {
  return value instanceof Promise ? value.then(change) : change(value);
}

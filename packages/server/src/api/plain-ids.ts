import { IdmintError } from "@idmint/core";
import {
  AllocateSegmentRequest,
  AllocateSegmentResponse,
  GenerateIdRequest,
  GenerateIdResponse,
  GenerateIdsRequest,
  GenerateIdsResponse,
} from "@idmint/proto";
import type { CallContext } from "../service/call.ts";
import type { ManyIds, OneId } from "../service/issue/ids.ts";
import type { KeptSegment, PlainIds } from "../service/issue/plain-ids.ts";
import { orderOf, segmentsOf } from "./convert.ts";
import { handlerOf, type HandlerPorts, type UnaryHandler } from "./method.ts";
import { NEEDS } from "./need.ts";

const SERVICE = "idmint.v1.IdService";

/**
 * Rows of IdService for routes that answer bare numbers. They are called, admitted, charged, refused and counted as the
 * rows of their names, and refuse whatever a bare number does not tell whole.
 */
export interface PlainHandlers {
  readonly one: UnaryHandler;
  readonly snowflake: UnaryHandler;
  readonly many: UnaryHandler;
  /** Its count is the tag's own; that of the request is not read. */
  readonly segment: UnaryHandler;
}

export function plainHandlers(ids: PlainIds, ports: HandlerPorts): PlainHandlers {
  const one = (kind?: "snowflake"): UnaryHandler =>
    handlerOf(
      SERVICE,
      {
        name: "GenerateId",
        request: GenerateIdRequest,
        response: GenerateIdResponse,
        need: NEEDS.issue,
        about: ({ tag }) => tag,
        call: ({ tag }, context) => map(ids.one(tag, context, kind), oneId),
        cost: ({ tag }) => ({ tag, ids: 1 }),
      },
      ports,
    );
  const many = handlerOf(
    SERVICE,
    {
      name: "GenerateIds",
      request: GenerateIdsRequest,
      response: GenerateIdsResponse,
      need: NEEDS.issue,
      about: ({ tag }) => tag,
      call: ({ tag, count }, context) => map(ids.many(tag, count, context), manyIds),
      cost: ({ tag, count }) => ({ tag, ids: count }),
    },
    ports,
  );
  return { one: one(), snowflake: one("snowflake"), many, segment: segmentHandler(ids, ports) };
}

function segmentHandler(ids: PlainIds, ports: HandlerPorts): UnaryHandler {
  const { admission } = ports;
  const allocate = (
    { tag, instance }: AllocateSegmentRequest,
    context: CallContext,
  ): KeptSegment | Promise<KeptSegment> =>
    ids.segment(tag, context, { instance, principal: context.principal?.name ?? "" });
  /** What a tag costs is not known before the tag is, so its first call here is charged once more. */
  const allocateUnknown = async (
    request: AllocateSegmentRequest,
    context: CallContext,
  ): Promise<KeptSegment> => {
    const { tag } = request;
    const step = await ids.findStep(tag, context);
    if (!admission.hasQuotas) return allocate(request, context);
    return admission.charged(context, { tag, ids: step }, () => allocate(request, context));
  };
  return handlerOf(
    SERVICE,
    {
      name: "AllocateSegment",
      request: AllocateSegmentRequest,
      response: AllocateSegmentResponse,
      need: NEEDS.issue,
      about: ({ tag }) => tag,
      call: (request, context) => {
        const isKnown = ids.stepOf(request.tag) !== undefined;
        return map(isKnown ? allocate(request, context) : allocateUnknown(request, context), kept);
      },
      cost: ({ tag }) => ({ tag, ids: ids.stepOf(tag) ?? 0 }),
    },
    ports,
  );
}

function oneId({ id, text, epoch, period }: OneId): GenerateIdResponse {
  assertNumber(text === "" && period === undefined);
  return { id, epoch, period: "", text: "", periodEndTime: undefined };
}

function manyIds({ ids, texts, epoch, period }: ManyIds): GenerateIdsResponse {
  assertNumber(texts.length === 0 && period === undefined);
  const nothing = { segments: [], texts: [], nodesVersion: 0, nodeId: "" };
  return { ...nothing, ids: [...ids], epoch, period: "", periodEndTime: undefined };
}

/** A tag may be deleted and made again while a call of it waits. */
function assertNumber(isNumber: boolean): void {
  if (!isNumber)
    throw new IdmintError("WRONG_KIND", "the tag was made anew with other ids; ask again");
}

function kept({ segment, epoch }: KeptSegment): AllocateSegmentResponse {
  return {
    segments: segmentsOf([segment]),
    epoch,
    releaseToken: "",
    maxAge: undefined,
    order: orderOf("UNORDERED"),
    maxCount: 0,
    nodesVersion: 0,
    nodeId: "",
  };
}

function map<T, U>(value: T | Promise<T>, change: (value: T) => U): U | Promise<U> {
  return value instanceof Promise ? value.then(change) : change(value);
}

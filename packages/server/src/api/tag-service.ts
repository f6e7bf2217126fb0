import { invalidField } from "@idmint/core";
import { periodName } from "@idmint/core/server";
import {
  AdvanceTagRequest,
  AdvanceTagResponse,
  CreateTagRequest,
  CreateTagResponse,
  DeleteTagRequest,
  DeleteTagResponse,
  GetTagEffectRequest,
  GetTagEffectResponse,
  GetTagRequest,
  GetTagResponse,
  ListPeriodsRequest,
  ListPeriodsResponse,
  ListTagsRequest,
  ListTagsResponse,
  MoveTagRequest,
  MoveTagResponse,
  PauseTagRequest,
  PauseTagResponse,
  ResumeTagRequest,
  ResumeTagResponse,
  ReturnToPeriodRequest,
  ReturnToPeriodResponse,
  type Tag,
  UpdateTagRequest,
  UpdateTagResponse,
} from "@idmint/proto";
import type { TagEffect } from "../service/tags/effects.ts";
import type { Changed, TagService } from "../service/tags/service.ts";
import { draftOf, outputOnlyViolations, tagOf } from "./convert.ts";
import { type Handler, handlerOf, type HandlerPorts, type Method } from "./method.ts";
import { NEEDS } from "./need.ts";

const SERVICE = "idmint.v1.TagService";

export function tagHandlers(tags: TagService, ports: HandlerPorts): readonly Handler[] {
  const row = <Request, Response>(method: Method<Request, Response>): Handler =>
    handlerOf(SERVICE, method, ports);
  return [
    ...settingsHandlers(tags, row),
    ...stateHandlers(tags, row),
    ...periodHandlers(tags, row),
  ];
}

type AsHandler = <Request, Response>(method: Method<Request, Response>) => Handler;

function settingsHandlers(tags: TagService, row: AsHandler): readonly Handler[] {
  return [
    row({
      name: "CreateTag",
      request: CreateTagRequest,
      response: CreateTagResponse,
      need: NEEDS.admin,
      about: ({ tag }) => tag?.name ?? "",
      tagsMade: ({ validateOnly }) => (validateOnly ? 0 : 1),
      call: async (request, _, by) => {
        const tag = required(request.tag);
        const { validateOnly } = request;
        const options = { validateOnly, by };
        const made = await tags.create(draftOf(tag), outputOnlyViolations(tag), options);
        return { tag: tagOf(made) };
      },
    }),
    row({
      name: "GetTag",
      request: GetTagRequest,
      response: GetTagResponse,
      need: NEEDS.issueOrObserve,
      about: ({ name }) => name,
      call: async ({ name }) => ({ tag: tagOf(await tags.get(name)) }),
    }),
    row({
      name: "ListTags",
      request: ListTagsRequest,
      response: ListTagsResponse,
      need: NEEDS.observeAll,
      about: ({ prefix }) => prefix,
      call: async (request) => {
        const page = await tags.list(request);
        const unreachable = page.unreadable.map(({ tag }) => tag);
        return { tags: page.tags.map(tagOf), unreachable, nextPageToken: page.nextPageToken };
      },
    }),
    row({
      name: "UpdateTag",
      request: UpdateTagRequest,
      response: UpdateTagResponse,
      need: NEEDS.admin,
      about: ({ tag }) => tag?.name ?? "",
      call: async (request, _, by) => {
        const tag = required(request.tag);
        const paths = request.updateMask ?? [];
        const options = { validateOnly: request.validateOnly, by };
        return { tag: tagOf(await tags.update(draftOf(tag), tag.etag, paths, options)) };
      },
    }),
  ];
}

function stateHandlers(tags: TagService, row: AsHandler): readonly Handler[] {
  return [
    row({
      name: "DeleteTag",
      request: DeleteTagRequest,
      response: DeleteTagResponse,
      need: NEEDS.admin,
      about: ({ name }) => name,
      call: async (request, _, by) => changed(await tags.delete({ ...request, by })),
    }),
    row({
      name: "AdvanceTag",
      request: AdvanceTagRequest,
      response: AdvanceTagResponse,
      need: NEEDS.admin,
      about: ({ name }) => name,
      call: async (request, _, by) => {
        const answer = await tags.advance({ ...request, by });
        return { ...changed(answer), raised: answer.raised };
      },
    }),
    row({
      name: "PauseTag",
      request: PauseTagRequest,
      response: PauseTagResponse,
      need: NEEDS.admin,
      isBrake: true,
      about: ({ name }) => name,
      call: async (request, _, by) => changed(await tags.pause({ ...request, by })),
    }),
    row({
      name: "GetTagEffect",
      request: GetTagEffectRequest,
      response: GetTagEffectResponse,
      need: NEEDS.observe,
      about: ({ name }) => name,
      call: async ({ name }) => {
        const answer = await tags.effect(name);
        const { isInEffect: inEffect, isHeldForEver: heldForEver } = answer.effect;
        return { ...changed(answer), inEffect, heldForEver };
      },
    }),
    row({
      name: "ResumeTag",
      request: ResumeTagRequest,
      response: ResumeTagResponse,
      need: NEEDS.admin,
      about: ({ name }) => name,
      call: async (request, _, by) => ({ tag: changed(await tags.resume({ ...request, by })).tag }),
    }),
    row({
      name: "MoveTag",
      request: MoveTagRequest,
      response: MoveTagResponse,
      need: NEEDS.admin,
      about: ({ name }) => name,
      call: async (request, _, by) => ({ tag: tagOf(await tags.move({ ...request, by })) }),
    }),
  ];
}

function periodHandlers(tags: TagService, row: AsHandler): readonly Handler[] {
  return [
    row({
      name: "ReturnToPeriod",
      request: ReturnToPeriodRequest,
      response: ReturnToPeriodResponse,
      need: NEEDS.admin,
      about: ({ name }) => name,
      call: async (request, _, by) => {
        const answer = await tags.returnToPeriod({ ...request, by });
        return { ...changed(answer), returned: answer.returned };
      },
    }),
    row({
      name: "ListPeriods",
      request: ListPeriodsRequest,
      response: ListPeriodsResponse,
      need: NEEDS.observe,
      about: ({ name }) => name,
      call: async (request) => {
        const { unit, periods, nextPageToken } = await tags.listPeriods(request);
        return {
          periods: periods.map(({ start, lastId, endedAtMs }) => ({
            period: periodName({ unit, start }),
            lastId,
            endTime: new Date(endedAtMs),
          })),
          nextPageToken,
        };
      },
    }),
  ];
}

function changed({ tag, effect }: Changed): PauseTagResponse {
  return { tag: tagOf(tag), ...effectOf(effect) };
}

/** By when a change is in effect, and who has not confirmed it. */
export function effectOf({
  effectiveAtMs,
  laggards,
  laggardCount,
}: TagEffect): Omit<PauseTagResponse, "tag"> {
  return {
    effectiveTime: effectiveAtMs === undefined ? undefined : new Date(effectiveAtMs),
    laggingNodes: laggards.map(({ id, instance, address, database, seenAtMs, stopsAtMs }) => ({
      nodeId: id,
      instance,
      address,
      database,
      heardTime: new Date(seenAtMs),
      stopTime: stopsAtMs === undefined ? undefined : new Date(stopsAtMs),
    })),
    laggingNodeCount: laggardCount,
  };
}

function required(tag: Tag | undefined): Tag {
  if (tag === undefined) throw invalidField("tag", "is required", "FIELD_REQUIRED");
  return tag;
}

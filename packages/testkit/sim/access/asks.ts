import {
  AdvanceTagRequest,
  AdvanceTagResponse,
  AllocateSegmentRequest,
  GenerateIdsRequest,
  GetAccessRequest,
  GetAccessResponse,
  GetNodeStatusRequest,
  GetNodeStatusResponse,
  GetTagEffectRequest,
  GetTagEffectResponse,
  GetTagRequest,
  GetTagResponse,
  ListNodesRequest,
  ListTagsRequest,
  ListTagsResponse,
  ListTokensRequest,
  ListTokensResponse,
} from "@idmint/proto";
import { segmentsOf } from "../../../client/src/answers.ts";
import type { Got } from "../check/checker.ts";
import { GENERATE_ID, gotOf, gotOfOne } from "../load.ts";
import { METHODS, method, type Method } from "../nodes/transport.ts";
import type { SimRight } from "./access-plan.ts";

type Role = SimRight["role"];
export type Asking = <Request, Response>(
  its: Method<Request, Response>,
  request: Request,
) => Promise<Response>;

/** What somebody may want, and what docs/access.md says that it takes. */
export interface Ask {
  readonly what: string;
  /** One of these; none: whoever is known may. */
  readonly roles: readonly Role[];
  /** Whether it is about all tags whose names begin like the name. */
  readonly isBeginning?: boolean;
  /** Answers what came that must not have come; undefined: nothing. */
  readonly ask: (asking: Asking, name: string, mayAll: (tag: string) => boolean) => Promise<Answer>;
}

export interface Answer {
  /** Ids that the caller has now. */
  readonly got?: Got;
  readonly wrong?: string | undefined;
}

const TAGS = "/idmint.v1.TagService";
const LIST_TAGS = method(`${TAGS}/ListTags`, ListTagsRequest, ListTagsResponse);
const ACCESS = method("/idmint.v1.AccessService/GetAccess", GetAccessRequest, GetAccessResponse);

function look<Request, Response>(
  path: string,
  request: Method<Request, Response>["request"] & { fromPartial(from: object): Request },
  response: Method<Request, Response>["response"],
  about: Pick<Ask, "roles" | "isBeginning"> & { readonly of?: (name: string) => object },
): Ask {
  const its = method(`/idmint.v1.${path}`, request, response);
  return {
    what: path,
    ...about,
    ask: async (asking, name) => {
      await asking(its, request.fromPartial(about.of?.(name) ?? {}));
      return {};
    },
  };
}

const ofName = (name: string): object => ({ name });
const ALL = { isBeginning: true } as const;

/** Calls that only look, or try what an administrator may. Of an empty name: for all tags. */
export const LOOKS: readonly Ask[] = [
  look("TagService/GetTag", GetTagRequest, GetTagResponse, {
    roles: ["issue", "observe"],
    of: ofName,
  }),
  look("TagService/GetTagEffect", GetTagEffectRequest, GetTagEffectResponse, {
    roles: ["observe"],
    of: ofName,
  }),
  look("TagService/AdvanceTag", AdvanceTagRequest, AdvanceTagResponse, {
    roles: ["admin"],
    of: (name) => ({ name, floor: 1n, validateOnly: true }),
  }),
  {
    what: "TagService/ListTags",
    roles: ["observe"],
    ...ALL,
    ask: async (asking, prefix, may) => {
      const { tags } = await asking(LIST_TAGS, ListTagsRequest.fromPartial({ prefix }));
      const strange = tags.find(({ name }) => !may(name));
      return { wrong: strange === undefined ? undefined : `it lists ${strange.name}` };
    },
  },
];

/** Calls about no tag of a name. */
export const LOOKS_AT_ALL: readonly Ask[] = [
  look("NodeService/GetNodeStatus", GetNodeStatusRequest, GetNodeStatusResponse, {
    roles: ["observe"],
    ...ALL,
  }),
  look("AccessService/ListTokens", ListTokensRequest, ListTokensResponse, {
    roles: ["admin"],
    ...ALL,
  }),
  {
    what: "NodeService/ListNodes",
    roles: [],
    ask: async (asking) => {
      await asking(METHODS.nodes, ListNodesRequest.fromPartial({ pageSize: 100 }));
      return {};
    },
  },
];

/** What its own rights are. */
export function ownAccess(principal: string): Ask {
  return {
    what: "AccessService/GetAccess",
    roles: [],
    ask: async (asking) => {
      const answer = await asking(ACCESS, GetAccessRequest.fromPartial({}));
      const isRight = answer.principal === principal;
      return { wrong: isRight ? undefined : `it is taken for ${answer.principal}` };
    },
  };
}

/** Calls that mint. */
export const MINTS: readonly Ask[] = [
  {
    what: "IdService/GenerateId",
    roles: ["issue"],
    ask: async (asking, tag) => ({
      got: gotOfOne(await asking(GENERATE_ID, { tag, name: "" })),
    }),
  },
  {
    what: "IdService/GenerateIds",
    roles: ["issue"],
    ask: async (asking, tag) => {
      const request = GenerateIdsRequest.fromPartial({ tag, count: 3, asList: true });
      return { got: gotOf(await asking(METHODS.generate, request), tag) };
    },
  },
];

/** Only of tags of segments. */
export const ALLOCATES: Ask = {
  what: "IdService/AllocateSegment",
  roles: ["issue"],
  ask: async (asking, tag) => {
    const request = AllocateSegmentRequest.fromPartial({ tag, count: 5, instance: "a guest" });
    const { segments } = await asking(METHODS.allocate, request);
    return { got: { segments: segmentsOf(segments, { tag, server: "any" }), period: "" } };
  },
};

/** Whether these rights give one of the roles: what docs/access.md says, and nothing of how the server decides. */
export function mayAsk(
  rights: readonly SimRight[],
  { roles, isBeginning = false }: Pick<Ask, "roles" | "isBeginning">,
  name: string,
): boolean {
  if (roles.length === 0) return true;
  return rights.some(({ role, tags }) => {
    const gives = roles.includes(role) || (role === "admin" && roles.includes("observe"));
    if (!gives) return false;
    if (tags.endsWith("*")) return name.startsWith(tags.slice(0, -1));
    return !isBeginning && tags === name;
  });
}

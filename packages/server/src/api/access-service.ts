import type {
  Token as DomainToken,
  Right as DomainRight,
  Role as RoleName,
} from "@idmint/core/server";
import {
  CreateTokenRequest,
  CreateTokenResponse,
  GetAccessRequest,
  GetAccessResponse,
  ListTokensRequest,
  ListTokensResponse,
  RevokeTokenRequest,
  RevokeTokenResponse,
  type Right,
  Role,
  type Token,
} from "@idmint/proto";
import type { Access } from "../service/access/access.ts";
import type { TokenService } from "../service/access/tokens.ts";
import { wholeMillisecondsOf } from "./duration.ts";
import { type Handler, handlerOf, type HandlerPorts, type Method } from "./method.ts";
import { NEEDS } from "./need.ts";

const SERVICE = "idmint.v1.AccessService";

const ROLES: Readonly<Record<RoleName, Role>> = {
  issue: Role.ISSUE,
  observe: Role.OBSERVE,
  admin: Role.ADMIN,
};

/** Answered while the server drains too: a token that leaked cannot wait. */
export function accessHandlers(
  tokens: TokenService,
  access: Pick<Access, "rightsOf">,
  ports: HandlerPorts,
): readonly Handler[] {
  const row = <Request, Response>(method: Method<Request, Response>): Handler =>
    handlerOf(SERVICE, { ...method, need: NEEDS.adminAll, whileDraining: true }, ports);
  return [
    handlerOf(
      SERVICE,
      {
        name: "GetAccess",
        request: GetAccessRequest,
        response: GetAccessResponse,
        need: NEEDS.known,
        call: (_, { principal }) => ({
          principal: principal?.name ?? "",
          rights: access.rightsOf(principal).map(rightOf),
        }),
        whileDraining: true,
      },
      ports,
    ),
    row({
      name: "CreateToken",
      request: CreateTokenRequest,
      response: CreateTokenResponse,
      need: NEEDS.adminAll,
      call: async (request, _, by) => {
        const { principal, lifetime, validateOnly } = request;
        const rights = request.rights.map(domainRight);
        const lifetimeMs = lifetime === undefined ? undefined : wholeMillisecondsOf(lifetime);
        const made = await tokens.create({ principal, rights, lifetimeMs }, { validateOnly, by });
        const { text, token, effectiveAtMs } = made;
        return { token: tokenOf(token), text, effectiveTime: new Date(effectiveAtMs) };
      },
    }),
    row({
      name: "ListTokens",
      request: ListTokensRequest,
      response: ListTokensResponse,
      need: NEEDS.adminAll,
      call: async (request) => {
        const page = await tokens.list(request);
        return { tokens: page.tokens.map(tokenOf), nextPageToken: page.nextPageToken };
      },
    }),
    row({
      name: "RevokeToken",
      request: RevokeTokenRequest,
      response: RevokeTokenResponse,
      need: NEEDS.adminAll,
      isBrake: true,
      call: async ({ tokenId, validateOnly }, _, by) => {
        const effectiveAtMs = await tokens.revoke(tokenId, { validateOnly, by });
        return { effectiveTime: new Date(effectiveAtMs) };
      },
    }),
  ];
}

/** A role that nobody knows stays what it is: its check names the field. */
function domainRight({ role, tags }: Right): DomainRight {
  const known = Object.entries(ROLES).find(([, number]) => number === role);
  return { role: (known?.[0] ?? String(role)) as RoleName, tags };
}

function tokenOf({ id, principal, rights, createdAtMs, expiresAtMs }: DomainToken): Token {
  return {
    tokenId: id,
    principal,
    rights: rights.map(rightOf),
    createTime: new Date(createdAtMs),
    expireTime: new Date(expiresAtMs),
  };
}

function rightOf({ role, tags }: DomainRight): Right {
  return { role: ROLES[role], tags };
}

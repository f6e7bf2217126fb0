import { durationFrom } from "@idmint/core/kinds";
import { cliLine } from "../../text/cli.ts";

export const ROLES = ["issue", "observe", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** A role for some tags, as it is typed. */
export interface TypedRight {
  readonly role: Role;
  readonly tags: string;
}

/** A token that is to be made, as it is typed. */
export interface TokenForm {
  readonly principal: string;
  readonly rights: readonly TypedRight[];
  /** With its unit, such as 90d. */
  readonly lifetime: string;
}

export const MAX_RIGHTS = 32;

export const EMPTY_FORM: TokenForm = {
  principal: "",
  rights: [{ role: "issue", tags: "" }],
  lifetime: "90d",
};

const DAY_MS = 86_400_000;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
const PATTERN = /^(?:\*|[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\*?)$/;

/** The fields that cannot be sent, by their paths in the request. The server checks them again, and decides. */
export function problemsOf({ principal, rights, lifetime }: TokenForm): readonly string[] {
  const ms = lifetimeMs(lifetime);
  return [
    ...(NAME.test(principal) ? [] : ["principal"]),
    ...rights.flatMap(({ tags }, at) => (PATTERN.test(tags) ? [] : [`rights[${at}].tags`])),
    ...(ms !== undefined && ms >= 60_000 && ms <= 366 * DAY_MS ? [] : ["lifetime"]),
  ];
}

/** Milliseconds of whole seconds; undefined: it is no length of time. */
function lifetimeMs(text: string): number | undefined {
  const ms = durationFrom(text);
  return ms === undefined ? undefined : Math.floor(ms / 1_000) * 1_000;
}

/** The request of CreateToken. */
export function requestOf({ principal, rights, lifetime }: TokenForm): {
  readonly principal: string;
  readonly rights: readonly { readonly role: string; readonly tags: string }[];
  readonly lifetime: string;
} {
  return {
    principal,
    rights: rights.map(({ role, tags }) => ({ role: `ROLE_${role.toUpperCase()}`, tags })),
    lifetime: `${(lifetimeMs(lifetime) ?? 0) / 1_000}s`,
  };
}

/** The command that makes the same. */
export function createCommand({ principal, rights, lifetime }: TokenForm): string {
  const of = (role: Role): readonly string[] =>
    rights.filter((right) => right.role === role).map(({ tags }) => tags);
  return cliLine(["token", "create", principal], {
    issue: of("issue"),
    observe: of("observe"),
    admin: of("admin"),
    expires: lifetime,
  });
}

/** The command that makes a token worthless. */
export function revokeCommand(tokenId: string): string {
  return cliLine(["token", "revoke", tokenId]);
}

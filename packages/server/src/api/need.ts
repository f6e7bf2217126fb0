import { type Role, rolesOf, type Subject } from "@idmint/core/server";

/** What a row of the table wants of its callers. */
export interface Need extends Subject {
  /** Answered to everybody, whoever they are. */
  readonly isOpen: boolean;
}

const forRoles = (...roles: readonly Role[]): Need => ({
  isOpen: false,
  roles: rolesOf(...roles),
  isBeginning: false,
});
const forAllTags = (need: Need): Need => ({ ...need, isBeginning: true });

type NeedName =
  | "nothing"
  | "known"
  | "issue"
  | "issueOrObserve"
  | "observe"
  | "admin"
  | "observeAll"
  | "adminAll";

/**
 * The needs there are. A row with a role says in `about` for which tag; without that, and in the needs for all tags, the
 * role must be held for every tag there may be.
 */
export const NEEDS: Readonly<Record<NeedName, Need>> = {
  /** Says nothing that a stranger must not know, and changes nothing. */
  nothing: { isOpen: true, roles: 0, isBeginning: false },
  /** Whoever is known may, whatever their rights. */
  known: forRoles(),
  issue: forRoles("issue"),
  issueOrObserve: forRoles("issue", "observe"),
  observe: forRoles("observe"),
  admin: forRoles("admin"),
  observeAll: forAllTags(forRoles("observe")),
  adminAll: forAllTags(forRoles("admin")),
};

/** A need, and what tells the name that is decided by out of a request. */
export interface Rule extends Need {
  readonly about: (request: unknown) => string;
}

/** Nothing is known of the name: only a right for all tags fits. */
const ALL_TAGS = (): string => "";

export function ruleOf(need: Need, about: Rule["about"] | undefined): Rule {
  return about === undefined ? { ...need, isBeginning: true, about: ALL_TAGS } : { ...need, about };
}

/** Whether only administrators may; such rows may be served at an address of their own. */
export function isForAdmins({ roles }: Need): boolean {
  return roles === NEEDS.admin.roles;
}

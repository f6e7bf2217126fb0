export type Role = "issue" | "observe" | "admin";

/** A role for the tags whose names fit: a name, or a beginning followed by `*`. */
interface Right {
  readonly role: Role;
  readonly tags: string;
}

export interface Access {
  /** Empty: nobody has to say who they are. */
  readonly principal: string;
  readonly rights: readonly Right[];
}

export const NO_ACCESS: Access = { principal: "", rights: [] };

const ROLES: Readonly<Record<string, Role>> = {
  ROLE_ISSUE: "issue",
  ROLE_OBSERVE: "observe",
  ROLE_ADMIN: "admin",
};

/** Of an answer of GetAccess. A role that this console does not know gives nothing. */
export function accessOf(answer: {
  readonly principal: string;
  readonly rights: readonly { readonly role: string; readonly tags: string }[];
}): Access {
  const rights = answer.rights.flatMap(({ role, tags }) => {
    const known = ROLES[role];
    return known === undefined ? [] : [{ role: known, tags }];
  });
  return { principal: answer.principal, rights };
}

/**
 * Whether a caller has a role for a tag, or without a name for every tag there may be. It only decides what is shown: the
 * server decides what is done. Who may change may look, as there.
 */
export function mayIn({ rights }: Access, role: Role, tag?: string): boolean {
  return rights.some((right) => {
    if (right.role !== role && !(right.role === "admin" && role === "observe")) return false;
    if (right.tags.endsWith("*")) return (tag ?? "").startsWith(right.tags.slice(0, -1));
    return right.tags === tag;
  });
}

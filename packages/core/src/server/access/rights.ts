import { invalidFields, type FieldViolation } from "../../errors.ts";

/** What a right lets its holder do: take ids of tags, look at them, or change them. */
export const ROLES = ["issue", "observe", "admin"] as const;

export type Role = (typeof ROLES)[number];

/** A role for the tags whose names fit a pattern: a whole name, or the beginning of names followed by `*`. */
export interface Right {
  readonly role: Role;
  readonly tags: string;
}

/** Most rights of one principal. */
export const MAX_RIGHTS = 32;
/** Names of tags, or beginnings of names with a star behind them. */
const PATTERN = /^(?:\*|[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\*?)$/;

/** Roles as bits, so that a decision compares numbers. */
const BITS: Readonly<Record<Role, number>> = { issue: 1, observe: 2, admin: 4 };
/** Who may change a tag may look at it too. */
const GIVEN: Readonly<Record<Role, number>> = { ...BITS, admin: BITS.admin | BITS.observe };

/** Any of the roles, as one number. */
export function rolesOf(...roles: readonly Role[]): number {
  return roles.reduce((bits, role) => bits | BITS[role], 0);
}

/** The roles of rolesOf, for people. */
export function rolesText(roles: number): string {
  return ROLES.filter((role) => (roles & BITS[role]) !== 0).join(" or ");
}

export function isTagPattern(text: string): boolean {
  return PATTERN.test(text);
}

/** Rights, so arranged that the roles for a name are a look-up and a comparison for each pattern with `*`. */
export class Rights {
  readonly list: readonly Right[];
  readonly #names = new Map<string, number>();
  readonly #prefixes: { readonly prefix: string; readonly bits: number }[] = [];

  constructor(list: readonly Right[]) {
    this.list = list;
    for (const { role, tags } of list) {
      const bits = GIVEN[role];
      if (tags.endsWith("*")) this.#prefixes.push({ prefix: tags.slice(0, -1), bits });
      else this.#names.set(tags, (this.#names.get(tags) ?? 0) | bits);
    }
  }

  /** The roles for the tag of this name, whether there is one or not. */
  on(name: string): number {
    return (this.#names.get(name) ?? 0) | this.under(name);
  }

  /** The roles for all tags whose names begin like this; for every tag with an empty beginning. */
  under(beginning: string): number {
    let held = 0;
    for (const { prefix, bits } of this.#prefixes) if (beginning.startsWith(prefix)) held |= bits;
    return held;
  }
}

/** What a call is about: the tag of a name, or all tags whose names begin like it. */
export interface Subject {
  /** See rolesOf; one of them is enough. 0: whoever is known may. */
  readonly roles: number;
  readonly isBeginning: boolean;
}

/**
 * Decides what a call may do.
 *
 * INVARIANT: nothing but the caller, the method and the *name* goes in. So what is forbidden is refused in the same words
 * whether it exists or not, and nobody learns from a refusal, or from the time it takes, which tags there are.
 */
export function decide(
  principal: { readonly rights: Rights } | undefined,
  { roles, isBeginning }: Subject,
  name: string,
): "allowed" | "UNAUTHENTICATED" | "PERMISSION_DENIED" {
  if (principal === undefined) return "UNAUTHENTICATED";
  if (roles === 0) return "allowed";
  const { rights } = principal;
  const held = isBeginning ? rights.under(name) : rights.on(name);
  return (held & roles) === 0 ? "PERMISSION_DENIED" : "allowed";
}

/** Throws INVALID_ARGUMENT that names every bad right. */
export function assertRights(rights: readonly Right[], field: string): void {
  const found: FieldViolation[] = [];
  if (rights.length === 0 || rights.length > MAX_RIGHTS) {
    found.push({ field, description: `must be 1 to ${MAX_RIGHTS} rights` });
  }
  rights.slice(0, MAX_RIGHTS).forEach(({ role, tags }, at) => {
    if (!ROLES.includes(role)) {
      const description = `must be one of ${ROLES.join(", ")}`;
      found.push({ field: `${field}[${at}].role`, description, reason: "UNKNOWN_VALUE" });
    }
    if (!isTagPattern(tags)) {
      const description =
        "must be the name of a tag, the beginning of names followed by *, or * alone";
      found.push({ field: `${field}[${at}].tags`, description, reason: "INVALID_NAME" });
    }
  });
  if (found.length > 0) throw invalidFields(found);
}

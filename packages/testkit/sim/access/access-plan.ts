import { Dice } from "../world/random.ts";

/** As the store keeps them. */
export interface SimRight {
  readonly role: "issue" | "observe" | "admin";
  readonly tags: string;
}

/** Somebody from outside, whose tokens come and go. */
export interface GuestPlan {
  readonly name: string;
  readonly rights: readonly SimRight[];
}

/** Who may do what in a history whose servers want to know their callers. */
export interface AccessPlan {
  readonly guests: readonly GuestPlan[];
  /** Calls and ids a second that the lodger may have, over all servers. */
  readonly lodgerCalls: number;
  readonly lodgerIds: number;
}

const ACCESS_SHARE = 0.3;
const ROLES = ["issue", "issue", "observe", "admin"] as const;
/** Some fit several tags of histories, some none. */
const PATTERNS = ["*", "loose", "s*", "r*", "strict", "da*", "c*", "uuid", "absent*"] as const;

/** The principal that everything else in the history shows: it may do all, and has no quota. */
export const EVERYBODY = "everybody";
/** The principal of the programs with the SDK; it gets a new token again and again. */
export const PROGRAMS = "programs";
/** The principal with a quota. */
export const LODGER = "lodger";

/** Undefined: servers are open to all. */
export function accessPlanOf(seed: string): AccessPlan | undefined {
  const dice = new Dice(`${seed}/access`);
  return dice.chance(ACCESS_SHARE) ? accessPlan(dice) : undefined;
}

export function accessPlan(dice: Dice): AccessPlan {
  const guests = Array.from({ length: 2 }, (_, at) => ({
    name: `guest-${at + 1}`,
    rights: Array.from({ length: dice.int(1, 3) }, () => ({
      role: dice.pick(ROLES),
      tags: dice.pick(PATTERNS),
    })),
  }));
  return { guests, lodgerCalls: dice.int(10, 30), lodgerIds: dice.int(100, 300) };
}

/** What servers are told of access. */
export function accessSettings(plan: AccessPlan | undefined): Readonly<Record<string, string>> {
  if (plan === undefined) return {};
  return {
    "access.anonymous": "none",
    "quota.caller_calls": `none,${LODGER}=${plan.lodgerCalls}`,
    "quota.caller_ids": `none,${LODGER}=${plan.lodgerIds}`,
    "quota.burst": `${BURST_MS}ms`,
  };
}

export const BURST_MS = 500;

import type { Right, Token } from "@idmint/core/server";
import { newToken } from "../../../server/src/service/access/new-token.ts";
import { Dice } from "../world/random.ts";
import type { World } from "../world/world.ts";
import { type AccessPlan, EVERYBODY, LODGER, PROGRAMS } from "./access-plan.ts";
import { TokenLog } from "./token-log.ts";

/** A token that somebody has. */
export interface Badge {
  readonly id: string;
  readonly text: string;
}

const ALL: readonly Right[] = [
  { role: "issue", tags: "*" },
  { role: "admin", tags: "*" },
];
const ISSUES: readonly Right[] = [{ role: "issue", tags: "*" }];
const FIRST_MS = Date.UTC(2027, 0, 1);
const LIFETIME_MS = 30 * 86_400_000;

/** What the nodes of a history show of themselves. Without a plan of access nobody shows anything. */
export class Badges {
  /** What was made in the store itself, before the first server started. */
  readonly first: readonly Token[];
  readonly log: TokenLog;
  readonly #isOpen: boolean;
  readonly #everybody: Badge;
  readonly lodger: Badge;
  /** What programs show at present; they are told of a new one. */
  programs: Badge;

  constructor(seed: string, plan: AccessPlan | undefined, maxOfflineMs: number) {
    this.#isOpen = plan === undefined;
    this.log = new TokenLog(maxOfflineMs);
    const dice = new Dice(`${seed}/badges`);
    const first: Token[] = [];
    const make = (principal: string, rights: readonly Right[]): Badge => {
      const request = { principal, rights, lifetimeMs: LIFETIME_MS };
      const ports = { nowMs: FIRST_MS, randomBytes: (count: number) => dice.bytes(count) };
      const { token, text } = newToken(request, ports);
      first.push(token);
      return { id: token.id, text };
    };
    this.#everybody = make(EVERYBODY, ALL);
    this.programs = make(PROGRAMS, ISSUES);
    this.lodger = make(LODGER, ISSUES);
    this.first = this.#isOpen ? [] : first.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** The header that a node sends along with a call. */
  of({ place }: Pick<World, "place">): string | undefined {
    if (this.#isOpen) return undefined;
    return headerOf(place.startsWith("p") ? this.programs : this.#everybody);
  }

  /** Whether what a node shows is good on every server, at all times. */
  isAlwaysGood({ place }: Pick<World, "place">): boolean {
    return this.#isOpen || /^(?:c\d|clerk|operator|keeper)/.test(place);
  }
}

export function headerOf({ text }: Badge): string {
  return `Bearer ${text}`;
}

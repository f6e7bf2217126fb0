import { IdmintError } from "@idmint/core";
import {
  CreateTokenRequest,
  CreateTokenResponse,
  RevokeTokenRequest,
  RevokeTokenResponse,
  Role,
} from "@idmint/proto";
import type { Fleet } from "../fleet.ts";
import { callOnce, method, type Method } from "../nodes/transport.ts";
import { Dice } from "../world/random.ts";
import type { World } from "../world/world.ts";
import { type AccessPlan, type GuestPlan, PROGRAMS } from "./access-plan.ts";
import type { Badge } from "./badges.ts";

const SERVICE = "/idmint.v1.AccessService";
const CREATE = method(`${SERVICE}/CreateToken`, CreateTokenRequest, CreateTokenResponse);
const REVOKE = method(`${SERVICE}/RevokeToken`, RevokeTokenRequest, RevokeTokenResponse);

const DEADLINE_MS = 3_000;
const LOOK_MS = 1_000;
/** How long somebody has a token, in the middle. */
const KEPT_MS = 11_000;
/** How long somebody has none. */
const NONE_MS = 4_000;
/** docs/access.md: make the second one, wait two seconds until every server knows it. */
const KNOWN_MS = 2_000;
const MOST_TRIES = 6;
/** Tokens of a guest that are shown again after they were revoked. */
const MOST_OLD = 4;

/** Makes the tokens of guests and programs, and revokes them, by calls of any server. */
export class Keeper {
  readonly #fleet: Fleet;
  readonly #world: World;
  readonly #dice: Dice;
  readonly #present = new Map<string, Badge>();
  readonly #old = new Map<string, Badge[]>();
  /** What was revoked. A store that goes back brings it back. */
  readonly #revoked = new Set<string>();
  #isOver = false;

  constructor(fleet: Fleet, { guests }: AccessPlan) {
    this.#fleet = fleet;
    this.#world = fleet.world("keeper");
    this.#dice = new Dice(`${fleet.plan.seed}/keeper`);
    for (const guest of guests) void this.#keep(guest);
    void this.#renew();
    this.#watch();
  }

  /** Nobody gets another token, unless the store lost one. */
  stop(): void {
    this.#isOver = true;
  }

  /** Tokens of a guest: the one that it has, and some that it had. */
  badgesOf({ name }: GuestPlan): {
    readonly present: Badge | undefined;
    readonly old: readonly Badge[];
  } {
    return { present: this.#present.get(name), old: this.#old.get(name) ?? [] };
  }

  async #keep({ name, rights }: GuestPlan): Promise<void> {
    const dice = this.#dice;
    while (!this.#isOver) {
      const before = this.#present.get(name);
      const badge = await this.#create(name, rights);
      if (badge === undefined) {
        await this.#world.pause(LOOK_MS);
        continue;
      }
      if (before !== undefined) await this.#world.pause(KNOWN_MS);
      this.#present.set(name, badge);
      if (before !== undefined) await this.#revoke(name, before);
      await this.#world.pause(dice.about(KEPT_MS));
      if (dice.chance(0.5)) continue;
      this.#present.delete(name);
      await this.#revoke(name, badge);
      await this.#world.pause(dice.about(NONE_MS));
    }
  }

  /** Programs get a new token in the order of docs/access.md. */
  async #renew(): Promise<void> {
    const { badges } = this.#fleet;
    for (;;) {
      await this.#world.pause(this.#dice.about(KEPT_MS));
      if (this.#isOver) return;
      const badge = await this.#create(PROGRAMS, [{ role: "issue", tags: "*" }]);
      if (badge === undefined) continue;
      await this.#world.pause(KNOWN_MS);
      const before = badges.programs;
      badges.programs = badge;
      await this.#revoke(PROGRAMS, before);
    }
  }

  /** After the store went back, its tokens are what they were. */
  #watch(): void {
    this.#world.after(LOOK_MS, () => void this.#repair().then(() => this.#watch()));
  }

  async #repair(): Promise<void> {
    const { site, badges } = this.#fleet;
    const ids = new Set(site.database.access.tokens.map(({ id }) => id));
    for (const id of this.#revoked) {
      if (ids.has(id)) await this.#until(REVOKE, { tokenId: id, validateOnly: false });
    }
    if (ids.has(badges.programs.id)) return;
    const badge = await this.#create(PROGRAMS, [{ role: "issue", tags: "*" }]);
    if (badge !== undefined) badges.programs = badge;
  }

  async #create(principal: string, rights: GuestPlan["rights"]): Promise<Badge | undefined> {
    const asked = rights.map(({ role, tags }) => ({ role: ROLES[role], tags }));
    const request = CreateTokenRequest.fromPartial({ principal, rights: asked });
    const made = await this.#until(CREATE, request);
    const { text, token } = made ?? {};
    return text === undefined || token === undefined ? undefined : { id: token.tokenId, text };
  }

  async #revoke(name: string, badge: Badge): Promise<void> {
    const old = this.#old.get(name) ?? [];
    old.push(badge);
    this.#old.set(name, old.slice(-MOST_OLD));
    this.#revoked.add(badge.id);
    await this.#until(REVOKE, { tokenId: badge.id, validateOnly: false });
  }

  /** Asks any servers until one does it; undefined: none did, or nobody knows. */
  async #until<Request, Response>(
    its: Method<Request, Response>,
    request: Request,
  ): Promise<Response | undefined> {
    const { addresses, trace, checker } = this.#fleet;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const to = this.#dice.pick(addresses);
      try {
        return await callOnce(this.#fleet.caller(this.#world), to, its, request, DEADLINE_MS);
      } catch (thrown) {
        const { reason } = IdmintError.from(thrown);
        trace.note(this.#world.name, `${its.path}: ${reason}`);
        if (WRONG.has(reason)) checker.violate(`${its.path}: ${String(thrown)}`);
        if (reason === "TOKEN_NOT_FOUND") return undefined;
        await this.#world.pause(LOOK_MS / 2);
      }
    }
    return undefined;
  }
}

const ROLES = { issue: Role.ISSUE, observe: Role.OBSERVE, admin: Role.ADMIN } as const;
/** Whoever may do everything, by a token that was there from the beginning, is refused by none of these. */
const WRONG: ReadonlySet<string> = new Set([
  "INTERNAL",
  "INVALID_ARGUMENT",
  "MALFORMED_REQUEST",
  "PERMISSION_DENIED",
  "QUOTA_EXCEEDED",
  "UNAUTHENTICATED",
]);

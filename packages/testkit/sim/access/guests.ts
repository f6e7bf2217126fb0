import { IdmintError } from "@idmint/core";
import type { Got } from "../check/checker.ts";
import type { Fleet } from "../fleet.ts";
import { gotOf, type Load } from "../load.ts";
import { Session } from "../nodes/session.ts";
import { callOnce } from "../nodes/transport.ts";
import { Dice } from "../world/random.ts";
import type { World } from "../world/world.ts";
import type { GuestPlan } from "./access-plan.ts";
import {
  ALLOCATES,
  type Answer,
  type Ask,
  type Asking,
  LOOKS,
  LOOKS_AT_ALL,
  mayAsk,
  MINTS,
  ownAccess,
} from "./asks.ts";
import { type Badge, headerOf } from "./badges.ts";
import type { Keeper } from "./keeper.ts";

const EVERY_MS = 700;
const DEADLINE_MS = 2_000;
/** Requests of a session: with the time between them it outlives many a token. */
const MOST_REQUESTS = 12;
const BETWEEN_MS = 800;
/** A name that no tag has. */
const ABSENT = "absent-1";

/** What whoever may not ask hears, and nothing else: it tells nothing of what there is. */
const TELLS_NOTHING: ReadonlySet<string> = new Set([
  "DEADLINE_EXCEEDED",
  "DRAINING",
  "OVERLOADED",
  "PERMISSION_DENIED",
  "SERVER_UNAVAILABLE",
  "STORE_UNAVAILABLE",
  "UNAUTHENTICATED",
]);

/** A call that is made with a token: what has to come of it, as of now. */
interface Shown {
  readonly what: string;
  readonly isAllowed: boolean;
  /** Why it may not be answered, whatever the rights are. */
  readonly why: string | undefined;
  /** Whether the server knew the token, and whether it does now. */
  readonly wasKnown: boolean;
  readonly isKnown: () => boolean;
  readonly era: number;
}

/** Somebody whose tokens come and go: it uses those that it has, those that it had and some that nobody made, within its rights and beyond. */
export class Guest {
  readonly #fleet: Fleet;
  readonly #load: Load;
  readonly #plan: GuestPlan;
  readonly #keeper: Keeper;
  readonly #world: World;
  readonly #dice: Dice;
  readonly #asks: readonly Ask[];

  constructor(fleet: Fleet, load: Load, plan: GuestPlan, keeper: Keeper) {
    this.#fleet = fleet;
    this.#load = load;
    this.#plan = plan;
    this.#keeper = keeper;
    this.#world = fleet.world(plan.name);
    this.#dice = new Dice(`${fleet.plan.seed}/${plan.name}`);
    const hasSegments = fleet.plan.tags.some(({ kind }) => kind === "segment");
    this.#asks = [...LOOKS, ...MINTS, ...MINTS, ...(hasSegments ? [ALLOCATES] : [])];
  }

  begin(): void {
    this.#load.ofCaller(this.#world, this.#dice, () => this.#ask(), EVERY_MS);
  }

  async #ask(): Promise<void> {
    const dice = this.#dice;
    const to = dice.pick(this.#fleet.addresses);
    const badge = this.#badge();
    const way = dice.next();
    if (way < 0.08) return this.#session(to, badge);
    if (way < 0.2) {
      const ask = dice.pick([...LOOKS_AT_ALL, ownAccess(this.#plan.name)]);
      return this.#once(to, badge, ask, "");
    }
    const ask = dice.pick(this.#asks);
    const name = this.#nameFor(ask);
    await this.#once(to, badge, ask, name);
  }

  #nameFor(ask: Ask): string {
    const { tags } = this.#fleet.plan;
    const dice = this.#dice;
    if (ask === ALLOCATES) return dice.pick(tags.filter(({ kind }) => kind === "segment")).name;
    const name = dice.chance(0.1) ? ABSENT : dice.pick(tags).name;
    return ask.isBeginning === true ? name.slice(0, dice.int(0, 3)) : name;
  }

  /** Mostly the token that it has; at times one that it had, one that nobody made, or none. */
  #badge(): Badge | undefined {
    const dice = this.#dice;
    const { present, old } = this.#keeper.badgesOf(this.#plan);
    const way = dice.next();
    const one = old.length > 0 && (present === undefined || way < 0.25) ? dice.pick(old) : present;
    if (one === undefined || way > 0.97) return undefined;
    return way > 0.94 ? { id: "", text: `${one.text.slice(0, -3)}AAA` } : one;
  }

  async #once(to: string, badge: Badge | undefined, ask: Ask, name: string): Promise<void> {
    const world = this.#world;
    const authorization = badge === undefined ? undefined : headerOf(badge);
    const caller = { rpc: this.#fleet.rpc, world, authorization };
    const asking: Asking = (its, request) => callOnce(caller, to, its, request, DEADLINE_MS);
    const shown = this.#shown(to, badge, ask, name);
    const may = (tag: string): boolean => mayAsk(this.#plan.rights, ask, tag);
    await this.#judged(shown, name, ask.roles.includes("issue") && ask !== LOOKS[0], () =>
      ask.ask(asking, name, may),
    );
  }

  /** Makes a call and judges what comes of it. Ids count as those of all other callers. */
  async #judged(
    shown: Shown,
    tag: string,
    mints: boolean,
    run: () => Promise<Answer>,
  ): Promise<void> {
    let answer: Answer | undefined;
    const judged = async (): Promise<Got> => {
      try {
        answer = await run();
      } catch (thrown) {
        this.#refused(shown, IdmintError.from(thrown).reason);
        throw thrown;
      }
      this.#answered(shown, answer);
      return answer.got ?? { segments: [], period: "" };
    };
    if (mints) {
      const asker = { name: this.#world.name, isSdk: false };
      await this.#load.call(this.#world, asker, tag, DEADLINE_MS, judged);
    } else {
      await judged().catch(() => undefined);
    }
  }

  #shown(to: string, badge: Badge | undefined, ask: Omit<Ask, "ask">, name: string): Shown {
    const { badges, checker, queue, rpc } = this.#fleet;
    const world = rpc.at(to)?.world;
    const isMade = badge !== undefined && badge.id !== "";
    const isKnown = (): boolean =>
      isMade && world !== undefined && badges.log.isKnown(badge.id, world);
    return {
      what: `${ask.what} ${name}`,
      isAllowed: mayAsk(this.#plan.rights, ask, name),
      why: isMade
        ? world && badges.log.whyRefused(badge.id, world, queue.now)
        : "it showed no token that somebody made",
      wasKnown: isKnown(),
      isKnown,
      era: checker.era,
    };
  }

  #answered({ what, isAllowed, why, era }: Shown, { wrong }: Answer): void {
    const { checker } = this.#fleet;
    const who = this.#world.name;
    // A token that was revoked is back with the store.
    if (why !== undefined && era === checker.era)
      checker.violate(`${who} was answered ${what}, though ${why}`);
    if (!isAllowed) checker.violate(`${who} was answered ${what}, which is beyond its rights`);
    if (wrong !== undefined) checker.violate(`${who} asked ${what}: ${wrong}`);
  }

  #refused({ what, isAllowed, wasKnown, isKnown, why, era }: Shown, reason: string): void {
    const { checker } = this.#fleet;
    const who = this.#world.name;
    if (!isAllowed || why !== undefined) {
      if (!TELLS_NOTHING.has(reason) && era === checker.era)
        checker.violate(`${who} was refused ${what} with ${reason}, which tells something`);
    }
    if (isAllowed && reason === "PERMISSION_DENIED")
      checker.violate(`${who} was refused ${what}, which is within its rights`);
    if (reason === "UNAUTHENTICATED" && wasKnown && isKnown() && era === checker.era)
      checker.violate(`${who} was not known for ${what}, by a server that had read its token`);
  }

  /** Requests on one stream, which may outlive its token. */
  async #session(to: string, badge: Badge | undefined): Promise<void> {
    const dice = this.#dice;
    const authorization = badge === undefined ? undefined : headerOf(badge);
    const session = new Session(this.#fleet, this.#world, to, authorization);
    const ask = { what: "IdService/StreamIds", roles: ["issue"] } as const;
    for (let left = dice.int(2, MOST_REQUESTS); left > 0 && !session.isOver; left--) {
      const { name } = dice.pick(this.#fleet.plan.tags);
      const shown = this.#shown(to, badge, ask, name);
      await this.#judged(shown, name, true, async () => ({
        got: gotOf(await session.ask(name, 1, DEADLINE_MS, false), name),
      }));
      await this.#world.pause(dice.about(BETWEEN_MS));
    }
    session.end();
  }
}

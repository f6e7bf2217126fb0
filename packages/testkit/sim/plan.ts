import type { Order } from "./check/checker.ts";
import type { SimKindName } from "./kind-names.ts";
import {
  type FaultKind,
  FLEET_FAULTS,
  LONG_FAULTS,
  REDIS_FAULTS,
  TICKET_FAULTS,
} from "./fault-kinds.ts";
import { type AccessPlan, accessPlanOf } from "./access/access-plan.ts";
import { Dice } from "./world/random.ts";

export interface TagPlan {
  readonly name: string;
  readonly kind: SimKindName;
  readonly order: Order;
  readonly min: number;
  readonly max: number;
  readonly maxAgeMs: number;
  readonly holdForMs: number;
  readonly ceiling: bigint;
  /** From 0 to 1: which of the variants of its kind. */
  readonly size: number;
}

export interface Fault {
  readonly atMs: number;
  readonly kind: FaultKind;
  /** Which of the nodes that it may befall. */
  readonly target: number;
  readonly ms: number;
  /** From 0 to 1: how bad it is. */
  readonly size: number;
}

export const ACTIONS = ["advance", "delete", "drain", "pause", "stop-issuing", "update"] as const;

/** Something that an operator does, and takes back later where that can be. */
export interface Action {
  readonly atMs: number;
  /** `accept`: of a store that nobody refuses. */
  readonly act: (typeof ACTIONS)[number] | "accept";
  readonly target: number;
  readonly ms: number;
  readonly lead?: Lead;
}

/**
 * What goes before a change that ends ids, so that programs hold some when it comes. When it is in effect, everybody is asked at once
 * and again.
 */
export interface Lead {
  /** How many ids programs load, and how long they may hold them. */
  readonly min: number;
  readonly maxAgeMs: number;
  readonly waitMs: number;
  /** How long answers to programs are on their way then. */
  readonly slowMs: number;
  /** Whether they may hold the next ones for a moment only. */
  readonly isShortened: boolean;
  /** From then until the change. */
  readonly gapMs: number;
  /** Whether programs ask for nothing from then on until it is in effect. */
  readonly isHushed: boolean;
}

/** All that a seed decides beforehand. What happens then follows from it. */
export interface Plan {
  readonly seed: string;
  readonly servers: number;
  readonly sdks: number;
  readonly tags: readonly TagPlan[];
  readonly faults: readonly Fault[];
  readonly actions: readonly Action[];
  /** How long things go wrong. */
  readonly stormMs: number;
  /** Mean time between two calls of one program for one tag. */
  readonly everyMs: number;
  readonly maxOfflineMs: number;
  /** How often servers ask the store for changes. */
  readonly pollMs: number;
  /** Tags that a server holds at once; with fewer than there are, it drops some and gives back what it held. */
  readonly limitTags: number;
  /** Whether servers accept a store that went back by themselves. */
  readonly acceptsAlone: boolean;
  /** Whether operators accept a store with gaps at times that are too small for servers that are gone. */
  readonly smallGaps: boolean;
  /** Undefined: servers answer everybody. */
  readonly access: AccessPlan | undefined;
}

/** By when the servers and the tags are there, and things begin to go wrong. */
export const BEGIN_MS = 2_000;
/** More than all ids of a history. */
const ALL_IDS = 1_000_000n;
/** Histories that are as long again, with more of everything. */
const LONG_SHARE = 0.1;
/** Others with a fourth server. */
const MORE_SERVERS_SHARE = 0.3;
const BIG = 2n ** 62n;
/** Kinds that some histories have a tag of besides, and how far their ids go. */
const MORE: readonly (readonly [SimKindName, bigint])[] = [
  ["snowflake", 2n ** 63n - 1n],
  ["serial", 2n ** 63n - 1n],
  ["uuid", 0n],
  ["object_id", 0n],
  ["invoice", 10n ** 12n - 1n],
  ["coupons", 10n ** 8n - 1n],
];
const MORE_SHARE = 0.22;
/** Histories in which programs hold ids when changes end them. */
const LED_SHARE = 0.35;
const ENDING = ["advance", "advance", "pause", "pause", "delete", "stop-issuing"] as const;
/** Histories that count in Redis too. */
const REDIS_SHARE = 0.3;
const TICKET_SHARE = 0.2;
const IN_REDIS: readonly (readonly [SimKindName, Order, bigint])[] = [
  ["counted_in_redis", "STRICT", 2n ** 53n - 1n],
  ["redis_snowflake", "UNORDERED", 2n ** 63n - 1n],
  ["leased_in_redis", "UNORDERED", 2n ** 63n - 1n],
];
const IN_REDIS_SHARE = 0.6;

/** Histories in which a store that nobody refuses is accepted, and goes back meanwhile. */
const ACCEPTS_SHARE = 0.15;

/** Histories that faults befall which last longer. */
const LONG_SHARE_OF_FAULTS = 0.35;

/** A gap that is above all that can be lost by the next accept: ids, and the gaps of those before. */
export function largeGap(accepts: number): bigint {
  return ALL_IDS << BigInt(accepts);
}

export function planOf(seed: string): Plan {
  const dice = new Dice(`${seed}/plan`);
  const isLong = dice.chance(LONG_SHARE);
  const stormMs = isLong ? dice.int(36_000, 56_000) : dice.int(20_000, 34_000);
  const count = isLong ? dice.int(6, 16) : dice.int(4, 10);
  const faults = Array.from({ length: count }, () => faultOf(dice, stormMs));
  const actions = Array.from({ length: dice.int(0, 4) }, (): Action => {
    const atMs = dice.int(2_000, stormMs);
    return { atMs, act: dice.pick(ACTIONS), target: dice.int(0, 9), ms: dice.int(500, 45_000) };
  });
  const plan = {
    seed,
    servers: 3 + (isLong ? dice.int(0, 2) : Number(dice.chance(MORE_SERVERS_SHARE))),
    sdks: dice.int(2, 3),
    tags: tagsOf(dice),
    faults: faults.toSorted((a, b) => a.atMs - b.atMs),
    actions: [...actions, ...ledOf(new Dice(`${seed}/led`), stormMs)],
    stormMs,
    everyMs: dice.int(2_400, 4_800),
    maxOfflineMs: dice.int(5, 40) * 1_000,
    pollMs: new Dice(`${seed}/poll`).pick([800, 1_000, 1_000, 1_000]),
    limitTags: dice.chance(0.2) ? 2 : 1_000,
    acceptsAlone: dice.chance(0.25),
    smallGaps: true,
    access: accessPlanOf(seed),
  };
  const counted = withTickets(
    withRedis(plan, new Dice(`${seed}/redis`)),
    new Dice(`${seed}/tickets`),
  );
  const long = withLong(counted, new Dice(`${seed}/long faults`));
  return withAccepts(long, new Dice(`${seed}/accepts`));
}

/** The same with accepts of a store that looks well, which goes back while it asks: nothing keeps servers from being granted ids. */
function withAccepts(plan: Plan, dice: Dice): Plan {
  if (!dice.chance(ACCEPTS_SHARE)) return plan;
  const times = [dice.int(4_000, 10_000), dice.int(16_000, 24_000)];
  const accepts = times.map((atMs): Action => ({ atMs, act: "accept", target: 0, ms: 0 }));
  const faults = times.map((askedAt): Fault => {
    const atMs = askedAt + dice.int(1_000, 2_900);
    return { atMs, kind: "store went back, unseen", target: 0, ms: dice.int(200, 800), size: 0 };
  });
  return withMore({ ...plan, actions: [...plan.actions, ...accepts] }, [], faults);
}

/** The same with faults that last longer. */
function withLong(plan: Plan, dice: Dice): Plan {
  if (!dice.chance(LONG_SHARE_OF_FAULTS)) return plan;
  const long = Array.from({ length: dice.int(1, 2) }, () => ({
    ...faultOf(dice, plan.stormMs, LONG_FAULTS),
    ms: dice.int(2_000, 20_000),
  }));
  return withMore(plan, [], long);
}

/** The same with ticket databases. */
function withTickets(plan: Plan, dice: Dice): Plan {
  if (!dice.chance(TICKET_SHARE)) return plan;
  return withMore(plan, [ticketOf(dice)], faultsOf(dice, plan, TICKET_FAULTS));
}

function ticketOf(dice: Dice): TagPlan {
  const sizes = { min: 20, max: 20, maxAgeMs: 5_000, holdForMs: 5_000, size: dice.next() };
  return { ...sizes, name: "ticket", kind: "ticket", order: "UNORDERED", ceiling: BIG };
}

function withMore(plan: Plan, tags: readonly TagPlan[], faults: readonly Fault[]): Plan {
  const all = [...plan.faults, ...faults].toSorted((a, b) => a.atMs - b.atMs);
  return { ...plan, tags: [...plan.tags, ...tags], faults: all };
}

function faultsOf(dice: Dice, { stormMs }: Plan, kinds: readonly FaultKind[]): readonly Fault[] {
  return Array.from({ length: dice.int(2, 5) }, () => faultOf(dice, stormMs, kinds));
}

/** Some histories count in Redis too, which things befall of its own. Its draws move no others. */
function withRedis(plan: Plan, dice: Dice): Plan {
  if (!dice.chance(REDIS_SHARE)) return plan;
  const all = tagsInRedis(dice);
  const some = all.filter(() => dice.chance(IN_REDIS_SHARE));
  const faults = faultsOf(dice, plan, REDIS_FAULTS);
  return withMore(plan, some.length === 0 ? all : some, faults);
}

/** The same, with a tag of this kind. */
export function withKind(plan: Plan, kind: SimKindName): Plan {
  const { seed, tags } = plan;
  if (tags.some((tag) => tag.kind === kind)) return plan;
  const dice = new Dice(`${seed}/${kind}`);
  const more = [...tagsInRedis(dice), ticketOf(dice)].filter((tag) => tag.kind === kind);
  return { ...plan, tags: [...tags, ...more] };
}

function tagsInRedis(dice: Dice): readonly TagPlan[] {
  const min = dice.pick([5, 20, 200]);
  const common = { min, max: min, maxAgeMs: 5_000, holdForMs: 5_000, size: dice.next() };
  return IN_REDIS.map(([kind, order, ceiling]) => ({
    ...common,
    name: kind,
    kind,
    order,
    ceiling,
  }));
}

function ledOf(dice: Dice, stormMs: number): readonly Action[] {
  if (!dice.chance(LED_SHARE)) return [];
  return Array.from({ length: dice.int(1, 2) }, () => {
    const maxAgeMs = dice.int(2, 12) * 1_000;
    const isHushed = dice.chance(0.6);
    const isSlow = isHushed && dice.chance(0.6);
    return {
      atMs: dice.int(2_000, stormMs / 2),
      act: dice.pick(ENDING),
      // The first tags of a history are segments.
      target: dice.int(0, 1),
      ms: maxAgeMs + dice.int(12_000, 20_000),
      lead: {
        min: dice.pick([5, 50, 500]),
        maxAgeMs,
        waitMs: dice.int(500, 4_000),
        slowMs: isSlow ? dice.int(1_200, 2_500) : 0,
        isShortened: dice.chance(0.5),
        gapMs: dice.int(0, isSlow ? 100 : 2_000),
        isHushed,
      },
    };
  });
}

function faultOf(dice: Dice, stormMs: number, kinds: readonly FaultKind[] = FLEET_FAULTS): Fault {
  return {
    atMs: dice.int(1_000, stormMs),
    kind: dice.pick(kinds),
    target: dice.int(0, 9),
    ms: Math.round(200 + dice.about(4_000)),
    size: dice.next(),
  };
}

function tagsOf(dice: Dice): readonly TagPlan[] {
  const segment = (name: string, order: Order): TagPlan => {
    const min = dice.pick([5, 20, 200]);
    return {
      name,
      kind: "segment",
      order,
      min,
      max: min * dice.pick([1, 4, 50]),
      maxAgeMs: dice.int(2, 20) * 1_000,
      holdForMs: dice.int(1, 10) * 1_000,
      ceiling: dice.chance(0.1) ? 3_000n : BIG,
      size: dice.next(),
    };
  };
  const counted = (name: string, kind: "sequence" | "daily"): TagPlan => ({
    ...segment(name, "STRICT"),
    kind,
    ceiling: BIG,
  });
  return [
    segment("loose", "UNORDERED"),
    segment("rising", "PER_CLIENT"),
    counted("strict", "sequence"),
    ...(dice.chance(0.5) ? [counted("daily", "daily")] : []),
    ...MORE.filter(() => dice.chance(MORE_SHARE)).map(([kind, ceiling]) => ({
      ...segment(kind, "UNORDERED"),
      kind,
      ceiling,
    })),
  ];
}

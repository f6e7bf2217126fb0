import type { FaultKind } from "./fault-kinds.ts";
import type { Fleet } from "./fleet.ts";
import type { Fault } from "./plan.ts";

/** What befalls a fleet. Answers how it ends by itself; undefined: it is over at once. */
type Befall = (fleet: Fleet, fault: Fault) => (() => void) | undefined;

const both = (one: string, other: string): readonly (readonly [string, string])[] => [
  [one, other],
  [other, one],
];

/** One way or both, as the size says. */
function ways(one: string, other: string, size: number): readonly (readonly [string, string])[] {
  if (size < 0.25) return [[one, other]];
  return size < 0.5 ? [[other, one]] : both(one, other);
}

/** A time by which a clock is set, forth or back: mostly seconds, at times an hour. */
function stepOf(size: number): number {
  const sign = size < 0.5 ? -1 : 1;
  const share = size < 0.5 ? size * 2 : size * 2 - 1;
  return sign * Math.round(10 ** (1 + share * 5.55));
}

const BEFALL: Readonly<Record<FaultKind, Befall>> = {
  "server killed": (fleet, { target, ms, size }) => {
    fleet.killServer(target, Math.floor(size * 4), ms);
    return undefined;
  },
  "server stopped": (fleet, { target, ms }) => {
    fleet.closeServer(target, ms);
    return undefined;
  },
  "server paused": (fleet, { target }) => fleet.pause(fleet.server(target)?.world, false),
  "server suspended": (fleet, { target }) => fleet.pause(fleet.server(target)?.world, true),
  "program killed": (fleet, { target, ms, size }) => {
    fleet.killSdk(target, Math.floor(size * 4), ms);
    return undefined;
  },
  "program stopped": (fleet, { target, ms }) => {
    fleet.closeSdk(target, ms);
    return undefined;
  },
  "program paused": (fleet, { target }) => fleet.pause(fleet.sdk(target)?.world, false),
  "program suspended": (fleet, { target }) => fleet.pause(fleet.sdk(target)?.world, true),
  "server's clock set": (fleet, { target, size }) => {
    fleet.server(target)?.world.stepWall(stepOf(size));
    return undefined;
  },
  "program's clock set": (fleet, { target, size }) => {
    fleet.sdk(target)?.world.stepWall(stepOf(size));
    return undefined;
  },
  "store's clock set": (fleet, { size }) => {
    fleet.site.world.stepWall((size - 0.5) * 8_000);
    return undefined;
  },
  "server cut off from the store": (fleet, { target, size }) =>
    fleet.network.disturb(ways(fleet.serverName(target), "store", size), { isCut: true }),
  "program cut off from a server": (fleet, { target, size }) =>
    fleet.network.disturb(ways(fleet.sdkName(target), fleet.serverName(target + 1), size), {
      isCut: true,
    }),
  "messages lost": (fleet, { size }) => fleet.network.disturb([["*", "*"]], { loss: size * 0.3 }),
  "messages slow": (fleet, { size }) =>
    fleet.network.disturb([["*", "*"]], { delayMs: 2_000 * size ** 2 }),
  "slow way to the store": (fleet, { target, size }) =>
    fleet.network.disturb(both(fleet.serverName(target), "store"), { delayMs: 3_000 * size }),
  "requests sent twice": (fleet, { size }) => fleet.network.disturb([["*", "*"]], { twice: size }),
  "store down": (fleet) => fleet.site.disturb({ isDown: true }),
  "store hangs": (fleet) => fleet.site.disturb({ hangs: true }),
  "store slow": (fleet, { size }) => fleet.site.disturb({ slowMs: 1_500 * size }),
  "answers of the store lost": (fleet, { size }) => fleet.site.disturb({ lostAnswers: size }),
  "store refuses connections at times": (fleet, { size }) => fleet.site.disturb({ refusals: size }),
  "store's disk full": (fleet, { size }) =>
    fleet.site.disturb({ isFull: true, refusals: size / 4 }),
  "another store's server at an address": (fleet, { target }) => fleet.misleadTo(target),
  "two primaries": (fleet, { target }) => fleet.splitStore(target),
  "store went back, as another one": (fleet, { ms }) => {
    fleet.site.goBack(ms, true);
    return undefined;
  },
  "store went back, unseen": (fleet, { ms }) => {
    fleet.site.goBack(ms, false);
    return undefined;
  },
  "Redis down": (fleet, { target }) => fleet.redis(target)?.disturb({ isDown: true }),
  "Redis hangs": (fleet, { target }) => fleet.redis(target)?.disturb({ hangs: true }),
  "Redis slow": (fleet, { target, size }) => fleet.redis(target)?.disturb({ slowMs: 600 * size }),
  "answers of Redis lost": (fleet, { target, size }) =>
    fleet.redis(target)?.disturb({ lostAnswers: size }),
  "Redis takes no writes": (fleet, { target }) =>
    fleet.redis(target)?.disturb({ isReadOnly: true }),
  "Redis restarts": (fleet, { target, ms, size }) => {
    // With all, with nothing, or with what an older snapshot has.
    const agoMs = size < 0.25 ? 0 : size < 0.5 ? undefined : ms * size;
    fleet.redis(target)?.restart(agoMs, false);
    return undefined;
  },
  "a replica of Redis takes over": (fleet, { target, size }) => {
    // It lacks what was written last.
    fleet.redis(target)?.restart(2_000 * size ** 2, true);
    return undefined;
  },
  "Redis emptied": (fleet, { target }) => {
    fleet.redis(target)?.empty();
    return undefined;
  },
  "keys of Redis evicted": (fleet, { target, size }) => {
    fleet.redis(target)?.evict(size);
    return undefined;
  },
  "Redis set back while it runs": (fleet, { target, size }) => {
    fleet.redis(target)?.setBack(300 + 8_000 * size);
    return undefined;
  },
  "Redis' clock set": (fleet, { target, size }) => {
    fleet.redis(target)?.world.stepWall((size - 0.5) * 8_000);
    return undefined;
  },
  "server cut off from Redis": (fleet, { target, size }) => {
    const place = fleet.redis(target)?.place;
    if (place === undefined) return undefined;
    return fleet.network.disturb(ways(fleet.serverName(target), place, size), { isCut: true });
  },
  "ticket database down": (fleet, { target }) => fleet.tickets(target)?.stop(),
  "ticket database hangs": (fleet, { target }) => fleet.tickets(target)?.disturb({ hangs: true }),
  "ticket database slow": (fleet, { target, size }) =>
    fleet.tickets(target)?.disturb({ slowMs: 1_500 * size }),
  "answers of a ticket database lost": (fleet, { target, size }) =>
    fleet.tickets(target)?.disturb({ lostAnswers: size }),
  "ticket database went back": (fleet, { target }) => fleet.tickets(target)?.goBack(),
  "server cut off from a ticket database": (fleet, { target, size }) => {
    const place = fleet.tickets(target + 1)?.place;
    if (place === undefined) return undefined;
    return fleet.network.disturb(ways(fleet.serverName(target), place, size), { isCut: true });
  },
  "slots of tickets moved": (fleet, { target, size }) => {
    fleet.moveSlots(target, size);
    return undefined;
  },
};

export function befall(fleet: Fleet, fault: Fault): (() => void) | undefined {
  return BEFALL[fault.kind](fleet, fault);
}

import type { Fleet } from "../fleet.ts";
import type { Load } from "../load.ts";
import { Guest } from "./guests.ts";
import { Keeper } from "./keeper.ts";
import { Lodger } from "./lodger.ts";

/** All who are in a history because its servers want to know their callers. */
export interface Visitors {
  /** Nobody gets a new token any more. */
  stop(): void;
  /** All is well: what holds then, once more. */
  probe(): void;
}

const NOBODY: Visitors = { stop: () => undefined, probe: () => undefined };

export function visitorsOf(fleet: Fleet, load: Load): Visitors {
  const { access } = fleet.plan;
  if (access === undefined) return NOBODY;
  const keeper = new Keeper(fleet, access);
  for (const guest of access.guests) new Guest(fleet, load, guest, keeper).begin();
  const lodger = new Lodger(fleet, load, access);
  return { stop: () => keeper.stop(), probe: () => void lodger.askAll() };
}

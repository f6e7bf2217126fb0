import { type Clock, IdmintError, type Random, type Segment, segmentOf } from "@idmint/core";
import {
  behindOf,
  closeSlots,
  createTagSlots,
  type DatabaseHealth,
  openingOf,
  openSlots,
  seenOf,
  type SeenSlots,
  type SlotGrant,
  type SlotsView,
  survey,
  type TagSlots,
  takeGrants,
  slotRequestsOf,
} from "@idmint/core/server";
import type { TicketFleet } from "./fleet.ts";

/** How often one load asks one database because slots were moved or not raised meanwhile. */
const TRIES_A_DATABASE = 2;

export interface TicketLoad {
  readonly count: number;
  /** Nothing up to this is issued: the tag's floor, as far as this server knows it. */
  readonly above: bigint;
  readonly ceiling: bigint;
}

/**
 * Loads ids of one ticket tag, from the databases in turn.
 *
 * INVARIANT: ids are taken only of a database whose slots were raised, by this server and since that database last failed
 * to answer, above the highest id that the databases which answered had then, and above the tag's floor.
 */
export class TicketSlots {
  readonly #state: TagSlots;
  readonly #ports: { readonly fleet: TicketFleet; readonly clock: Clock; readonly random: Random };
  /** The floor that slots were raised above. */
  #above = 0n;

  constructor(
    slotsId: string,
    slots: number,
    ports: { readonly fleet: TicketFleet; readonly clock: Clock; readonly random: Random },
  ) {
    this.#state = createTagSlots(slotsId, slots);
    this.#ports = ports;
  }

  /** Some ids, at most `count`. Rejects with STORE_UNAVAILABLE, TAG_EXHAUSTED or STORE_EPOCH_CHANGED. */
  async load(request: TicketLoad): Promise<readonly Segment[]> {
    const { fleet } = this.#ports;
    this.#raiseFloor(request.above);
    const tried = new Set<string>();
    for (let health = fleet.next(tried); health !== undefined; health = fleet.next(tried)) {
      tried.add(health.name);
      try {
        // One database after the other is the point.
        const segments = await this.#loadFrom(health, request);
        fleet.noteAnswer(health);
        if (segments.length > 0) return segments;
      } catch (thrown) {
        // It is out of turn now; whatever it may have granted is a gap.
        const error = IdmintError.from(thrown);
        if (error.code === "INTERNAL") throw error;
      }
    }
    // Those of a database that is away may have some left.
    if (this.#state.exhausted.size < this.#state.slots) throw fleet.unavailable();
    throw new IdmintError(
      "TAG_EXHAUSTED",
      "the tag has no ids left below its ceiling, which cannot change; create another tag",
    );
  }

  /** Empty when the database has no slot with ids left. */
  async #loadFrom(
    health: DatabaseHealth,
    { count, ceiling }: TicketLoad,
  ): Promise<readonly Segment[]> {
    const { fleet } = this.#ports;
    const { slotsId, slots } = this.#state;
    // Slots without ids are left out of the next requests, so they end by themselves.
    for (let tries = 0; tries < TRIES_A_DATABASE;) {
      await this.#open(health);
      const requests = slotRequestsOf(this.#state, health.name, count);
      if (requests.length === 0) return [];
      const grants: readonly SlotGrant[] = await fleet.ask(health, (database) =>
        database.grant({ slotsId, ceiling, requests }),
      );
      takeGrants(this.#state, health.name, grants);
      const segments: Segment[] = [];
      for (const grant of grants) {
        if (grant.outcome === "granted") {
          segments.push(segmentOf(grant.first, grant.count, slots));
        }
      }
      if (segments.length > 0) return segments;
      const isMerelyEmpty = grants.every(
        (grant) => grant.outcome === "refused" && grant.reason === "EXHAUSTED",
      );
      if (!isMerelyEmpty) tries++;
    }
    return [];
  }

  /** An operator advanced the tag: slots are raised before they are used again. */
  #raiseFloor(above: bigint): void {
    if (above <= this.#above) return;
    this.#above = above;
    for (const name of this.#state.databases.keys()) closeSlots(this.#state, name);
  }

  async #open(health: DatabaseHealth): Promise<void> {
    const { clock } = this.#ports;
    const opening = openingOf(this.#state, health.name, health.generation, clock.now());
    if (opening === "refresh") await this.#raise(health, this.#above);
    if (opening === "raise") await this.#openAll(health);
  }

  /**
   * Lists the slots in all databases that answer, and raises those of every one that has to be, above the highest id of
   * all: together, so that the ids of the first do not push the others up.
   */
  async #openAll(health: DatabaseHealth): Promise<void> {
    const { fleet, clock } = this.#ports;
    const { slotsId } = this.#state;
    const asked = new Set([health, ...fleet.healthy()]);
    const before = new Map([...asked].map(({ name }) => [name, seenOf(this.#state, name)]));
    const { views, holdings, failed } = await survey(
      [...asked].map((each) => ({
        name: each.name,
        list: () => fleet.ask(each, (database) => database.list(slotsId)),
      })),
      slotsId,
    );
    let above = this.#above;
    for (const highest of [holdings.highest, this.#state.highest]) {
      if (highest > above) above = highest;
    }
    const open = async (each: DatabaseHealth): Promise<void> => {
      const { name, generation } = each;
      const detail = holdings.behind.get(name);
      if (detail !== undefined) throw this.#wentBack(each, detail);
      const error = failed.get(name);
      if (error !== undefined) throw error;
      const view = views.get(name);
      const seen = before.get(name);
      // Before it is raised, which would hide that it is behind.
      if (view !== undefined && seen !== undefined) this.#assertNotBehind(each, seen, view);
      const isDue = openingOf(this.#state, name, generation, clock.now()) === "raise";
      if (isDue) await this.#raise(each, above);
    };
    const others = [...asked].filter((each) => each !== health);
    // They are out of turn when they fail; this load is about one.
    const opening = Promise.allSettled(others.map(open));
    await open(health);
    await opening;
  }

  async #raise(health: DatabaseHealth, above: bigint): Promise<void> {
    const { clock, random, fleet } = this.#ports;
    const { slotsId } = this.#state;
    const { name, generation } = health;
    const floor = this.#above;
    const before = seenOf(this.#state, name);
    const view = await fleet.ask(health, (database) => database.raise({ slotsId, above }));
    this.#assertNotBehind(health, before, view);
    openSlots(this.#state, name, view, generation, clock.now(), random);
    // Somebody advanced the tag meanwhile.
    if (floor < this.#above) closeSlots(this.#state, name);
  }

  #assertNotBehind(health: DatabaseHealth, before: SeenSlots, view: SlotsView): void {
    const behind = behindOf(before, view);
    if (behind !== undefined) throw this.#wentBack(health, behind);
  }

  #wentBack(health: DatabaseHealth, detail: string): IdmintError {
    const { name } = health;
    const error = new IdmintError(
      "STORE_EPOCH_CHANGED",
      `ticket database ${name} went back: ${detail}; it issues nothing until an operator accepts it with: idmint ticket accept ${name} --gap N`,
      { metadata: { database: name, detail } },
    );
    this.#ports.fleet.fail(health, error);
    return error;
  }
}

import {
  assertNoViolations,
  type Clock,
  IdmintError,
  tagNameViolation,
  type Timers,
} from "@idmint/core";
import { comesFrom, type SnowflakeKind, type TicketKind } from "@idmint/core/kinds";
import {
  type MarkedGeneration,
  type MarkStore,
  type Tag,
  tagNotFound,
  type TagStore,
  warningOf,
  type Worker,
} from "@idmint/core/server";
import type { AdminGate } from "../admin-gate.ts";
import { type Patience, within } from "../call.ts";
import type { Emit } from "../events.ts";
import { type Forecast, type Moment, usedAtOf, WatchedTags } from "./watched-tags.ts";

/** Tags whose use a server watches. */
const MAX_WATCHED = 1_000;
/** Looks are close together at first, so that a server which was just started knows something soon. */
const FIRST_LOOK_MS = 1_000;
const LOOK_EVERY_MS = 60_000;
/** Ticket tags of one look: each asks every ticket database. */
const MAX_TICKETS = 20;
/** Pages of workers that are counted for one answer, and their size. */
const MAX_PAGES = 20;
const PAGE = 1_000;

/** How many worker ids are free in the data center that has fewest. */
export interface WorkerIds {
  readonly total: number;
  readonly left: number;
}

export interface Capacity extends Forecast {
  /** Undefined: the tag has no workers, or more than can be counted. */
  readonly workerIds: WorkerIds | undefined;
}

export interface CapacityPorts {
  readonly store: MarkStore & TagStore;
  /** Names of the tags that this server works with, those that were used last first. */
  readonly tagsInUse: (limit: number) => readonly string[];
  /** The last id that the ticket databases which answer have given out. */
  readonly lastTicketOf: (kind: TicketKind) => Promise<bigint | undefined>;
  readonly listWorkers: (
    query: { tag: string; pageSize: number; pageToken: string },
    call: Patience,
  ) => Promise<{ readonly workers: readonly Worker[]; readonly nextPageToken: string }>;
  readonly gate: AdminGate;
  readonly storeTimeoutMs: number;
  readonly clock: Clock;
  readonly wallClock: () => number;
  readonly timers: Timers;
  readonly emit: Emit;
}

/**
 * Watches how fast the ids of tags are used, over the whole fleet: their rows in the store say how many are gone, whoever
 * took them. A server looks once a minute at the rows of the tags that it works with. What it saw ends with its process.
 */
export class CapacityService {
  readonly #ports: CapacityPorts;
  readonly #watched = new WatchedTags(MAX_WATCHED);
  #cancelTimer: (() => void) | undefined;
  #isStopped = false;

  constructor(ports: CapacityPorts) {
    this.#ports = ports;
  }

  start(): void {
    this.#lookIn(FIRST_LOOK_MS);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  /** What is foretold of the tags that are watched; for metrics. Computed from what the last look found. */
  get forecasts(): Iterable<Forecast> {
    return this.#watched.all(this.#moment());
  }

  /** Looks at a tag now, and says when it runs out. */
  async capacity(name: string, call: Patience): Promise<Capacity> {
    assertNoViolations(tagNameViolation("name", name));
    const [tag] = await this.#ports.gate.run(() => this.#ports.store.getTags([name]));
    if (tag === undefined || tag.state === "DELETED") throw tagNotFound(name);
    this.#watched.makeRoomFor(name, this.#moment());
    await this.#ports.gate.run(() => this.#note([tag]));
    const forecast = this.#watched.forecastOf(name, this.#moment());
    if (forecast === undefined) throw tagNotFound(name);
    const workerIds = comesFrom(tag.kind, "lease") ? await this.#workerIds(tag, call) : undefined;
    return { ...forecast, workerIds };
  }

  /** One look at all that are watched, and at those in use as far as there is room. Never rejects. */
  async look(): Promise<void> {
    const { store, tagsInUse, storeTimeoutMs, timers } = this.#ports;
    const inUse = tagsInUse(MAX_WATCHED);
    const others = inUse.filter((name) => !this.#watched.has(name));
    const names = [...this.#watched.names, ...others.slice(0, Math.max(0, this.#watched.room))];
    if (names.length === 0) return;
    try {
      const tags = await within(() => store.getTags(names), storeTimeoutMs, timers);
      const found = new Set(tags.map(({ name }) => name));
      for (const name of names) if (!found.has(name)) this.#watched.forget(name);
      await within(() => this.#note(tags), storeTimeoutMs, timers);
    } catch {
      // The poll tells that the store is away. The next look goes on with what was seen before.
    }
    this.#warn();
  }

  #lookIn(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cancelTimer = this.#ports.timers.after(delayMs, () => void this.#lookAfter(delayMs));
  }

  async #lookAfter(delayMs: number): Promise<void> {
    await this.look();
    this.#lookIn(Math.min(delayMs * 2, LOOK_EVERY_MS));
  }

  async #note(tags: readonly Tag[]): Promise<void> {
    const marks = await this.#marksOf(tags.filter((tag) => usedAtOf(tag) === "redis"));
    const tickets = tags.filter((tag) => usedAtOf(tag) === "tickets").slice(0, MAX_TICKETS);
    const lastTickets = new Map<string, bigint | undefined>();
    for (const { name, kind } of tickets) {
      if (!comesFrom(kind, "tickets")) continue;
      // One after the other: each asks all ticket databases at once.
      lastTickets.set(name, await this.#ports.lastTicketOf(kind));
    }
    const moment = this.#moment();
    for (const tag of tags) {
      const used = { row: tag.floor, redis: marks.get(tag.name), nowhere: undefined };
      const place = usedAtOf(tag);
      this.#watched.saw(tag, place === "tickets" ? lastTickets.get(tag.name) : used[place], moment);
    }
  }

  async #marksOf(tags: readonly Tag[]): Promise<ReadonlyMap<string, bigint>> {
    if (tags.length === 0) return new Map();
    const asked = tags.map(({ name: tag, generation }): MarkedGeneration => ({ tag, generation }));
    const marks = await this.#ports.store.exchangeMarks([], asked);
    const newest = marks.toSorted((a, b) => (a.generation < b.generation ? -1 : 1));
    return new Map(newest.map(({ tag, mark }) => [tag, mark]));
  }

  #warn(): void {
    const { emit } = this.#ports;
    const { now, nowMs } = this.#moment();
    for (const { tag, rate, horizons, warning } of this.#watched.all({ now, nowMs })) {
      const watchedMs = rate?.watchedMs ?? 0;
      const found = warningOf(warning, horizons, { nowMs, watchedMs });
      if (found === undefined) continue;
      const { days, horizon, runsOutAtMs } = found;
      const { limit, left } = horizon;
      const idsPerSecond = rate?.idsPerSecond;
      const told = { days, limit, left, runsOutAtMs, idsPerSecond, watchedMs };
      emit({ type: "tag-runs-out", tag: tag.name, ...told });
    }
  }

  /** Those of the data center that has fewest left; undefined where the registry does not say. */
  async #workerIds(tag: Tag, call: Patience): Promise<WorkerIds | undefined> {
    const { layout } = tag.kind as SnowflakeKind;
    const total = 2 ** layout.workerBits;
    const leased = new Map<number, number>();
    let pageToken = "";
    try {
      for (let page = 0; page < MAX_PAGES; page++) {
        const query = { tag: tag.name, pageSize: PAGE, pageToken };
        // Each page begins after the one before.
        const { workers, nextPageToken } = await this.#ports.listWorkers(query, call);
        for (const { dataCenter, expiresAtMs } of workers) {
          if (expiresAtMs <= this.#ports.wallClock()) continue;
          leased.set(dataCenter, (leased.get(dataCenter) ?? 0) + 1);
        }
        if (nextPageToken === "") return { total, left: total - Math.max(0, ...leased.values()) };
        pageToken = nextPageToken;
      }
    } catch (thrown) {
      // The forecast is worth having without them.
      if (IdmintError.from(thrown).code === "INTERNAL") throw thrown;
    }
    return undefined;
  }

  #moment(): Moment {
    return { now: this.#ports.clock.now(), nowMs: this.#ports.wallClock() };
  }
}

import { type Clock, IdmintError, type Timers } from "@idmint/core";
import {
  type CountingRedis,
  type ForecastOptions,
  type ForecastReading,
  type ForecastState,
  observeReading,
  type RaiseBounds,
  raiseWanted,
  type SequenceReading,
  startForecast,
  type Tag,
} from "@idmint/core/server";
import type { Emit } from "../events.ts";
import type { Raises } from "../upstream/raises.ts";
import { raiseSequence } from "./raise.ts";
import { Turns } from "./turns.ts";

/** How often every sequence is looked at. */
const TURN_MS = 1_000;
/** Sequences of one turn; with more they take turns. */
const MAX_PER_TURN = 10_000;
/** Sequences of one round trip to Redis. */
const PAGE = 500;
/** Rows of the store asked for at once. */
const MAX_NAMES = 1_000;
/** How long the settings of a tag are believed. */
const SETTINGS_MS = 30_000;

export interface RedisWatchPorts {
  readonly redisServer: CountingRedis;
  /** Whether this server is the one that watches. Looked at before everything it does. */
  readonly isLeader: () => boolean;
  readonly raises: Raises;
  readonly getTags: (names: readonly string[]) => Promise<readonly Tag[]>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly emit: Emit;
}

interface Watched {
  readonly forecast: ForecastState;
  /** Undefined: not known yet. */
  readonly bounds: RaiseBounds | undefined;
  readonly boundsReadAt: number;
  /** The generation under which Redis did not take a raise, since the row has a later one. */
  readonly leftBehind: bigint | undefined;
}

/**
 * Looks once a second at the sequences of one Redis server: writes how fast their ids are used, and raises the maximum of
 * those that would not last long enough, in the RDBMS first and then in Redis.
 *
 * One server does it, so that the work is done once. Nothing depends on there being only one: rates written twice are
 * the same rates, and of two raises each has a range of its own.
 */
export class RedisWatch {
  readonly #ports: RedisWatchPorts;
  readonly #options: ForecastOptions;
  readonly #turns: Turns;
  readonly #watched = new Map<string, Watched>();
  #cursor = "0";
  #failing = false;

  constructor(ports: RedisWatchPorts, options: ForecastOptions) {
    this.#ports = ports;
    this.#turns = new Turns(() => this.turn(), TURN_MS, ports);
    this.#options = options;
  }

  start(): void {
    this.#turns.start();
  }

  stop(): void {
    this.#turns.stop();
  }

  /** One turn; never rejects. */
  async turn(): Promise<void> {
    if (!this.#leads()) {
      this.#watched.clear();
      this.#cursor = "0";
      return;
    }
    const { emit, redisServer } = this.#ports;
    try {
      let left = MAX_PER_TURN;
      do {
        const { tags, cursor } = await redisServer.sequences.list(this.#cursor, PAGE);
        this.#cursor = cursor;
        left -= Math.max(1, tags.length);
        await this.#look([...new Set(tags)]);
      } while (this.#cursor !== "0" && left > 0 && this.#leads());
      this.#failing = false;
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      if (!this.#failing)
        emit({ type: "redis-watch-failed", redisServer: redisServer.name, error });
      this.#failing = true;
    }
  }

  #leads(): boolean {
    return !this.#turns.isStopped && this.#ports.isLeader();
  }

  async #look(tags: readonly string[]): Promise<void> {
    if (tags.length === 0) return;
    const { sequences } = this.#ports.redisServer;
    const readings = await sequences.read(tags);
    const atMs = this.#ports.clock.now();
    const present: string[] = [];
    for (const [at, tag] of tags.entries()) {
      const reading = readings[at];
      if (reading === undefined) this.#watched.delete(tag);
      else {
        this.#observe(tag, reading, atMs);
        present.push(tag);
      }
    }
    await sequences.writeRates(present.flatMap((tag) => this.#ratesToWrite(tag)));
    await this.#readBounds(present);
    await this.#raiseLow(present);
  }

  #observe(tag: string, read: SequenceReading, atMs: number): void {
    const reading: ForecastReading = { ...read, atMs };
    const old = this.#watched.get(tag);
    if (old === undefined) {
      const forecast = startForecast(reading, read.longTermRate);
      this.#watched.set(tag, {
        forecast,
        bounds: undefined,
        boundsReadAt: -Infinity,
        leftBehind: undefined,
      });
    } else {
      this.#watched.set(tag, { ...old, forecast: observeReading(old.forecast, reading) });
    }
  }

  #ratesToWrite(tag: string) {
    const forecast = this.#watched.get(tag)?.forecast;
    if (forecast === undefined) return [];
    const { recently, longTerm } = forecast.rates;
    return [{ tag, generation: forecast.last.generation, recently, longTerm }];
  }

  /** Learns what tags say of their raises, and lets go of those that count here no more. */
  async #readBounds(tags: readonly string[]): Promise<void> {
    const { clock, getTags, redisServer } = this.#ports;
    const now = clock.now();
    const due = tags
      .filter((tag) => now - (this.#watched.get(tag)?.boundsReadAt ?? now) >= SETTINGS_MS)
      .slice(0, MAX_NAMES);
    if (due.length === 0) return;
    const rows = new Map((await getTags(due)).map((row) => [row.name, row]));
    for (const tag of due) {
      const bounds = boundsOf(rows.get(tag), redisServer.name);
      const watched = this.#watched.get(tag);
      if (bounds === undefined || watched === undefined) {
        this.#watched.delete(tag);
        await redisServer.sequences.unlist(tag);
      } else {
        this.#watched.set(tag, { ...watched, bounds, boundsReadAt: now });
      }
    }
  }

  async #raiseLow(tags: readonly string[]): Promise<void> {
    const { emit, raises, redisServer, getTags } = this.#ports;
    const readPlace = async (tag: string): Promise<{ generation: bigint; floor: bigint }> => {
      const [row] = await getTags([tag]);
      return row ?? { generation: 0n, floor: 0n };
    };
    for (const tag of tags) {
      const watched = this.#watched.get(tag);
      if (watched?.bounds === undefined) continue;
      const { bounds, forecast, leftBehind } = watched;
      // Who counts gives it a new start; until then raises would be thrown away.
      if (leftBehind === forecast.last.generation) continue;
      const by = raiseWanted(forecast, bounds, this.#options);
      if (by === 0n) continue;
      if (!this.#leads()) return;
      // One after the other: a store that does not answer ends the turn.
      try {
        const { floor: max, generation } = await raiseSequence(
          { raises, readPlace, redisServer: () => redisServer },
          tag,
          redisServer.name,
          // To a place where there is a bound: a raise of somebody else at the same time must not come on top.
          bounds.maxSkip === undefined
            ? { by, atLeast: 0n }
            : { by: 0n, atLeast: forecast.last.max + by },
        );
        if (generation > forecast.last.generation) {
          this.#watched.set(tag, { ...watched, leftBehind: forecast.last.generation });
          continue;
        }
        const { recently, longTerm } = forecast.rates;
        const rate = Math.max(recently, longTerm);
        emit({ type: "redis-raised", tag, redisServer: redisServer.name, max, rate });
      } catch (thrown) {
        // Refusals of the tag (paused, gone, at its end) are no fault.
        if (IdmintError.from(thrown).retryable) throw thrown;
      }
    }
  }
}

/** What a tag that counts in this Redis server says of its raises; undefined for all others. */
function boundsOf(tag: Tag | undefined, redisServer: string): RaiseBounds | undefined {
  if (tag === undefined || tag.state === "DELETED" || !("redis" in tag.kind)) return undefined;
  const { redis } = tag.kind;
  return redis?.server === redisServer ? redis : undefined;
}

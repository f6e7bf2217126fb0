import { isCounted, specOf } from "@idmint/core/kinds";
import {
  createWarningState,
  type Horizon,
  horizonsOf,
  rateOf,
  sawUsed,
  type Tag,
  type Usage,
  type UseRate,
  type WarningState,
} from "@idmint/core/server";

/** What is known of a tag's ids and of how fast they are used. */
export interface Forecast {
  readonly tag: Tag;
  /** All ids up to this are gone; undefined: it is not known. */
  readonly used: bigint | undefined;
  /** Undefined: nothing was seen to be used yet. */
  readonly rate: UseRate | undefined;
  readonly horizons: readonly Horizon[];
}

/** A tag whose use is watched. */
interface Watched {
  tag: Tag;
  used: bigint | undefined;
  usage: Usage | undefined;
  readonly warning: WarningState;
}

/** The time of a look, by both clocks. */
export interface Moment {
  readonly now: number;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/**
 * The tags whose use this server watches.
 *
 * INVARIANT: they are `max` at most. One that somebody asks for takes the place of the one whose end is farthest, so a tag
 * that nears its end stays watched.
 */
export class WatchedTags {
  readonly #max: number;
  readonly #tags = new Map<string, Watched>();

  constructor(max: number) {
    this.#max = max;
  }

  get names(): readonly string[] {
    return [...this.#tags.keys()];
  }

  get room(): number {
    return this.#max - this.#tags.size;
  }

  has(name: string): boolean {
    return this.#tags.has(name);
  }

  /** Takes note of a row and of how many of the tag's ids are gone. A tag that is not watched is, if there is room. */
  saw(tag: Tag, used: bigint | undefined, { now }: Pick<Moment, "now">): void {
    if (tag.state === "DELETED") {
      this.#tags.delete(tag.name);
      return;
    }
    let watched = this.#tags.get(tag.name);
    if (watched === undefined) {
      if (this.room <= 0) return;
      watched = { tag, used, usage: undefined, warning: createWarningState() };
      this.#tags.set(tag.name, watched);
    }
    watched.tag = tag;
    watched.used = used;
    if (used === undefined) return;
    const { epoch, periodStart: period } = tag;
    watched.usage = sawUsed(watched.usage, { at: now, used, epoch, period });
  }

  forget(name: string): void {
    this.#tags.delete(name);
  }

  /** Makes room for a tag that somebody asks for. */
  makeRoomFor(name: string, moment: Moment): void {
    if (this.#tags.has(name) || this.room > 0) return;
    let farthest: string | undefined;
    let farthestAt = -Infinity;
    for (const { tag, end } of this.all(moment)) {
      const at = end ?? Infinity;
      if (at <= farthestAt) continue;
      farthest = tag.name;
      farthestAt = at;
    }
    if (farthest !== undefined) this.#tags.delete(farthest);
  }

  forecastOf(name: string, moment: Moment): Forecast | undefined {
    const watched = this.#tags.get(name);
    return watched === undefined ? undefined : forecastOf(watched, moment);
  }

  /** All forecasts, with what was told of each. */
  *all(
    moment: Moment,
  ): Generator<
    Forecast & { readonly warning: WarningState; readonly end: number | undefined },
    void,
    undefined
  > {
    for (const watched of this.#tags.values()) {
      const forecast = forecastOf(watched, moment);
      const ends = forecast.horizons.flatMap(({ runsOutAtMs }) => runsOutAtMs ?? []);
      const end = ends.length === 0 ? undefined : Math.min(...ends);
      yield { ...forecast, warning: watched.warning, end };
    }
  }
}

function forecastOf({ tag, used, usage }: Watched, { nowMs }: Moment): Forecast {
  const rate = usage === undefined ? undefined : rateOf(usage);
  const horizons = horizonsOf(tag, { used, idsPerSecond: rate?.idsPerSecond, nowMs });
  return { tag, used, rate, horizons };
}

/** Where it is known how many ids of a tag are gone, by where they are counted. */
const USED_AT = { nothing: "nowhere", redis: "redis", store: "row", tickets: "tickets" } as const;

/** The same of a tag. */
export function usedAtOf({ kind }: Tag): "nowhere" | "redis" | "row" | "tickets" {
  return isCounted(kind) ? USED_AT[specOf(kind).countedIn(kind)] : "nowhere";
}

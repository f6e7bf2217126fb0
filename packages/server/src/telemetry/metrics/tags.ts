import type { Clock } from "@idmint/core";
import type { Entry } from "../../service/issue/entries.ts";
import {
  beginRanking,
  type BusiestState,
  countNamed,
  createBusiestState,
  endRanking,
  lookAtTag,
  type NamedTag,
  wastedOf,
} from "./busiest-state.ts";
import { type MetricPoint, OTHER_TAGS } from "./table.ts";

/** Tags of one turn of the event loop, so that 100,000 of them do not hold up calls. */
const TAGS_PER_TURN = 1_000;

export interface TagMetricsPorts {
  readonly directory: { entries(): Iterable<Entry> };
  readonly counters: {
    readonly issuedIds: number;
    readonly returnedIds: number;
    readonly wastedIds: number;
  };
  readonly capacity: { readonly forecasts: Iterable<TagForecast> };
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly afterTurn: (run: () => void) => void;
}

/** What is collected of tags, by the name of the metric. */
type TagPoints = Readonly<Record<TagMetric, MetricPoint[]>>;
type TagMetric =
  | "idmint.ids.issued"
  | "idmint.ids.wasted"
  | "idmint.segment.remaining"
  | "idmint.segment.remaining.time"
  | "idmint.waiters"
  | "idmint.epoch"
  | "idmint.worker.lease.remaining"
  | "idmint.worker.reservation.remaining"
  | "idmint.capacity.remaining.time";

/** When a tag's ids reach limits. */
interface TagForecast {
  readonly tag: { readonly name: string };
  readonly horizons: readonly {
    readonly limit: string;
    readonly runsOutAtMs: number | undefined;
  }[];
}

/** The gauges of all tags without a place. */
interface Others {
  waiting: number;
  share: number;
  leaseMs: number;
  reservedMs: number;
}

/** The series of tags: the shell around busiest-state.ts, which goes through all tags in several turns. */
export class TagMetrics {
  readonly #ports: TagMetricsPorts;
  readonly #state: BusiestState;

  constructor(limit: number, ports: TagMetricsPorts) {
    this.#ports = ports;
    this.#state = createBusiestState(limit);
  }

  wasted(tag: string, count: number): void {
    wastedOf(this.#state, tag, count);
  }

  /** One at a time. */
  async collect(): Promise<TagPoints> {
    const { clock, counters } = this.#ports;
    const state = this.#state;
    const points = noPoints();
    const others: Others = {
      waiting: 0,
      share: Infinity,
      leaseMs: Infinity,
      reservedMs: Infinity,
    };
    const entries = await this.#look(others);
    const now = clock.now();
    for (const [name, named] of state.named) {
      const entry = entries.get(name);
      if (entry !== undefined) {
        countNamed(state, named, entry, now);
        addGauges(points, named, entry);
      }
      const attributes = { tag: name };
      points["idmint.ids.issued"].push({ attributes, value: named.ids });
      points["idmint.ids.wasted"].push({ attributes, value: named.wasted });
    }
    addOthers(points, others);
    points["idmint.capacity.remaining.time"].push(...this.#horizons());
    const attributes = { tag: OTHER_TAGS };
    const issued = counters.issuedIds + counters.returnedIds - state.attributedIds;
    const wasted = counters.wastedIds - state.attributedWaste;
    points["idmint.ids.issued"].push({ attributes, value: issued });
    points["idmint.ids.wasted"].push({ attributes, value: wasted });
    return points;
  }

  #horizons(): readonly MetricPoint[] {
    const { capacity, wallClock } = this.#ports;
    const soonest = new Map<string, MetricPoint>();
    for (const { tag, horizons } of capacity.forecasts) {
      const name = this.#state.named.has(tag.name) ? tag.name : OTHER_TAGS;
      for (const { limit, runsOutAtMs } of horizons) {
        if (runsOutAtMs === undefined) continue;
        const value = Math.max(0, runsOutAtMs - wallClock()) / 1_000;
        const known = soonest.get(`${name} ${limit}`)?.value ?? Infinity;
        if (value < Number(known))
          soonest.set(`${name} ${limit}`, { attributes: { tag: name, limit }, value });
      }
    }
    return [...soonest.values()];
  }

  /** Looks at all tags, gives places, and answers the tags that had one before. */
  async #look(others: Others): Promise<ReadonlyMap<string, Entry>> {
    const { directory, clock, afterTurn } = this.#ports;
    const state = this.#state;
    const ranking = beginRanking(state, clock.now());
    const named = new Map<string, Entry>();
    let left = TAGS_PER_TURN;
    for (const entry of directory.entries()) {
      if (lookAtTag(state, ranking, entry)) named.set(entry.name, entry);
      else addOther(others, entry);
      if (--left > 0) continue;
      left = TAGS_PER_TURN;
      // One turn after the other is the point.
      await new Promise<void>((resolve) => afterTurn(resolve));
    }
    endRanking(state, ranking, clock.now());
    return named;
  }
}

function noPoints(): TagPoints {
  return {
    "idmint.ids.issued": [],
    "idmint.ids.wasted": [],
    "idmint.segment.remaining": [],
    "idmint.segment.remaining.time": [],
    "idmint.waiters": [],
    "idmint.epoch": [],
    "idmint.worker.lease.remaining": [],
    "idmint.worker.reservation.remaining": [],
    "idmint.capacity.remaining.time": [],
  };
}

function addGauges(points: TagPoints, { rate }: NamedTag, entry: Entry): void {
  const attributes = { tag: entry.name };
  const add = (name: TagMetric, value: number | undefined): void => {
    if (value !== undefined) points[name].push({ attributes, value });
  };
  const issuer = entry.buffer ?? entry.source;
  add("idmint.waiters", issuer.waiting);
  add("idmint.epoch", Number((entry.buffer ?? entry).epoch));
  add("idmint.segment.remaining", shareLeft(entry));
  if (entry.buffer !== undefined && rate > 0)
    add("idmint.segment.remaining.time", issuer.ready / rate);
  const left = entry.buffer === undefined ? entry.source.leaseLeft : undefined;
  if (left === undefined) return;
  add("idmint.worker.lease.remaining", left.leaseMs / 1_000);
  add("idmint.worker.reservation.remaining", left.reservedMs / 1_000);
}

function addOther(others: Others, entry: Entry): void {
  others.waiting += (entry.buffer ?? entry.source).waiting;
  others.share = Math.min(others.share, shareLeft(entry) ?? Infinity);
  if (entry.buffer !== undefined) return;
  const left = entry.source.leaseLeft;
  if (left === undefined) return;
  others.leaseMs = Math.min(others.leaseMs, left.leaseMs);
  others.reservedMs = Math.min(others.reservedMs, left.reservedMs);
}

function addOthers(points: TagPoints, { waiting, share, leaseMs, reservedMs }: Others): void {
  const attributes = { tag: OTHER_TAGS };
  const add = (name: TagMetric, value: number): void => {
    if (value !== Infinity) points[name].push({ attributes, value });
  };
  add("idmint.waiters", waiting);
  add("idmint.segment.remaining", share);
  add("idmint.worker.lease.remaining", leaseMs / 1_000);
  add("idmint.worker.reservation.remaining", reservedMs / 1_000);
}

/** Undefined for tags that hold no segments: of another kind, or asked for nothing since they were looked up. */
function shareLeft({ buffer, issued }: Entry): number | undefined {
  if (buffer === undefined) return undefined;
  const { held, waiting, ready } = buffer;
  if (held > 0) return ready / held;
  return waiting > 0 || issued > 0 ? 0 : undefined;
}

import { type Around, type Store, wrapStore } from "@idmint/core/server";
import { CallTimes } from "../../service/call-times.ts";
import type { Emit } from "../../service/events.ts";
import { OperationTimes } from "../operations.ts";
import { Collector } from "./collector.ts";
import { EventCounts } from "./event-counts.ts";
import { EventLoopWatch } from "./event-loop.ts";
import type { MetricSources } from "./read.ts";
import type { MetricSnapshot } from "./table.ts";
import { TagMetrics, type TagMetricsPorts } from "./tags.ts";

/** What is counted before there are services, and what is read of them afterwards. */
export type MetricServices = Omit<MetricSources, "callTimes" | "events" | "operations"> &
  TagMetricsPorts;

/** What databases are called in metrics and traces, by the name of the backend. */
const SYSTEMS: Readonly<Record<string, string>> = { postgres: "postgresql", spread: "postgresql" };

/** The metrics of a server. */
export class Metrics {
  readonly callTimes: CallTimes = new CallTimes();
  readonly #operations = new OperationTimes();
  readonly #events = new EventCounts((tag, count) => this.#tags?.wasted(tag, count));
  readonly #loop = new EventLoopWatch();
  readonly #maxTags: number;
  #tags: TagMetrics | undefined;
  #collector: Collector | undefined;

  /** `maxTags`: how many tags have series of their own. */
  constructor(maxTags: number) {
    this.#maxTags = maxTags;
  }

  get hear(): Emit {
    return this.#events.hear;
  }

  /** The same store, whose calls are timed. */
  observed(store: Store): Store {
    const system = systemOf(store.backend);
    const around: Around = (name, args, inner) =>
      this.#operations.around(system, name, () => inner[name](...args));
    return wrapStore(store, around);
  }

  /** Stands around what is asked of Redis. */
  readonly aroundRedis = <T>(operation: string, work: () => Promise<T>): Promise<T> =>
    this.#operations.around("redis", operation, work);

  /** There is something to collect from now on. */
  start(services: MetricServices): void {
    const its = { callTimes: this.callTimes, operations: this.#operations, events: this.#events };
    this.#tags = new TagMetrics(this.#maxTags, services);
    this.#collector = new Collector({ ...services, ...its }, this.#tags, this.#loop);
    this.#loop.start();
  }

  stop(): void {
    this.#loop.stop();
  }

  async collect(): Promise<MetricSnapshot> {
    return (await this.#collector?.collect()) ?? {};
  }
}

function systemOf(backend: string): string {
  return SYSTEMS[backend] ?? backend;
}

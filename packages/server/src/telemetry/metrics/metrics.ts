import { CallTimes } from "../../service/call-times.ts";
import type { Emit } from "../../service/events.ts";
import type { Operations } from "../operations.ts";
import type { Collector } from "./collector.ts";
import { EventCounts } from "./event-counts.ts";
import { EventLoopWatch } from "./event-loop.ts";
import type { MetricSources } from "./read.ts";
import type { MetricSnapshot } from "./table.ts";
import type { TagMetrics, TagMetricsPorts } from "./tags.ts";

/** What is read of a server's services. */
export type MetricServices = Omit<MetricSources, "callTimes" | "events" | "operations"> &
  TagMetricsPorts;

/** The metrics of a server. What collects them is loaded when somebody asks: a start needs only what counts. */
export class Metrics {
  readonly callTimes: CallTimes = new CallTimes();
  readonly #operations: Operations;
  readonly #events = new EventCounts((tag, count) => this.#tags?.wasted(tag, count));
  readonly #loop = new EventLoopWatch();
  readonly #maxTags: number;
  #services: MetricServices | undefined;
  /** Before the first collection no tag has a place, so nothing has to be counted for one. */
  #tags: TagMetrics | undefined;
  #collector: Promise<Collector> | undefined;

  /** `maxTags`: how many tags have series of their own. */
  constructor(maxTags: number, operations: Operations) {
    this.#maxTags = maxTags;
    this.#operations = operations;
  }

  get hear(): Emit {
    return this.#events.hear;
  }

  /** There is something to collect from now on. */
  start(services: MetricServices): void {
    this.#services = services;
    this.#loop.start();
  }

  stop(): void {
    this.#loop.stop();
  }

  async collect(): Promise<MetricSnapshot> {
    if (this.#services === undefined) return {};
    this.#collector ??= this.#makeCollector(this.#services);
    return (await this.#collector).collect();
  }

  async #makeCollector(services: MetricServices): Promise<Collector> {
    const [tags, collector] = await Promise.all([import("./tags.ts"), import("./collector.ts")]);
    const its = { callTimes: this.callTimes, operations: this.#operations, events: this.#events };
    this.#tags = new tags.TagMetrics(this.#maxTags, services);
    return new collector.Collector({ ...services, ...its }, this.#tags, this.#loop);
  }
}

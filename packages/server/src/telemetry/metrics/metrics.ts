import { CallTimes } from "../../service/call-times.ts";
import type { Emit } from "../../service/events.ts";
import type { Operations } from "../operations.ts";
import { Collector } from "./collector.ts";
import { EventCounts } from "./event-counts.ts";
import { EventLoopWatch } from "./event-loop.ts";
import type { MetricSources } from "./read.ts";
import type { MetricSnapshot } from "./table.ts";
import { TagMetrics, type TagMetricsPorts } from "./tags.ts";

/** What is read of a server's services. */
export type MetricServices = Omit<MetricSources, "callTimes" | "events" | "operations"> &
  TagMetricsPorts;

/** The metrics of a server. */
export class Metrics {
  readonly callTimes: CallTimes = new CallTimes();
  readonly #operations: Operations;
  readonly #events = new EventCounts((tag, count) => this.#tags?.wasted(tag, count));
  readonly #loop = new EventLoopWatch();
  readonly #maxTags: number;
  #tags: TagMetrics | undefined;
  #collector: Collector | undefined;

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

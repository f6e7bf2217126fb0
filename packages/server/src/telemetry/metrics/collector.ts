import type { EventLoopWatch } from "./event-loop.ts";
import { type MetricSources, readMetrics } from "./read.ts";
import type { MetricSnapshot } from "./table.ts";
import type { TagMetrics } from "./tags.ts";

/**
 * Collects all metrics of a server.
 *
 * INVARIANT: one collection runs at a time; whoever asks meanwhile gets its answer. So many scrapes at once cost what one
 * does.
 */
export class Collector {
  readonly #sources: MetricSources;
  readonly #tags: TagMetrics;
  readonly #loop: EventLoopWatch;
  #running: Promise<MetricSnapshot> | undefined;

  constructor(sources: MetricSources, tags: TagMetrics, loop: EventLoopWatch) {
    this.#sources = sources;
    this.#tags = tags;
    this.#loop = loop;
  }

  collect(): Promise<MetricSnapshot> {
    this.#running ??= this.#collect().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #collect(): Promise<MetricSnapshot> {
    const tags = await this.#tags.collect();
    return readMetrics(this.#sources, { tags, loop: this.#loop.read() });
  }
}

import type { Reason } from "@idmint/core";
import { countOne } from "../../service/counters.ts";
import type { Emit, ServerEvent } from "../../service/events.ts";
import { Histogram } from "../../service/histogram.ts";

/** Seconds. Loads that take longer than a second keep callers waiting. */
const LOAD_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Counts events. Those of loads come for each of them; none comes for each call. */
export class EventCounts {
  readonly byType: Map<ServerEvent["type"], number> = new Map();
  readonly loadTimes: Histogram = new Histogram(LOAD_BOUNDS);
  readonly loadFailures: Map<Reason, number> = new Map();
  readonly #onWaste: (tag: string, count: number) => void;

  constructor(onWaste: (tag: string, count: number) => void) {
    this.#onWaste = onWaste;
  }

  readonly hear: Emit = (event) => {
    countOne(this.byType, event.type);
    if (event.type === "loaded") this.loadTimes.record(event.durationMs / 1_000);
    else if (event.type === "load-failed") countOne(this.loadFailures, event.error.reason);
    else if (event.type === "wasted" || event.type === "late-grant")
      this.#onWaste(event.tag, event.count);
  };
}

import type { ServerEvent } from "../service/events.ts";
import type { Logger } from "./logger.ts";
import {
  createOutageState,
  ended,
  failed,
  type OutageState,
  POLLS,
  worked,
} from "./outage-state.ts";
import { plain, withStacks } from "./plain.ts";

type Of<Type extends ServerEvent["type"]> = Extract<ServerEvent, { readonly type: Type }>;
const TYPES = [
  "callers-read",
  "callers-unread",
  "change-failed",
  "load-failed",
  "loaded",
  "poll-failed",
  "store-awaited",
  "store-back",
  "store-lost",
] as const;

/** An event of which an outage's lines tell. */
export type OutageEvent = Of<(typeof TYPES)[number]>;

const OF_OUTAGE: ReadonlySet<string> = new Set(TYPES);

export function isOfOutage(event: ServerEvent): event is OutageEvent {
  return OF_OUTAGE.has(event.type);
}

const CALLERS = "callers";

/** Writes the lines of outages of the store; `outage-state.ts` says which. Each failure is a line at debug. */
export class Outages {
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #state: OutageState = createOutageState();

  constructor(logger: Logger, now: () => number) {
    this.#logger = logger;
    this.#now = now;
  }

  hear(event: OutageEvent): void {
    switch (event.type) {
      case "load-failed":
        // A tag's refusals go to its callers. A store that fails is the operator's business.
        if (!event.error.retryable) this.#logger.debug(withStacks(event), event.type);
        else this.#failed(event, "loads", `load ${event.tag}`, "could not load a segment");
        break;
      case "loaded":
        this.#logger.debug(plain(event), event.type);
        this.#worked(`load ${event.tag}`);
        break;
      case "callers-unread":
        this.#failed(event, "looks at callers", CALLERS, "the list of callers cannot be read");
        break;
      case "callers-read":
        this.#worked(CALLERS);
        break;
      case "change-failed":
        this.#failed(event, "changes", undefined, "the store failed a call");
        break;
      case "store-awaited":
        this.#failed(
          event,
          "attempts",
          undefined,
          "the store does not answer; not ready until it does",
        );
        break;
      case "store-lost":
        failed(this.#state, POLLS, POLLS, this.#now());
        this.#logger.error(
          this.#fields(event),
          "the store does not answer; serving ids from memory",
        );
        break;
      case "poll-failed":
        this.#failed(event, POLLS, POLLS, "the store does not answer");
        break;
      case "store-back":
        ended(this.#state, this.#now());
        this.#logger.info({ ...plain(event), failures: this.#counts }, "the store answers again");
        break;
    }
  }

  /** The server serves: what its start waited for has come. What else fails goes on. */
  started(): void {
    if (this.#state.failing.size === 0) ended(this.#state, this.#now());
  }

  get #counts(): Record<string, number> {
    return Object.fromEntries(this.#state.counts);
  }

  #fields(event: OutageEvent): Record<string, unknown> {
    return this.#logger.isLevelEnabled("debug") ? withStacks(event) : plain(event);
  }

  #failed(event: OutageEvent, kind: string, subject: string | undefined, text: string): void {
    const now = this.#now();
    const told = failed(this.#state, kind, subject, now);
    if (told === "begin") this.#logger.warn(this.#fields(event), text);
    else if (told === undefined) this.#logger.debug(withStacks(event), text);
    else {
      const more = { forMs: now - this.#state.since, failures: this.#counts };
      this.#logger.warn({ ...this.#fields(event), ...more }, "the store still fails");
    }
  }

  #worked(subject: string): void {
    const now = this.#now();
    if (!worked(this.#state, subject, now)) return;
    const told = { afterMs: now - this.#state.since, failures: this.#counts };
    this.#logger.info(told, "the store fails no more");
  }
}

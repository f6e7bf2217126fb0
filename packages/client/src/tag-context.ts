import type { BufferOptions, BufferPorts, Clock, MadeSnowflakes, Timers } from "@idmint/core";
import type { Endpoints } from "./servers/endpoints.ts";
import type { LocalTextMakers } from "./kinds/local-text-makers.ts";
import type { IdClientEvent } from "./events.ts";
import type { ResolvedWorkerOptions } from "./options.ts";

/** What is needed to give back the unused ids of a load: the token, and the server that knows it. */
export interface Receipt {
  readonly releaseToken: string;
  readonly endpoint: string;
}

/** What the tags of one client share. */
export interface TagContext<T = never> {
  readonly clock: Clock;
  readonly endpoints: Endpoints;
  readonly afterTurn: (run: () => void) => void;
  readonly emit: (event: IdClientEvent) => void;
  /** Keeps a tag, which is about to load something. Throws OVERLOADED when there are too many. */
  readonly hold: (tag: T) => void;
  readonly deadlineMs: number;
  readonly maxAgeMs: number;
  readonly buffer: Omit<BufferOptions, "ordered">;
  readonly ports: Omit<BufferPorts<Receipt>, "load">;
  /** Timers that do not keep the process alive. */
  readonly quietTimers: Timers;
  /** What makes ids that are text and are made here. */
  readonly textMakers: () => LocalTextMakers;
  /** Milliseconds since 1970. May go back and jump. */
  readonly wallClock: () => number;
  readonly worker: ResolvedWorkerOptions;
  /** Of which times snowflakes were made. */
  readonly made: MadeSnowflakes;
}

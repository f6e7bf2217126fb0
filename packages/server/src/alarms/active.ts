import type { Clock } from "@idmint/core";
import type { ServerEvent } from "../service/events.ts";
import type { ActiveAlarm } from "../service/figures/active-alarm.ts";
import { activated, activeNow, type ActiveState } from "./active-state.ts";
import { alarmOf } from "./alarm-of.ts";

/** Alarms of one answer. */
const MAX_TOLD = 100;

/** Remembers the alarms of this server that are not over: the shell around active-state.ts. */
export class ActiveAlarms {
  readonly #ports: { readonly clock: Clock; readonly wallClock: () => number };
  readonly #server: string;
  readonly #state: ActiveState = new Map();

  constructor(
    ports: { readonly clock: Clock; readonly wallClock: () => number },
    /** This server, for the keys of alarms. */
    server: string,
  ) {
    this.#ports = ports;
    this.#server = server;
  }

  /** Hears every event of this server. */
  readonly hear = (event: ServerEvent): void => {
    const change = alarmOf(event, this.#server);
    if (change === undefined) return;
    const { clock, wallClock } = this.#ports;
    activated(this.#state, change, clock.now(), wallClock());
  };

  now(): readonly ActiveAlarm[] {
    return activeNow(this.#state, this.#ports.clock.now(), MAX_TOLD);
  }
}

import { nodeTimers } from "../../../timers.ts";
import type { Members } from "./members.ts";
import {
  close,
  createWatchState,
  ended,
  told,
  type WatchEffect,
  type WatchState,
  woke,
} from "./watch-state.ts";

/** Tells of changes of some keys, as far as etcd tells of them. See watch-state.ts. */
export class Watch {
  readonly #members: Pick<Members, "watch">;
  readonly #keys: readonly Buffer[];
  readonly #heard: () => void;
  readonly #state: WatchState = createWatchState();
  #stop: () => void = () => undefined;
  #cancelTimer: () => void = () => undefined;

  /** Calls `heard` whenever something may have been changed, until it is closed. */
  constructor(members: Pick<Members, "watch">, keys: readonly Buffer[], heard: () => void) {
    this.#members = members;
    this.#keys = keys;
    this.#heard = heard;
    this.#wake(this.#state.token);
  }

  close(): void {
    this.#cancelTimer();
    this.#run(close(this.#state));
  }

  #wake(token: number): void {
    this.#run(woke(this.#state, token, this.#keys.length, Math.random()));
  }

  #begin(token: number): void {
    this.#stop = this.#members.watch(this.#keys, {
      told: ({ created, events }) => {
        const changed = events.length > 0;
        this.#run(told(this.#state, token, { created, changed }, performance.now()));
      },
      ended: () => this.#run(ended(this.#state, token, performance.now(), Math.random())),
    });
  }

  #run(effects: readonly WatchEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case "begin":
          this.#begin(effect.token);
          break;
        case "end":
          this.#stop();
          break;
        case "wake":
          this.#cancelTimer();
          this.#cancelTimer = nodeTimers.after(effect.afterMs, () => this.#wake(effect.token));
          break;
        case "heard":
          this.#heard();
          break;
      }
    }
  }
}

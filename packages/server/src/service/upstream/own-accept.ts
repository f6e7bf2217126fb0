import { IdmintError } from "@idmint/core";
import type { Emit } from "../events.ts";

export interface OwnAcceptPorts {
  /** Asks all servers, and accepts if that is still wanted; this one answers by its polls, which go on meanwhile. */
  readonly accept: (gap: bigint, isWanted: () => boolean) => Promise<{ readonly tags: number }>;
  /** `epoch_gap`; undefined: an operator has to accept. */
  readonly gap: bigint | undefined;
  /** A poll shows what was accepted. */
  readonly onAccepted: () => void;
  readonly emit: Emit;
}

/**
 * Accepts a store that went back without an operator, who decided in advance to lose a gap rather than to wait for somebody to
 * type. It runs beside the polls, by which this server says what it was granted.
 *
 * INVARIANT: once for each history, when it was done. While somebody else asks, or the store does not answer, the next poll
 * tries again, as long as the store is still the one that went back. Where claims reach the end of a tag, an operator has to say
 * whether that is so: nobody tries again, since one accept asks at a time and servers that try leave no turn to the operator's.
 */
export class OwnAccept {
  readonly #ports: OwnAcceptPorts;
  /** In which history it was done, or is an operator's to do. */
  #overIn: string | undefined;
  #wantedIn: string | undefined;
  #isRunning = false;
  /** Whether it was told that the accept failed, which is told once, and again when it is an operator's to do. */
  #isFailing = false;

  constructor(ports: OwnAcceptPorts) {
    this.#ports = ports;
  }

  /** The store went back in this history. */
  needed(history: string | undefined): void {
    const { gap } = this.#ports;
    this.#wantedIn = history;
    if (gap === undefined || this.#isRunning || this.#overIn === history) return;
    void this.#run(gap, history);
  }

  /** Another history began: somebody accepted the store. */
  over(): void {
    this.#wantedIn = undefined;
  }

  async #run(gap: bigint, history: string | undefined): Promise<void> {
    const { accept, onAccepted, emit } = this.#ports;
    this.#isRunning = true;
    const isWanted = (): boolean => this.#wantedIn === history;
    try {
      const { tags } = await accept(gap, isWanted);
      this.#overIn = history;
      this.#isFailing = false;
      emit({ type: "store-accepted", gap, tags });
      onAccepted();
    } catch (thrown) {
      if (!isWanted()) return;
      const error = IdmintError.from(thrown);
      const isOver = error.reason === "VALUE_OUT_OF_RANGE";
      if (isOver) this.#overIn = history;
      if (isOver || !this.#isFailing) emit({ type: "own-accept-failed", error });
      this.#isFailing = true;
    } finally {
      this.#isRunning = false;
    }
  }
}

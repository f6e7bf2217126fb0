import type { Timers } from "@idmint/core";
import { storeUnavailable } from "@idmint/core/server";
import type { KnownStores } from "../store/pins/pin-file.ts";
import type { ToParent } from "./messages.ts";
import { Questions } from "./questions.ts";

/** The parent writes a file. */
const WAIT_MS = 5_000;

/** What a process knows of its store: what its parent knows for all of them. */
export class ParentMemory {
  /** From the first message on. */
  known: KnownStores = { stores: new Map(), present: undefined, left: [] };
  readonly #tell: (message: ToParent) => Promise<void>;
  readonly #questions: Questions<string>;
  #entered = "";

  constructor(tell: (message: ToParent) => Promise<void>, timers: Timers) {
    this.#tell = tell;
    this.#questions = new Questions(timers);
  }

  /** An answer of the parent; undefined: it cannot keep which store it is. */
  hear(number: number, storeId: string | undefined): void {
    this.#questions.answered(number, storeId);
  }

  async settle(place: string, storeId: string): Promise<string> {
    const ask = (number: number): void =>
      void this.#tell({ type: "settle", number, place, storeId });
    const settled = await this.#questions.ask(ask, WAIT_MS);
    if (settled !== undefined) return settled;
    throw storeUnavailable("the parent process could not keep which store it belongs to");
  }

  async close(): Promise<void> {}

  async entered(incarnation: string): Promise<void> {
    if (incarnation === this.#entered) return;
    this.#entered = incarnation;
    await this.#tell({ type: "entered", incarnation });
  }
}

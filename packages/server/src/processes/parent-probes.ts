import type { Timers } from "@idmint/core";
import type { Readiness } from "../http/probes.ts";
import type { Probe, ProbeAnswer, ToParent } from "./messages.ts";
import { Questions } from "./questions.ts";

/** The parent waits 2 s for the metrics of its processes, and at first loads what writes them. Prometheus waits 10 s. */
const WAIT_MS: Readonly<Record<Probe, number>> = { ready: 3_000, metrics: 8_000 };

/** What probes are told by a process: what the parent knows of all of them. */
export class ParentProbes {
  readonly #tell: (message: ToParent) => Promise<void>;
  readonly #questions: Questions<ProbeAnswer>;

  constructor(tell: (message: ToParent) => Promise<void>, timers: Timers) {
    this.#tell = tell;
    this.#questions = new Questions(timers);
  }

  /** An answer of the parent. */
  hear(number: number, answer: ProbeAnswer): void {
    this.#questions.answered(number, answer);
  }

  /** Whether callers should be sent to this address. A parent that says nothing answers for nobody. */
  async ready(): Promise<Readiness> {
    const { ready } = await this.#ask("ready");
    return (
      ready ?? { ready: false, state: "UNKNOWN", reason: "the parent process does not answer" }
    );
  }

  /** The metrics of all processes; rejects when there are none. */
  async metrics(): Promise<string> {
    const { metrics } = await this.#ask("metrics");
    if (metrics === undefined) throw new Error("the parent process told no metrics");
    return metrics;
  }

  async #ask(of: Probe): Promise<ProbeAnswer> {
    const ask = (number: number): void => void this.#tell({ type: "probe", number, of });
    return (await this.#questions.ask(ask, WAIT_MS[of])) ?? {};
  }
}

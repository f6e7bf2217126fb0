// One of the threads that run histories: gets seeds, tells what became of them.
import { parentPort } from "node:worker_threads";
import { runHistory } from "../history.ts";
import { planOf } from "../plan.ts";
import { explain, linesOf } from "./explain.ts";
import { type Counted, countedOf } from "./tally.ts";

export interface Asked {
  readonly seed: string;
  /** Whether what goes wrong is shrunk to the faults that it takes. */
  readonly explains: boolean;
}

/** What became of a history. */
export interface Done {
  /** Undefined: it did not end. */
  readonly counted: Counted | undefined;
  /** What went wrong. */
  readonly lines: readonly string[];
}

// Refusals are many, and nobody reads where each was made.
Error.stackTraceLimit = 0;

parentPort?.on("message", (asked: Asked) => {
  void run(asked);
});

async function run({ seed, explains }: Asked): Promise<void> {
  const outcome = await runHistory(planOf(seed));
  const isWell = outcome.violations.length === 0;
  const lines = explains ? await explain(seed, outcome) : linesOf(seed, outcome);
  const done: Done = { counted: countedOf(outcome), lines: isWell ? [] : lines };
  parentPort?.postMessage(done);
}

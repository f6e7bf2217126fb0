// One of the threads that run histories: gets seeds, tells what became of them.
import { parentPort } from "node:worker_threads";
import { runHistory } from "../history.ts";
import { planOf } from "../plan.ts";
import { explain, linesOf } from "./explain.ts";
import { type Counted, countedOf } from "./tally.ts";

/** Seeds that follow each other. */
export interface Part {
  readonly from: number;
  readonly count: number;
  /** Whether what goes wrong is shrunk to the faults that it takes. */
  readonly shrinks: boolean;
}

export interface Done {
  readonly counted: readonly Counted[];
  /** What went wrong. */
  readonly lines: readonly string[];
}

// Refusals are many, and nobody reads where each was made.
Error.stackTraceLimit = 0;

parentPort?.on("message", (part: Part) => {
  void run(part);
});

async function run({ from, count, shrinks }: Part): Promise<void> {
  const counted: Counted[] = [];
  const lines: string[] = [];
  for (let at = 0; at < count; at++) {
    const seed = String(from + at);
    const outcome = await runHistory(planOf(seed));
    counted.push(countedOf(outcome));
    if (outcome.violations.length === 0) continue;
    lines.push(...(shrinks ? await explain(seed, outcome) : linesOf(seed, outcome)));
  }
  parentPort?.postMessage({ counted, lines } satisfies Done);
}

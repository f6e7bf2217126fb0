import type { Outcome } from "../history.ts";
import { planOf } from "../plan.ts";
import { shrink } from "../shrink.ts";

/** What went wrong in a history, in lines. */
export function linesOf(seed: string, { violations }: Outcome): readonly string[] {
  const what = violations.slice(0, 5).map((one) => `  at ${one.atMs.toFixed(0)} ms: ${one.what}`);
  return ["", `seed ${seed}: ${violations.length} violations`, ...what];
}

/** The same, of one whose thread had to be ended. */
export function didNotEnd(seed: string, why = "its thread ended"): readonly string[] {
  return [
    "",
    `seed ${seed}: did not end: ${why} (where it stops: pnpm sim --seed ${seed} --trace)`,
  ];
}

/** The same, and the faults that it takes. */
export async function explain(seed: string, found: Outcome): Promise<readonly string[]> {
  const { plan, outcome } = await shrink(planOf(seed), () => ({}));
  return [
    ...linesOf(seed, found),
    `  with ${plan.faults.length} faults and ${plan.actions.length} actions:`,
    ...linesOf(seed, outcome).slice(2),
    ...plan.faults.map(
      ({ atMs, kind, target, ms }) => `    ${atMs} ms: ${kind} (${target}), for ${ms} ms`,
    ),
    ...plan.actions.map(
      ({ atMs, act, target, ms }) => `    ${atMs} ms: operator: ${act} (${target}), for ${ms} ms`,
    ),
    `  the last of what happened (all of it: pnpm sim --seed ${seed} --trace):`,
    ...outcome.last.map((line) => `    ${line}`),
  ];
}

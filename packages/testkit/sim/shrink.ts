import type { FleetOptions } from "./fleet.ts";
import { type Outcome, runHistory } from "./history.ts";
import type { Plan } from "./plan.ts";

/** Most histories that are run to find the faults that matter. */
const MOST_RUNS = 60;

/**
 * Leaves out faults and actions one by one for as long as a violation is left. What is left draws the same random numbers as before,
 * since each place has a source of its own.
 */
export async function shrink(
  plan: Plan,
  options: () => FleetOptions,
): Promise<{ readonly plan: Plan; readonly outcome: Outcome }> {
  let least = plan;
  let outcome = await runHistory(plan, options());
  let runs = 1;
  const without = async (smaller: Plan): Promise<boolean> => {
    if (runs++ >= MOST_RUNS) return false;
    const tried = await runHistory(smaller, options());
    if (tried.violations.length === 0) return false;
    least = smaller;
    outcome = tried;
    return true;
  };
  for (let at = least.faults.length - 1; at >= 0; at--) {
    await without({ ...least, faults: least.faults.toSpliced(at, 1) });
  }
  for (let at = least.actions.length - 1; at >= 0; at--) {
    await without({ ...least, actions: least.actions.toSpliced(at, 1) });
  }
  return { plan: least, outcome };
}

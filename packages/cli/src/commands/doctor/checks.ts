// What a check is, and how checks are run. Pure but for its timers.
import { bounded, type Timers } from "@idmint/core";
import { CommandFailure } from "../../calls/failure.ts";

type Status = "ok" | "warn" | "fail";

/** One line of the report. */
export interface Finding {
  readonly status: Status;
  /** What was found. */
  readonly found: string;
  /** What to do about it; of everything that is not ok. */
  readonly fix?: string;
}

export interface Check {
  readonly name: string;
  /** Checks without which this one makes no sense: it is left out when one of them failed or was left out. */
  readonly needs?: readonly string[];
  /** Checks whose end it waits for, however they end. */
  readonly uses?: readonly string[];
  /** What to do when it does not end in time. */
  readonly late: string;
  /** Looks, and changes nothing. May take as long as it takes: `runChecks` stops waiting. */
  readonly look: () => Promise<readonly Finding[]>;
}

interface Result extends Finding {
  readonly check: string;
}

export interface Report {
  readonly results: readonly Result[];
  /** Checks that were left out, and the one that they need. */
  readonly leftOut: readonly { readonly check: string; readonly needs: string }[];
}

/**
 * Runs all checks side by side, each for `boundMs` at most, and reports in the order of the table. One that throws has
 * failed. A check is waited for only by those behind it, so a table without circles ends.
 */
export async function runChecks(
  checks: readonly Check[],
  { boundMs, timers }: { readonly boundMs: number; readonly timers: Timers },
): Promise<Report> {
  const runs = new Map<string, Promise<Outcome>>();
  for (const check of checks) {
    // Only checks above it in the table can be meant.
    const before = (names: readonly string[] = []): (readonly [string, Promise<Outcome>])[] =>
      names.flatMap((name) => {
        const run = runs.get(name);
        return run === undefined ? [] : [[name, run] as const];
      });
    const run = async (): Promise<Outcome> => {
      await Promise.all(before(check.uses).map(([, outcome]) => outcome));
      for (const [name, outcome] of before(check.needs)) {
        if (!(await outcome).isPassed) return { isPassed: false, needs: name, findings: [] };
      }
      const findings = await look(check, boundMs, timers);
      const isPassed = findings.every(({ status }) => status !== "fail");
      return { isPassed, needs: undefined, findings };
    };
    runs.set(check.name, run());
  }
  const results: Result[] = [];
  const leftOut: { check: string; needs: string }[] = [];
  for (const [check, run] of runs) {
    const { needs, findings } = await run;
    if (needs !== undefined) leftOut.push({ check, needs });
    results.push(...findings.map((finding) => ({ check, ...finding })));
  }
  return { results, leftOut };
}

interface Outcome {
  readonly isPassed: boolean;
  /** Why it was left out. */
  readonly needs: string | undefined;
  readonly findings: readonly Finding[];
}

/** What a check finds in its time. */
async function look(check: Check, ms: number, timers: Timers): Promise<readonly Finding[]> {
  try {
    return await bounded(check.look(), ms, timers, () => [
      fail(`no answer in ${ms} ms`, check.late),
    ]);
  } catch (thrown) {
    const found = thrown instanceof Error ? thrown.message : String(thrown);
    const code = thrown instanceof CommandFailure ? thrown.failure.code : "";
    return [fail(found, REFUSALS.has(code) ? RIGHTS_FIX : check.late)];
  }
}

const REFUSALS: ReadonlySet<string> = new Set(["UNAUTHENTICATED", "PERMISSION_DENIED"]);
const RIGHTS_FIX = "give doctor a token (--token-file) of somebody with the role observe";

export const ok = (found: string): Finding => ({ status: "ok", found });
export const warn = (found: string, fix: string): Finding => ({ status: "warn", found, fix });
export const fail = (found: string, fix: string): Finding => ({ status: "fail", found, fix });

/** The findings that are there; one `ok` when nothing is wrong. */
export function allWellOr(
  wrong: readonly (Finding | undefined)[],
  found: string,
): readonly Finding[] {
  const present = wrong.filter((finding) => finding !== undefined);
  return present.length > 0 ? present : [ok(found)];
}

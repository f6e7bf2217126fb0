// What the processes of callers share: pacing, stopping, reporting. For the scripts load-sdk.ts and load-grpc.ts only.
import { setTimeout as pause } from "node:timers/promises";
import type { IdmintError } from "@idmint/client";
import type { Activity, LoadConfig, LoadReport } from "./load-config.ts";

/** Calls that are overdue and are made up for at once, so that a pause is not followed by a storm. */
const MAX_BEHIND_MS = 200;
const MAX_SAMPLES = 10;
/** About as long as a call to the store takes. */
const MAX_CANCEL_MS = 4;

const answers = { count: 0 };
const errors = new Map<string, number>();
const samples: string[] = [];
const told = new AbortController();

export function configOf(argv: readonly string[]): LoadConfig {
  return JSON.parse(argv[2] ?? "{}") as LoadConfig;
}

/**
 * Makes the calls of one caller at its rate until the process is told to stop. `call` must not reject; it answers whether
 * ids came.
 */
export async function pace(
  { perSecond, parallel = 1 }: Pick<Activity, "parallel" | "perSecond">,
  call: () => Promise<void>,
): Promise<void> {
  const everyMs = 1_000 / perSecond;
  const inFlight = new Set<Promise<void>>();
  let due = performance.now();
  while (!told.signal.aborted) {
    const now = performance.now();
    if (now < due) await pause(due - now);
    due = Math.max(due + everyMs, now - MAX_BEHIND_MS);
    while (inFlight.size >= parallel) await Promise.race(inFlight);
    const flight = call().finally(() => inFlight.delete(flight));
    inFlight.add(flight);
  }
  await Promise.all(inFlight);
}

/** The signal of a call that may be cancelled a moment after it was begun; undefined for most. */
export function signalOf({ cancelShare = 0 }: LoadConfig): AbortSignal | undefined {
  if (Math.random() >= cancelShare) return undefined;
  const controller = new AbortController();
  setTimeout(() => controller.abort(), Math.random() * MAX_CANCEL_MS);
  return controller.signal;
}

export function answered(): void {
  if (answers.count++ === 0) process.stdout.write("first answer\n");
}

/** Counts a refusal; the first for each reason is told at once. */
export function refused(error: IdmintError, detail = ""): void {
  const name = `${error.code} ${error.reason}`;
  if (!errors.has(name)) process.stdout.write(`refused ${name}\n`);
  errors.set(name, (errors.get(name) ?? 0) + 1);
  if (samples.length < MAX_SAMPLES) {
    samples.push(`${new Date().toISOString()} ${error.message} ${detail}`);
  }
}

/** Runs all callers of this process; at SIGTERM it ends them, cleans up, and says what there was. */
export async function runUntilTold(
  callers: readonly Promise<void>[],
  cleanUp: () => Promise<void>,
): Promise<void> {
  process.once("SIGTERM", () => {
    told.abort();
  });
  process.stdout.write("started\n");
  await Promise.all(callers);
  await cleanUp();
  const report: LoadReport = {
    answered: answers.count,
    errors: Object.fromEntries(errors),
    samples,
  };
  process.stdout.write(`report ${JSON.stringify(report)}\n`);
}

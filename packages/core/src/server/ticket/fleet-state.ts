import { backoffMs } from "../../segment/backoff.ts";
import type { IdmintError } from "../../errors.ts";
import type { Random } from "../../ports.ts";

/** How much longer a ticket database is left alone than a load is: others issue in the meantime. */
const BACKOFF_FACTOR = 5;
const MIN_RETRY_MS = 100;

/**
 * Which of several databases is asked next. Pure: the shell has the databases and their time-outs.
 *
 * INVARIANTS
 * 1. Those that answer are asked in turn.
 * 2. One that failed is asked by nobody for its back-off time (0.25 … 10 s, longer with each failure in a row), and then
 *    by one caller at a time until it answers. So a dead database costs one caller one time-out now and then.
 * 3. `generation` rises with each failure. What a caller knew of a database under an earlier one has to be asked again.
 */
export interface FleetState {
  readonly databases: readonly DatabaseHealth[];
  turn: number;
}

export interface DatabaseHealth {
  readonly name: string;
  /** In a row; 0: it answers. */
  failures: number;
  retryAt: number;
  generation: number;
  error: IdmintError | undefined;
}

export function createFleet(names: readonly string[]): FleetState {
  const databases = names.map((name) => ({
    name,
    failures: 0,
    retryAt: 0,
    generation: 0,
    error: undefined,
  }));
  return { databases, turn: 0 };
}

/**
 * The database to ask now, out of those not in `tried`; undefined when none may be asked. With one that failed before, the
 * caller is the only one to ask it for `tryMs`.
 */
export function nextDatabase(
  state: FleetState,
  now: number,
  tryMs: number,
  tried: ReadonlySet<string>,
): DatabaseHealth | undefined {
  const { databases } = state;
  for (let step = 0; step < databases.length; step++) {
    const at = (state.turn + step) % databases.length;
    const database = databases[at];
    if (database === undefined || tried.has(database.name)) continue;
    if (database.failures > 0) {
      if (now < database.retryAt) continue;
      database.retryAt = now + tryMs;
    }
    state.turn = at + 1;
    return database;
  }
  return undefined;
}

/** Whether it came back by this answer. */
export function answered(database: DatabaseHealth): boolean {
  const isBack = database.failures > 0;
  database.failures = 0;
  database.error = undefined;
  return isBack;
}

/** Whether it answered before. */
export function failed(
  database: DatabaseHealth,
  error: IdmintError,
  now: number,
  random: Random,
): boolean {
  database.failures++;
  database.generation++;
  database.error = error;
  database.retryAt = now + BACKOFF_FACTOR * backoffMs(database.failures, random);
  return database.failures === 1;
}

/** How long until some database that failed may be asked again, in milliseconds; at least 100. */
export function retryInMs({ databases }: FleetState, now: number): number {
  const failing = databases.filter(({ failures }) => failures > 0);
  if (failing.length === 0) return MIN_RETRY_MS;
  const soonest = Math.min(...failing.map(({ retryAt }) => retryAt - now));
  return Math.max(MIN_RETRY_MS, Math.ceil(soonest));
}

/**
 * The life of the worker processes behind one address. Pure: the shell `workers.ts` has the processes and the timers.
 *
 * What a worker is in:
 * - `starting`: its process runs and does not take calls yet
 * - `serving`: it takes calls
 * - `waiting`: its process ended by itself, and another one follows when the back-off is over
 * - `draining`: its process was told to stop
 * - `gone`: no process, and none will follow
 *
 * What all of them together are in:
 * - `starting`: not every worker has served yet; one that ends now ends the start
 * - `serving`: every worker has served once; one that ends is followed by another
 * - `stopping`: told to stop, or the start failed; nothing is started any more
 * - `over`: all are gone
 *
 * INVARIANTS
 * 1. A worker has at most one process: one is spawned only when there is none, and only `ended` says that there is none.
 * 2. Nothing is spawned once they are stopping.
 * 3. While they are serving each worker has a process, or a back-off that ends.
 * 4. `started` comes at most once and never after `start-failed`; `over` comes exactly once, after both, with no process
 *    left.
 */
export interface WorkersState {
  phase: "starting" | "serving" | "stopping" | "over";
  readonly workers: readonly WorkerState[];
}

interface WorkerState {
  mode: "starting" | "serving" | "waiting" | "draining" | "gone";
  /** Processes in a row that ended before they had served for long. */
  failures: number;
  /** When the process began to take calls; undefined while it has not. */
  servingSince: number | undefined;
}

export type WorkersEvent =
  | { readonly type: "serving"; readonly worker: number; readonly now: number }
  /** The process is gone, for whatever reason, or could not be made. `jitter`: in [0, 1). */
  | {
      readonly type: "ended";
      readonly worker: number;
      readonly now: number;
      readonly jitter: number;
    }
  /** The back-off is over. */
  | { readonly type: "due"; readonly worker: number }
  /** It took too long to start. */
  | { readonly type: "late"; readonly worker: number }
  | { readonly type: "stop" }
  /** Told to stop again, or the time to stop is over. */
  | { readonly type: "force" };

export type WorkersEffect =
  | { readonly type: "spawn"; readonly worker: number }
  /** Say `due` after this time. */
  | { readonly type: "wait"; readonly worker: number; readonly delayMs: number }
  | { readonly type: "drain"; readonly worker: number }
  | { readonly type: "kill"; readonly worker: number }
  | { readonly type: "started" }
  | { readonly type: "start-failed"; readonly worker: number }
  | { readonly type: "over" };

export const BACKOFF_MIN_MS = 100;
export const BACKOFF_MAX_MS = 10_000;
/** A process that served for this long is not failing in a row. */
export const SETTLED_MS = 10_000;

/** Workers of which none has a process yet, and what brings them up. */
export function startWorkers(count: number): [WorkersState, WorkersEffect[]] {
  const workers = Array.from({ length: count }, () => ({
    mode: "starting" as const,
    failures: 0,
    servingSince: undefined,
  }));
  return [{ phase: "starting", workers }, workers.map((_, worker) => ({ type: "spawn", worker }))];
}

/**
 * Takes an event and answers what to do. Events of a worker that is not there, or that came too late, change nothing.
 */
export function onWorkersEvent(state: WorkersState, event: WorkersEvent): WorkersEffect[] {
  if (state.phase === "over") return [];
  if (event.type === "stop") return stop(state);
  if (event.type === "force") return force(state);
  const worker = state.workers[event.worker];
  return worker === undefined ? [] : onWorkerEvent(state, worker, event);
}

function onWorkerEvent(
  state: WorkersState,
  worker: WorkerState,
  event: Extract<WorkersEvent, { readonly worker: number }>,
): WorkersEffect[] {
  if (event.type === "serving") return serving(state, worker, event.now);
  if (event.type === "ended") return ended(state, worker, event);
  if (event.type === "late") {
    return worker.mode === "starting" ? [{ type: "kill", worker: event.worker }] : [];
  }
  if (worker.mode !== "waiting") return [];
  worker.mode = "starting";
  return [{ type: "spawn", worker: event.worker }];
}

function serving(state: WorkersState, worker: WorkerState, now: number): WorkersEffect[] {
  if (worker.mode !== "starting") return [];
  worker.mode = "serving";
  worker.servingSince = now;
  if (state.phase !== "starting") return [];
  if (state.workers.some(({ mode }) => mode !== "serving")) return [];
  state.phase = "serving";
  return [{ type: "started" }];
}

function ended(
  state: WorkersState,
  worker: WorkerState,
  event: Extract<WorkersEvent, { readonly type: "ended" }>,
): WorkersEffect[] {
  if (worker.mode === "waiting" || worker.mode === "gone") return [];
  const { servingSince } = worker;
  worker.servingSince = undefined;
  if (state.phase === "serving") {
    if (servingSince !== undefined && event.now - servingSince >= SETTLED_MS) worker.failures = 0;
    worker.mode = "waiting";
    const delayMs = backoff(worker.failures, event.jitter);
    worker.failures++;
    return [{ type: "wait", worker: event.worker, delayMs }];
  }
  worker.mode = "gone";
  const effects: WorkersEffect[] = [];
  if (state.phase === "starting") {
    effects.push({ type: "start-failed", worker: event.worker }, ...stop(state));
  } else if (state.workers.every(({ mode }) => mode === "gone")) {
    effects.push(over(state));
  }
  return effects;
}

/**
 * The back-off after this many failures. Half of it is random, so that workers that failed together do not come back
 * together.
 */
function backoff(failures: number, jitter: number): number {
  const full = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(failures, 20));
  return full * (0.5 + jitter / 2);
}

function stop(state: WorkersState): WorkersEffect[] {
  if (state.phase === "stopping") return [];
  state.phase = "stopping";
  const effects: WorkersEffect[] = [];
  for (const [at, worker] of state.workers.entries()) {
    if (worker.mode === "waiting") worker.mode = "gone";
    if (worker.mode === "gone") continue;
    worker.mode = "draining";
    effects.push({ type: "drain", worker: at });
  }
  if (effects.length === 0) effects.push(over(state));
  return effects;
}

function force(state: WorkersState): WorkersEffect[] {
  const effects = stop(state);
  for (const [at, { mode }] of state.workers.entries()) {
    if (mode === "draining") effects.push({ type: "kill", worker: at });
  }
  return effects;
}

function over(state: WorkersState): WorkersEffect {
  state.phase = "over";
  return { type: "over" };
}

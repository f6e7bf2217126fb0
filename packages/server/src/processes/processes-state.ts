/**
 * The life of the processes behind one address. Each has a number, and another one may follow it under that number.
 * Pure: the shell `processes.ts` has the processes themselves and the timers.
 *
 * What a process is in:
 * - `starting`: it runs and does not take calls yet
 * - `serving`: it takes calls
 * - `waiting`: it ended by itself, and another one follows when the back-off is over
 * - `draining`: it was told to stop
 * - `gone`: it ended, and none will follow
 *
 * What all of them together are in:
 * - `starting`: not every process has served yet; one that ends now ends the start
 * - `serving`: every process has served once; one that ends is followed by another
 * - `stopping`: told to stop, or the start failed; nothing is started any more
 * - `over`: all are gone
 *
 * INVARIANTS
 * 1. A number has at most one process: one is spawned only when there is none, and only `ended` says that there is none.
 * 2. Nothing is spawned once they are stopping.
 * 3. While they are serving each number has a process, or a back-off that ends.
 * 4. `started` comes at most once and never after `start-failed`; `over` comes exactly once, after both, with no process
 *    left.
 */
export interface ProcessesState {
  phase: "starting" | "serving" | "stopping" | "over";
  readonly processes: readonly ProcessState[];
}

interface ProcessState {
  mode: "starting" | "serving" | "waiting" | "draining" | "gone";
  /** Processes in a row that ended before they had served for long. */
  failures: number;
  /** When the process began to take calls; undefined while it has not. */
  servingSince: number | undefined;
}

export type ProcessesEvent =
  | { readonly type: "serving"; readonly process: number; readonly now: number }
  /** The process is gone, for whatever reason, or could not be made. `jitter`: in [0, 1). */
  | {
      readonly type: "ended";
      readonly process: number;
      readonly now: number;
      readonly jitter: number;
    }
  /** The back-off is over. */
  | { readonly type: "due"; readonly process: number }
  /** It took too long to start. */
  | { readonly type: "late"; readonly process: number }
  | { readonly type: "stop" }
  /** Told to stop again, or the time to stop is over. */
  | { readonly type: "force" };

export type ProcessesEffect =
  | { readonly type: "spawn"; readonly process: number }
  /** Say `due` after this time. */
  | { readonly type: "wait"; readonly process: number; readonly delayMs: number }
  | { readonly type: "drain"; readonly process: number }
  | { readonly type: "kill"; readonly process: number }
  | { readonly type: "started" }
  | { readonly type: "start-failed"; readonly process: number }
  | { readonly type: "over" };

export const BACKOFF_MIN_MS = 100;
export const BACKOFF_MAX_MS = 10_000;
/** A process that served for this long is not failing in a row. */
export const SETTLED_MS = 10_000;

/** Processes of which none runs yet, and what brings them up. */
export function startProcesses(count: number): [ProcessesState, ProcessesEffect[]] {
  const processes = Array.from({ length: count }, () => ({
    mode: "starting" as const,
    failures: 0,
    servingSince: undefined,
  }));
  return [
    { phase: "starting", processes },
    processes.map((_, process) => ({ type: "spawn", process })),
  ];
}

/**
 * Takes an event and answers what to do. Events of a number that is not there, or that came too late, change nothing.
 */
export function onProcessesEvent(state: ProcessesState, event: ProcessesEvent): ProcessesEffect[] {
  if (state.phase === "over") return [];
  if (event.type === "stop") return stop(state);
  if (event.type === "force") return force(state);
  const process = state.processes[event.process];
  return process === undefined ? [] : onProcessEvent(state, process, event);
}

function onProcessEvent(
  state: ProcessesState,
  process: ProcessState,
  event: Extract<ProcessesEvent, { readonly process: number }>,
): ProcessesEffect[] {
  if (event.type === "serving") return serving(state, process, event.now);
  if (event.type === "ended") return ended(state, process, event);
  if (event.type === "late") {
    return process.mode === "starting" ? [{ type: "kill", process: event.process }] : [];
  }
  if (process.mode !== "waiting") return [];
  process.mode = "starting";
  return [{ type: "spawn", process: event.process }];
}

function serving(state: ProcessesState, process: ProcessState, now: number): ProcessesEffect[] {
  if (process.mode !== "starting") return [];
  process.mode = "serving";
  process.servingSince = now;
  if (state.phase !== "starting") return [];
  if (state.processes.some(({ mode }) => mode !== "serving")) return [];
  state.phase = "serving";
  return [{ type: "started" }];
}

function ended(
  state: ProcessesState,
  process: ProcessState,
  event: Extract<ProcessesEvent, { readonly type: "ended" }>,
): ProcessesEffect[] {
  if (process.mode === "waiting" || process.mode === "gone") return [];
  const { servingSince } = process;
  process.servingSince = undefined;
  if (state.phase === "serving") {
    if (servingSince !== undefined && event.now - servingSince >= SETTLED_MS) process.failures = 0;
    process.mode = "waiting";
    const delayMs = backoff(process.failures, event.jitter);
    process.failures++;
    return [{ type: "wait", process: event.process, delayMs }];
  }
  process.mode = "gone";
  const effects: ProcessesEffect[] = [];
  if (state.phase === "starting") {
    effects.push({ type: "start-failed", process: event.process }, ...stop(state));
  } else if (state.processes.every(({ mode }) => mode === "gone")) {
    effects.push(over(state));
  }
  return effects;
}

/**
 * The back-off after this many failures. Half of it is random, so that processes that failed together do not come back
 * together.
 */
function backoff(failures: number, jitter: number): number {
  const full = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(failures, 20));
  return full * (0.5 + jitter / 2);
}

function stop(state: ProcessesState): ProcessesEffect[] {
  if (state.phase === "stopping") return [];
  state.phase = "stopping";
  const effects: ProcessesEffect[] = [];
  for (const [at, process] of state.processes.entries()) {
    if (process.mode === "waiting") process.mode = "gone";
    if (process.mode === "gone") continue;
    process.mode = "draining";
    effects.push({ type: "drain", process: at });
  }
  if (effects.length === 0) effects.push(over(state));
  return effects;
}

function force(state: ProcessesState): ProcessesEffect[] {
  const effects = stop(state);
  for (const [at, { mode }] of state.processes.entries()) {
    if (mode === "draining") effects.push({ type: "kill", process: at });
  }
  return effects;
}

function over(state: ProcessesState): ProcessesEffect {
  state.phase = "over";
  return { type: "over" };
}

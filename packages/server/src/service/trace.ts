import { AsyncLocalStorage } from "node:async_hooks";

/** Something that is asked of a database, in OpenTelemetry's names. */
export type Operation = Readonly<Record<string, string | number>>;

/** A call that is traced: what is done for it becomes spans below its own. */
export interface CallTrace {
  /** For lines of the log, in the names that OpenTelemetry gives them. */
  readonly ids: { readonly trace_id: string; readonly span_id: string };
  /** Whether its caller has its answer. */
  readonly isOver: boolean;
  /** Something else is asked for the call; `end` says why it failed, and is empty where it did not. */
  operation(asked: Operation): { end(error: string): void };
  /** The call was answered with this gRPC code. */
  end(code: number): void;
}

/** Decides which calls are traced. */
export interface Tracing {
  /**
   * A call came. Undefined: it is not sampled, and then nothing was made for it. `metadata`: what it carries.
   */
  begin(path: string, metadata: { get(key: string): unknown[] }): CallTrace | undefined;
}

const traces = new AsyncLocalStorage<CallTrace | undefined>();

/**
 * The traced call that is being worked for; undefined: none, or none that still waits.
 *
 * INVARIANT: work is for a call only until the call is answered, and never what a timer does (main/system.ts). Loops that a
 * call set going carry its context for as long as they run, and what they do later is not for it.
 */
export function presentTrace(): CallTrace | undefined {
  const trace = traces.getStore();
  return trace?.isOver === false ? trace : undefined;
}

/**
 * Works for a traced call, or, with undefined, for none, whoever set the work going. Where nothing is traced it does
 * nothing else: a Node.js before 24 follows every promise from the first `run` on.
 */
export function runFor<T>(trace: CallTrace | undefined, work: () => T): T {
  return traces.getStore() === trace ? work() : traces.run(trace, work);
}

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiError } from "../api/errors.ts";
import { unansweredSince } from "./connection.ts";
import { pollWaitMs } from "./polling-state.ts";
import { mustSignIn, token } from "./session.ts";

/** What a view has of the server: what came last stays while a later call fails. */
interface Polled<T> {
  readonly data: T | undefined;
  readonly error: ApiError | undefined;
  /** When `data` came, in milliseconds since 1970. */
  readonly at: number | undefined;
  /** Whether the first answer has taken longer than people notice. */
  readonly isSlow: boolean;
}

const NOTHING: Polled<never> = { data: undefined, error: undefined, at: undefined, isSlow: false };
const SLOW_MS = 1_500;

export interface PollOptions {
  readonly everyMs?: number;
}

export interface Poll<T> {
  readonly state: ReadonlySignal<Polled<T>>;
  /** Asks now: after a change, or because somebody wants to see. */
  readonly refresh: () => void;
}

/**
 * Keeps what `load` answers up to date while the view is seen. `key` says what is asked for: another one begins anew, and
 * an answer to the old one is dropped. One call at a time.
 */
export function usePoll<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  { everyMs = 2_000 }: PollOptions = {},
): Poll<T> {
  const state = useSignal<Polled<T>>(NOTHING);
  const latest = useRef(load);
  latest.current = load;
  const refresh = useRef<() => void>(() => undefined);
  const who = token.value;
  const isAllowed = !mustSignIn.value;
  useEffect(() => {
    state.value = NOTHING;
    if (!isAllowed) return undefined;
    const loop = startLoop((signal) => latest.current(signal), state, everyMs);
    refresh.current = loop.refresh;
    return loop.stop;
  }, [key, who, isAllowed, everyMs]);
  return { state, refresh: () => refresh.current() };
}

interface Loop {
  readonly refresh: () => void;
  readonly stop: () => void;
}

function startLoop<T>(
  load: (signal: AbortSignal) => Promise<T>,
  state: { value: Polled<T> },
  everyMs: number,
): Loop {
  const ended = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let isAsking = false;
  let isDue = false;
  const slow = setTimeout(() => {
    if (state.value === NOTHING) state.value = { ...NOTHING, isSlow: true };
  }, SLOW_MS);
  const ask = async (): Promise<void> => {
    clearTimeout(timer);
    if (isAsking) {
      isDue = true;
      return;
    }
    isAsking = true;
    isDue = false;
    try {
      const data = await load(ended.signal);
      if (ended.signal.aborted) return;
      failures = 0;
      state.value = { data, error: undefined, at: Date.now(), isSlow: false };
    } catch (thrown) {
      if (ended.signal.aborted) return;
      if (!(thrown instanceof ApiError)) throw thrown;
      failures += 1;
      state.value = { ...state.value, error: thrown, isSlow: false };
    } finally {
      isAsking = false;
      if (!ended.signal.aborted) plan();
    }
  };
  const plan = (): void => {
    const ms = isDue ? 0 : pollWaitMs({ everyMs, failures, random: Math.random() });
    // Nobody looks at a tab in the background; it asks when it is seen again.
    if (!document.hidden) timer = setTimeout(() => void ask(), ms);
  };
  const onVisible = (): void => {
    if (!document.hidden) void ask();
  };
  document.addEventListener("visibilitychange", onVisible);
  // As soon as any call is answered again, everything on the page is asked for again.
  const unsubscribe = unansweredSince.subscribe((since) => {
    if (since === undefined && failures > 0) void ask();
  });
  void ask();
  return {
    refresh: () => void ask(),
    stop: () => {
      ended.abort();
      clearTimeout(timer);
      clearTimeout(slow);
      unsubscribe();
      document.removeEventListener("visibilitychange", onVisible);
    },
  };
}

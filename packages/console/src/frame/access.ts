import { useEffect } from "preact/hooks";
import { ApiError } from "../api/errors.ts";
import { learnAccess } from "../state/sign-in.ts";
import { pollWaitMs } from "../state/polling-state.ts";
import { mustSignIn, token } from "../state/session.ts";

/** Rights may change at any time, by a new file of principals say. */
const EVERY_MS = 60_000;
const FIRST_RETRY_MS = 1_000;

/** Keeps what the caller may up to date. */
export function useAccess(): void {
  const isKnown = !mustSignIn.value;
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    const learn = async (): Promise<void> => {
      try {
        await learnAccess(ended.signal);
        failures = 0;
      } catch (thrown) {
        if (ended.signal.aborted) return;
        if (!(thrown instanceof ApiError)) throw thrown;
        failures += 1;
      }
      const everyMs = failures === 0 ? EVERY_MS : FIRST_RETRY_MS;
      timer = setTimeout(
        () => void learn(),
        pollWaitMs({ everyMs, failures, random: Math.random() }),
      );
    };
    if (isKnown) void learn();
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [isKnown, token.value]);
}

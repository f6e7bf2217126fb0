import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** The time of now, anew every so often, for what is shown of it. */
export function useNow(everyMs: number): number {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => {
      now.value = Date.now();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now.value;
}

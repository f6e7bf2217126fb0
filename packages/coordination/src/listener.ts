import { invalidField } from "./errors.ts";

/** A caller's listener, made harmless: one that throws must not cost its caller a lock. */
export function safely<E>(onEvent: ((event: E) => void) | undefined): (event: E) => void {
  if (onEvent === undefined) return () => undefined;
  if (typeof onEvent !== "function") throw invalidField("onEvent", "must be a function");
  return (event) => {
    try {
      onEvent(event);
    } catch {
      // Events are for logs and metrics only.
    }
  };
}

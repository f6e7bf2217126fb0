import { type ReadonlySignal, signal } from "@preact/signals";

/** Since when no call was answered, in milliseconds since 1970; undefined: the last one was. */
const since = signal<number | undefined>(undefined);

export const unansweredSince: ReadonlySignal<number | undefined> = since;

/** A server answered, be it with an error. */
export function answered(): void {
  since.value = undefined;
}

export function unanswered(): void {
  since.value ??= Date.now();
}

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { keptIn } from "./kept.ts";

/** Only this tab, and only until it is closed: another page of the same origin, or a later visitor, finds nothing. */
const kept = keptIn(() => sessionStorage, "idmint.token");

const shown = signal(kept.read() ?? "");
const asked = signal(false);

/** What calls prove themselves with; empty: nothing. */
export const token: ReadonlySignal<string> = shown;

/** Whether the server wants to know who calls, or does not believe what is shown. */
export const mustSignIn: ReadonlySignal<boolean> = asked;

/** Whether somebody came in by a token, who may sign out. */
export const hasToken: ReadonlySignal<boolean> = computed(() => shown.value !== "");

/** Uses a token, and keeps it once the server has believed it. */
export function useToken(text: string): void {
  shown.value = text;
}

export function keepToken(): void {
  kept.write(shown.value);
  asked.value = false;
}

export function forgetToken(): void {
  kept.write(undefined);
  shown.value = "";
  asked.value = true;
}

/** A call was UNAUTHENTICATED. An answer to an older token says nothing about the present one. */
export function notBelieved(used: string): void {
  if (used === shown.value) asked.value = true;
}

import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { keptIn } from "./kept.ts";

export type Theme = "auto" | "light" | "dark";
export type Language = "en" | "zh";
export type Zone = "local" | "utc";

interface Setting<T extends string> {
  readonly value: ReadonlySignal<T>;
  readonly set: (value: T) => void;
}

/** What a person chose, for every visit; it names nobody and is no secret. */
function setting<T extends string>(name: string, all: readonly T[], first: T): Setting<T> {
  const kept = keptIn(() => localStorage, `idmint.${name}`);
  const before = kept.read();
  const value = signal<T>(all.find((one) => one === before) ?? first);
  const set = (chosen: T): void => {
    value.value = chosen;
    kept.write(chosen);
  };
  return { value, set };
}

export const theme: Setting<Theme> = setting("theme", ["auto", "light", "dark"], "auto");
export const language: Setting<Language> = setting(
  "language",
  ["en", "zh"],
  navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en",
);
export const zone: Setting<Zone> = setting("zone", ["local", "utc"], "local");

/** Writes the choices where style sheets and screen readers see them. */
export function applySettings(): void {
  effect(() => {
    const root = document.documentElement;
    if (theme.value.value === "auto") delete root.dataset["theme"];
    else root.dataset["theme"] = theme.value.value;
    root.lang = language.value.value === "zh" ? "zh-Hans" : "en";
  });
}

import { language } from "../state/settings.ts";
import { en } from "./en.ts";
import { fill } from "./fill.ts";
import { zh } from "./zh.ts";

export type TextKey = keyof typeof en;

/** A text in the chosen language. Reads a signal, so what shows it is shown anew when the language changes. */
export function t(key: TextKey, values: Readonly<Record<string, string | number>> = {}): string {
  const texts = language.value.value === "zh" ? zh : en;
  return fill(texts[key], values);
}

/** The text of `prefix.NAME`, or the name itself: a newer server may answer names that this console does not know. */
export function tOr(prefix: string, name: string): string {
  const key = `${prefix}.${name}`;
  return key in en ? t(key as TextKey) : name;
}

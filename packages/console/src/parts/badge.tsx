import type { ComponentChildren, JSX } from "preact";

export type Mood = "good" | "warn" | "bad" | "idle";

/** A state in a word. Its colour repeats what the word says, for those who see it. */
export function Badge({
  mood,
  children,
}: {
  readonly mood: Mood;
  readonly children: ComponentChildren;
}): JSX.Element {
  return <span class={`badge ${mood}`}>{children}</span>;
}

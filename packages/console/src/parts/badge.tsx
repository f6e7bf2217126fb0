import type { ComponentChildren, JSX } from "preact";

export type BadgeTone = "good" | "warn" | "bad" | "idle";

/** A state in a word. Its colour repeats what the word says, for those who see it. */
export function Badge({
  tone,
  children,
}: {
  readonly tone: BadgeTone;
  readonly children: ComponentChildren;
}): JSX.Element {
  return <span class={`badge ${tone}`}>{children}</span>;
}

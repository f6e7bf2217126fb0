import type { Writable } from "node:stream";

/** What a drawing begins with: it goes over what was drawn before. */
export const CLEAR_LINE = "\r\u001B[K";
export const CLEAR_SCREEN = "\u001B[H\u001B[J";
type Drawing = typeof CLEAR_LINE | typeof CLEAR_SCREEN;

/** What a command uses of the process. Tests pass their own. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes data. Wait for the promise before writing more: it keeps pace with the reader. */
  out(text: string, first?: Drawing): Promise<void>;
  /** Writes text for people. */
  err(text: string, first?: Drawing): void;
  /** Asks on the terminal for one line; undefined when there is no terminal. Answers undefined when it gets no line. */
  readonly ask?: ((question: string) => Promise<string | undefined>) | undefined;
  /** Whether stdout and stderr are read by a person on a terminal. Absent: neither is. */
  readonly isTerminal?: { readonly out: boolean; readonly err: boolean } | undefined;
  /** Aborted by the first Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Writes, and waits until a slow reader has caught up. */
export async function writeTo(stream: Writable, text: string): Promise<void> {
  if (stream.write(text)) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      stream.off("drain", done);
      stream.off("close", done);
      resolve();
    };
    stream.on("drain", done);
    stream.on("close", done);
  });
}

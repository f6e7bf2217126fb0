import type { Writable } from "node:stream";

/** The world as a command sees it; tests pass their own. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Data. The promise is the reader's pace: wait for it before writing more. */
  out(text: string): Promise<void>;
  /** Words. */
  err(text: string): void;
  /** Aborted by the first Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Writes, and waits while the reader is slower than we are. */
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

import type { ReadStream, WriteStream } from "node:tty";
import type { Io } from "./io.ts";

/**
 * Asks on the terminal that this process was started from; undefined when there is none. The question goes to stderr,
 * since stdout is data. The answer is undefined when the terminal was closed (Ctrl-D) or the signal fired (Ctrl-C).
 */
export function askerOn(
  input: Pick<ReadStream, "isTTY"> & NodeJS.ReadableStream,
  output: Pick<WriteStream, "isTTY"> & NodeJS.WritableStream,
  signal: AbortSignal,
): Io["ask"] {
  if (!input.isTTY || !output.isTTY) return undefined;
  return async (question) => {
    // Few commands ask, and the others start faster without this module.
    const { createInterface } = await import("node:readline");
    // With the terminal's own line editing, Ctrl-C stays a signal.
    const lines = createInterface({ input, output, terminal: false });
    return new Promise((resolve) => {
      const end = (): void => lines.close();
      lines.once("close", () => {
        signal.removeEventListener("abort", end);
        resolve(undefined);
      });
      signal.addEventListener("abort", end, { once: true });
      lines.question(question, (answer) => {
        resolve(answer);
        lines.close();
      });
      if (signal.aborted) end();
    });
  };
}

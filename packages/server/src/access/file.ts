import { readFile, stat } from "node:fs/promises";
import { IdmintError, invalidField } from "@idmint/core";

/** How often the file is read again. */
const EVERY_MS = 2_000;
const MAX_BYTES = 4 * 1_024 * 1_024;

/** A file that says who callers are. */
export interface FileKind<T> {
  /** The option that names it. */
  readonly field: string;
  /** Throws INVALID_ARGUMENT that shows no secret. */
  readonly parse: (text: string) => T;
}

interface WatchedFile {
  close(): void;
}

/**
 * Reads the file, and reads it again and again; what it says goes to `onRead`. Rejects with INVALID_ARGUMENT where it is wrong
 * at first; a later one that is wrong is told once to `onBad`, and what it said before stays.
 */
export async function watchFile<T>(
  { field, parse }: FileKind<T>,
  path: string,
  { onRead, onBad }: { onRead: (contents: T) => void; onBad: (error: IdmintError) => void },
  everyMs: number = EVERY_MS,
): Promise<WatchedFile> {
  let text = await readBounded(field, path);
  onRead(parse(text));
  let told = "";
  const look = async (): Promise<void> => {
    try {
      const next = await readBounded(field, path);
      if (next !== text) onRead(parse(next));
      text = next;
      told = "";
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      if (error.message !== told) onBad(error);
      told = error.message;
    }
    if (!isClosed) timer = setTimeout(() => void look(), everyMs).unref();
  };
  let isClosed = false;
  let timer = setTimeout(() => void look(), everyMs).unref();
  return {
    close: () => {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

async function readBounded(field: string, path: string): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size > MAX_BYTES) throw invalidField(field, `must be at most 4 MiB: ${path}`);
    return await readFile(path, "utf8");
  } catch (thrown) {
    if (thrown instanceof IdmintError) throw thrown;
    const { code = "" } = thrown as NodeJS.ErrnoException;
    throw invalidField(field, `names a file that cannot be read (${code}): ${path}`);
  }
}

import { readFile, stat } from "node:fs/promises";
import { IdmintError, invalidField } from "@idmint/core";
import type { AccessFile } from "@idmint/core/server";
import { parseAccess } from "./parse.ts";

/** How often the file is read again. */
const EVERY_MS = 2_000;
const MAX_BYTES = 4 * 1_024 * 1_024;

export interface WatchedFile {
  /** What it says now; later changes go to `onChange`. */
  readonly contents: AccessFile;
  close(): void;
}

/**
 * Reads the file, and reads it again and again. Rejects with INVALID_ARGUMENT where it is wrong at first; a later one that is
 * wrong is told once to `onBad`, and what it said before stays.
 */
export async function watchAccessFile(
  path: string,
  onChange: (contents: AccessFile) => void,
  onBad: (error: IdmintError) => void,
  everyMs: number = EVERY_MS,
): Promise<WatchedFile> {
  let text = await readBounded(path);
  const contents = parseAccess(text);
  let told = "";
  const look = async (): Promise<void> => {
    try {
      const next = await readBounded(path);
      if (next !== text) onChange(parseAccess(next));
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
    contents,
    close: () => {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

async function readBounded(path: string): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size > MAX_BYTES) throw invalidField("access.file", `must be at most 4 MiB: ${path}`);
    return await readFile(path, "utf8");
  } catch (thrown) {
    if (thrown instanceof IdmintError) throw thrown;
    const { code = "" } = thrown as NodeJS.ErrnoException;
    throw invalidField("access.file", `names a file that cannot be read (${code}): ${path}`);
  }
}

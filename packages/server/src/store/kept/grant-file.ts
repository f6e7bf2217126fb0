import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { IdmintError } from "@idmint/core";
import type { GrantFile } from "@idmint/core/server";
import type { Origin } from "./contents.ts";

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR } = constants;
const FORMAT = "idmint grants 1";

export interface GrantFileOptions {
  /** Of the run of the machine, and of the lock that is held for as long as the file is open. */
  readonly origin: Omit<Origin, "file">;
  readonly offsetMs: number;
  /** It says nothing from now on, since it could not be written; told once until it is written again. */
  readonly onFailed: (error: IdmintError) => void;
}

export interface OpenGrantFile extends GrantFile {
  close(): void;
}

/**
 * Opens the file of a server's grants (core's kept-grants-state.ts says what it is for). It lies beside the file of the leases,
 * under the lock of that one, and is believed by the same rules (lease-file.ts).
 *
 * INVARIANT: what was appended is read by the next life, or nothing is. The kernel has it when `append` returns, which survives
 * the process, and no file is believed after the machine was started anew; so nothing is synced. A file that cannot be written
 * is emptied, which needs no room. It is written without waiting, since a grant waits for it: that takes a few µs.
 */
export function openGrantFile(name: string, options: GrantFileOptions): OpenGrantFile {
  return new OwnFile(name, options);
}

class OwnFile implements OpenGrantFile {
  readonly offsetMs: number;
  #found: string | undefined;
  readonly #name: string;
  readonly #origin: GrantFileOptions["origin"];
  readonly #onFailed: GrantFileOptions["onFailed"];
  #fd: number | undefined;
  #size = 0;
  #isEmpty = true;
  #isFailing = false;

  constructor(name: string, { origin, offsetMs, onFailed }: GrantFileOptions) {
    this.#name = name;
    this.#origin = origin;
    this.#onFailed = onFailed;
    this.offsetMs = offsetMs;
    this.#found = this.#read();
  }

  get found(): string | undefined {
    return this.#found;
  }

  get size(): number {
    return this.#size;
  }

  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  append(text: string): void {
    if (this.#isEmpty) return;
    if (this.#fd === undefined) throw notEmptied(new Error("it is closed"));
    try {
      this.#write(this.#fd, text);
    } catch (cause) {
      this.#empty(cause);
    }
  }

  /** The old file says nothing before the new one has its name, so that at most one may be believed. */
  replace(text: string): void {
    const next = `${this.#name}.next`;
    let fd: number | undefined;
    try {
      rmSync(next, { force: true });
      fd = openSync(next, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      this.#size = 0;
      this.#write(fd, `${this.#header(fd)}\n${text}`);
      if (this.#fd !== undefined) ftruncateSync(this.#fd, 0);
      // failpoint: grants-emptied
      renameSync(next, this.#name);
      if (this.#fd !== undefined) closeSync(this.#fd);
      this.#fd = fd;
      this.#found = undefined;
      this.#isEmpty = false;
      this.#isFailing = false;
    } catch (cause) {
      if (fd !== undefined) closeSync(fd);
      this.#empty(cause);
    }
  }

  /** What was granted or given back afterwards would be missing, so neither is done any more. */
  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #write(fd: number, text: string): void {
    const bytes = Buffer.byteLength(text);
    const written = writeSync(fd, text);
    if (written !== bytes) throw new Error("it was written in part");
    this.#size += bytes;
  }

  #empty(cause: unknown): void {
    try {
      if (this.#fd !== undefined) ftruncateSync(this.#fd, 0);
      else rmSync(this.#name, { force: true });
    } catch (worse) {
      throw notEmptied(worse);
    }
    this.#isEmpty = true;
    if (!this.#isFailing) this.#onFailed(notWritten(cause));
    this.#isFailing = true;
  }

  #read(): string | undefined {
    let fd: number | undefined;
    try {
      fd = openSync(this.#name, O_RDWR | O_APPEND | O_NOFOLLOW);
      const text = readFileSync(fd, "utf8");
      const end = text.indexOf("\n");
      if (end === -1 || text.slice(0, end) !== this.#header(fd)) {
        closeSync(fd);
        return undefined;
      }
      this.#fd = fd;
      return text.slice(end + 1);
    } catch {
      // What cannot be read says nothing, and is replaced.
      if (fd !== undefined) closeSync(fd);
      return undefined;
    }
  }

  /** Of the opened file, so that a copy has another one. */
  #header(fd: number): string {
    const { dev, ino, birthtimeNs } = fstatSync(fd, { bigint: true });
    const { boot, lock } = this.#origin;
    return JSON.stringify({ format: FORMAT, boot, lock, file: `${dev}/${ino}/${birthtimeNs}` });
  }
}

const WHICH = "the file of grants beside snowflake.cache_file";

function notWritten(cause: unknown): IdmintError {
  const text = `${WHICH} cannot be written, so this server will know nothing of its grants when it is restarted`;
  return new IdmintError("STORE_UNAVAILABLE", text, { retryAfterMs: 1_000, cause });
}

/** A refusal, so that the state of the server names it. */
function notEmptied(cause: unknown): IdmintError {
  const text = `${WHICH} can be neither written nor emptied, and would say too little of what was granted after a restart; remove the file`;
  const metadata = { refusal: "true" };
  return new IdmintError("STORE_UNAVAILABLE", text, { metadata, retryAfterMs: 1_000, cause });
}

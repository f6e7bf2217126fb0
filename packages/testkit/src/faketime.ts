// Wall clocks of other processes that a test sets, by libfaketime.
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { debianFiles } from "./debian.ts";

const LIBRARY = "faketime/libfaketimeMT.so.1";

let library: string | undefined;

/**
 * For processes that shall have a wall clock which is so far ahead of the machine's (negative: behind) and stays so. Time
 * that is measured (the monotonic clock) stays true.
 */
export function wallClockEnv(offsetMs: number): Readonly<Record<string, string>> {
  return {
    LD_PRELOAD: faketimeLibrary(),
    FAKETIME: offsetText(offsetMs),
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
}

/**
 * A wall clock that processes started with `env` have, and that a test sets while they run. Not for programs that look at
 * the time in signal handlers, as PostgreSQL does: the library then reads a file there, and the program crashes now and
 * then. Close it.
 */
export class FakeWallClock implements Disposable {
  /** For processes that shall have this clock. Time that is measured (the monotonic clock) stays true. */
  readonly env: Readonly<Record<string, string>>;
  readonly #folder: string;
  readonly #file: string;

  /** `offsetMs` is how far it is ahead of the machine's clock; negative when it is behind. */
  constructor(offsetMs: number) {
    this.#folder = mkdtempSync(path.join(tmpdir(), "idmint-clock-"));
    this.#file = path.join(this.#folder, "offset");
    this.set(offsetMs);
    this.env = {
      LD_PRELOAD: faketimeLibrary(),
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
  }

  /** Sets the clock, as an operator would: at once, to any time. */
  set(offsetMs: number): void {
    const next = `${this.#file}.next`;
    writeFileSync(next, `${offsetText(offsetMs)}\n`);
    // Whole or not at all: who reads an empty file has the machine's time.
    renameSync(next, this.#file);
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function offsetText(offsetMs: number): string {
  return `${offsetMs < 0 ? "-" : "+"}${(Math.abs(offsetMs) / 1_000).toFixed(3)}`;
}

/** Path of the library; installed or unpacked at the first call when the machine has none. */
function faketimeLibrary(): string {
  library ??= debianFiles({
    name: "faketime",
    packages: ["libfaketime"],
    find: (unpacked) => libraryIn("/usr/lib") ?? libraryIn(path.join(unpacked, "usr/lib")),
    hint: "no libfaketime for the tests: install Debian's package libfaketime",
  });
  return library;
}

function libraryIn(folder: string): string | undefined {
  if (!existsSync(folder)) return undefined;
  return readdirSync(folder)
    .map((platform) => path.join(folder, platform, LIBRARY))
    .find((file) => existsSync(file));
}

// Wall clocks of other processes that a test sets: Debian's libfaketime, installed by root or unpacked by anybody.
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const LIBRARY = "faketime/libfaketimeMT.so.1";
const cache = path.resolve(import.meta.dirname, "../../../node_modules/.cache/idmint-faketime");

const INSTALL = `
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 libfaketime; }
install || { apt-get update && install; }`;

const UNPACK = `
apt-get download libfaketime || exit
rm -rf unpacked && mkdir unpacked || exit
for file in *.deb; do dpkg -x "$file" unpacked || exit; done
rm -rf usr && mv unpacked/usr usr && rm -rf unpacked *.deb`;

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
  library ??= libraryIn("/usr/lib") ?? libraryIn(path.join(cache, "usr/lib")) ?? installed();
  return library;
}

function installed(): string {
  mkdirSync(cache, { recursive: true });
  const script = process.getuid?.() === 0 ? INSTALL : UNPACK;
  // The kernel lets go of the lock when its holder dies. Whoever waited finds the work done.
  const { status, stderr, error } = spawnSync("flock", ["-w", "300", "lock", "sh", "-c", script], {
    cwd: cache,
    encoding: "utf8",
    timeout: 600_000,
  });
  const found = libraryIn("/usr/lib") ?? libraryIn(path.join(cache, "usr/lib"));
  if (status === 0 && found !== undefined) return found;
  const why = error?.message ?? stderr.trim().split("\n").at(-1) ?? "";
  throw new Error(`no libfaketime for the tests: install Debian's package libfaketime (${why})`);
}

function libraryIn(folder: string): string | undefined {
  if (!existsSync(folder)) return undefined;
  return readdirSync(folder)
    .map((platform) => path.join(folder, platform, LIBRARY))
    .find((file) => existsSync(file));
}

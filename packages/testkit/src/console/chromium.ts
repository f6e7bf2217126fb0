// A real Chromium: found on the machine, or installed from Debian's package.
import { type Browser, chromium } from "playwright-core";
import { debianFiles, programOf } from "../debian.ts";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];
const HINT =
  "The tests of the console need Chromium: install Debian's package chromium, or Google Chrome";
/** Longest start, on a machine that does much else. */
const START_TIMEOUT_MS = 60_000;
/** It talks to the servers of the tests only, and is nobody's but the test's. */
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts a browser. It ends with this process, however that ends. `more`: further arguments. */
export async function startChromium(more: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumFile(),
    args: [...ARGUMENTS, ...more],
    headless: true,
    timeout: START_TIMEOUT_MS,
  });
}

function chromiumFile(): string {
  const present = find();
  if (present !== undefined) return present;
  // Unpacked, it would lack what a system without a screen has not got either.
  if (process.getuid?.() !== 0) throw new Error(HINT);
  return debianFiles({ name: "chromium", packages: ["chromium"], find, hint: HINT });
}

function find(): string | undefined {
  return programOf("", NAMES)?.command;
}

import { spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cleanEnv, CLI } from "./spawn.ts";

/** A program on a terminal of its own, as `script` makes one. */
export interface Terminal {
  readonly type: (text: string) => void;
  /** What it wrote since the beginning, without escape sequences. */
  readonly screen: () => string;
  /** The same with them. */
  readonly raw: () => string;
  /** Waits until something stands there after `from` characters; answers how many there are then. */
  readonly until: (pattern: RegExp, from?: number) => Promise<number>;
  readonly ended: Promise<void>;
  readonly end: () => Promise<void>;
}

const MAX_WAIT_MS = 60_000;
// Cursor movements and colours, titles of windows, and what they are asked to answer.
const ESCAPES =
  // oxlint-disable-next-line no-control-regex
  /\u001B(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\)|[()][A-Z0-9]|[=>78])/g;

/** Runs a line of `sh` on a terminal. */
export function onTerminal(line: string, env: Readonly<Record<string, string>> = {}): Terminal {
  const sized = `stty cols 180 rows 60; exec ${line}`;
  const child = spawn("script", ["-qfec", sized, "/dev/null"], {
    env: { ...cleanEnv(), TERM: "xterm", ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let raw = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    raw += text;
    // fish asks the terminal who it is, and waits for the answer.
    if (["\u001B[c", "\u001B[0c"].some((question) => text.includes(question)))
      child.stdin.write("\u001B[?1;2c");
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve());
  });
  const screen = (): string => raw.replaceAll(ESCAPES, "");
  return {
    type: (text) => void child.stdin.write(text),
    screen,
    raw: () => raw,
    until: async (pattern, from = 0) => {
      const end = performance.now() + MAX_WAIT_MS;
      while (!pattern.test(screen().slice(from))) {
        if (performance.now() > end) {
          throw new Error(`not within ${MAX_WAIT_MS} ms: ${pattern} in:\n${screen().slice(from)}`);
        }
        // When its program is stopped for a while, script stops itself too and stays so.
        child.kill("SIGCONT");
        await sleep(50);
      }
      return screen().length;
    },
    ended,
    end: async () => {
      // The program is hung up with it.
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Puts a program called `idmint` into a folder: the CLI from source. */
export function installIn(folder: string): void {
  const file = path.join(folder, "idmint");
  const words = CLI.map((word) => `'${word}'`).join(" ");
  writeFileSync(file, `#!/bin/sh\nexec ${words} "$@"\n`);
  chmodSync(file, 0o755);
}

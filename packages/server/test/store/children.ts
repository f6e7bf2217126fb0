import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { builtOf } from "@idmint/testkit";
import type { StoreConfig } from "../../src/store/open-store.ts";

/** Ids that a process got. */
export interface Range {
  readonly from: bigint;
  readonly to: bigint;
}

/** A process that takes grants; what it got counts up to the last whole line it wrote. */
export class GrantChild {
  readonly ranges: Range[] = [];
  readonly refused: Map<string, number> = new Map();
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;

  /** `limitKiB`: no file may grow past it, so commits fail as on a full disk. */
  constructor(
    config: StoreConfig,
    tag: string,
    options: { count?: number; limitKiB?: number } = {},
  ) {
    const file = builtOf("packages/server/test/store/grant-child.ts");
    const args = [
      "-C",
      "idmint-source",
      file,
      JSON.stringify(config),
      tag,
      String(options.count ?? 10),
    ];
    // Node ignores SIGXFSZ, so a write past the limit fails and kills nobody. The unit of bash is KiB, of POSIX 512 bytes.
    const limited = [
      "-c",
      `ulimit -f ${(options.limitKiB ?? 0) * 2}; exec "$@"`,
      "sh",
      process.execPath,
      ...args,
    ];
    this.#process =
      options.limitKiB === undefined
        ? spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
        : spawn("/bin/sh", limited, { stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: this.#process.stdout as NodeJS.ReadableStream });
    lines.on("line", (line) => this.#take(line));
    this.#ended = new Promise((resolve) => lines.once("close", resolve));
  }

  #take(line: string): void {
    const [word = "", first = "", second = ""] = line.split(" ");
    if (word === "granted") {
      const from = BigInt(first);
      this.ranges.push({ from, to: from + BigInt(second) - 1n });
    } else if (word !== "open") {
      this.refused.set(first, (this.refused.get(first) ?? 0) + 1);
    }
  }

  /** Waits until it has got so many grants. */
  async reached(grants: number): Promise<void> {
    await until(() => this.ranges.length >= grants);
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#ended;
  }
}

/** Waits for a condition; fails after 30 s. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 30_000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error("did not happen within 30 s");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/**
 * Runs a program to its end. Files of an open SQLite store are copied like this: opening and closing them in this process
 * would drop SQLite's locks.
 */
export function run(command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** Runs statements on a SQLite file, in another process. */
export function sqlInAnotherProcess(file: string, sql: string): string {
  const code = `
    const { DatabaseSync } = require("node:sqlite");
    const db = new DatabaseSync(process.argv[1]);
    db.exec("PRAGMA busy_timeout = 2000");
    db.exec(process.argv[2]);
    db.close();`;
  return run(process.execPath, "--no-warnings", "-e", code, file, sql);
}

/** A process that puts two folders at one place by turns, as fast as it can; the first one lies there at its end. */
export class SwapChild {
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;

  constructor(here: string, first: string, second: string) {
    const code = `
      const { renameSync } = require("node:fs");
      const [here, first, second] = process.argv.slice(1);
      const nap = new Int32Array(new SharedArrayBuffer(4));
      let isTold = false;
      process.on("SIGTERM", () => { isTold = true; });
      (function turn() {
        if (isTold) process.exit();
        renameSync(here, first); renameSync(second, here);
        Atomics.wait(nap, 0, 0, Math.random() * 3);
        renameSync(here, second); renameSync(first, here);
        Atomics.wait(nap, 0, 0, Math.random() * 6);
        setImmediate(turn);
      })();`;
    this.#process = spawn(process.execPath, ["-e", code, here, first, second], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    this.#ended = new Promise((resolve) => this.#process.once("exit", () => resolve()));
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGTERM");
    await this.#ended;
  }
}

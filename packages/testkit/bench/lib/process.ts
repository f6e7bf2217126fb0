// Child processes of the benchmarks: pinned, measured, and gone when the benchmark ends.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";

const TICKS_PER_SECOND = 100;
const STOP_TIMEOUT_MS = 15_000;
const running = new Set<ChildProcess>();

/** Environment of all of them, besides PATH. */
export const commonEnv: Record<string, string> = {};

process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** A process that is measured from outside. */
export class Subject implements AsyncDisposable {
  readonly name: string;
  readonly #child: ChildProcess;
  #output = "";

  constructor(
    name: string,
    command: readonly string[],
    options: { readonly env?: Readonly<Record<string, string>>; readonly ipc?: boolean } = {},
  ) {
    this.name = name;
    const [program = "", ...args] = command;
    const { env = {}, ipc = false } = options;
    this.#child = spawn(program, args, {
      env: { PATH: process.env["PATH"], ...commonEnv, ...env },
      stdio: ["ignore", "pipe", "pipe", ...(ipc ? (["ipc"] as const) : [])],
    });
    running.add(this.#child);
    this.#child.once("exit", () => running.delete(this.#child));
    const keep = (text: string): void => {
      this.#output = (this.#output + text).slice(-100_000);
    };
    this.#child.stdout?.setEncoding("utf8").on("data", keep);
    this.#child.stderr?.setEncoding("utf8").on("data", keep);
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error(`${this.name} did not start`);
    return pid;
  }

  /** Everything it wrote. */
  get output(): string {
    return this.#output;
  }

  /** Waits until what it wrote matches; fails at once when it ends before. */
  async saying(pattern: RegExp, withinMs = 30_000): Promise<RegExpExecArray> {
    const end = performance.now() + withinMs;
    for (;;) {
      const match = pattern.exec(this.#output);
      if (match !== null) return match;
      const { exitCode, signalCode } = this.#child;
      if (exitCode !== null || signalCode !== null || performance.now() > end) {
        throw new Error(`${this.name} did not say ${String(pattern)}:\n${this.#output}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Sends a message and waits for the answer to it; with `ipc` only. */
  async ask<Answer>(message: object): Promise<Answer> {
    const answer = once(this.#child, "message", { signal: AbortSignal.timeout(30_000) });
    this.#child.send(message);
    const [value] = (await answer) as [Answer];
    return value;
  }

  /** Waits for its end and answers what it wrote; fails unless it ends with 0. */
  async toEnd(withinMs: number): Promise<string> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      await once(this.#child, "close", { signal: AbortSignal.timeout(withinMs) });
    }
    if (this.#child.exitCode !== 0) throw new Error(`${this.name} failed:\n${this.#output}`);
    return this.#output;
  }

  /** Seconds of processor time used so far, by all of its threads and by all processes that it started, at any depth. */
  get cpuSeconds(): number {
    // Descendants first: whoever ends meanwhile is counted with the time that its parent waited for.
    const below = cpuSecondsBelow(this.pid);
    return below + cpuSecondsIn(readFileSync(`/proc/${this.pid}/stat`, "utf8"));
  }

  /** Bytes of memory in use by this process alone. */
  get rssBytes(): number {
    return this.#bytesOf("VmRSS");
  }

  /** Memory that is its own: without pages of files, such as Node's program, which processes share. */
  get anonymousBytes(): number {
    return this.#bytesOf("RssAnon");
  }

  #bytesOf(name: string): number {
    const status = readFileSync(`/proc/${this.pid}/status`, "utf8");
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1_024;
  }

  /** Tells it to stop, and makes it when it does not. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(timer);
  }
}

function cpuSecondsBelow(pid: number): number {
  return childrenOf(pid).reduce((sum, child) => {
    const below = cpuSecondsBelow(child);
    const stat = readUnlessGone(`/proc/${child}/stat`);
    return sum + below + (stat === "" ? 0 : cpuSecondsIn(stat));
  }, 0);
}

/** Of the process itself, and of those of its children that ended and that it waited for. */
function cpuSecondsIn(stat: string): number {
  // The name may hold spaces and parentheses; the rest follows the last one.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return ticks / TICKS_PER_SECOND;
}

function childrenOf(pid: number): readonly number[] {
  const tasks = `/proc/${pid}/task`;
  return (existsSync(tasks) ? readdirSync(tasks) : []).flatMap((task) => {
    const children = readUnlessGone(`${tasks}/${task}/children`);
    return children.trim().split(" ").filter(Boolean).map(Number);
  });
}

/** Empty when the process or the thread has ended. */
function readUnlessGone(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ESRCH") return "";
    throw error;
  }
}
